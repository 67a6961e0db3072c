//! Asks the server that runs in every sandbox about workspace files, and writes files of skills and
//! attachments there. These requests are not tools, so no model sees them. Other servers never receive them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::Connection;
use super::error::Error;
use sepal_core::domain::FileFacts;

/// The methods that `mcp-server` implements for this.
const FILE_FACTS: &str = "sepal/fileFacts";
const INSTRUCTIONS: &str = "sepal/workspaceInstructions";
const PLACE_ATTACHMENT: &str = "sepal/placeAttachment";
const PLACE_SKILL: &str = "sepal/placeSkill";
const SKILLS: &str = "sepal/workspaceSkills";
/// Most bytes in one part of a file: a sandbox with little memory takes the part as base64 in a line of JSON.
const PART: usize = 512 * 1024;

/// A file at the top of a workspace with instructions for working in it. It comes from inside the sandbox,
/// where commands of the model could have written or forged it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstructionsFile {
    /// One of the requested names.
    pub name: String,
    /// The beginning of the file.
    pub content: String,
    /// The size of the whole file.
    pub bytes: u64,
}

#[derive(Deserialize)]
struct Answer {
    files: Vec<InstructionsFile>,
}

/// A file of a skill that is written into the workspace.
#[derive(Debug, Clone, Copy)]
pub struct SkillFile<'a> {
    /// The skill's own folder in the workspace.
    pub folder: &'a str,
    /// The path of the file below `folder`.
    pub path: &'a str,
    pub content: &'a [u8],
    pub is_executable: bool,
}

/// Selects the skills of a workspace to return.
#[derive(Debug, Clone, Copy)]
pub struct SkillsQuestion<'a> {
    /// Workspace folders whose subfolders are skills.
    pub roots: &'a [&'a str],
    /// The folder name of the only skill to return; `None` for all skills.
    pub only: Option<&'a str>,
    pub max_skills: usize,
    /// Most bytes to return of each `SKILL.md`.
    pub max_bytes: u64,
}

/// A workspace folder with a `SKILL.md`. It comes from inside the sandbox, where commands of the model could
/// have written or forged it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FoundSkill {
    /// One of the requested roots.
    pub root: String,
    /// The name of the skill's folder.
    pub name: String,
    /// The beginning of the `SKILL.md`.
    pub content: String,
    /// The size of the whole `SKILL.md`.
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
    /// Writes a file into the attachments folder under `name`, or the next free name, and returns the name
    /// used. Fails if the server refuses the file, does not know the method, or takes longer than `limit` for
    /// a part.
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

    /// Returns the facts about the file that a `write_file` with that path would write. Fails if the server
    /// refuses such a write, does not know the method, sends an invalid answer, or takes too long.
    pub async fn file_facts(&self, path: &str, limit: Duration) -> Result<FileFacts, Error> {
        let asked = json!({ "path": path });
        let answer = self.request(FILE_FACTS, asked, limit).await?;
        serde_json::from_value(answer)
            .ok()
            .filter(FileFacts::is_sound)
            .ok_or_else(|| Error::Refused("the answer is not about a file".to_owned()))
    }

    /// Returns those of the named files that exist, with at most `max_bytes` of each. Fails if the server
    /// does not know the method, sends an invalid answer, or takes too long.
    pub async fn workspace_instructions(
        &self,
        names: &[&str],
        max_bytes: u64,
        limit: Duration,
    ) -> Result<Vec<InstructionsFile>, Error> {
        let asked = json!({ "names": names, "maxBytes": max_bytes });
        let answer = self.request(INSTRUCTIONS, asked, limit).await?;
        let answer: Option<Answer> = serde_json::from_value(answer).ok();
        // An invalid byte becomes a replacement character of three bytes.
        let most = max_bytes.saturating_mul(3);
        let is_sound = |file: &InstructionsFile| {
            names.contains(&file.name.as_str()) && file.content.len() as u64 <= most
        };
        answer
            .map(|answer| answer.files)
            .filter(|files| files.len() <= names.len() && files.iter().all(is_sound))
            .ok_or_else(|| Error::Refused("the answer is not about these files".to_owned()))
    }

    /// Writes a file of a skill into the workspace; returns false if something else has its name. Fails if
    /// the server refuses the file, does not know the method, or takes longer than `limit` for a part.
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

    /// Returns the skills in the workspace. Fails if the server does not know the method, sends an invalid
    /// answer, or takes too long.
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
        // An invalid byte becomes a replacement character of three bytes.
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
