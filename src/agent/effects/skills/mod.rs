//! The skills of one session: what its model is told of them before each request, and what it reads when it
//! uses one.

mod reading;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::tool_call::SessionTools;
use super::tool_call::workspace::Workspace;
use crate::context::{Context, ContextError, ContextProvider, ContextSession};
use crate::domain::{SessionKey, TurnId, UserId};
use crate::skills::{Offer, Skills, WorkspaceSkill};

pub(in crate::agent) use self::reading::ReadSkill;

/// The source of what is said of skills, as the parts of a request name it.
const SOURCE: &str = "skills";
/// The same of those of the workspace, and their kind.
const OF_WORKSPACE: &str = "workspace_skills";

/// The skills of one session.
pub(in crate::agent) struct SessionSkills {
    /// None = the settings switch skills off.
    skills: Option<Skills>,
    key: SessionKey,
    /// Whose own skills the session has.
    owner: UserId,
    tools: Arc<SessionTools>,
    /// Never held across an await.
    known: Mutex<Known>,
}

/// What is offered, as it was last looked up.
#[derive(Clone, Default)]
struct Known {
    /// When the workspace was looked at.
    turn: Option<TurnId>,
    found: Vec<WorkspaceSkill>,
    offer: Arc<Offer>,
    /// What is said of it: the same, down to its counted tokens, as long as the offer is.
    contexts: Vec<Context>,
}

impl SessionSkills {
    /// Those of a session and of the person whose it is.
    pub(super) fn open(
        skills: Option<Skills>,
        (key, owner): (&SessionKey, &UserId),
        tools: &Arc<SessionTools>,
    ) -> Arc<Self> {
        Arc::new(Self {
            skills: skills.filter(|skills| skills.settings().is_on),
            key: key.clone(),
            owner: owner.clone(),
            tools: Arc::clone(tools),
            known: Mutex::default(),
        })
    }

    fn known(&self) -> Known {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Whether there is anything to use.
    pub(in crate::agent) fn are_offered(&self) -> bool {
        !self.known().offer.is_empty()
    }

    /// Looks up what is offered: what is kept before each request, and the workspace once in a turn. What
    /// cannot be read now stays as it was; the answer says why.
    pub(in crate::agent) async fn refresh(&self, turn: TurnId, has_files: bool) -> Option<String> {
        let skills = self.skills.as_ref()?;
        let before = self.known();
        let kept = match skills.offered(&self.key.tenant, &self.owner).await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(?error, "What skills there are cannot be read now");
                return Some("they cannot be read now".to_owned());
            }
        };
        let (mut found, mut trouble) = (before.found.clone(), None);
        if before.turn != Some(turn) {
            let workspace = skills.settings().has_workspace && has_files;
            let workspace = Workspace::of(&self.tools).filter(|_| workspace);
            found = match workspace {
                None => Vec::new(),
                Some(workspace) => match reading::find(workspace).await {
                    Ok(found) => found,
                    Err(why) => {
                        trouble = Some(format!("those of the workspace: {why}"));
                        before.found
                    }
                },
            };
        }
        let offer = Offer::new(kept, found.clone(), skills.settings().most_offered);
        let (offer, contexts) = if offer == *before.offer {
            (before.offer, before.contexts)
        } else {
            let contexts = contexts(&offer);
            (Arc::new(offer), contexts)
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known {
            turn: Some(turn),
            found,
            offer,
            contexts,
        };
        trouble
    }
}

/// What is said of the offer, the last first.
fn contexts(offer: &Offer) -> Vec<Context> {
    let kept = offer.system_text().map(|text| {
        Context::system(text)
            .with_metadata("source", SOURCE)
            .with_metadata("entry_id", SOURCE)
    });
    let found = offer.workspace_text().map(|text| {
        Context::new(OF_WORKSPACE, text)
            .with_metadata("source", OF_WORKSPACE)
            .with_metadata("entry_id", OF_WORKSPACE)
    });
    found.into_iter().chain(kept).collect()
}

#[async_trait]
impl ContextProvider for SessionSkills {
    fn name(&self) -> &'static str {
        SOURCE
    }

    async fn provide(&self, _: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        Ok(self.known().contexts)
    }

    fn at_hand(&self, _: &ContextSession<'_>) -> Option<Vec<Context>> {
        Some(self.known().contexts)
    }
}
