//! The statements that append a record to a chain of the audit.

use super::{Arg, args};
use crate::audit::StoredRecord;

/// Reads the end of a chain.
pub(super) const HEAD: &str =
    "SELECT n, at, link FROM audit WHERE tenant = $1 ORDER BY n DESC LIMIT 1";

/// The condition for the record that the tenant `$1` was deleted, and was not imported since.
macro_rules! is_deletion {
    () => {
        "tenant = 'installation' AND act = 'tenant.deleted' AND subject = $1 AND n > COALESCE((\
         SELECT MAX(later.n) FROM audit later WHERE later.tenant = 'installation' \
         AND later.act = 'tenant.imported' AND later.subject = $1), 0)"
    };
}

/// Appends a record. A deleted tenant has no chain any more, and must not begin another one unless it was
/// imported since: its record would have no text, which the table refuses, with everything else of the transaction.
pub(super) const APPEND: &str = concat!(
    "INSERT INTO audit (tenant, n, body, link, at, act, person, kind, subject) \
     VALUES ($1, $2, CASE WHEN $2 = 1 AND EXISTS (SELECT 1 FROM audit WHERE ",
    is_deletion!(),
    ") THEN NULL ELSE $3 END, $4, $5, $6, $7, $8, $9)"
);

/// Finds the record that a tenant was deleted.
pub(super) const DELETED: &str = concat!("SELECT n FROM audit WHERE ", is_deletion!(), " LIMIT 1");

/// The values of [`APPEND`].
pub(super) fn values(chain: &str, record: &StoredRecord) -> Vec<Arg> {
    args![
        chain,
        record.n,
        record.body.as_str(),
        record.link.as_str(),
        record.at,
        record.act.as_str(),
        record.person.as_str(),
        record.kind.as_str(),
        record.subject.as_str()
    ]
}
