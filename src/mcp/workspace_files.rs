//! Asks the server that runs in every sandbox about files of the workspace: requests that are no tools,
//! so that no model reads of them. Other servers are never asked.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::connection::Connection;
use super::error::Error;
use crate::domain::FileFacts;

/// The methods, as `mcp-server` answers them.
const FILE_FACTS: &str = "sepal/fileFacts";
const INSTRUCTIONS: &str = "sepal/workspaceInstructions";

/// A file at the top of a workspace that says how to work in it. It comes from inside the sandbox, where
/// commands of the model could have written or forged it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstructionsFile {
    /// One of the names that were asked for.
    pub name: String,
    /// Its beginning.
    pub content: String,
    /// How long it is.
    pub bytes: u64,
}

#[derive(Deserialize)]
struct Answer {
    files: Vec<InstructionsFile>,
}

impl Connection {
    /// What is known of the file that a `write_file` with that path would write. An error where the
    /// server refuses such a write, is older than the question, answers nonsense, or takes too long.
    pub async fn file_facts(&self, path: &str, limit: Duration) -> Result<FileFacts, Error> {
        let asked = json!({ "path": path });
        let answer = self.request(FILE_FACTS, asked, limit).await?;
        serde_json::from_value(answer)
            .ok()
            .filter(FileFacts::is_sound)
            .ok_or_else(|| Error::Refused("the answer is not about a file".to_owned()))
    }

    /// Those of the named files that are there, with at most `max_bytes` of each. An error where the
    /// server is older than the question, answers nonsense, or takes too long.
    pub async fn workspace_instructions(
        &self,
        names: &[&str],
        max_bytes: u64,
        limit: Duration,
    ) -> Result<Vec<InstructionsFile>, Error> {
        let asked = json!({ "names": names, "maxBytes": max_bytes });
        let answer = self.request(INSTRUCTIONS, asked, limit).await?;
        let answer: Option<Answer> = serde_json::from_value(answer).ok();
        // A byte that is no text takes three once it is replaced.
        let most = max_bytes.saturating_mul(3);
        let is_sound = |file: &InstructionsFile| {
            names.contains(&file.name.as_str()) && file.content.len() as u64 <= most
        };
        answer
            .map(|answer| answer.files)
            .filter(|files| files.len() <= names.len() && files.iter().all(is_sound))
            .ok_or_else(|| Error::Refused("the answer is not about these files".to_owned()))
    }
}
