//! What servers ask the person while their calls run: told to the session, and answered once the
//! journal has the answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::task::TaskTracker;

use super::Outcomes;
use crate::domain::{CallId, ElicitationId, Timestamp};
use crate::mcp::{FormAnswer, Question};
use crate::session::{Command, Control, Elicitation, ElicitationAction, ElicitationAnswer};

/// Forms of one session that may wait at the same time.
const MAX_WAITING: usize = 8;

/// The questions of servers that wait for an answer.
#[derive(Clone, Default)]
pub(super) struct Elicitations {
    /// Never held across an await.
    waiting: Arc<Mutex<BTreeMap<ElicitationId, Waiting>>>,
}

struct Waiting {
    call: CallId,
    question: Question,
}

/// Who asks, and where the session hears of it.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) call: CallId,
    pub(super) server: String,
    pub(super) outcomes: Outcomes,
    pub(super) tracker: TaskTracker,
}

impl Elicitations {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<ElicitationId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the session what a server asks, and that it does not any more should the server say so. A
    /// server that asks too much at once is declined, and nobody is bothered.
    pub(super) fn ask(&self, asker: &Asker, question: Question) {
        let id = ElicitationId::from_bits(rand::random());
        let form = &question.form;
        let asked = Elicitation {
            id: id.clone(),
            call: asker.call.clone(),
            server: asker.server.clone(),
            message: form.message.clone(),
            schema: form.schema.clone(),
            order: form.order.clone(),
            asked_at: Timestamp::default(),
            answer: None,
        };
        let withdrawn = question.withdrawn();
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
            outcomes.tell(Command::Elicit(Arc::new(asked))).await;
            withdrawn.cancelled().await;
            let is_unanswered = own.waiting().remove(&id).is_some();
            if is_unanswered {
                outcomes.tell(Command::WithdrawElicitation { id }).await;
            }
        });
    }

    /// Passes answers on that the journal has.
    pub(super) fn pass_on(&self, control: &Control) {
        let turn = control.turn.as_ref();
        for asked in turn.iter().flat_map(|turn| &turn.elicitations) {
            let Some(answer) = &asked.answer else {
                continue;
            };
            let waiting = self.waiting().remove(&asked.id);
            if let Some(waiting) = waiting {
                waiting.question.answer(of(answer));
            }
        }
    }

    /// Cancels what was asked for calls that do not run any more.
    pub(super) fn retain(&self, runs: impl Fn(&CallId) -> bool) {
        self.waiting().retain(|_, waiting| runs(&waiting.call));
    }
}

fn of(answer: &ElicitationAnswer) -> FormAnswer {
    match (answer.action, &answer.content) {
        (ElicitationAction::Accept, Some(content)) => FormAnswer::Accept(content.clone()),
        (ElicitationAction::Decline, _) => FormAnswer::Decline,
        (ElicitationAction::Accept | ElicitationAction::Cancel, _) => FormAnswer::Cancel,
    }
}
