//! Puts a file into the workspace through the server that runs in every sandbox: a request that is no
//! tool, so that no model asks for it. Other servers are never asked.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::connection::Connection;
use super::error::Error;

/// The method, as `mcp-server` answers it.
const METHOD: &str = "sepal/placeAttachment";
/// Bytes of one part: a sandbox with little memory takes it as base64 in a line of JSON.
const PART: usize = 512 * 1024;

impl Connection {
    /// Puts a file under that name, or the next free one, into the folder of attachments; the name that
    /// it has there. An error where the server refuses it, is older than the question, or takes too
    /// long for a part.
    pub async fn place_attachment(
        &self,
        name: &str,
        content: &[u8],
        limit: Duration,
    ) -> Result<String, Error> {
        let mut placed = None;
        let mut offset = 0;
        for part in content.chunks(PART) {
            let params = json!({
                "name": name, "bytes": content.len(), "offset": offset,
                "data": STANDARD.encode(part),
            });
            let answer = self.request(METHOD, params, limit).await?;
            placed = answer
                .get("name")
                .and_then(Value::as_str)
                .map(ToOwned::to_owned);
            offset += part.len();
        }
        placed.ok_or_else(|| Error::Refused("the answer names no file".to_owned()))
    }
}
