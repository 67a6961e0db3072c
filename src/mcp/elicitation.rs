//! What a server asks the person while a call of it runs (`elicitation/create`): who is asked, what
//! can be asked, and whether an answer fits.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::mask::Cleaner;

/// The longest words of a question, in bytes.
const MAX_MESSAGE: usize = 16 * 1024;
/// The largest form, in bytes of JSON.
const MAX_SCHEMA: usize = 64 * 1024;
/// Fields of a form.
const MAX_FIELDS: usize = 64;
/// The largest answer, in bytes of JSON.
const MAX_CONTENT: usize = 64 * 1024;
/// Questions of one call that wait to be looked at.
const MAX_UNSEEN: usize = 4;
/// Questions that one call may ask in all.
const MAX_FOR_A_CALL: usize = 32;

/// A form as a server wants it filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The server's words.
    pub message: String,
    /// JSON Schema of an object with flat fields.
    pub schema: Value,
    /// The names of its fields in the server's order, which the schema does not keep.
    pub order: Vec<String>,
}

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
    pub(super) fn cleaned(self, cleaner: &Cleaner) -> Self {
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

impl Form {
    /// What is wrong with an answer, naming the field; `None` if it fits.
    pub fn problem_with(schema: &Value, content: &Value) -> Option<String> {
        let Value::Object(values) = content else {
            return Some("the answer is an object with a value for each field".to_owned());
        };
        if content.to_string().len() > MAX_CONTENT {
            return Some(format!("the answer may have {MAX_CONTENT} bytes"));
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let is_known = |name: &&String| known.is_some_and(|known| known.contains_key(*name));
        if let Some(name) = values.keys().find(|name| !is_known(name)) {
            return Some(format!("the form has no field `{name}`"));
        }
        let validator = match validator(schema) {
            Ok(validator) => validator,
            Err(reason) => return Some(reason),
        };
        let error = validator.iter_errors(content).next()?;
        let at = error.instance_path().to_string();
        let place = match at.strip_prefix('/') {
            Some(field) => format!("`{field}`: "),
            None => String::new(),
        };
        Some(format!("{place}{error}"))
    }

    /// Reads what a server asks; the refusal tells the server what is wrong.
    fn read(asked: ElicitRequestParams) -> Result<Self, ErrorData> {
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = asked
        else {
            return Err(refused("only forms can be asked here (`mode: \"form\"`)"));
        };
        if message.len() > MAX_MESSAGE {
            return Err(refused(&format!("`message` may have {MAX_MESSAGE} bytes")));
        }
        let fields = requested_schema.properties.len();
        if fields == 0 || fields > MAX_FIELDS {
            return Err(refused(&format!("a form has 1 to {MAX_FIELDS} fields")));
        }
        let order = requested_schema.property_order.clone();
        let order = order
            .unwrap_or_else(|| requested_schema.properties.keys().cloned().collect());
        let schema = serde_json::to_value(&requested_schema)
            .map_err(|error| refused(&format!("`requestedSchema` cannot be read: {error}")))?;
        if schema.to_string().len() > MAX_SCHEMA {
            return Err(refused(&format!(
                "`requestedSchema` may have {MAX_SCHEMA} bytes"
            )));
        }
        validator(&schema).map_err(|reason| refused(&reason))?;
        Ok(Self {
            message,
            schema,
            order,
        })
    }
}

fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    let options = jsonschema::options().should_validate_formats(true);
    let built = options.build(schema);
    built.map_err(|error| format!("`requestedSchema` is not valid: {error}"))
}

fn refused(reason: &str) -> ErrorData {
    ErrorData::invalid_params(reason.to_owned(), None)
}

/// Where the questions of one connection arrive, and which calls run on it.
#[derive(Debug)]
pub(super) struct Desk {
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
    pub(super) fn is_asking(&self) -> watch::Receiver<bool> {
        self.is_asking.subscribe()
    }

    /// Hears what the server asks while a call runs, until the guard goes.
    pub(super) fn hear(&self) -> (HeardCall<'_>, mpsc::Receiver<Question>) {
        let (sender, questions) = mpsc::channel(MAX_UNSEEN);
        let mut calls = self.calls();
        let id = calls.next;
        calls.next += 1;
        calls.running.push((id, sender, 0));
        drop(calls);
        (HeardCall { desk: self, id }, questions)
    }

    /// Asks on behalf of the call that began last: the protocol does not say which one asks.
    pub(super) async fn ask(
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
pub(super) struct HeardCall<'d> {
    desk: &'d Desk,
    id: u64,
}

impl Drop for HeardCall<'_> {
    fn drop(&mut self) {
        self.desk.calls().running.retain(|(id, _, _)| *id != self.id);
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
    use serde_json::{Value, json};

    use super::*;

    fn asked(params: Value) -> ElicitRequestParams {
        serde_json::from_value(params).unwrap()
    }

    fn form() -> Value {
        json!({
            "message": "Who are you?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "zip": {"type": "string", "minLength": 2, "maxLength": 5},
                    "mail": {"type": "string", "format": "email"},
                    "age": {"type": "integer", "minimum": 1, "maximum": 120},
                    "colour": {"type": "string", "oneOf": [
                        {"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"},
                    ]},
                    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
                    "sure": {"type": "boolean", "default": true},
                },
                "required": ["zip"],
            },
        })
    }

    #[test]
    fn a_form_keeps_the_order_of_its_fields() {
        let form = Form::read(asked(form())).unwrap();
        assert_eq!(form.order, ["zip", "mail", "age", "colour", "tags", "sure"]);
        assert_eq!(form.message, "Who are you?");
    }

    #[test]
    fn an_answer_is_checked_field_by_field() {
        let form = Form::read(asked(form())).unwrap();
        let check = |content: Value, expected: Option<&str>| {
            let problem = Form::problem_with(&form.schema, &content);
            match (problem, expected) {
                (None, None) => {}
                (Some(problem), Some(expected)) if problem.contains(expected) => {}
                (problem, expected) => panic!("{content}: {problem:?}, not {expected:?}"),
            }
        };
        check(json!({"zip": "123"}), None);
        let all = json!({
            "zip": "12", "mail": "a@b.example", "age": 7, "colour": "r", "tags": ["a"], "sure": false,
        });
        check(all, None);
        check(json!({}), Some("zip"));
        check(json!({"zip": "1"}), Some("`zip`"));
        check(json!({"zip": 12}), Some("`zip`"));
        check(json!({"zip": "12", "mail": "no"}), Some("`mail`"));
        check(json!({"zip": "12", "age": 0.5}), Some("`age`"));
        check(json!({"zip": "12", "age": 121}), Some("`age`"));
        check(json!({"zip": "12", "colour": "green"}), Some("`colour`"));
        check(json!({"zip": "12", "tags": ["c"]}), Some("`tags"));
        check(json!({"zip": "12", "more": 1}), Some("`more`"));
        check(json!(["zip"]), Some("object"));
        let long = "x".repeat(MAX_CONTENT);
        check(json!({"zip": long}), Some("bytes"));
    }

    #[test]
    fn what_nobody_can_read_is_refused() {
        let check = |params: Value, expected: &str| {
            let refusal = Form::read(asked(params)).unwrap_err();
            assert!(refusal.message.contains(expected), "{}", refusal.message);
        };
        let mut long = form();
        long["message"] = "x".repeat(1024 * 1024).into();
        check(long, "`message` may have");
        let mut none = form();
        none["requestedSchema"]["properties"] = json!({});
        none["requestedSchema"]["required"] = json!([]);
        check(none, "fields");
        let link = json!({
            "mode": "url", "message": "Go", "url": "https://a.example", "elicitationId": "1",
        });
        check(link, "only forms");
    }

    #[tokio::test]
    async fn without_a_call_nobody_is_asked() {
        let desk = Desk::default();
        let answer = desk.ask(asked(form()), CancellationToken::new()).await;
        assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
        assert!(!*desk.is_asking().borrow());
    }

    #[tokio::test]
    async fn the_newest_call_asks_and_time_stands_still_meanwhile() {
        let desk = Desk::default();
        let (_first, _unheard) = desk.hear();
        let (call, mut questions) = desk.hear();
        let asking = desk.ask(asked(form()), CancellationToken::new());
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
        let asking = desk.ask(asked(form()), cancelled.clone());
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
            let answer = desk.ask(asked(form()), CancellationToken::new()).await;
            assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
        }
        let refusal = desk.ask(asked(form()), CancellationToken::new()).await;
        assert!(refusal.unwrap_err().message.contains("may ask"));
    }
}
