//! Runs one call until it has ended, is stopped, or is released, and passes what its server asks or begins to
//! the session: tasks, and elicitations with their answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::background::sampling::described;
use super::session_agent::SessionAgent;
use super::tool_call::tasks::CallStop;
use super::{Outcomes, Running, WantedEffects, tool_call};
use crate::agent::feed::FeedItem;
use crate::domain::{CallId, ElicitationId, Timestamp};
use crate::mcp::{Asked, CallNews, FormAnswer, NewTask, Question};
use crate::session::{
    Call, CallTask, Command, Control, Elicitation, ElicitationAction, ElicitationAnswer,
    ModelChoice, SamplingStage,
};

/// Stops its call on drop: the tool server is told, unless the call runs as a task, which another gateway
/// resumes.
pub(super) struct Stopper {
    stop: CallStop,
    ended: CancellationToken,
}

impl Stopper {
    /// Cancels the call for the person.
    pub(super) fn stop(&self) {
        self.stop.cancel.cancel();
    }

    /// Resolves once the call has ended here.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        if !self.stop.cancel.is_cancelled() {
            self.stop.let_go.cancel();
        }
        self.stop.cancel.cancel();
    }
}

/// Starts an approved call, or resumes the task that it runs as.
pub(super) fn run(running: &Running, wanted: &WantedEffects<'_>, id: &CallId) -> Option<Stopper> {
    let call = Arc::clone(wanted.control.call(id)?);
    let stop = CallStop::default();
    let stopper = Stopper {
        stop: stop.clone(),
        ended: CancellationToken::new(),
    };
    let (outcomes, ended) = (running.outcomes(), stopper.ended.clone().drop_guard());
    let (feed, tools) = (Arc::clone(wanted.feed), Arc::clone(&wanted.agent.tools));
    let version = wanted.control.version;
    let fence = wanted.is_shared.then(|| wanted.journal.fence(version));
    let id = id.clone();
    let (elicitations, created) = (running.asked.clone(), running.created.clone());
    let tracker = running.tracker.clone();
    let asker = Asker::new(&call, wanted, (&outcomes, &tracker));
    tool_call::hosts::report(&tools, &outcomes);
    running.tracker.spawn(async move {
        let started = tokio::time::Instant::now();
        let news = |news| match news {
            CallNews::Progress(progress) => feed.announce(FeedItem::Progress(id.clone(), progress)),
            CallNews::Question(question) => elicitations.ask(&asker, *question),
            CallNews::Task(task) => created.submit(&id, *task, &outcomes, &tracker),
        };

        let outcome =
            tool_call::checkpointed::run(&tools, &call, fence.as_ref(), &stop, news).await;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let told = Command::CallEnded {
            call: call.id.clone(),
            outcome,
            duration_ms,
        };
        outcomes.submit(told).await;
        drop(ended);
    });
    Some(stopper)
}

/// The created tasks that the journal does not have yet.
#[derive(Clone, Default)]
pub(super) struct CreatedTasks {
    /// Never held across an await.
    waiting: Arc<Mutex<BTreeMap<CallId, oneshot::Sender<()>>>>,
}

impl CreatedTasks {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<CallId, oneshot::Sender<()>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a created task to the session.
    pub(super) fn submit(
        &self,
        call: &CallId,
        new: NewTask,
        outcomes: &Outcomes,
        tracker: &TaskTracker,
    ) {
        let NewTask {
            id,
            ttl_ms,
            server,
            kept,
        } = new;
        self.waiting().insert(call.clone(), kept);
        let created = Command::TaskCreated {
            call: call.clone(),
            task: CallTask {
                id,
                server,
                ttl_ms,
                since: Timestamp::default(),
            },
        };
        let outcomes = outcomes.clone();
        tracker.spawn(async move { outcomes.submit(created).await });
    }

    /// Releases the tasks that the journal now has, so that they are followed.
    pub(super) fn pass_on(&self, control: &Control) {
        for call in control.calls().filter(|call| call.task.is_some()) {
            if let Some(kept) = self.waiting().remove(&call.id) {
                // An error means that the call has ended meanwhile.
                let _ = kept.send(());
            }
        }
    }

    /// Drops the tasks of calls that no longer run here.
    pub(super) fn retain(&self, runs: impl Fn(&CallId) -> bool) {
        self.waiting().retain(|call, _| runs(call));
    }
}

/// The most forms of one session that may wait at the same time.
const MAX_WAITING: usize = 8;

/// The elicitations that wait for an answer.
#[derive(Clone, Default)]
pub(super) struct Elicitations {
    /// Never held across an await.
    waiting: Arc<Mutex<BTreeMap<ElicitationId, Waiting>>>,
}

