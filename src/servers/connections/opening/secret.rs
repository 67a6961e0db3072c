//! The secrets of a server: kept under its name, sealed for its place.

use std::collections::BTreeMap;

use crate::domain::Scope;
use crate::store::records::Secrets;
use crate::store::{self, Sealer};

/// The name that a server's secret is kept under; `/` is in no server's name.
pub(in crate::servers) fn secret_name(server: &str, name: &str) -> String {
    format!("mcp/{server}/{name}")
}

/// The place that a sealed secret belongs to.
pub(in crate::servers) fn secret_context(scope: &Scope, name: &str) -> String {
    format!("secret/{}/{name}", scope.as_str())
}

/// What the secrets of a server stand for.
pub(crate) async fn read_all(
    records: &Secrets<'_>,
    sealer: &Sealer,
    (scope, server): (&Scope, &str),
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
