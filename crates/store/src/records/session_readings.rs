//! Stores who may read the session of another person, why, and until when.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Arg, Db, Statement, args};
use super::{session_id, tenant_id, user_id};
use sepal_core::domain::{SessionId, SessionKey, TenantId, Timestamp, UserId};

/// The time for which an expired reading stays listed, in milliseconds.
const LISTED_MS: i64 = 180 * 24 * 60 * 60_000;

/// The most readings of one person that are open at the same time.
const MOST_OPEN: i64 = 20;

/// A permission to read the session of another person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub key: SessionKey,
    /// `rea_…`.
    pub id: String,
    /// The owner of the session.
    pub owner: UserId,
    pub reader: UserId,
    /// Why, in the words of the reader.
    pub reason: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// When the owner said that they have seen it; `None` = not yet.
    pub seen_at: Option<Timestamp>,
}

/// A reading with the names of both people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedReading {
    pub reading: Reading,
    pub owner_name: String,
    pub reader_name: String,
}

/// Access to the stored readings.
pub struct SessionReadings<'s> {
    db: &'s Db,
}

/// Begins a query for readings with the names of both people.
macro_rules! listed {
    ($which:literal) => {
        concat!(
            "SELECT g.*, o.name AS owner_name, r.name AS reader_name FROM session_readings g \
             JOIN users o ON o.tenant = g.tenant AND o.id = g.owner \
             JOIN users r ON r.tenant = g.tenant AND r.id = g.reader WHERE ",
            $which
        )
    };
}

impl<'s> SessionReadings<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Adds a reading. Returns false if the session is gone or is not the owner's, or the reader has 20 open
    /// readings.
    pub async fn add(&self, new: &Reading) -> Result<bool, Error> {
        let (tenant, session) = (new.key.tenant.as_str(), new.key.session.as_str());
        let act = Act::new(ActName::ReadingBegun, &new.key.tenant, "session", session)
            .detail("reading", new.id.as_str())
            .detail("owner", new.owner.as_str())
            .detail("reason", new.reason.as_str())
            .detail("expiresAt", new.expires_at.0);
        let sql = "INSERT INTO session_readings \
                   (tenant, id, session, owner, reader, reason, created_at, expires_at) \
                   SELECT $1, $2, $3, $4, $5, $6, $7, $8 \
                   WHERE EXISTS (SELECT 1 FROM sessions WHERE tenant = $1 AND id = $3 \
                   AND owner = $4 AND delete_at IS NULL) \
                   AND (SELECT COUNT(*) FROM session_readings \
                   WHERE tenant = $1 AND reader = $5 AND expires_at > $7) < $9";
        let values = args![
            tenant,
            new.id.as_str(),
            session,
            new.owner.as_str(),
            new.reader.as_str(),
            new.reason.as_str(),
            new.created_at.0,
            new.expires_at.0,
            MOST_OPEN
        ];
        let statement = Statement::required(sql, values).recorded(act);
        Ok(self.db.execute_all(vec![statement]).await?.is_some())
    }

    /// The reading that its reader opens now; `None` if it is not theirs or has ended, or the session was given
    /// up.
    pub async fn open(
        &self,
        tenant: &TenantId,
        id: &str,
        reader: &UserId,
        now: Timestamp,
    ) -> Result<Option<Reading>, Error> {
        let sql = listed!(
            "g.tenant = $1 AND g.id = $2 AND g.reader = $3 AND g.expires_at > $4 \
             AND EXISTS (SELECT 1 FROM sessions s WHERE s.tenant = g.tenant AND s.id = g.session \
             AND s.delete_at IS NULL)"
        );
        let values = args![tenant.as_str(), id, reader.as_str(), now.0];
        let row: Option<Row> = self.db.fetch_optional(sql, values).await?;
        row.map(|row| Ok(row.into_listed()?.reading)).transpose()
    }

    /// The readings of a person's sessions and those by the person, newest first.
    pub async fn of_person(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<ListedReading>, Error> {
        let sql = listed!(
            "g.tenant = $1 AND (g.owner = $2 OR g.reader = $2) ORDER BY g.created_at DESC, g.id"
        );
        let values = args![tenant.as_str(), user.as_str()];
        let rows: Vec<Row> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(Row::into_listed).collect()
    }

    /// Notes that the owner of the session has seen that it is read. Returns false if it is not theirs.
    pub async fn see(
        &self,
        tenant: &TenantId,
        id: &str,
        owner: &UserId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "UPDATE session_readings SET seen_at = COALESCE(seen_at, $4) \
                   WHERE tenant = $1 AND id = $2 AND owner = $3";
        let values = args![tenant.as_str(), id, owner.as_str(), now.0];
        Ok(self.db.execute(sql, values).await? > 0)
    }

    /// Ends a reading of its reader. Returns false if they have no such open reading.
    pub async fn end(
        &self,
        tenant: &TenantId,
        id: &str,
        reader: &UserId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "UPDATE session_readings SET expires_at = $4 \
                   WHERE tenant = $1 AND id = $2 AND reader = $3 AND expires_at > $4";
        let act = Act::new(ActName::ReadingEnded, tenant, "reading", id);
        let values = args![tenant.as_str(), id, reader.as_str(), now.0];
        Ok(self.db.record(act, sql, values).await? > 0)
    }

    /// Deletes readings that ended long ago. The audit keeps its records of them.
    pub async fn remove_old(&self, now: Timestamp) -> Result<(), Error> {
        let sql = "DELETE FROM session_readings WHERE expires_at <= $1";
        let before: Arg = now.0.saturating_sub(LISTED_MS).into();
        self.db.keep_up(sql, vec![before]).await?;
        Ok(())
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    tenant: String,
    id: String,
    session: String,
    owner: String,
    reader: String,
    reason: String,
    created_at: i64,
    expires_at: i64,
    seen_at: Option<i64>,
    owner_name: String,
    reader_name: String,
}

impl Row {
    fn into_listed(self) -> Result<ListedReading, Error> {
        let session: SessionId = session_id(self.session)?;
        Ok(ListedReading {
            reading: Reading {
                key: SessionKey {
                    tenant: tenant_id(self.tenant)?,
                    session,
                },
                id: self.id,
                owner: user_id(self.owner)?,
                reader: user_id(self.reader)?,
                reason: self.reason,
                created_at: Timestamp(self.created_at),
                expires_at: Timestamp(self.expires_at),
                seen_at: self.seen_at.map(Timestamp),
            },
            owner_name: self.owner_name,
            reader_name: self.reader_name,
        })
    }
}
