//! The statements that append a record to a chain of the audit.

use super::{Arg, args};
use crate::audit::StoredRecord;

/// Reads the end of a chain.
pub(super) const HEAD: &str =
    "SELECT n, at, link FROM audit WHERE tenant = $1 ORDER BY n DESC LIMIT 1";

pub(super) const APPEND: &str = "INSERT INTO audit (tenant, n, body, link, at, act, person, kind, subject) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

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
