//! Where the questions of a connection arrive, and who answers them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::form::{Form, refused};
use crate::mcp::mask::Cleaner;

/// Questions of one call that wait to be looked at.
const MAX_UNSEEN: usize = 4;
/// Questions that one call may ask in all.
const MAX_FOR_A_CALL: usize = 32;

/// A question of a server. Dropping it tells the server that nobody answered.
#[derive(Debug)]
pub struct Question {
    pub form: Form,
    reply: oneshot::Sender<FormAnswer>,
    withdrawn: CancellationToken,
}

/// What becomes of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// Filled in, with values that fit.
    Accept(Value),
    /// The person does not want to say it.
    Decline,
    /// It was closed.
    Cancel,
}

impl Question {
    /// Gives the server its answer.
    pub fn answer(self, answer: FormAnswer) {
        // The server may have gone, or asks no more.
        let _ = self.reply.send(answer);
    }

    /// Ends when the server does not wait for the answer any more, answered or not.
    pub fn withdrawn(&self) -> CancellationToken {
        self.withdrawn.clone()
    }

    /// The same without the secrets that its server was given.
    pub(in crate::mcp) fn cleaned(self, cleaner: &Cleaner) -> Self {
        let Form {
            message,
            schema,
            order,
        } = self.form;
        Self {
            form: Form {
                message: cleaner.clean(&message),
                schema: cleaner.clean_value(schema),
                order: order.iter().map(|name| cleaner.clean(name)).collect(),
            },
            ..self
        }
    }
}

/// Where the questions of one connection arrive, and which calls run on it.
#[derive(Debug)]
pub(in crate::mcp) struct Desk {
    /// Never held across an await.
    calls: Mutex<Calls>,
    /// Whether somebody is asked now.
    is_asking: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Calls {
    /// Those that run, the newest last, each with how often it asked.
    running: Vec<(u64, mpsc::Sender<Question>, usize)>,
    next: u64,
    /// Questions that wait.
    waiting: usize,
}

impl Default for Desk {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            is_asking: watch::channel(false).0,
        }
    }
}

impl Desk {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a person is asked: that time is nobody's.
    pub(in crate::mcp) fn is_asking(&self) -> watch::Receiver<bool> {
        self.is_asking.subscribe()
    }

    /// Hears what the server asks while a call runs, until the guard goes.
    pub(in crate::mcp) fn hear(&self) -> (HeardCall<'_>, mpsc::Receiver<Question>) {
        let (sender, questions) = mpsc::channel(MAX_UNSEEN);
        let mut calls = self.calls();
        let id = calls.next;
        calls.next += 1;
        calls.running.push((id, sender, 0));
        drop(calls);
        (HeardCall { desk: self, id }, questions)
    }

    /// Asks on behalf of the call that began last: the protocol does not say which one asks.
    pub(in crate::mcp) async fn ask(
        &self,
        asked: ElicitRequestParams,
        cancelled: CancellationToken,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(sender) = self.asking_call()? else {
            // Nobody is there who could know what it is about.
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let form = Form::read(asked)?;
        let (reply, answer) = oneshot::channel();
        let withdrawn = CancellationToken::new();
        let _withdraws: DropGuard = withdrawn.clone().drop_guard();
        let question = Question {
            form,
            reply,
            withdrawn,
        };
        let _waits = Waits::begin(self);
        if sender.try_send(question).is_err() {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        }
        drop(sender);
        let answer = tokio::select! {
            answer = answer => answer.unwrap_or(FormAnswer::Cancel),
            () = cancelled.cancelled() => FormAnswer::Cancel,
        };
        Ok(match answer {
            FormAnswer::Accept(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            FormAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            FormAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    fn asking_call(&self) -> Result<Option<mpsc::Sender<Question>>, ErrorData> {
        let mut calls = self.calls();
        let Some((_, sender, asked)) = calls.running.last_mut() else {
            return Ok(None);
        };
        *asked += 1;
        if *asked > MAX_FOR_A_CALL {
            return Err(refused(&format!(
                "a call may ask {MAX_FOR_A_CALL} times, and this one has"
            )));
        }
        Ok(Some(sender.clone()))
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut calls = self.calls();
        calls.waiting = change(calls.waiting);
        self.is_asking.send_replace(calls.waiting > 0);
    }
}

/// A call whose questions are heard.
pub(in crate::mcp) struct HeardCall<'d> {
    desk: &'d Desk,
    id: u64,
}

impl Drop for HeardCall<'_> {
    fn drop(&mut self) {
        self.desk
            .calls()
            .running
            .retain(|(id, _, _)| *id != self.id);
    }
}

/// A question that waits.
struct Waits<'d>(&'d Desk);

impl<'d> Waits<'d> {
    fn begin(desk: &'d Desk) -> Self {
        desk.count(|waiting| waiting + 1);
        Self(desk)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.count(|waiting| waiting.saturating_sub(1));
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
        let answer = desk.ask(form(), CancellationToken::new()).await;
        assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
        assert!(!*desk.is_asking().borrow());
    }

    #[tokio::test]
    async fn the_newest_call_asks_and_time_stands_still_meanwhile() {
        let desk = Desk::default();
        let (_first, _unheard) = desk.hear();
        let (call, mut questions) = desk.hear();
        let asking = desk.ask(form(), CancellationToken::new());
        let answering = async {
            let question = questions.recv().await.unwrap();
            assert!(*desk.is_asking().borrow());
            assert!(!question.withdrawn().is_cancelled());
            question.answer(FormAnswer::Accept(json!({"zip": "123"})));
        };
        let (answer, ()) = tokio::join!(asking, answering);
        let answer = answer.unwrap();
        assert_eq!(answer.action, ElicitationAction::Accept);
        assert_eq!(answer.content, Some(json!({"zip": "123"})));
        assert!(!*desk.is_asking().borrow());
        drop(call);
    }

    #[tokio::test]
    async fn a_question_that_the_server_withdraws_is_over() {
        let desk = Desk::default();
        let (_call, mut questions) = desk.hear();
        let cancelled = CancellationToken::new();
        let asking = desk.ask(form(), cancelled.clone());
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
            let answer = desk.ask(form(), CancellationToken::new()).await;
            assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
        }
        let refusal = desk.ask(form(), CancellationToken::new()).await;
        assert!(refusal.unwrap_err().message.contains("may ask"));
    }
}
