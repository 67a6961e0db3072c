//! Puts the files of a skill into the workspace, and asks which skills lie there, through the server that
//! runs in every sandbox: requests that are no tools, so that no model asks for them. Other servers are
//! never asked.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::connection::Connection;
use super::error::Error;

/// The methods, as `mcp-server` answers them.
const PLACE: &str = "sepal/placeSkill";
const SKILLS: &str = "sepal/workspaceSkills";
/// Bytes of one part: a sandbox with little memory takes it as base64 in a line of JSON.
const PART: usize = 512 * 1024;

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
struct Answer {
    skills: Vec<FoundSkill>,
}

impl Connection {
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
            let answer = self.request(PLACE, params, limit).await?;
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
        let answer: Option<Answer> = serde_json::from_value(answer).ok();
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
