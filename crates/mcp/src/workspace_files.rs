//! Asks the server that runs in every sandbox about files of the workspace, and puts those of skills and what
//! people attach there: requests that are no tools, so that no model reads of them. Other servers are never asked.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::Connection;
use super::error::Error;
use sepal_core::domain::FileFacts;

/// The methods, as `mcp-server` answers them.
const FILE_FACTS: &str = "sepal/fileFacts";
const INSTRUCTIONS: &str = "sepal/workspaceInstructions";
const PLACE_ATTACHMENT: &str = "sepal/placeAttachment";
const PLACE_SKILL: &str = "sepal/placeSkill";
const SKILLS: &str = "sepal/workspaceSkills";
/// Bytes of one part of a file: a sandbox with little memory takes it as base64 in a line of JSON.
const PART: usize = 512 * 1024;

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

/// A file of a skill, to be put into the workspace.
#[derive(Debug, Clone, Copy)]
pub struct SkillFile<'a> {
    /// The skill's own folder there.
    pub folder: &'a str,
    /// The file below it.
    pub path: &'a str,
    pub content: &'a [u8],
    pub is_executable: bool,
}

/// Which skills of a workspace are asked for.
#[derive(Debug, Clone, Copy)]
pub struct SkillsQuestion<'a> {
    /// Folders of the workspace whose folders are skills.
    pub roots: &'a [&'a str],
    /// The only one, by the name of its folder; none = all of them.
    pub only: Option<&'a str>,
    pub max_skills: usize,
    /// Bytes that are told of each `SKILL.md`.
    pub max_bytes: u64,
}

/// A folder of a workspace with a `SKILL.md`. It comes from inside the sandbox, where commands of the model
/// could have written or forged it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FoundSkill {
    /// One of the folders that were asked for.
    pub root: String,
    /// The name of its own folder.
    pub name: String,
    /// The beginning of its `SKILL.md`.
    pub content: String,
    /// How long that is.
    pub bytes: u64,
}

#[derive(Deserialize)]
struct Placed {
    placed: Option<bool>,
}

#[derive(Deserialize)]
struct SkillsAnswer {
    skills: Vec<FoundSkill>,
}

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
            let answer = self.request(PLACE_ATTACHMENT, params, limit).await?;
            placed = answer
                .get("name")
                .and_then(Value::as_str)
                .map(ToOwned::to_owned);
            offset += part.len();
        }
        placed.ok_or_else(|| Error::Refused("the answer names no file".to_owned()))
    }

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

    /// Puts a file of a skill into the workspace; false where something else has its name. An error where
    /// the server refuses it, is older than the question, or takes too long for a part.
    pub async fn place_skill_file(
        &self,
        file: SkillFile<'_>,
        limit: Duration,
    ) -> Result<bool, Error> {
        let mut offset = 0;
        loop {
            let rest = file.content.get(offset..).unwrap_or_default();
            let part = rest.get(..PART).unwrap_or(rest);
            let params = json!({
                "folder": file.folder, "path": file.path, "executable": file.is_executable,
                "bytes": file.content.len(), "offset": offset, "data": STANDARD.encode(part),
            });
            let answer = self.request(PLACE_SKILL, params, limit).await?;
            offset += part.len();
            let placed = serde_json::from_value::<Placed>(answer).ok();
            match placed.and_then(|answer| answer.placed) {
                Some(placed) => return Ok(placed),
                None if offset < file.content.len() => {}
                None => {
                    let text = "the answer is not about the file of a skill".to_owned();
                    return Err(Error::Refused(text));
                }
            }
        }
    }

    /// The skills that lie in the workspace. An error where the server is older than the question, answers
    /// nonsense, or takes too long.
    pub async fn workspace_skills(
        &self,
        question: SkillsQuestion<'_>,
        limit: Duration,
    ) -> Result<Vec<FoundSkill>, Error> {
        let asked = json!({
            "roots": question.roots, "only": question.only, "maxSkills": question.max_skills,
            "maxBytes": question.max_bytes,
        });
        let answer = self.request(SKILLS, asked, limit).await?;
        let answer: Option<SkillsAnswer> = serde_json::from_value(answer).ok();
        // A byte that is no text takes three once it is replaced.
        let most = question.max_bytes.saturating_mul(3);
        let is_sound = |skill: &FoundSkill| {
            question.roots.contains(&skill.root.as_str())
                && skill.name.len() <= 255
                && skill.content.len() as u64 <= most
        };
        answer
            .map(|answer| answer.skills)
            .filter(|skills| skills.len() <= question.max_skills && skills.iter().all(is_sound))
            .ok_or_else(|| Error::Refused("the answer is not about skills".to_owned()))
    }
}
