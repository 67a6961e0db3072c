//! Follows a task to its end: polls its state, answers the server's questions, and fetches the result.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolResult, CustomRequest, CustomResult, ErrorCode, InputRequest, ServerResult, TaskStatus,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use super::rounds::given;
use super::{CANCEL_GRACE, Connection};
use crate::error::Error;
use crate::tasks::{NewTask, TaskEnd, TaskState, TaskTerms, related};
use crate::tools::result::ToolAnswer;
use crate::wire::lenient;
use crate::wire::message::TASK;
use crate::wire::oversized;

/// The time limit for the state of a task.
const GET_LIMIT: Duration = Duration::from_secs(30);
/// The time limit for a result that is ready.
const RESULT_LIMIT: Duration = Duration::from_mins(1);
/// The interval of the checks whether a cancelled task has stopped.
const STOP_POLL: Duration = Duration::from_millis(100);
/// The number of times that the wait for a result may fail while the task goes on.
const MAX_BROKEN: u32 = 3;
/// The progress text of a task that is picked up again.
const GOES_ON: &str = "Picked up again: the server still works on it.";

/// A message about a running task.
#[derive(Debug)]
pub(super) enum Told {
    /// The server's status text.
    Status(String),
    Created(Box<NewTask>),
}

/// The terms of a task, and the channel for messages about it.
type Telling<'a> = (Option<&'a TaskTerms>, mpsc::Sender<Told>);

/// Follows a task that was just created, once the journal has it.
pub(super) async fn begin(
    connection: &Connection,
    created: TaskState,
    (terms, tell): Telling<'_>,
) -> Result<ToolAnswer, Error> {
    let Some(terms) = terms else {
        // Without terms nobody would follow the task.
        cancel(connection, &created.id).await;
        let text = "it made a task of a call that cannot run as one";
        return Err(TaskEnd::Odd(text.to_owned()).into());
    };
    let (kept, is_kept) = oneshot::channel();
    let new = NewTask {
        id: created.id.clone(),
        ttl_ms: created.ttl_ms,
        server: terms.server.clone(),
        kept,
    };
    let told = tell.send(Told::Created(Box::new(new))).await;
    if told.is_err() || is_kept.await.is_err() {
        // The session has dropped the task, and the caller ends this call.
        return pending().await;
    }
    let follower = Follower::new(connection, created.id.clone(), tell);
    follower.follow(created).await
}

/// Follows a task that an earlier call created.
pub(super) async fn pick_up(
    connection: &Connection,
    id: String,
    tell: mpsc::Sender<Told>,
) -> Result<ToolAnswer, Error> {
    let mut follower = Follower::new(connection, id, tell);
    let state = follower.get().await?;
    if !state.is_over() {
        follower.tell(GOES_ON.to_owned()).await;
    }
    follower.follow(state).await
}

/// Tells the server to cancel a task, and waits for the task's last state; `None` if none came, so the task
/// may go on. A task that was already done returns its result.
pub(super) async fn cancel(connection: &Connection, id: &str) -> Option<Result<ToolAnswer, Error>> {
    let (tell, _told) = mpsc::channel(1);
    let mut follower = Follower::new(connection, id.to_owned(), tell);
    let last = async {
        // A finished task cannot be cancelled; the following check finds its state.
        let params = json!({ "taskId": id });
        let told = ask(connection, "tasks/cancel", params, Some(CANCEL_GRACE));
        let told = told.await;
        if told.is_err_and(|error| is_contact_lost(&error)) {
            return None;
        }
        loop {
            let state = follower.get().await.ok()?;
            if state.status == TaskStatus::Cancelled {
                return Some(Err(Error::Cancelled { is_confirmed: true }));
            }
            if state.is_over() {
                return Some(follower.result(&state).await);
            }
            sleep(STOP_POLL).await;
        }
    };
    let last = tokio::time::timeout(CANCEL_GRACE, last).await;
    last.ok().flatten()
}

/// Returns true if the server could not be asked, which says nothing about the task.
fn is_contact_lost(error: &Error) -> bool {
    !matches!(error, Error::Task(_) | Error::TooLarge { .. })
}

struct Follower<'a> {
    connection: &'a Connection,
    id: String,
    tell: mpsc::Sender<Told>,
    /// The last status text.
    said: String,
    /// Keys of the questions already answered (2026-07-28): each is answered once.
    answered: BTreeSet<String>,
}

