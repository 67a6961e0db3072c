//! Asks the agent one question: in a session of its own, which is watched until the turn ends.

mod answering;
mod door;
mod watch;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use self::door::{Door, News};
use self::watch::Watch;
use super::approval::{DoorReply, Verdict};
use super::missing::Missing;
use crate::agent::{
    AssistantChoice, Page, SessionAction, SessionRequest, SessionSubscription, Sessions,
};
use crate::config::ApprovalWay;
use crate::domain::{Caller, Code, KeyScope, SessionKey};
use crate::providers::WantedModel;
use crate::session::{Call, Command, Decision, Event, Narrowing, Refusal, overdue};

/// The end of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The answer of the model.
    Answered(String),
    /// The turn ended without an answer: the error code and text.
    Failed(Code, String),
    /// The turn was stopped.
    Cancelled,
}

/// A question to the agent.
pub struct Question<'a> {
    /// The way to reach sessions.
    pub sessions: &'a Sessions,
    pub caller: &'a Caller,
    /// The ways to decide about calls; the first possible one is used.
    pub ways: &'a [ApprovalWay],
    /// True if people have a page where they can decide.
    pub has_page: bool,
    /// The time limit, including approvals (S0.58); `None` means no limit.
    pub limit: Option<Duration>,
    pub stop: CancellationToken,
}

/// The text of a question, and the assistant that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionText {
    pub text: String,
    /// The name or id of the assistant; `None` = the agent as it is.
    pub assistant: Option<String>,
}

impl From<String> for QuestionText {
    fn from(text: String) -> Self {
        Self {
            text,
            assistant: None,
        }
    }
}

impl Question<'_> {
    /// Asks in a new session, and returns its key with the ending.
    pub async fn ask(
        self,
        asked: impl Into<QuestionText>,
        door: &dyn Door,
    ) -> Result<(SessionKey, Ending), Refusal> {
        let (key, joined) = begin(self.sessions, self.caller, asked.into()).await?;
        let ending = self.follow(&key, joined, door).await?;
        Ok((key, ending))
    }

    /// Follows a session that a question began until its first turn ends, which may have happened long ago.
    pub(super) async fn follow(
        &self,
        key: &SessionKey,
        joined: SessionSubscription,
        door: &dyn Door,
    ) -> Result<Ending, Refusal> {
        let queue = joined.view.queue.clone();
        let mut watch = Watch::new(self, key, door, joined);
        if let Some(ending) = watch.read_past(queue).await? {
            return Ok(ending);
        }
        door.caught_up();
        watch.run().await
    }
}

/// The client message id of a question, which marks a session as begun by a question.
const QUESTION: &str = "mcp-question";
/// The number of first shown events that contain a session's first message.
const FIRST_EVENTS: usize = 8;

/// True if a question began the session. Calls of a session that a person began in the page are never
/// decided here.
pub(super) async fn is_question(
    sessions: &Sessions,
    key: &SessionKey,
    caller: &Caller,
) -> Result<bool, Refusal> {
    let first = sessions.page(key, caller, Page::After(0), FIRST_EVENTS);
    let first = first.await?;
    let mut events = first.iter().map(|shown| &shown.event);
    let message = events.find(|event| matches!(event, Event::UserMessage { .. }));
    Ok(message.is_some_and(begins_with_question))
}

/// True if the session's first message is a question.
fn begins_with_question(message: &Event) -> bool {
    matches!(message, Event::UserMessage { client_message_id: Some(id), .. } if id == QUESTION)
}

/// Sends a question in a new session.
pub(super) async fn begin(
    sessions: &Sessions,
    caller: &Caller,
    QuestionText { text, assistant }: QuestionText,
) -> Result<(SessionKey, SessionSubscription), Refusal> {
    let assistants = sessions.assistants();
    let choice = match &assistant {
        Some(assistant) => Some(AssistantChoice {
            id: assistants.find_usable(caller, assistant).await?,
            narrowed: Narrowing::default(),
        }),
        None => None,
    };
    let model = WantedModel::new(None, None);
    let start = assistants.start(caller, &model, choice).await?;
    let key = sessions.new_session(caller, start)?;
    let joined = sessions.join(&key, caller).await?;
    let say = Command::Say {
        text,
        author: caller.actor(),
        client_message_id: Some(QUESTION.to_owned()),
        effort: None,
        attachments: vec![],
    };
    sessions.submit(&key, caller, say.into()).await?;
    Ok((key, joined))
}

/// Builds the decision of the person at the door about a call as it was shown.
pub(super) fn decision(call: &Call, verdict: Verdict, caller: &Caller) -> SessionRequest {
    let decision = Decision {
        call: call.id.clone(),
        approved: verdict.approved,
        take_back: false,
        reason: verdict.reason,
        edit: None,
        dry_run: None,
        digest: call.facts.as_ref().map(|facts| facts.digest.clone()),
        by: caller.actor(),
        role: Some(caller.user.role),
    };
    let decide = SessionAction::Decide {
        decision,
        args: None,
    };
    decide.into()
}

impl Question<'_> {
    /// Tries the ways of approval in order; `None` if a person in the page decides.
    async fn verdict(&self, door: &dyn Door, call: &Call) -> Option<Verdict> {
        if let Some(missing) = Missing::of(self.caller, call) {
            if !self.has_page {
                return Some(missing.refused());
            }
            if missing.is_for_page() {
                door.report(News::ForPage(call, missing)).await;
                return None;
            }
        }
        let mut too_long = None;
        let may_decide = self.caller.has_scope(KeyScope::Decide);
        for way in self.ways {
            match way {
                // Whoever has such a key is asked nothing, and `auto` does not decide for them either.
                ApprovalWay::Elicit | ApprovalWay::Auto if !may_decide => {}
                ApprovalWay::Elicit => match door.decide(call).await {
                    DoorReply::Verdict(verdict) => return Some(verdict),
                    DoorReply::Nobody => {}
                    DoorReply::TooLong { chars, most } => too_long = Some((chars, most)),
                },
                ApprovalWay::Web if self.has_page => {
                    if let Some((chars, most)) = too_long {
                        door.report(News::LeftToPage(call, chars, most)).await;
                    }
                    return None;
                }
                ApprovalWay::Web => {}
                ApprovalWay::Deny => break,
                // `auto` approves the model's arguments, but not arguments that somebody else wrote.
                ApprovalWay::Auto if call.is_edited_by_other(Some(&self.caller.user.id)) => {}
                ApprovalWay::Auto => {
                    return Some(Verdict {
                        approved: true,
                        reason: Some("approved by `agent.approval: auto`".to_owned()),
                    });
                }
            }
        }
        let reason = match too_long {
            Some((chars, most)) => format!(
                "the call has {chars} characters, and the person at the client can be shown {most} \
                 at most, so it is not allowed; make it shorter, in several calls if need be"
            ),
            None => {
                "nobody can be asked here, so the call is not allowed (`agent.approval`)".into()
            }
        };
        Some(Verdict {
            approved: false,
            reason: Some(reason),
        })
    }
}

fn late(limit: Option<Duration>) -> Ending {
    Ending::Failed(Code::TurnTimeout, overdue(limit.unwrap_or_default()))
}
