//! Stores the shares by which owners let others read their sessions.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args};
use super::admission::SecretHash;
use super::{session_id, tenant_id};
use sepal_core::domain::{SessionKey, SharedSessionId, TenantId, Timestamp};

/// The most unexpired shares of one session.
const MOST: i64 = 50;

/// Builds a query for a share that is open. A share is closed once it has expired, its session was given up,
/// its owner is disabled or its tenant is suspended.
macro_rules! opened {
    ($which:literal) => {
        concat!(
            "SELECT shared.tenant, shared.id, shared.session, shared.audience, shared.seq, \
             shared.created_at, shared.expires_at FROM shared_sessions AS shared \
             JOIN sessions ON sessions.tenant = shared.tenant AND sessions.id = shared.session \
             AND sessions.delete_at IS NULL \
             JOIN users ON users.tenant = shared.tenant AND users.id = sessions.owner \
             AND NOT users.is_disabled \
             JOIN tenants ON tenants.id = shared.tenant AND tenants.suspended_at IS NULL \
             WHERE (shared.expires_at IS NULL OR shared.expires_at > $1) AND ",
            $which
        )
    };
}

/// The people who may read a shared session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Everyone who is signed in to the tenant.
    Tenant,
    /// Everyone who has the link, while the tenant allows links.
    Link,
}

impl Audience {
    /// The name in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Link => "link",
        }
    }

    /// Parses the name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "tenant" => Some(Self::Tenant),
            "link" => Some(Self::Link),
            _ => None,
        }
    }
}

/// A share of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSession {
    pub key: SessionKey,
    pub id: SharedSessionId,
    pub audience: Audience,
    /// The `seq` of the last event that readers see.
    pub seq: u64,
    pub created_at: Timestamp,
    /// The time at which the share expires; `None` = never.
    pub expires_at: Option<Timestamp>,
}

/// Access to the stored shares.
pub struct SharedSessions<'s> {
    db: &'s Db,
}

impl<'s> SharedSessions<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a share, with the hash of its secret if it has one, and deletes the session's expired shares.
    /// Returns false if the session does not exist or already has 50 unexpired shares.
    pub async fn add(
        &self,
        shared: &SharedSession,
        hash: Option<&SecretHash>,
    ) -> Result<bool, Error> {
        let (tenant, session) = (shared.key.tenant.as_str(), shared.key.session.as_str());
        let expired = Statement::new(
            "DELETE FROM shared_sessions WHERE tenant = $1 AND session = $2 AND expires_at <= $3",
            args![tenant, session, shared.created_at.0],
        );
        let sql = "INSERT INTO shared_sessions \
                   (tenant, id, session, audience, hash, seq, created_at, expires_at) \
                   SELECT $1, $2, $3, $4, $5, $6, $7, $8 \
                   WHERE EXISTS (SELECT 1 FROM sessions WHERE tenant = $1 AND id = $3) \
                   AND (SELECT COUNT(*) FROM shared_sessions \
                   WHERE tenant = $1 AND session = $3) < $9";
        let values = args![
            tenant,
            shared.id.as_str(),
            session,
            shared.audience.as_str(),
            hash.map(SecretHash::as_str),
            i64::try_from(shared.seq).unwrap_or(i64::MAX),
            shared.created_at.0,
            Arg::Int(shared.expires_at.map(|at| at.0)),
            MOST
        ];
        let act = Act::new(
            ActName::SessionShared,
            &shared.key.tenant,
            "session",
            session,
        )
        .detail("share", shared.id.as_str())
        .detail("audience", shared.audience.as_str())
        .detail("expiresAt", shared.expires_at.map(|at| at.0));
        let statements = vec![expired, Statement::required(sql, values).recorded(act)];
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// The unexpired shares of a session, newest first.
    pub async fn of_session(
        &self,
        key: &SessionKey,
        now: Timestamp,
    ) -> Result<Vec<SharedSession>, Error> {
        let sql = "SELECT tenant, id, session, audience, seq, created_at, expires_at \
                   FROM shared_sessions WHERE tenant = $1 AND session = $2 \
                   AND (expires_at IS NULL OR expires_at > $3) ORDER BY created_at DESC, id DESC";
        let values = args![key.tenant.as_str(), key.session.as_str(), now.0];
        let rows: Vec<Row> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(Row::into_shared).collect()
    }

    /// Deletes a share of a session. Returns true if it existed.
    pub async fn remove(&self, key: &SessionKey, id: &SharedSessionId) -> Result<bool, Error> {
        let sql = "DELETE FROM shared_sessions WHERE tenant = $1 AND session = $2 AND id = $3";
        let values = args![key.tenant.as_str(), key.session.as_str(), id.as_str()];
        let act = Act::new(
            ActName::ShareRemoved,
            &key.tenant,
            "session",
            key.session.as_str(),
        );
        let act = act.detail("share", id.as_str());
        Ok(self.db.record(act, sql, values).await? > 0)
    }

    /// The share that a link opens; `None` if there is none, or it is closed.
    pub async fn open_link(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<SharedSession>, Error> {
        let sql = opened!("shared.hash = $2 AND shared.audience = 'link' AND tenants.allows_links");
        self.open(sql, args![now.0, hash.as_str()]).await
    }

    /// The share that people of a tenant open by its id.
    pub async fn open_in_tenant(
        &self,
        tenant: &TenantId,
        id: &SharedSessionId,
        now: Timestamp,
    ) -> Result<Option<SharedSession>, Error> {
        let sql = opened!("shared.tenant = $2 AND shared.id = $3 AND shared.audience = 'tenant'");
        self.open(sql, args![now.0, tenant.as_str(), id.as_str()])
            .await
    }

    async fn open(
        &self,
        sql: &'static str,
        values: Vec<Arg>,
    ) -> Result<Option<SharedSession>, Error> {
        let row: Option<Row> = self.db.fetch_optional(sql, values).await?;
        row.map(Row::into_shared).transpose()
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    tenant: String,
    id: String,
    session: String,
    audience: String,
    seq: i64,
    created_at: i64,
    expires_at: Option<i64>,
}

impl Row {
    fn into_shared(self) -> Result<SharedSession, Error> {
        let id = SharedSessionId::parse(&self.id);
        let audience = Audience::parse(&self.audience);
        Ok(SharedSession {
            key: SessionKey {
                tenant: tenant_id(self.tenant)?,
                session: session_id(self.session)?,
            },
            id: id.ok_or_else(|| Error::corrupt("shared session id", self.id))?,
            audience: audience.ok_or_else(|| Error::corrupt("audience", self.audience))?,
            seq: u64::try_from(self.seq).unwrap_or(0),
            created_at: Timestamp(self.created_at),
            expires_at: self.expires_at.map(Timestamp),
        })
    }
}
