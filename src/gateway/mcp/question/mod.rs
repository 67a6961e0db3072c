//! One question to the agent: a session of its own, watched until the turn ends.

mod answering;
mod door;

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{Future, StreamExt as _};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::door::{Door, News};
use super::approval::{Heard, Verdict};
use super::missing::Missing;
use crate::agent::{Joined, Page, SessionRequest, Sessions, ShownEvent, What, damaged};
use crate::config::ApprovalWay;
use crate::domain::{CallId, Caller, Code, SessionKey};
use crate::session::{Call, Command, Decision, Event, Refusal, overdue};

/// How long a stopped turn has to come to rest.
const REST: Duration = Duration::from_secs(10);
/// Events that are read at once after falling behind.
const CATCH_UP: usize = 500;

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The answer.
    Answered(String),
    /// The turn ended without one.
    Failed(Code, String),
    /// It was stopped.
    Cancelled,
}

/// A question to the agent.
pub struct Question<'a> {
    /// The corridor to sessions.
    pub sessions: &'a Sessions,
    pub caller: &'a Caller,
    pub text: String,
    /// Who decides about calls, the first way that is possible.
    pub ways: &'a [ApprovalWay],
    /// Whether people have a page where they can decide.
    pub has_page: bool,
    /// How long it may take, approvals included (S0.58); `None` = as long as it takes.
    pub limit: Option<Duration>,
    pub stop: CancellationToken,
}

/// What the session is told then; none = somebody in the page decides.
type Questioning<'a> = Pin<Box<dyn Future<Output = Option<SessionRequest>> + Send + 'a>>;

impl Question<'_> {
    /// Asks in a new session, and names it with the ending.
    pub async fn ask(self, door: &dyn Door) -> Result<(SessionKey, Ending), Refusal> {
        let key = self.sessions.new_session(self.caller, None);
        let joined = self.sessions.join(&key, self.caller).await?;
        let say = Command::Say {
            text: self.text.clone(),
            author: self.caller.actor(),
            client_message_id: None,
            effort: None,
            attachments: vec![],
        };
        let say = SessionRequest::Command(say);
        self.sessions.tell(&key, self.caller, say).await?;
        let watch = Watch {
            question: &self,
            key: &key,
            door,
            joined,
            seq: 0,
            asked: HashSet::new(),
            said: HashMap::new(),
            asking: FuturesUnordered::new(),
        };
        let ending = watch.run().await?;
        Ok((key, ending))
    }
}

struct Watch<'a> {
    question: &'a Question<'a>,
    key: &'a SessionKey,
    door: &'a dyn Door,
    joined: Joined,
    /// The last event that was looked at.
    seq: u64,
    asked: HashSet<CallId>,
    /// Arguments as the model wrote them, for what is told of running calls.
    said: HashMap<CallId, Value>,
    asking: FuturesUnordered<Questioning<'a>>,
}

impl Watch<'_> {
    async fn run(mut self) -> Result<Ending, Refusal> {
        let limit = self.question.limit;
        let mut ends_at = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut is_stopping = false;
        let mut is_late = false;
        loop {
            tokio::select! {
                signal = self.joined.signals.recv() => {
                    let events = self.events(signal).await?;
                    for event in events {
                        if let Some(ending) = self.look(&event).await {
                            return Ok(if is_late { late(limit) } else { ending });
                        }
                    }
                }
                Some(decided) = self.asking.next() => self.decide(decided).await,
                () = self.question.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    ends_at = Some(self.stop().await?);
                }
                () = until(ends_at) => {
                    if is_stopping {
                        return Ok(if is_late { late(limit) } else { Ending::Cancelled });
                    }
                    (is_stopping, is_late) = (true, true);
                    ends_at = Some(self.stop().await?);
                }
            }
        }
    }

    async fn stop(&mut self) -> Result<Instant, Refusal> {
        self.asking.clear();
        let stop = Command::Stop {
            turn: None,
            said_so_far: None,
            thought_so_far: None,
            spent: Vec::new(),
        };
        let Question {
            sessions, caller, ..
        } = self.question;
        sessions
            .tell(self.key, caller, SessionRequest::Command(stop))
            .await?;
        Ok(Instant::now() + REST)
    }

    /// The shown events of a signal; after falling behind, those that were missed.
    async fn events(
        &mut self,
        signal: Result<Arc<crate::agent::Signal>, RecvError>,
    ) -> Result<Vec<ShownEvent>, Refusal> {
        match signal {
            Ok(signal) => match &signal.what {
                What::Event(event) => Ok(vec![event.clone()]),
                What::Deleted | What::Rewound => Err(deleted()),
                What::Damaged => Err(damaged()),
                // Another gateway decided: the journal has it.
                What::Moved(_) => missed(self.question, self.key, self.seq).await,
                What::Delta(_)
                | What::Progress(..)
                | What::Copying(_)
                | What::ResourceChanged(_)
                | What::Queue(_)
                | What::Usage(_)
                | What::Notice(_) => Ok(Vec::new()),
            },
            Err(RecvError::Lagged(_)) => {
                let Question {
                    sessions, caller, ..
                } = self.question;
                self.joined = sessions.join(self.key, caller).await?;
                missed(self.question, self.key, self.seq).await
            }
            Err(RecvError::Closed) => Err(deleted()),
        }
    }

    /// Looks at one event; the ending, if it is one.
    async fn look(&mut self, shown: &ShownEvent) -> Option<Ending> {
        if shown.seq <= self.seq {
            return None;
        }
        self.seq = shown.seq;
        if let Some(ending) = ending(&shown.event) {
            return Some(ending);
        }
        if let Event::Said { calls, .. } = &shown.event {
            let said = calls
                .iter()
                .map(|call| (call.id.clone(), call.args.clone()));
            self.said.extend(said);
        }
        if let Event::Started { call, name, .. } = &shown.event {
            let args = self.said.get(call).unwrap_or(&Value::Null);
            self.door.tell(News::Running(name, args)).await;
        }
        if let Event::ElicitationAsked(asked) = &shown.event {
            let (question, door, asked) = (self.question, self.door, Arc::clone(asked));
            self.asking
                .push(Box::pin(async move { question.answer(door, &asked).await }));
        }
        match news(&shown.event) {
            Some(News::Waiting(call)) => {
                self.door.tell(News::Waiting(call)).await;
                if self.asked.insert(call.id.clone()) {
                    let (question, door) = (self.question, self.door);
                    let call = Arc::new(call.clone());
                    self.asking.push(Box::pin(async move {
                        let verdict = question.verdict(door, &call).await?;
                        Some(decision(&call, verdict, question.caller))
                    }));
                }
            }
            Some(news) => self.door.tell(news).await,
            None => {}
        }
        None
    }

    /// Passes a verdict or an answer on. That somebody in the page was faster is no trouble.
    async fn decide(&mut self, decided: Option<SessionRequest>) {
        let Some(decided) = decided else { return };
        let (sessions, caller) = (self.question.sessions, self.question.caller);
        if let Err(refusal) = sessions.tell(self.key, caller, decided).await {
            tracing::info!(session.id = %self.key.session, %refusal, "A decision came too late");
        }
    }
}

