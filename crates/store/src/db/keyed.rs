//! The statement that notes that a request with a key has changed something.

use super::{Statement, args};
use crate::clock;
use crate::keyed::KeyedRequest;

/// Returns a statement that changes exactly one row. In the transaction of an act it makes the end of the
/// attempt's lease negative: if the gateway dies before it answers, the request must not run again.
pub(super) fn note_change(request: &KeyedRequest) -> Statement {
    let sql = "INSERT INTO idempotency_keys (tenant, owner, key, fingerprint, begun_at, runner, until) \
               VALUES ($1, $2, $3, $4, $5, $6, -$5) ON CONFLICT (tenant, owner, key) DO UPDATE \
               SET until = CASE WHEN idempotency_keys.runner = excluded.runner \
               AND idempotency_keys.until > 0 THEN -idempotency_keys.until \
               ELSE idempotency_keys.until END";
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
