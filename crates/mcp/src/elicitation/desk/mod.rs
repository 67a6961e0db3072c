//! Receives the questions of a connection, and routes each to the call that asks.

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

/// The most questions of one call that wait to be read.
const MAX_UNSEEN: usize = 4;
/// The most questions that one call may ask in all.
const MAX_FOR_A_CALL: usize = 32;
/// The most completions that one call may request in all.
const MAX_COMPLETIONS: usize = 16;

/// The questions and running calls of one connection.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Never held across an await.
    calls: Mutex<Calls>,
    open: Arc<OpenQuestions>,
}

#[derive(Debug, Default)]
struct Calls {
    /// The running calls, the newest last.
    running: Vec<RunningCall>,
    next: u64,
}

#[derive(Debug)]
struct RunningCall {
    id: u64,
    questions: mpsc::Sender<Question>,
    /// The number of questions that the call asked.
    asked: usize,
    /// The number of completions that the call requested.
    sampled: usize,
    /// Held while a completion is pending, so that the call's completions run one after the other.
    sampling: Arc<tokio::sync::Mutex<()>>,
    /// The task that the server created for the call.
    task: Option<String>,
}

impl Desk {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches whether a person is asked: that time counts against no time limit.
    pub(crate) fn is_asking(&self) -> watch::Receiver<bool> {
        self.open.is_asking()
    }

    /// Registers a running call, and returns the receiver of its questions. Dropping the guard ends this.
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

    /// Asks on behalf of the call that runs as `task`, or else of the call that began last: without a task
    /// the protocol does not say which call asks.
    pub(crate) async fn ask(
        &self,
        asked: ElicitRequestParams,
        task: Option<&str>,
        cancelled: CancellationToken,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(sender) = self.asking_call(task, ask_once_more)? else {
            // No call runs, so nobody knows what the question is about.
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

    /// Requests a completion on behalf of the same call, one at a time.
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

    /// Sends a question to the person, and waits for the answer.
    async fn put(
        &self,
        sender: mpsc::Sender<Question>,
        asked: BackgroundRequest,
        cancelled: CancellationToken,
    ) -> FormAnswer {
        let (question, answer) = Question::new(&self.open, asked, true);
        // Withdraws the question if the server no longer waits, whichever way it says so.
        let withdraws = question.withdrawn().drop_guard();
        if sender.try_send(question).is_err() {
            return FormAnswer::Decline;
        }
        drop(sender);
        let answer = tokio::select! {
            answer = answer => answer.unwrap_or(FormAnswer::Cancel),
            () = cancelled.cancelled() => return FormAnswer::Cancel,
        };
        // The question about an opened page stays open.
        withdraws.disarm();
        answer
    }

    /// Asks the person to open a page before a call runs; the answer arrives once the page is completed.
    pub(crate) fn visit(&self, address: Address) -> (Question, oneshot::Receiver<FormAnswer>) {
        Question::new(&self.open, Asked::Address(address), false)
    }

    /// Marks a page as completed, when the server says so.
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

/// The channel of questions, and the lock that lets the call's completions run one after the other.
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

/// A registered call, whose questions are received.
pub(crate) struct HeardCall<'d> {
    desk: &'d Desk,
    id: u64,
}

impl HeardCall<'_> {
    /// Records that the call runs as this task, so that the task's questions belong to the call.
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