fn decision(call: &Call, verdict: Verdict, caller: &Caller) -> SessionRequest {
    let decision = Decision {
        call: call.id.clone(),
        approved: verdict.approved,
        take_back: false,
        reason: verdict.reason,
        edit: None,
        digest: call.facts.as_ref().map(|facts| facts.digest.clone()),
        by: caller.actor(),
        role: Some(caller.user.role),
    };
    SessionRequest::Decide {
        decision,
        args: None,
    }
}

impl Question<'_> {
    /// Goes through the ways; `None` = a person in the page decides.
    async fn verdict(&self, door: &dyn Door, call: &Call) -> Option<Verdict> {
        if let Some(missing) = Missing::of(self.caller, call) {
            if !self.has_page {
                return Some(missing.refused());
            }
            if missing.is_for_page() {
                door.tell(News::ForPage(call, missing)).await;
                return None;
            }
        }
        let mut too_long = None;
        for way in self.ways {
            match way {
                ApprovalWay::Elicit => match door.decide(call).await {
                    Heard::Verdict(verdict) => return Some(verdict),
                    Heard::Nobody => {}
                    Heard::TooLong { chars, most } => too_long = Some((chars, most)),
                },
                ApprovalWay::Web if self.has_page => {
                    if let Some((chars, most)) = too_long {
                        door.tell(News::LeftToPage(call, chars, most)).await;
                    }
                    return None;
                }
                ApprovalWay::Web => {}
                ApprovalWay::Deny => break,
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

/// Resolves then; never, if there is no such time.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn deleted() -> Refusal {
    Refusal::new(Code::SessionNotFound, "the session was deleted")
}

fn ending(event: &Event) -> Option<Ending> {
    if let Event::Answered {
        text,
        finish,
        stop_detail,
        ..
    } = event
    {
        let code = Code::BudgetExhausted;
        let why = stop_detail.iter().filter(|_| finish == code.as_str());
        let mut cut = why.map(|why| Ending::Failed(code, format!("{text}\n\n{why}")));
        cut.next_back()
            .or_else(|| Some(Ending::Answered(text.clone())))
    } else if let Event::TurnFailed { code, text, .. } = event {
        Some(Ending::Failed(*code, text.clone()))
    } else if let Event::Cancelled { .. } = event {
        Some(Ending::Cancelled)
    } else {
        None
    }
}

fn news(event: &Event) -> Option<News<'_>> {
    if let Event::Thinking { iteration, .. } = event {
        Some(News::Thinking(*iteration))
    } else if let Event::ApprovalAsked { call, .. } = event {
        Some(News::Waiting(call))
    } else if let Event::Ended { name, outcome, .. } = event {
        Some(News::Ended(name, !outcome.is_error()))
    } else {
        None
    }
}

/// The shown events after that one.
async fn missed(
    question: &Question<'_>,
    key: &SessionKey,
    mut after: u64,
) -> Result<Vec<ShownEvent>, Refusal> {
    let mut missed = Vec::new();
    loop {
        let page = question
            .sessions
            .page(key, question.caller, Page::After(after), CATCH_UP);
        let page = page.await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        missed.extend(page);
    }
    Ok(missed)
}
