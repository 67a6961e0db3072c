//! What a request says of the session's skills, and what its model reads of them.

use serde_json::Value;

use super::ModelRequest;
use crate::agent::effects::skills::ReadSkill;
use crate::agent::feed::{Notice, What};
use crate::session::{Command, Proposal};

impl ModelRequest {
    /// Looks up which skills there are now; people are told what cannot be read.
    pub(super) async fn refresh_skills(&self) {
        let (skills, turn) = (&self.agent.skills, self.request.turn);
        let trouble = skills.refresh(turn, self.files_at.is_some()).await;
        if let Some(why) = trouble {
            tracing::warn!(why, "Skills cannot be read");
            self.feed.announce(What::Notice(Notice {
                text: format!("Not read for this turn: skills: {why}"),
                code: "context_unavailable".into(),
                turn,
                retry: None,
            }));
        }
    }

    /// A call that reads a skill, answered. What was put into the workspace for it is told to the session
    /// first, which the mailbox keeps in order: it is in the journal before the answer.
    pub(super) async fn read_skill(
        &self,
        provider_id: String,
        name: &str,
        args: &Value,
    ) -> Proposal {
        let ReadSkill { resolution, placed } = self.agent.skills.read(name, args).await;
        if let Some((id, name, path)) = placed {
            let command = Command::AttachmentPlaced {
                request: self.request,
                id,
                name,
                path,
            };
            self.outcomes.tell(command).await;
        }
        Proposal {
            provider_id,
            name: name.to_owned(),
            args: args.clone(),
            is_indirect: false,
            resolution,
        }
    }
}
