//! Where the questions of a connection arrive, and who answers them.

#![expect(
    deprecated,
    reason = "SEP-2577 ends sampling in a later revision; today's servers use it"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::form::Form;
use super::open_questions::OpenQuestions;
use super::question::{Asked, FormAnswer, Question};
use super::sampling::SamplingRequest;
use super::{refused, sampling};

/// Questions of one call that wait to be looked at.
const MAX_UNSEEN: usize = 4;
/// Questions that one call may ask in all.
const MAX_FOR_A_CALL: usize = 32;
/// Completions that one call may ask for in all.
const MAX_COMPLETIONS: usize = 16;

/// Where the questions of one connection arrive, and which calls run on it.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Desk {
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
    pub(in crate::mcp) fn is_asking(&self) -> watch::Receiver<bool> {
        self.open.is_asking()
    }

    /// Hears what the server asks while a call runs, until the guard goes.
    pub(in crate::mcp) fn hear(&self) -> (HeardCall<'_>, mpsc::Receiver<Question>) {
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
    pub(in crate::mcp) async fn ask(
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
    pub(in crate::mcp) async fn sample(
        &self,
        asked: CreateMessageRequestParams,
        task: Option<&str>,
        cancelled: CancellationToken,
    ) -> Result<CreateMessageResult, ErrorData> {
        let asked = Asked::Sampling(SamplingRequest::read(asked)?);
        let called = self.asking_call(task, sample_once_more)?;
        let (sender, turn) = called.ok_or_else(sampling::without_call)?;
        let _turn = tokio::select! {
            turn = turn.lock_owned() => turn,
            () = cancelled.cancelled() => return sampling::result(FormAnswer::Cancel),
        };
        sampling::result(self.put(sender, asked, cancelled).await)
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
    pub(in crate::mcp) fn visit(
        &self,
        address: Address,
    ) -> (Question, oneshot::Receiver<FormAnswer>) {
        Question::new(&self.open, Asked::Address(address), false)
    }

    /// The server says that all is done at its page.
    pub(in crate::mcp) fn complete(&self, id: &str) {
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
pub(in crate::mcp) struct HeardCall<'d> {
    desk: &'d Desk,
    id: u64,
}

impl HeardCall<'_> {
    /// The call runs as that task: what is asked for the task is asked for the call.
    pub(in crate::mcp) fn is_task(&self, task: &str) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> ElicitRequestParams {
        let schema = json!({ "type": "object", "properties": { "zip": { "type": "string" } } });
        let params = json!({ "message": "Who are you?", "requestedSchema": schema });
        serde_json::from_value(params).unwrap()
    }

    #[tokio::test]
    async fn without_a_call_nobody_is_asked() {
        let desk = Desk::default();
        let answer = desk.ask(form(), None, CancellationToken::new()).await;
        assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
        assert!(!*desk.is_asking().borrow());
    }

    #[tokio::test]
    async fn the_newest_call_asks_and_time_stands_still_meanwhile() {
        let desk = Desk::default();
        let (_first, _unheard) = desk.hear();
        let (call, mut questions) = desk.hear();
        let asking = desk.ask(form(), None, CancellationToken::new());
        let answering = async {
            let question = questions.recv().await.unwrap();
            assert!(*desk.is_asking().borrow());
            assert!(!question.withdrawn().is_cancelled());
            question.answer(FormAnswer::Accept(Some(json!({"zip": "123"}))));
        };
        let (answer, ()) = tokio::join!(asking, answering);
        let answer = answer.unwrap();
        assert_eq!(answer.action, ElicitationAction::Accept);
        assert_eq!(answer.content, Some(json!({"zip": "123"})));
        assert!(!*desk.is_asking().borrow());
        drop(call);
    }

    #[tokio::test]
    async fn what_is_asked_for_a_task_is_asked_for_its_call() {
        let desk = Desk::default();
        let (first, mut meant) = desk.hear();
        let (_second, mut other) = desk.hear();
        first.is_task("7");
        let answering = async {
            let question = meant.recv().await.unwrap();
            question.answer(FormAnswer::Decline);
        };
        let asking = desk.ask(form(), Some("7"), CancellationToken::new());
        let (answer, ()) = tokio::join!(asking, answering);
        assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
        assert!(other.try_recv().is_err());
    }

    fn completion() -> CreateMessageRequestParams {
        let said = json!([{ "role": "user", "content": { "type": "text", "text": "Hi" } }]);
        serde_json::from_value(json!({ "messages": said, "maxTokens": 9 })).unwrap()
    }

    #[tokio::test]
    async fn completions_are_asked_for_one_after_the_other_and_so_often() {
        let desk = Desk::default();
        let without = desk.sample(completion(), None, CancellationToken::new());
        assert!(without.await.unwrap_err().message.contains("while a call"));
        let (_call, mut questions) = desk.hear();
        let asking = (0..=MAX_COMPLETIONS)
            .map(|_| desk.sample(completion(), None, CancellationToken::new()));
        let answering = async {
            for _ in 0..MAX_COMPLETIONS {
                let question = questions.recv().await.unwrap();
                assert!(questions.try_recv().is_err(), "the next one waits");
                question.answer(FormAnswer::Decline);
            }
        };
        let (answers, ()) = tokio::join!(futures::future::join_all(asking), answering);
        let told = |text: &str| {
            let told = answers
                .iter()
                .map(|answer| &answer.as_ref().unwrap_err().message);
            told.filter(|message| message.contains(text)).count()
        };
        assert_eq!(
            (told("rejected"), told("may ask for")),
            (MAX_COMPLETIONS, 1)
        );
    }

    fn page(id: &str) -> ElicitRequestParams {
        let params = json!({
            "mode": "url", "message": "Pay", "url": "https://a.example/pay", "elicitationId": id,
        });
        serde_json::from_value(params).unwrap()
    }

    #[tokio::test]
    async fn a_page_is_accepted_when_it_is_opened_and_over_when_the_server_says_so() {
        let desk = Desk::default();
        let (_call, mut questions) = desk.hear();
        let asking = desk.ask(page("7"), None, CancellationToken::new());
        let opening = async {
            let mut question = questions.recv().await.unwrap();
            question.open();
            question
        };
        let (answer, question) = tokio::join!(asking, opening);
        assert_eq!(answer.unwrap().action, ElicitationAction::Accept);
        assert!(!question.withdrawn().is_cancelled(), "it goes on");
        assert!(*desk.is_asking().borrow());
        desk.complete("another");
        desk.complete("7");
        question.completed().await;
        let withdrawn = question.withdrawn();
        question.answer(FormAnswer::Accept(None));
        assert!(withdrawn.is_cancelled());
        assert!(!*desk.is_asking().borrow());
        assert_eq!(desk.open.pages(), 0);
    }

    #[tokio::test]
    async fn a_page_that_comes_first_says_how_it_ended_and_not_that_it_was_opened() {
        let desk = Desk::default();
        let address = Address::read("Pay".into(), "https://a.example", "7".into()).unwrap();
        let (mut question, mut answer) = desk.visit(address);
        question.open();
        assert!(answer.try_recv().is_err());
        question.answer(FormAnswer::Decline);
        assert_eq!(answer.await, Ok(FormAnswer::Decline));
    }

    #[tokio::test]
    async fn a_question_that_the_server_withdraws_is_over() {
        let desk = Desk::default();
        let (_call, mut questions) = desk.hear();
        let cancelled = CancellationToken::new();
        let asking = desk.ask(form(), None, cancelled.clone());
        let withdrawing = async {
            let question = questions.recv().await.unwrap();
            cancelled.cancel();
            question.withdrawn().cancelled().await;
        };
        let (answer, ()) = tokio::join!(asking, withdrawing);
        assert_eq!(answer.unwrap().action, ElicitationAction::Cancel);
    }

    #[tokio::test]
    async fn a_call_asks_so_often_and_no_more() {
        let desk = Desk::default();
        let (_call, questions) = desk.hear();
        drop(questions);
        for _ in 0..MAX_FOR_A_CALL {
            let answer = desk.ask(form(), None, CancellationToken::new()).await;
            assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
        }
        let refusal = desk.ask(form(), None, CancellationToken::new()).await;
        assert!(refusal.unwrap_err().message.contains("may ask"));
    }
}