impl<'a> Follower<'a> {
    fn new(connection: &'a Connection, id: String, tell: mpsc::Sender<Told>) -> Self {
        Self {
            connection,
            id,
            tell,
            said: String::new(),
            answered: BTreeSet::new(),
        }
    }

    async fn follow(mut self, mut state: TaskState) -> Result<ToolAnswer, Error> {
        let is_inline = has_extension(self.connection);
        // In 2025-11-25 a server asks its questions only while a client waits for the result.
        let mut result: Option<BoxFuture<'_, Result<ToolAnswer, Error>>> = None;
        let mut broken = 0;
        loop {
            self.tell_status(&state).await;
            if state.is_over() && result.is_none() {
                return self.result(&state).await;
            }
            if state.status == TaskStatus::InputRequired {
                if is_inline {
                    self.give(&state).await?;
                } else if result.is_none() {
                    result = Some(wait_for_result(self.connection, self.id.clone()).boxed());
                }
            }
            let next = Instant::now() + state.poll;
            tokio::select! {
                answer = of(&mut result) => match answer {
                    Ok(answer) => return Ok(answer),
                    Err(error) if is_contact_lost(&error) => return Err(error),
                    // The following check finds out whether the task has ended.
                    Err(_) => {
                        result = None;
                        broken += 1;
                        if broken > MAX_BROKEN {
                            let text = "it gives no result while the task goes on";
                            return Err(TaskEnd::Odd(text.to_owned()).into());
                        }
                    }
                },
                () = sleep_until(next), if !state.is_over() => {}
            }
            state = self.get().await?;
        }
    }

    async fn tell(&self, words: String) {
        // The receiver may be gone.
        let _ = self.tell.send(Told::Status(words)).await;
    }

    async fn tell_status(&mut self, state: &TaskState) {
        if !state.message.is_empty() && state.message != self.said {
            self.said.clone_from(&state.message);
            self.tell(self.said.clone()).await;
        }
    }

    /// Returns the current state of the task.
    async fn get(&mut self) -> Result<TaskState, Error> {
        let params = json!({ "taskId": self.id });
        let said = ask(self.connection, "tasks/get", params, Some(GET_LIMIT));
        let ServerResult::CustomResult(CustomResult(said)) = said.await? else {
            return Err(TaskEnd::Odd("the server does not say how it is".to_owned()).into());
        };
        let state = TaskState::read(said.get(TASK).unwrap_or(&Value::Null))?;
        if state.id != self.id {
            let text = "asked for the task, the server tells of another one";
            return Err(TaskEnd::Odd(text.to_owned()).into());
        }
        Ok(state)
    }

    /// Returns the result of a finished task.
    async fn result(&self, state: &TaskState) -> Result<ToolAnswer, Error> {
        if state.status == TaskStatus::Cancelled {
            return Err(TaskEnd::Cancelled(state.message.clone()).into());
        }
        if let Some(result) = &state.result {
            let result = lenient::tool_result(result.clone());
            let result = serde_json::from_value::<CallToolResult>(result);
            let result = result.map_err(|error| TaskEnd::Unreadable(error.to_string()))?;
            return read_result(self.connection, result, &self.id);
        }
        if let Some(error) = &state.error {
            let text = error.get("message").and_then(Value::as_str);
            return Err(TaskEnd::Failed(text.unwrap_or(&state.message).to_owned()).into());
        }
        let asked = result_of(self.connection, &self.id, Some(RESULT_LIMIT));
        match (asked.await, state.status) {
            // The error with which the original request would have been refused.
            (Err(Error::Task(TaskEnd::Unreadable(reason))), TaskStatus::Failed) => {
                Err(TaskEnd::Failed(reason).into())
            }
            (Err(Error::Task(TaskEnd::Forgotten)), TaskStatus::Failed) => {
                Err(TaskEnd::Failed(state.message.clone()).into())
            }
            (Err(Error::Task(TaskEnd::Forgotten)), _) => {
                Err(TaskEnd::Unreadable("the server does not keep it any more".to_owned()).into())
            }
            (answer, _) => answer,
        }
    }

