//! Where the questions of a connection arrive, and who answers them.

#![expect(
    deprecated,
    reason = "SEP-2577 ends sampling in a later revision; today's servers use it"
)]

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::completion;
use super::form::Form;
use super::open_questions::OpenQuestions;
use super::question::{Asked, FormAnswer, Question};
use super::refused;
use super::sampling::SamplingRequest;

/// Questions of one call that wait to be looked at.
const MAX_UNSEEN: usize = 4;
/// Questions that one call may ask in all.
const MAX_FOR_A_CALL: usize = 32;
/// Completions that one call may ask for in all.
const MAX_COMPLETIONS: usize = 16;

/// Where the questions of one connection arrive, and which calls run on it.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Never held across an await.
    calls: Mutex<Calls>,
    open: Arc<OpenQuestions>,
}

#[derive(Debug, Default)]
struct Calls {
    /// Those that run, the newest last.
    running: Vec<RunningCall>,
    next: u64,
}

#[derive(Debug)]
struct RunningCall {
    id: u64,
    questions: mpsc::Sender<Question>,
    /// How often it asked.
    asked: usize,
    /// How often it asked for a completion.
    sampled: usize,
    /// Held while it waits for one: the next comes when that is over.
    sampling: Arc<tokio::sync::Mutex<()>>,
    /// What its server made of it.
    task: Option<String>,
}

impl Desk {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a person is asked: that time is nobody's.
    pub(crate) fn is_asking(&self) -> watch::Receiver<bool> {
        self.open.is_asking()
    }

    /// Hears what the server asks while a call runs, until the guard goes.
    pub(crate) fn hear(&self) -> (HeardCall<'_>, mpsc::Receiver<Question>) {
        let (sender, questions) = mpsc::channel(MAX_UNSEEN);
        let mut calls = self.calls();
        let id = calls.next;
        calls.next += 1;
        calls.running.push(RunningCall {
            id,
            questions: sender,
            asked: 0,
            sampled: 0,
            sampling: Arc::default(),
            task: None,
        });
        drop(calls);
        (HeardCall { desk: self, id }, questions)
    }

    /// Asks on behalf of the call that runs as that task, else of the one that began last: without a task
    /// the protocol does not say which one asks.
    pub(crate) async fn ask(
        &self,
        asked: ElicitRequestParams,
        task: Option<&str>,
        cancelled: CancellationToken,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(sender) = self.asking_call(task, ask_once_more)? else {
            // Nobody is there who could know what it is about.
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        Ok(match self.put(sender, read(asked)?, cancelled).await {
            FormAnswer::Accept(content) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                match content {
                    Some(content) => accepted.with_content(content),
                    None => accepted,
                }
            }
            FormAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            FormAnswer::Cancel | FormAnswer::Failed(_) => {
                ElicitResult::new(ElicitationAction::Cancel)
            }
        })
    }

    /// Asks for a completion on behalf of the same call, one after the other.
    pub(crate) async fn sample(
        &self,
        asked: CreateMessageRequestParams,
        task: Option<&str>,
        cancelled: CancellationToken,
    ) -> Result<CreateMessageResult, ErrorData> {
        let asked = Asked::Sampling(SamplingRequest::read(asked)?);
        let called = self.asking_call(task, sample_once_more)?;
        let (sender, turn) = called.ok_or_else(completion::without_call)?;
        let _turn = tokio::select! {
            turn = turn.lock_owned() => turn,
            () = cancelled.cancelled() => return completion::result(FormAnswer::Cancel),
        };
        completion::result(self.put(sender, asked, cancelled).await)
    }

    /// Puts a question to the person, and waits.
    async fn put(
        &self,
        sender: mpsc::Sender<Question>,
        asked: Asked,
        cancelled: CancellationToken,
    ) -> FormAnswer {
        let (question, answer) = Question::new(&self.open, asked, true);
        // Should the server not wait any more, whichever way it says so.
        let withdraws = question.withdrawn().drop_guard();
        if sender.try_send(question).is_err() {
            return FormAnswer::Decline;
        }
        drop(sender);
        let answer = tokio::select! {
            answer = answer => answer.unwrap_or(FormAnswer::Cancel),
            () = cancelled.cancelled() => return FormAnswer::Cancel,
        };
        // A page that was opened goes on.
        withdraws.disarm();
        answer
    }

    /// A page that has to be opened before a call runs; the answer says how all of it ended.
    pub(crate) fn visit(&self, address: Address) -> (Question, oneshot::Receiver<FormAnswer>) {
        Question::new(&self.open, Asked::Address(address), false)
    }

    /// The server says that all is done at its page.
    pub(crate) fn complete(&self, id: &str) {
        self.open.complete(id);
    }

    fn asking_call<T>(
        &self,
        task: Option<&str>,
        count: impl FnOnce(&mut RunningCall) -> Result<T, ErrorData>,
    ) -> Result<Option<T>, ErrorData> {
        let mut calls = self.calls();
        let is_meant = |call: &RunningCall| task.is_some() && call.task.as_deref() == task;
        let meant = calls.running.iter().rposition(is_meant);
        let meant = meant.or_else(|| calls.running.len().checked_sub(1));
        let Some(call) = meant.and_then(|index| calls.running.get_mut(index)) else {
            return Ok(None);
        };
        count(call).map(Some)
    }
}

fn ask_once_more(call: &mut RunningCall) -> Result<mpsc::Sender<Question>, ErrorData> {
    call.asked += 1;
    if call.asked > MAX_FOR_A_CALL {
        return Err(refused(&format!(
            "a call may ask {MAX_FOR_A_CALL} times, and this one has"
        )));
    }
    Ok(call.questions.clone())
}

/// What is asked, and the word of the call: one completion after the other.
type Sampler = (mpsc::Sender<Question>, Arc<tokio::sync::Mutex<()>>);

fn sample_once_more(call: &mut RunningCall) -> Result<Sampler, ErrorData> {
    call.sampled += 1;
    if call.sampled > MAX_COMPLETIONS {
        return Err(refused(&format!(
            "a call may ask for {MAX_COMPLETIONS} completions, and this one has"
        )));
    }
    Ok((call.questions.clone(), Arc::clone(&call.sampling)))
}

/// A call whose questions are heard.
pub(crate) struct HeardCall<'d> {
    desk: &'d Desk,
    id: u64,
}

impl HeardCall<'_> {
    /// The call runs as that task: what is asked for the task is asked for the call.
    pub(crate) fn is_task(&self, task: &str) {
        let mut calls = self.desk.calls();
        let call = calls.running.iter_mut().find(|call| call.id == self.id);
        if let Some(call) = call {
            call.task = Some(task.to_owned());
        }
    }
}

impl Drop for HeardCall<'_> {
    fn drop(&mut self) {
        let running = &mut self.desk.calls().running;
        running.retain(|call| call.id != self.id);
    }
}

fn read(asked: ElicitRequestParams) -> Result<Asked, ErrorData> {
    match asked {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => Form::read(message, &requested_schema).map(Asked::Form),
        ElicitRequestParams::UrlElicitationParams {
            message,
            url,
            elicitation_id,
            ..
        } => {
            let read = Address::read(message, &url, elicitation_id);
            read.map(Asked::Address).map_err(|reason| refused(&reason))
        }
        // A mode of a later revision.
        _ => Err(refused(
            "only `mode: \"form\"` and `mode: \"url\"` can be asked",
        )),
    }
}
