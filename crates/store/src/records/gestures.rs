//! Stores challenges for gestures and the gestures made in answer. Each can be used only once, on any
//! gateway.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::admission::SecretHash;
use super::{from_json, to_json};
use sepal_core::domain::{
    Gesture, GestureCall, GestureMeans, SessionId, TenantId, Timestamp, UserId,
};

/// The kind of a stored row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GestureStage {
    /// The challenge for a passkey that is being registered, with the state of the relying party.
    Registration(String),
    /// The challenge for a gesture, with the state of the relying party.
    Challenge(String),
    /// A gesture that was made but not used yet.
    Proof(GestureMeans),
}

impl GestureStage {
    fn columns(&self) -> (&'static str, &str, Option<&'static str>) {
        match self {
            Self::Registration(ceremony) => (REGISTRATION, ceremony, None),
            Self::Challenge(ceremony) => (CHALLENGE, ceremony, None),
            Self::Proof(means) => (PROOF, "", Some(means.as_str())),
        }
    }
}

const REGISTRATION: &str = "registration";
const CHALLENGE: &str = "challenge";
const PROOF: &str = "proof";

/// Access to the stored challenges and gestures.
pub struct Gestures<'s> {
    db: &'s Db,
}

/// A gesture to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewGesture<'a> {
    pub tenant: &'a TenantId,
    pub user: &'a UserId,
    /// The hash of its secret.
    pub hash: &'a SecretHash,
    pub stage: &'a GestureStage,
    /// The calls that it approves.
    pub calls: &'a [GestureCall],
    pub expires_at: Timestamp,
}

impl<'s> Gestures<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores a challenge or a gesture of a person, and deletes expired ones of everyone.
    pub async fn add(&self, gesture: NewGesture<'_>, now: Timestamp) -> Result<(), Error> {
        let NewGesture {
            tenant,
            user,
            hash,
            stage,
            calls,
            expires_at,
        } = gesture;
        let old = "DELETE FROM gestures WHERE expires_at <= $1";
        self.db.keep_up(old, args![now.0]).await?;
        let sql = "INSERT INTO gestures (hash, tenant, user_id, stage, means, ceremony, calls, \
                   expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let (stage, ceremony, means) = stage.columns();
        // A challenge is no act: only the gesture that answers it is.
        let act = means.map(|means| {
            Act::new(ActName::GestureMade, tenant, "user", user.as_str())
                .detail("means", means)
                .detail("calls", calls.len())
        });
        let calls = to_json("calls of a gesture", calls)?;
        let values = args![
            hash.as_str(),
            tenant.as_str(),
            user.as_str(),
            stage,
            means,
            ceremony,
            calls.as_str(),
            expires_at.0
        ];
        match act {
            Some(act) => self.db.record(act, sql, values).await?,
            None => self.db.keep_up(sql, values).await?,
        };
        Ok(())
    }

    /// Uses up the challenge of a new passkey and returns the state of the relying party.
    pub async fn take_registration(
        &self,
        tenant: &TenantId,
        user: &UserId,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<String>, Error> {
        let taken = self.take(tenant, user, hash, REGISTRATION, now).await?;
        Ok(taken.map(|(ceremony, _, _)| ceremony))
    }

    /// Uses up the challenge of a gesture and returns the state of the relying party and the calls to
    /// approve.
    pub async fn take_challenge(
        &self,
        tenant: &TenantId,
        user: &UserId,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<(String, Vec<GestureCall>)>, Error> {
        let taken = self.take(tenant, user, hash, CHALLENGE, now).await?;
        let with_calls = taken.map(|(ceremony, _, calls)| Ok((ceremony, read_calls(&calls)?)));
        with_calls.transpose()
    }

    /// Uses up a gesture and returns the calls that it approves in this session. Returns `None` if this
    /// person made no such gesture, or it is used up or expired.
    pub async fn take_proof(
        &self,
        tenant: &TenantId,
        user: &UserId,
        hash: &SecretHash,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<Option<Gesture>, Error> {
        let Some((_, means, calls)) = self.take(tenant, user, hash, PROOF, now).await? else {
            return Ok(None);
        };
        let mut calls = read_calls(&calls)?;
        calls.retain(|call| call.session == *session);
        let means = means.unwrap_or_default();
        let parsed = GestureMeans::parse(&means);
        let means = parsed.ok_or_else(|| Error::corrupt("means of a gesture", means))?;
        Ok(Some(Gesture { means, calls }))
    }

    /// Uses up a gesture. Returns its means if it was made for changing passkeys, and therefore approves no call.
    pub async fn take_change(
        &self,
        tenant: &TenantId,
        user: &UserId,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<GestureMeans>, Error> {
        let Some((_, means, calls)) = self.take(tenant, user, hash, PROOF, now).await? else {
            return Ok(None);
        };
        let is_for_changes = read_calls(&calls)?.is_empty();
        let means = GestureMeans::parse(&means.unwrap_or_default());
        Ok(means.filter(|_| is_for_changes))
    }

    async fn take(
        &self,
        tenant: &TenantId,
        user: &UserId,
        hash: &SecretHash,
        stage: &'static str,
        now: Timestamp,
    ) -> Result<Option<(String, Option<String>, String)>, Error> {
        let sql = "DELETE FROM gestures WHERE hash = $1 AND tenant = $2 AND user_id = $3 \
                   AND stage = $4 AND expires_at > $5 RETURNING ceremony, means, calls";
        let values = args![hash.as_str(), tenant.as_str(), user.as_str(), stage, now.0];
        let act = Act::new(ActName::GestureUsed, tenant, "user", user.as_str());
        let recorded = move |rows: &[(String, Option<String>, String)]| {
            let means = rows.iter().filter_map(|(_, means, _)| means.as_deref());
            means
                .map(|means| act.clone().detail("means", means))
                .collect()
        };
        let rows = self.db.change_returning(sql, values, recorded).await?;
        Ok(rows.into_iter().next())
    }
}

fn read_calls(text: &str) -> Result<Vec<GestureCall>, Error> {
    from_json("calls of a gesture", text)
}