    /// Answers the server's questions (2026-07-28), each once.
    async fn give(&mut self, state: &TaskState) -> Result<(), Error> {
        let new = state.wanted.iter();
        let new: Vec<_> = new
            .filter(|(key, _)| !self.answered.contains(*key))
            .collect();
        let mut responses = Map::new();
        for (key, wanted) in new {
            let wanted = read_wanted(wanted)?;
            let answer = given(self.connection, key, Some(&self.id), &wanted).await?;
            responses.insert(key.clone(), answer);
            self.answered.insert(key.clone());
        }
        if responses.is_empty() {
            return Ok(());
        }
        let params = json!({ "taskId": self.id, "inputResponses": responses });
        let told = ask(self.connection, "tasks/update", params, Some(GET_LIMIT));
        told.await.map(drop)
    }
}

fn read_wanted(wanted: &Value) -> Result<InputRequest, TaskEnd> {
    let read = InputRequest::deserialize(wanted);
    read.map_err(|error| TaskEnd::Odd(format!("what it wants to know cannot be read: {error}")))
}

/// Resolves with the result of `waiting`; pends forever if there is none.
async fn of<T>(waiting: &mut Option<BoxFuture<'_, T>>) -> T {
    match waiting {
        Some(waiting) => waiting.await,
        None => pending().await,
    }
}

async fn wait_for_result(connection: &Connection, id: String) -> Result<ToolAnswer, Error> {
    result_of(connection, &id, None).await
}

/// Returns true if the server turns calls into tasks by itself (2026-07-28).
pub(super) fn has_extension(connection: &Connection) -> bool {
    let info = connection.peer().peer_info();
    info.is_some_and(|info| {
        !info.protocol_version.has_initialize() && info.capabilities.supports_tasks()
    })
}

/// Requests the result of a task; the server answers once the task is over.
async fn result_of(
    connection: &Connection,
    id: &str,
    limit: Option<Duration>,
) -> Result<ToolAnswer, Error> {
    let answer = ask(connection, "tasks/result", json!({ "taskId": id }), limit);
    let ServerResult::CallToolResult(result) = answer.await? else {
        return Err(TaskEnd::Unreadable("the answer is not a tool result".to_owned()).into());
    };
    read_result(connection, result, id)
}

fn read_result(
    connection: &Connection,
    result: CallToolResult,
    id: &str,
) -> Result<ToolAnswer, Error> {
    let meta = result.meta.as_ref();
    let whose = meta.and_then(|meta| related(&meta.0));
    if whose.is_some_and(|whose| whose != id) {
        let text = "the server gives the result of another task";
        return Err(TaskEnd::Odd(text.to_owned()).into());
    }
    Ok(ToolAnswer::from_wire(result, connection.cleaner()))
}

/// Sends a request about a task. The code of a JSON-RPC error decides which error is returned.
async fn ask(
    connection: &Connection,
    method: &str,
    params: Value,
    limit: Option<Duration>,
) -> Result<ServerResult, Error> {
    let mut options = PeerRequestOptions::no_options();
    options.timeout = limit;
    let request = CustomRequest::new(method, Some(params));
    let sent = connection
        .peer()
        .send_cancellable_request(request.into(), options);
    let handle = sent
        .await
        .map_err(|_| connection.unreachable("its connection has ended".to_owned()))?;
    let answer = handle.await_response().await;
    answer.map_err(|error| not_said(connection, &error, method))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the error type of rmcp may grow; what is not known is quoted"
)]
fn not_said(connection: &Connection, error: &ServiceError, method: &str) -> Error {
    let no_answer = |reason: String| Error::NoAnswer {
        server: connection.server().to_owned(),
        reason,
    };
    match error {
        ServiceError::McpError(data) if oversized::size(data).is_some() => {
            Error::of_answer(connection.server(), data)
        }
        ServiceError::McpError(data) if data.code == ErrorCode::INVALID_PARAMS => {
            TaskEnd::Forgotten.into()
        }
        ServiceError::McpError(data) if data.code == ErrorCode::METHOD_NOT_FOUND => {
            TaskEnd::Odd(format!("the server does not know `{method}`")).into()
        }
        ServiceError::McpError(data) if method == "tasks/result" => {
            TaskEnd::Unreadable(data.message.to_string()).into()
        }
        ServiceError::McpError(data) => no_answer(data.message.to_string()),
        ServiceError::Timeout { .. } => no_answer(format!("it does not answer `{method}`")),
        other => connection.failed(other),
    }
}
