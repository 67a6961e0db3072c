//! Asks the server that runs in every sandbox about a file: a request that is no tool, so that no model
//! reads of it. Other servers are never asked.

use std::time::Duration;

use serde_json::json;

use super::connection::Connection;
use super::error::Error;
use crate::domain::FileFacts;

/// The method, as `mcp-server` answers it.
const METHOD: &str = "sepal/fileFacts";

impl Connection {
    /// What is known of the file that a `write_file` with that path would write. An error where the
    /// server refuses such a write, is older than the question, answers nonsense, or takes too long.
    pub async fn file_facts(&self, path: &str, limit: Duration) -> Result<FileFacts, Error> {
        let answer = self.request(METHOD, json!({ "path": path }), limit).await?;
        serde_json::from_value(answer)
            .ok()
            .filter(FileFacts::is_sound)
            .ok_or_else(|| Error::Refused("the answer is not about a file".to_owned()))
    }
}
