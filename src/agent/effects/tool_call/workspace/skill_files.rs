//! Finds skills in the session's workspace, and puts the files of used skills there. Both go through the
//! server in the sandbox, because the model may have made links there.

use std::time::Duration;

use super::Workspace;
use crate::mcp::{self, FoundSkill, SkillFile, SkillsQuestion};
use crate::skills::Bundle;

/// The folders of skills in a workspace, as coding tools use them; the first skill of a name counts.
const ROOTS: [&str; 3] = [".skills", ".claude/skills", ".agents/skills"];
/// The most skills read of one workspace.
const MAX_SKILLS: usize = 100;
/// The most bytes read of a `SKILL.md`: more than one may have, so that a longer one is detected.
const MAX_BYTES: u64 = 132 * 1024;
/// The time limit of the server's answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// The folder of the skills that are put there, as every sandbox names it.
const FOLDER: &str = "/workspace/.sepal/skills";
/// The time limit of writing a part of a file.
const PART_LIMIT: Duration = Duration::from_secs(10);
/// The time limit of one skill, including the start of its sandbox.
const PLACE_LIMIT: Duration = Duration::from_secs(45);
/// The most folder names tried: existing files are never overwritten.
const MOST_FOLDERS: u32 = 9;

impl Workspace<'_> {
    /// Returns the skills that are there, or only the one in that folder. Empty if the server is too old to
    /// answer.
    pub(in crate::agent) async fn skills(
        self,
        only: Option<(&str, &str)>,
    ) -> Result<Vec<FoundSkill>, String> {
        let opened = self.open().await?;
        let root = only.map(|(root, _)| root);
        let roots: &[&str] = root.as_ref().map_or(&ROOTS[..], std::slice::from_ref);
        let question = SkillsQuestion {
            roots,
            only: only.map(|(_, name)| name),
            max_skills: MAX_SKILLS,
            max_bytes: MAX_BYTES,
        };
        match opened
            .connection
            .workspace_skills(question, ANSWER_LIMIT)
            .await
        {
            Ok(found) => Ok(found),
            Err(mcp::Error::Refused(why)) => {
                tracing::debug!(why, "The sandbox tells no skills of its workspace");
                Ok(Vec::new())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Puts the files of a skill there, and returns the path of their folder. Doing it twice makes only one
    /// copy; if the folder has another file under one of their names, another folder is used.
    pub(in crate::agent) async fn place_skill(
        self,
        name: &str,
        bundle: &Bundle,
    ) -> Result<String, String> {
        let placing = tokio::time::timeout(PLACE_LIMIT, self.place_all(name, bundle));
        placing.await.unwrap_or_else(|_| {
            let seconds = PLACE_LIMIT.as_secs();
            Err(format!("it took longer than {seconds} s"))
        })
    }

    async fn place_all(self, name: &str, bundle: &Bundle) -> Result<String, String> {
        let opened = self.open().await?;
        for number in 1..=MOST_FOLDERS {
            let folder = match number {
                1 => name.to_owned(),
                number => format!("{name}-{number}"),
            };
            let mut is_there = true;
            for (path, file) in bundle.files() {
                let file = SkillFile {
                    folder: &folder,
                    path,
                    content: &file.content,
                    is_executable: file.is_executable,
                };
                let placed = opened.connection.place_skill_file(file, PART_LIMIT).await;
                is_there = placed.map_err(|error| error.to_string())?;
                if !is_there {
                    break;
                }
            }
            if is_there {
                return Ok(format!("{FOLDER}/{folder}"));
            }
        }
        Err(format!(
            "other files have its names in `{FOLDER}/{name}` and {} more folders",
            MOST_FOLDERS - 1
        ))
    }
}
