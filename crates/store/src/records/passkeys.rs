//! Stores the passkeys (WebAuthn) of people.

use super::super::Error;
use super::super::audit::{Act, ActName};
use super::super::db::{Db, args};
use super::admission::SecretHash;
use super::{tenant_id, user_id};
use sepal_core::domain::{TenantId, Timestamp, UserId};

/// The most passkeys of one person.
pub const MOST_PASSKEYS: i64 = 20;

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasskeyRow {
    /// The id of the credential, in base64url.
    pub id: String,
    /// The name that the person gave it.
    pub name: String,
    /// The relying party for which it was made, a host name.
    pub relying_party: String,
    /// The public key and other immutable data, in base64url.
    pub public_key: String,
    /// The signature counter and other data that a use may change, in base64url.
    pub counter: String,
    /// The transports by which a browser reaches the authenticator, as bits.
    pub transports: u8,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
}

/// A passkey with its person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedPasskey {
    pub tenant: TenantId,
    pub user: UserId,
    pub row: PasskeyRow,
}

/// Access to the stored passkeys.
pub struct Passkeys<'s> {
    db: &'s Db,
}

impl<'s> Passkeys<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The passkeys of a person, oldest first.
    pub async fn list(&self, tenant: &TenantId, user: &UserId) -> Result<Vec<PasskeyRow>, Error> {
        let sql = "SELECT id, name, relying_party, public_key, counter, transports, created_at, \
                   last_used_at FROM passkeys WHERE tenant = $1 AND user_id = $2 \
                   ORDER BY created_at, id";
        let values = args![tenant.as_str(), user.as_str()];
        let rows: Vec<Row> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(passkey_row).collect()
    }

    /// The passkeys of all tenants with this id and relying party. One tenant has at most one; there are several only
    /// if somebody registered a copy of the id elsewhere, so whoever uses one has to check whose it is.
    pub async fn find(&self, id: &str, relying_party: &str) -> Result<Vec<OwnedPasskey>, Error> {
        let sql = "SELECT id, name, relying_party, public_key, counter, transports, created_at, \
                   last_used_at, tenant, user_id FROM passkeys WHERE id = $1 AND relying_party = $2 \
                   ORDER BY created_at LIMIT 8";
        let rows: Vec<OwnedRow> = self.db.fetch_all(sql, args![id, relying_party]).await?;
        rows.into_iter()
            .map(|row| {
                let (id, name, party, key, counter, transports, created, last, tenant, user) = row;
                Ok(OwnedPasskey {
                    tenant: tenant_id(tenant)?,
                    user: user_id(user)?,
                    row: passkey_row((id, name, party, key, counter, transports, created, last))?,
                })
            })
            .collect()
    }

    /// Stores a challenge for a browser in which somebody signs in, and deletes expired ones.
    pub async fn add_challenge(
        &self,
        hash: &SecretHash,
        ceremony: &str,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), Error> {
        let old = "DELETE FROM passkey_challenges WHERE expires_at <= $1";
        self.db.keep_up(old, args![now.0]).await?;
        let sql = "INSERT INTO passkey_challenges (hash, ceremony, expires_at) VALUES ($1, $2, $3)";
        let values = args![hash.as_str(), ceremony, expires_at.0];
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Uses up such a challenge, and returns the state of the relying party.
    pub async fn take_challenge(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<String>, Error> {
        let sql = "DELETE FROM passkey_challenges WHERE hash = $1 AND expires_at > $2 \
                   RETURNING ceremony";
        let values = args![hash.as_str(), now.0];
        let rows: Vec<(String,)> = self.db.execute_returning(sql, values).await?;
        Ok(rows.into_iter().next().map(|(ceremony,)| ceremony))
    }

    /// Adds a passkey. Returns false if a passkey with this id exists, whoever has it, or the person already
    /// has [`MOST_PASSKEYS`].
    pub async fn add(
        &self,
        tenant: &TenantId,
        user: &UserId,
        row: &PasskeyRow,
    ) -> Result<bool, Error> {
        let sql = "INSERT INTO passkeys (tenant, user_id, id, name, relying_party, public_key, \
                   counter, transports, created_at) \
                   SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE \
                   (SELECT COUNT(*) FROM passkeys WHERE tenant = $1 AND user_id = $2) < $10 \
                   ON CONFLICT DO NOTHING";
        let values = args![
            tenant.as_str(),
            user.as_str(),
            row.id.as_str(),
            row.name.as_str(),
            row.relying_party.as_str(),
            row.public_key.as_str(),
            row.counter.as_str(),
            i64::from(row.transports),
            row.created_at.0,
            MOST_PASSKEYS
        ];
        let act = of(ActName::PasskeyAdded, tenant, &row.id).detail("name", row.name.as_str());
        Ok(self.db.record(act, sql, values).await? > 0)
    }

    /// Records a use and sets the counter to `next`. Returns false if the counter is no longer
    /// `row.counter`, because another use was recorded first.
    pub async fn used(
        &self,
        tenant: &TenantId,
        user: &UserId,
        row: &PasskeyRow,
        next: &str,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "UPDATE passkeys SET counter = $5, last_used_at = $6 \
                   WHERE tenant = $1 AND user_id = $2 AND id = $3 AND counter = $4";
        let values = args![
            tenant.as_str(),
            user.as_str(),
            row.id.as_str(),
            row.counter.as_str(),
            next,
            now.0
        ];
        Ok(self.db.execute(sql, values).await? > 0)
    }

    /// Renames a passkey. Returns false if the person has none with this id.
    pub async fn rename(
        &self,
        (tenant, user): (&TenantId, &UserId),
        id: &str,
        name: &str,
    ) -> Result<bool, Error> {
        let sql = "UPDATE passkeys SET name = $4 WHERE tenant = $1 AND user_id = $2 AND id = $3";
        let values = args![tenant.as_str(), user.as_str(), id, name];
        let act = of(ActName::PasskeyRenamed, tenant, id).detail("name", name);
        Ok(self.db.record(act, sql, values).await? > 0)
    }

    /// Deletes a passkey. Returns false if the person has none with this id, or signs in by passkeys alone and has no
    /// other one.
    pub async fn remove(&self, tenant: &TenantId, user: &UserId, id: &str) -> Result<bool, Error> {
        let sql = "DELETE FROM passkeys WHERE tenant = $1 AND user_id = $2 AND id = $3 AND NOT EXISTS \
                   (SELECT 1 FROM users u WHERE u.tenant = $1 AND u.id = $2 AND u.is_passkey_only \
                   AND (SELECT COUNT(*) FROM passkeys p WHERE p.tenant = $1 AND p.user_id = $2) < 2)";
        let values = args![tenant.as_str(), user.as_str(), id];
        let act = of(ActName::PasskeyRemoved, tenant, id);
        Ok(self.db.record(act, sql, values).await? > 0)
    }
}

/// An act on a passkey.
fn of(name: ActName, tenant: &TenantId, id: &str) -> Act {
    Act::new(name, tenant, "passkey", id)
}

type Row = (
    String,
    String,
    String,
    String,
    String,
    i64,
    i64,
    Option<i64>,
);

type OwnedRow = (
    String,
    String,
    String,
    String,
    String,
    i64,
    i64,
    Option<i64>,
    String,
    String,
);

fn passkey_row(row: Row) -> Result<PasskeyRow, Error> {
    let (id, name, relying_party, public_key, counter, transports, created_at, last_used_at) = row;
    let bits = u8::try_from(transports);
    Ok(PasskeyRow {
        id,
        name,
        relying_party,
        public_key,
        counter,
        transports: bits.map_err(|_| Error::corrupt("transports", transports.to_string()))?,
        created_at: Timestamp(created_at),
        last_used_at: last_used_at.map(Timestamp),
    })
}
