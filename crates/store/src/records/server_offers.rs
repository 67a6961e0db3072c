//! Caches the resources and prompts of MCP servers, so that readers need not wait for a server.

use super::super::Error;
use super::super::db::{Db, args};
use super::{from_json, to_json};
use sepal_core::domain::ServerOffer;

/// Access to the cached lists.
pub struct ServerOffers<'s> {
    db: &'s Db,
}

impl<'s> ServerOffers<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// The list cached under a hash.
    pub async fn get(&self, hash: &str) -> Result<Option<ServerOffer>, Error> {
        let sql = "SELECT offer FROM server_offers WHERE hash = $1";
        let row: Option<(String,)> = self.db.fetch_optional(sql, args![hash]).await?;
        row.map(|(offer,)| from_json("offer of a server", &offer))
            .transpose()
    }

    /// Caches a list under a hash, replacing an earlier one.
    pub async fn put(&self, hash: &str, offer: &ServerOffer) -> Result<(), Error> {
        let sql = "INSERT INTO server_offers (hash, offer) VALUES ($1, $2) \
                   ON CONFLICT (hash) DO UPDATE SET offer = excluded.offer";
        let offer = to_json("offer of a server", offer)?;
        self.db.execute(sql, args![hash, offer.as_str()]).await?;
        Ok(())
    }
}
