//! Offers skills to one session: describes them to its model before each request, and answers the calls that
//! use one.

mod reading;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::tool_call::SessionTools;
use super::tool_call::workspace::Workspace;
use crate::context::{Context, ContextError, ContextProvider, ContextSession};
use crate::domain::{SessionKey, TurnId, UserId};
use crate::skills::{Offer, Skills, WorkspaceSkill};

pub(in crate::agent) use self::reading::ReadSkill;

/// The source of the text about skills, for the composition of a request.
const SOURCE: &str = "skills";
/// The source, and the kind, of the text about the workspace's skills.
const OF_WORKSPACE: &str = "workspace_skills";

/// The skills of one session.
pub(in crate::agent) struct SessionSkills {
    /// `None` = the settings switch skills off.
    skills: Option<Skills>,
    key: SessionKey,
    /// The owner, whose own skills the session has.
    owner: UserId,
    tools: Arc<SessionTools>,
    /// Never held across an await.
    known: Mutex<KnownSkills>,
}

/// The offered skills as of the last look-up.
#[derive(Clone, Default)]
struct KnownSkills {
    /// The turn in which the workspace was last searched.
    turn: Option<TurnId>,
    found: Vec<WorkspaceSkill>,
    offer: Arc<Offer>,
    /// The texts about the offer: unchanged, including their counted tokens, as long as the offer is.
    contexts: Vec<Context>,
}

impl SessionSkills {
    /// Makes the skills of a session and its owner.
    pub(super) fn open(
        skills: Option<Skills>,
        key: &SessionKey,
        owner: &UserId,
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

    fn known(&self) -> KnownSkills {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Returns true if there are skills to use.
    pub(in crate::agent) fn are_offered(&self) -> bool {
        !self.known().offer.is_empty()
    }

    /// Looks up the offered skills: stored ones before each request, and those of the workspace once in a
    /// turn. If they cannot be read, the earlier ones stay, and the reason is returned.
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
                Some(workspace) => match Box::pin(reading::find(workspace)).await {
                    Ok(found) => found,
                    Err(why) => {
                        trouble = Some(format!("those of the workspace: {why}"));
                        before.found
                    }
                },
            };
        }
        let (mut kept, mut offered) = (kept, found.clone());
        if let Some(assistant) = self.tools.assistant() {
            kept.retain(|skill| assistant.allows_skill(&skill.name));
            offered.retain(|skill| assistant.allows_skill(&skill.name));
        }
        let offer = Offer::new(kept, offered, skills.settings().most_offered);
        let (offer, contexts) = if offer == *before.offer {
            (before.offer, before.contexts)
        } else {
            let contexts = contexts(&offer);
            (Arc::new(offer), contexts)
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = KnownSkills {
            turn: Some(turn),
            found,
            offer,
            contexts,
        };
        trouble
    }
}

/// Returns the texts about the offer, in reverse order.
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
