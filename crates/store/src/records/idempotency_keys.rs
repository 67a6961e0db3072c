//! Stores the answers to requests that a client may send again, by the key that the client gave them. Answers
//! are sealed, because some hold secrets.

use serde::{Deserialize, Serialize};

use super::super::audit::acting;
use super::super::db::{Arg, Db, Statement, args};
pub use super::super::keyed::KeyedRequest;
use super::super::{Error, Sealer};
use super::{from_json, to_json};
use sepal_core::domain::Timestamp;

/// The time for which a key is kept, in milliseconds.
pub const KEY_LIFE_MS: i64 = 24 * 60 * 60 * 1000;
/// The most keys that are kept of one user.
pub const MOST_KEYS: i64 = 1_000;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAnswer {
    pub status: u16,
    /// The media type of the body; `None` = no body.
    pub content_type: Option<String>,
    pub body: String,
}

/// The outcome of beginning a request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The request is to be carried out.
    Begun,
    /// It was answered before.
    Answered(KeptAnswer),
    /// It is being carried out.
    Running,
    /// Its gateway died after it had changed something, and before it kept the answer.
    Interrupted,
    /// The key belongs to a request with another fingerprint.
    OfOther,
    /// The user has [`MOST_KEYS`] keys.
    TooMany,
}

/// Access to the stored keys.
#[derive(Debug, Clone)]
pub struct IdempotencyKeys {
    db: Db,
    sealer: Sealer,
}

impl IdempotencyKeys {
    pub(super) fn new(db: Db, sealer: Sealer) -> Self {
        Self { db, sealer }
    }

    /// Begins a request, unless its key was used. A request whose runner did not report until then is begun
    /// again, if it has changed nothing.
    pub async fn begin(
        &self,
        request: &KeyedRequest,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<KeyOutcome, Error> {
        let expired = Statement::new(
            "DELETE FROM idempotency_keys WHERE begun_at < $1",
            args![now.0 - KEY_LIFE_MS],
        );
        let insert = Statement::required(
            "INSERT INTO idempotency_keys (tenant, owner, key, fingerprint, begun_at, runner, until) \
             SELECT $1, $2, $3, $4, $5, $6, $7 WHERE \
             (SELECT COUNT(*) FROM idempotency_keys WHERE tenant = $1 AND owner = $2) < $8 \
             ON CONFLICT (tenant, owner, key) DO UPDATE SET runner = excluded.runner, \
             until = excluded.until WHERE idempotency_keys.fingerprint = excluded.fingerprint \
             AND NOT idempotency_keys.has_changed AND idempotency_keys.until < excluded.begun_at",
            args![
                request.tenant.as_str(),
                request.owner.as_str(),
                request.key.as_str(),
                request.fingerprint.as_str(),
                now.0,
                request.runner.as_str(),
                until.0,
                MOST_KEYS
            ],
        );
        if self.db.execute_all(vec![expired, insert]).await?.is_some() {
            return Ok(KeyOutcome::Begun);
        }
        let sql = "SELECT fingerprint, answer, has_changed AND until < $4 FROM idempotency_keys \
                   WHERE tenant = $1 AND owner = $2 AND key = $3";
        let values = args![
            request.tenant.as_str(),
            request.owner.as_str(),
            request.key.as_str(),
            now.0
        ];
        let row: Option<KeptRow> = self.db.fetch_optional(sql, values).await?;
        Ok(match row {
            None => KeyOutcome::TooMany,
            Some((fingerprint, ..)) if fingerprint != request.fingerprint => KeyOutcome::OfOther,
            Some((_, None, Some(true))) => KeyOutcome::Interrupted,
            Some((_, None, _)) => KeyOutcome::Running,
            Some((_, Some(answer), _)) => {
                let answer = self.sealer.open(&context(request), &answer)?;
                let answer = String::from_utf8_lossy(&answer).into_owned();
                KeyOutcome::Answered(from_json("answer", &answer)?)
            }
        })
    }

    /// Says that the request is still being carried out.
    pub async fn extend(&self, request: &KeyedRequest, until: Timestamp) -> Result<(), Error> {
        let sql = "UPDATE idempotency_keys SET until = $5 \
                   WHERE tenant = $1 AND owner = $2 AND key = $3 AND runner = $4";
        let mut values = which(request);
        values.extend(args![until.0]);
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Notes that the request that is being carried out is about to change something that is not an act, so that
    /// it does not run again if the gateway dies. A request without a key has nothing to note.
    pub async fn note_change(&self) -> Result<(), Error> {
        match acting::request() {
            Some(request) => self.db.note_change(&request).await,
            None => Ok(()),
        }
    }

    /// Keeps the answer.
    pub async fn answer(&self, request: &KeyedRequest, answer: &KeptAnswer) -> Result<(), Error> {
        let text = to_json("answer", answer)?;
        let sealed = self.sealer.seal(&context(request), text.as_bytes())?;
        let sql = "UPDATE idempotency_keys SET answer = $5, runner = NULL, until = NULL \
                   WHERE tenant = $1 AND owner = $2 AND key = $3 AND runner = $4";
        let mut values = which(request);
        values.extend(args![sealed.as_str()]);
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Forgets the request, so that the same key may carry it out again.
    pub async fn forget(&self, request: &KeyedRequest) -> Result<(), Error> {
        let sql = "DELETE FROM idempotency_keys \
                   WHERE tenant = $1 AND owner = $2 AND key = $3 AND runner = $4";
        self.db.execute(sql, which(request)).await?;
        Ok(())
    }

    /// Forgets the request if it has changed nothing; returns true if it did.
    pub async fn forget_unchanged(&self, request: &KeyedRequest) -> Result<bool, Error> {
        let sql = "DELETE FROM idempotency_keys \
                   WHERE tenant = $1 AND owner = $2 AND key = $3 AND runner = $4 AND NOT has_changed";
        Ok(self.db.execute(sql, which(request)).await? > 0)
    }
}

/// Fingerprint, answer, and whether its attempt ended after it had changed something; `None` once it is answered.
type KeptRow = (String, Option<String>, Option<bool>);

/// Returns the arguments that select the row of this attempt.
fn which(request: &KeyedRequest) -> Vec<Arg> {
    args![
        request.tenant.as_str(),
        request.owner.as_str(),
        request.key.as_str(),
        request.runner.as_str()
    ]
}

/// The context to which a sealed answer is bound.
fn context(request: &KeyedRequest) -> String {
    let KeyedRequest {
        tenant, owner, key, ..
    } = request;
    format!("idempotency/{tenant}/{owner}/{key}")
}
