//! Provides contexts from outside of the session: files, databases, REST (S4.22). They are material, unless
//! the operator makes a file part of the system prompt.

mod database;
mod file;
mod rest;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::provider::{ContextError, ContextProvider, ContextSession};
use super::value::Context;
use sepal_core::domain::TenantId;

pub use self::database::{DatabaseError, DatabaseProvider};
pub use self::file::{FileProvider, FileRole};
pub use self::rest::ApiProvider;

/// The most records of a source, whatever its settings say.
const MAX_RECORDS: usize = 1_000;

/// A provider for the sessions of some tenants only.
pub struct OfTenants {
    provider: Arc<dyn ContextProvider>,
    tenants: BTreeSet<TenantId>,
}

impl OfTenants {
    /// Limits `provider` to these tenants; for others it is not asked.
    pub fn new(provider: Arc<dyn ContextProvider>, tenants: BTreeSet<TenantId>) -> Self {
        Self { provider, tenants }
    }
}

#[async_trait]
impl ContextProvider for OfTenants {
    fn name(&self) -> &str {
        self.provider.name()
    }

    async fn provide(&self, session: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        if !self.tenants.contains(session.tenant()) {
            return Ok(Vec::new());
        }
        self.provider.provide(session).await
    }
}

/// Converts a source's records into contexts of the kind `name`, in the source's order, newest first.
fn contexts(name: &str, records: &[Value], most: usize) -> Vec<Context> {
    let records = records.iter().take(most.min(MAX_RECORDS));
    records
        .map(|record| {
            Context::from_record(record)
                .as_material(name)
                .with_metadata("source", name)
        })
        .collect()
}

/// Logs an error whose text may name machines of the operator, and returns one that people may see.
fn hidden(told: &str, error: &(dyn std::error::Error + 'static)) -> ContextError {
    tracing::warn!(error, "A context provider fails: {told}");
    ContextError::new(told)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{FileProvider, FileRole, OfTenants};
    use crate::{ContextProvider as _, ContextSession};
    use sepal_core::domain::{SessionId, SessionKey, TenantId};

    #[tokio::test]
    async fn what_is_of_some_tenants_is_not_even_read_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let file = Arc::new(FileProvider::new("a", &path, FileRole::Material));
        let own = OfTenants::new(file, [TenantId::from_bits(1)].into());
        let read = async |tenant| {
            let session = ContextSession::create(SessionKey {
                tenant: TenantId::from_bits(tenant),
                session: SessionId::from_bits(1),
            });
            own.provide(&session).await.map(|contexts| contexts.len())
        };
        assert_eq!(read(2).await, Ok(0));
        assert!(read(1).await.is_err(), "the file is missing");
        std::fs::write(&path, "words").unwrap();
        assert_eq!(read(1).await, Ok(1));
        assert_eq!(read(2).await, Ok(0));
    }
}
