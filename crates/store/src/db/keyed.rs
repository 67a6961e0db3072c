//! The statement that notes that a request with a key has changed something.

use super::{Statement, args};
use crate::clock;
use crate::keyed::KeyedRequest;

/// Returns a statement that changes exactly one row. In the transaction of an act it notes the change: if the
/// gateway dies before it answers, the request must not run again.
pub(super) fn note_change(request: &KeyedRequest) -> Statement {
    let sql = "INSERT INTO idempotency_keys (tenant, owner, key, fingerprint, begun_at, runner, until, \
               has_changed) VALUES ($1, $2, $3, $4, $5, $6, $5, TRUE) \
               ON CONFLICT (tenant, owner, key) DO UPDATE SET has_changed = \
               idempotency_keys.has_changed \
               OR COALESCE(idempotency_keys.runner = excluded.runner, FALSE)";
    let values = args![
        request.tenant.as_str(),
        request.owner.as_str(),
        request.key.as_str(),
        request.fingerprint.as_str(),
        clock::now().0,
        request.runner.as_str()
    ];
    Statement::new(sql, values)
}
