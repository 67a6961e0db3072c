//! Watches the session of a question until its first turn ends.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Future, StreamExt as _};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::door::{Door, News};
use super::{Ending, Question, decision, late};
use crate::agent::{
    FeedItem, Page, QueueState, SessionAction, SessionRequest, SessionSubscription, ShownEvent,
    damaged,
};
use crate::domain::{CallId, Code, Digest, SessionKey};
use crate::session::{Call, Command, Elicitation, Event, Refusal};

/// The time that a stopped turn has to end.
const REST: Duration = Duration::from_secs(10);
/// The number of events in one page of missed events.
const CATCH_UP: usize = 500;

/// A pending prompt at the door, which resolves to the request for the session; `None` if a person in the
/// page decides.
type Questioning<'a> = Pin<Box<dyn Future<Output = Option<SessionRequest>> + Send + 'a>>;

#[expect(
    clippy::disallowed_types,
    reason = "it only waits for the client's answer, and holds nothing that others need"
)]
type AllQuestioning<'a> = futures::stream::FuturesUnordered<Questioning<'a>>;

/// A question that is being followed.
pub(super) struct Watch<'a> {
    question: &'a Question<'a>,
    key: &'a SessionKey,
    door: &'a dyn Door,
    joined: SessionSubscription,
    /// The last event that was processed.
    seq: u64,
    /// The waiting calls, each with the digest that the door was asked about.
    open: HashMap<CallId, Option<Digest>>,
    /// The arguments of calls, as the model wrote them or a person changed them, for the news about running
    /// calls.
    said: HashMap<CallId, Value>,
    asking: AllQuestioning<'a>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        question: &'a Question<'a>,
        key: &'a SessionKey,
        door: &'a dyn Door,
        joined: SessionSubscription,
    ) -> Self {
        Self {
            question,
            key,
            door,
            joined,
            seq: 0,
            open: HashMap::new(),
            said: HashMap::new(),
            asking: AllQuestioning::new(),
        }
    }

    /// Follows the session until the turn ends.
    pub(super) async fn run(mut self) -> Result<Ending, Refusal> {
        let limit = self.question.limit;
        let mut ends_at = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut is_stopping = false;
        let mut is_late = false;
        loop {
            tokio::select! {
                signal = self.joined.signals.recv() => {
                    let events = self.events(signal).await?;
                    for event in events {
                        if let Some(ending) = self.process(&event).await {
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
        sessions.submit(self.key, caller, stop.into()).await?;
        Ok(Instant::now() + REST)
    }

    /// Returns the shown events of a signal; after the receiver lagged, the missed events.
    async fn events(
        &mut self,
        signal: Result<Arc<crate::agent::Signal>, RecvError>,
    ) -> Result<Vec<ShownEvent>, Refusal> {
        match signal {
            Ok(signal) => match &signal.item {
                FeedItem::Event(event) => Ok(vec![event.clone()]),
                FeedItem::Deleted | FeedItem::Rewound => Err(deleted()),
                FeedItem::Damaged => Err(damaged()),
                // Another gateway decided, so the events are read from the journal.
                FeedItem::Moved(_) => missed(self.question, self.key, self.seq).await,
                FeedItem::Queue(queue) => {
                    self.ask_anew(queue);
                    Ok(Vec::new())
                }
                FeedItem::Delta(_)
                | FeedItem::Progress(..)
                | FeedItem::Copying(_)
                | FeedItem::ResourceChanged(_)
                | FeedItem::Usage(_)
                | FeedItem::Notice(_) => Ok(Vec::new()),
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

    /// Processes an event; returns the ending if the event is one.
    async fn process(&mut self, shown: &ShownEvent) -> Option<Ending> {
        if shown.seq <= self.seq {
            return None;
        }
        if let Some(ending) = self.note(shown) {
            return Some(ending);
        }
        if let Event::Started { call, name, .. } = &shown.event {
            let args = self.said.get(call).unwrap_or(&Value::Null);
            self.door.report(News::Running(name, args)).await;
        }
        if let Event::ElicitationAsked(asked) = &shown.event {
            self.ask_for_answer(asked);
        }
        match news(&shown.event) {
            Some(News::Waiting(call)) => {
                self.door.report(News::Waiting(call)).await;
                self.ask_about(call);
            }
            Some(news) => self.door.report(news).await,
            None => {}
        }
        None
    }

    /// Records an event in the state of the question; returns the ending if the event is one.
    fn note(&mut self, shown: &ShownEvent) -> Option<Ending> {
        self.seq = shown.seq;
        self.door.seen(shown.at);
        if let Event::Said { calls, .. } = &shown.event {
            let said = calls
                .iter()
                .map(|call| (call.id.clone(), call.args.clone()));
            self.said.extend(said);
        }
        if let Event::Decided { call, edited, .. } = &shown.event {
            self.open.remove(call);
            // The news about a running call contains the arguments that run.
            let edited = edited.as_ref().map(|edited| edited.args.clone());
            self.said.extend(edited.map(|args| (call.clone(), args)));
        }
        ending(&shown.event)
    }

    /// Asks the door about a waiting call, once for each digest of it.
    fn ask_about(&mut self, call: &Call) {
        let digest = call.digest().cloned();
        let known = self.open.insert(call.id.clone(), digest.clone());
        if known == Some(digest) {
            return;
        }
        let (question, door) = (self.question, self.door);
        let call = Arc::new(call.clone());
        self.asking.push(Box::pin(async move {
            let verdict = question.verdict(door, &call).await?;
            Some(decision(&call, verdict, question.caller))
        }));
    }

    /// Asks the door again about waiting calls whose arguments were changed.
    fn ask_anew(&mut self, queue: &QueueState) {
        for call in queue.calls.iter().filter(|call| call.is_pending()) {
            let asked = self.open.get(&call.id);
            if asked.is_some_and(|asked| asked.as_ref() != call.digest()) {
                self.ask_about(call);
            }
        }
    }

    fn ask_for_answer(&mut self, asked: &Arc<Elicitation>) {
        let (question, door, asked) = (self.question, self.door, Arc::clone(asked));
        self.asking
            .push(Box::pin(async move { question.answer(door, &asked).await }));
    }

    /// Reads the events before the session was joined. They are not reported again; the door is asked about
    /// calls and elicitations that still wait.
    pub(super) async fn read_past(&mut self, queue: QueueState) -> Result<Option<Ending>, Refusal> {
        let joined_at = self.joined.view.seq;
        while self.seq < joined_at {
            let page = page(self.question, self.key, self.seq).await?;
            if page.is_empty() {
                break;
            }
            for shown in page.iter().filter(|shown| shown.seq <= joined_at) {
                if let Some(ending) = self.note(shown) {
                    return Ok(Some(ending));
                }
            }
            if page.last().is_some_and(|last| last.seq > joined_at) {
                break;
            }
        }
        let of_model = queue.calls.iter().filter(|call| call.origin.is_none());
        for call in of_model.filter(|call| call.is_pending()) {
            self.ask_about(call);
        }
        for asked in &queue.elicitations {
            self.ask_for_answer(asked);
        }
        for shown in missed(self.question, self.key, self.seq).await? {
            if let Some(ending) = self.process(&shown).await {
                return Ok(Some(ending));
            }
        }
        Ok(None)
    }

    /// Sends a decision or answer to the session. A faster decision in the page is not an error.
    async fn decide(&mut self, decided: Option<SessionRequest>) {
        let Some(decided) = decided else { return };
        if let SessionAction::Decide { decision, .. } = &decided.action
            && self.open.get(&decision.call) != Some(&decision.digest)
        {
            // The faster decision stands: an approval is not reversed by a timeout here.
            tracing::info!(session.id = %self.key.session, call.id = %decision.call, "A call was decided elsewhere");
            return;
        }
        let (sessions, caller) = (self.question.sessions, self.question.caller);
        if let Err(refusal) = sessions.submit(self.key, caller, decided).await {
            tracing::info!(session.id = %self.key.session, %refusal, "A decision came too late");
        }
    }
}

/// Waits until the given time; never resolves if there is none.
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
        // Calls of views are decided in the page.
        call.origin.is_none().then_some(News::Waiting(call))
    } else if let Event::Ended { name, outcome, .. } = event {
        Some(News::Ended(name, !outcome.is_error()))
    } else {
        None
    }
}

/// Returns all shown events after `after`.
async fn missed(
    question: &Question<'_>,
    key: &SessionKey,
    mut after: u64,
) -> Result<Vec<ShownEvent>, Refusal> {
    let mut missed = Vec::new();
    loop {
        let page = page(question, key, after).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        missed.extend(page);
    }
    Ok(missed)
}

/// Returns the next page of shown events after `after`.
async fn page(
    question: &Question<'_>,
    key: &SessionKey,
    after: u64,
) -> Result<Vec<ShownEvent>, Refusal> {
    let page = Page::After(after);
    question
        .sessions
        .page(key, question.caller, page, CATCH_UP)
        .await
}