struct Waiting {
    call: CallId,
    question: Question,
}

/// The call and server that ask, and the way to the session.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) call: CallId,
    pub(super) server: String,
    pub(super) outcomes: Outcomes,
    pub(super) tracker: TaskTracker,
    /// The agent, which describes the model to ask for a sampling request, and the session's model.
    agent: SessionAgent,
    choice: ModelChoice,
}

impl Asker {
    pub(super) fn new(
        call: &Call,
        wanted: &WantedEffects<'_>,
        (outcomes, tracker): (&Outcomes, &TaskTracker),
    ) -> Self {
        Self {
            agent: wanted.agent.clone(),
            choice: wanted.choice.clone(),
            call: call.id.clone(),
            server: call.server().to_owned(),
            outcomes: outcomes.clone(),
            tracker: tracker.clone(),
        }
    }
}

impl Elicitations {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<ElicitationId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an elicitation to the session, and withdraws it if the server does. A server with too many open
    /// ones is declined without asking the person.
    pub(super) fn ask(&self, asker: &Asker, question: Question) {
        let id = ElicitationId::from_bits(rand::random());
        let shown = elicitation(&id, asker, &question.asked);
        let (withdrawn, completed) = (question.withdrawn(), question.completed());
        let call = asker.call.clone();
        let mut waiting = self.waiting();
        if waiting.len() >= MAX_WAITING {
            drop(waiting);
            tracing::warn!(mcp.server = %asker.server, call.id = %call, "A server asks too much at once and is declined");
            return question.answer(FormAnswer::Decline);
        }
        waiting.insert(id.clone(), Waiting { call, question });
        drop(waiting);
        let (own, outcomes) = (self.clone(), asker.outcomes.clone());
        asker.tracker.spawn(async move {
            outcomes.submit(Command::Elicit(Arc::new(shown))).await;
            tokio::select! {
                () = withdrawn.cancelled() => {
                    let is_unanswered = own.waiting().remove(&id).is_some();
                    if is_unanswered {
                        outcomes.submit(Command::WithdrawElicitation { id }).await;
                    }
                }
                // The journal ends the elicitation.
                () = completed => outcomes.submit(Command::CompleteElicitation { id }).await,
            }
        });
    }

    /// Passes on the answers that the journal has.
    pub(super) fn pass_on(&self, control: &Control) {
        for asked in control.elicitations() {
            let mut all = self.waiting();
            let Some(answer) = &asked.answer else {
                let waiting = all.get_mut(&asked.id);
                if let Some(waiting) = waiting.filter(|_| asked.is_opened) {
                    waiting.question.open();
                }
                continue;
            };
            let waiting = all.remove(&asked.id);
            drop(all);
            if let Some(waiting) = waiting {
                waiting.question.answer(of(asked, answer));
            }
        }
    }

    /// Drops the elicitations of calls that no longer run, which cancels them.
    pub(super) fn retain(&self, runs: impl Fn(&CallId) -> bool) {
        self.waiting().retain(|_, waiting| runs(&waiting.call));
    }
}

fn elicitation(id: &ElicitationId, asker: &Asker, wanted: &Asked) -> Elicitation {
    let (mut schema, mut order, mut url, mut sampling) = (Value::Null, vec![], None, None);
    let message = match wanted {
        Asked::Form(form) => {
            (schema, order) = (form.schema.clone(), form.order.clone());
            form.message.as_str()
        }
        Asked::Address(page) => {
            url = Some(page.url.clone());
            page.message.as_str()
        }
        Asked::Sampling(wanted) => {
            sampling = Some(Box::new(described(&asker.agent, &asker.choice, wanted)));
            ""
        }
    };
    Elicitation {
        id: id.clone(),
        call: asker.call.clone(),
        server: asker.server.clone(),
        message: message.to_owned(),
        schema,
        order,
        url,
        is_opened: false,
        asked_at: Timestamp::default(),
        answer: None,
        sampling,
    }
}

fn of(asked: &Elicitation, answer: &ElicitationAnswer) -> FormAnswer {
    let stage = asked.sampling.as_ref().map(|sampling| &sampling.stage);
    if let Some(SamplingStage::Failed { problem }) = stage {
        return FormAnswer::Failed(problem.code.as_str());
    }
    match (answer.action, &answer.content) {
        (ElicitationAction::Accept, content) => FormAnswer::Accept(content.clone()),
        (ElicitationAction::Decline, _) => FormAnswer::Decline,
        (ElicitationAction::Cancel, _) => FormAnswer::Cancel,
    }
}
