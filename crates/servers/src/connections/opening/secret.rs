//! Reads the secrets of a server, which are stored under its name and sealed for their place.

use std::collections::BTreeMap;

use sepal_core::domain::Scope;
use sepal_store::records::Secrets;
use sepal_store::{self as store, Sealer};

/// The name under which a server's secret is stored; no server's name contains `/`.
pub(crate) fn secret_name(server: &str, name: &str) -> String {
    format!("mcp/{server}/{name}")
}

/// The sealing context of a secret.
pub(crate) fn secret_context(scope: &Scope, name: &str) -> String {
    format!("secret/{}/{name}", scope.as_str())
}

/// Returns the secrets of a server, by their short names.
pub(crate) async fn read_all(
    records: &Secrets<'_>,
    sealer: &Sealer,
    scope: &Scope,
    server: &str,
) -> Result<BTreeMap<String, String>, store::Error> {
    let prefix = secret_name(server, "");
    let mut secrets = BTreeMap::new();
    for name in records.names(scope).await? {
        let Some(short) = name.strip_prefix(&prefix) else {
            continue;
        };
        let Some(kept) = records.get(scope, &name).await? else {
            continue;
        };
        let value = sealer.open(&secret_context(scope, &name), &kept)?;
        let value = String::from_utf8_lossy(&value).into_owned();
        secrets.insert(short.to_owned(), value);
    }
    Ok(secrets)
}
