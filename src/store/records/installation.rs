//! The name of these records: two gateways that read the same one read the same records.

use super::Records;
use crate::store::Error;
use crate::store::db::args;

impl Records {
    /// The name, drawn once.
    pub async fn installation(&self) -> Result<String, Error> {
        let fresh = format!("{:032x}", rand::random::<u128>());
        self.db
            .execute(
                "INSERT INTO installation (name, value) VALUES ('id', $1) \
                 ON CONFLICT (name) DO NOTHING",
                args![fresh.as_str()],
            )
            .await?;
        let row: Option<(String,)> = self
            .db
            .fetch_optional("SELECT value FROM installation WHERE name = 'id'", args![])
            .await?;
        Ok(row.map_or(fresh, |(name,)| name))
    }
}
