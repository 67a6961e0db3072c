//! Stores complete results of dry runs while their calls wait. An approval may take the result instead of
//! running the call.

use super::super::Error;
use super::super::db::{Db, args};
use super::checkpoints::{PACKERS, pack_content, unpack_content};
use sepal_core::domain::{CallId, Digest, SessionKey, Timestamp};

/// Access to the stored results.
pub struct DryRunResults<'s> {
    db: &'s Db,
}

impl<'s> DryRunResults<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores the result of a call's dry run, replacing an earlier one.
    pub async fn put(
        &self,
        key: &SessionKey,
        call: &CallId,
        digest: &Digest,
        content: Vec<u8>,
        at: Timestamp,
    ) -> Result<(), Error> {
        let packing = PACKERS.run(move || pack_content(&content));
        let packed = packing.await?;
        let packed = packed.map_err(|_| Error::corrupt("result of a dry run", "not packed"))?;
        self.db
            .execute(
                "INSERT INTO dry_run_results (tenant, session, call, made_at, digest, content) \
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant, session, call) DO UPDATE SET \
                 made_at = excluded.made_at, digest = excluded.digest, content = excluded.content",
                args![
                    key.tenant.as_str(),
                    key.session.as_str(),
                    call.as_str(),
                    at.0,
                    digest.as_str(),
                    packed
                ],
            )
            .await?;
        Ok(())
    }

    /// The result with this digest; `None` if it is not stored or its content does not match the digest.
    pub async fn get(
        &self,
        key: &SessionKey,
        call: &CallId,
        digest: &Digest,
    ) -> Result<Option<Vec<u8>>, Error> {
        let sql = "SELECT content FROM dry_run_results \
                   WHERE tenant = $1 AND session = $2 AND call = $3 AND digest = $4";
        let row: Option<(Vec<u8>,)> = self
            .db
            .fetch_optional(sql, whose(key, call, digest))
            .await?;
        let Some((packed,)) = row else {
            return Ok(None);
        };
        let reading = move || unpack_content(&packed).ok();
        let content = PACKERS.run(reading).await?;
        Ok(content.filter(|content| Digest::of_bytes(content) == *digest))
    }

    /// Deletes the result.
    pub async fn forget(
        &self,
        key: &SessionKey,
        call: &CallId,
        digest: &Digest,
    ) -> Result<(), Error> {
        let sql = "DELETE FROM dry_run_results \
                   WHERE tenant = $1 AND session = $2 AND call = $3 AND digest = $4";
        self.db.execute(sql, whose(key, call, digest)).await?;
        Ok(())
    }
}

fn whose(key: &SessionKey, call: &CallId, digest: &Digest) -> Vec<super::super::db::Arg> {
    args![
        key.tenant.as_str(),
        key.session.as_str(),
        call.as_str(),
        digest.as_str()
    ]
}
