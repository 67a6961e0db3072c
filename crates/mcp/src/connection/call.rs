//! Defines tool calls and the news that a server sends during a call.

use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, CustomRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::Connection;
use super::rounds::Inputs;
use crate::elicitation::{Address, FormAnswer, Question};
use crate::error::Error;
use crate::standstill::Standstill;
use crate::tasks::{NewTask, TaskTerms};
use crate::tools::result::ToolAnswer;

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The server's own name of the tool.
    pub tool: String,
    /// The arguments: a JSON object.
    pub args: Value,
    /// The time limit.
    pub limit: Duration,
    /// Reports when the server is paused from outside; paused time does not count.
    pub standstill: Option<Standstill>,
    /// The terms for running the call as a task, if its server makes one; `None` if nobody would follow a
    /// task.
    pub task: Option<TaskTerms>,
}

impl ToolCall {
    /// Builds the request, with the inputs that the server asked for first. rmcp cannot express the task
    /// request of 2025-11-25, which is therefore sent as a custom request.
    pub(super) fn request(&self, inputs: Option<Inputs>, asks_for_tasks: bool) -> ClientRequest {
        let args = self.arguments();
        let terms = self.task.as_ref().filter(|terms| terms.is_asked);
        if let (Some(terms), true) = (terms, asks_for_tasks) {
            let ttl = u64::try_from(terms.ttl.as_millis()).unwrap_or(u64::MAX);
            let params = json!({ "name": self.tool, "arguments": args, "task": { "ttl": ttl } });
            return CustomRequest::new("tools/call", Some(params)).into();
        }
        let mut params = CallToolRequestParams::new(self.tool.clone()).with_arguments(args);
        if let Some(Inputs { responses, state }) = inputs {
            params.input_responses = (!responses.is_empty()).then_some(responses);
            params.request_state = state;
        }
        ClientRequest::CallToolRequest(CallToolRequest::new(params))
    }

    fn arguments(&self) -> Map<String, Value> {
        match &self.args {
            Value::Object(args) => args.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        }
    }
}

/// Returns the answer of a call that succeeded before it received its cancellation.
pub(super) fn done(last: Option<Result<ToolAnswer, Error>>) -> Option<ToolAnswer> {
    last?.ok().filter(|answer| !answer.is_error)
}

/// A progress report of a running call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// The progress so far.
    pub progress: f64,
    pub total: Option<f64>,
    /// A description, or new output.
    pub message: Option<String>,
}

/// A message that a server sends while it runs a call.
#[derive(Debug)]
pub enum CallNews {
    Progress(ToolProgress),
    /// A question to the person. Dropping the question cancels it.
    Question(Box<Question>),
    /// The task that the server created for the call.
    Task(Box<NewTask>),
}

/// Asks the person to open pages that a call needs first ([`Error::AddressRequired`]), and waits until the
/// server or the person reports each page as done. Returns true if all are done.
pub async fn visit_pages(
    connection: &Connection,
    pages: Vec<Address>,
    cancel: &CancellationToken,
    mut on_news: impl FnMut(CallNews),
) -> bool {
    let desk = &connection.service.service().desk;
    let asked = pages.into_iter().map(|page| desk.visit(page));
    let (questions, answers): (Vec<_>, Vec<_>) = asked.unzip();
    for question in questions {
        let Some(question) = question.cleaned(&connection.cleaner) else {
            return false;
        };
        on_news(CallNews::Question(Box::new(question)));
    }
    for answer in answers {
        let answer = tokio::select! {
            answer = answer => answer.unwrap_or(FormAnswer::Cancel),
            () = cancel.cancelled() => return false,
        };
        if !matches!(answer, FormAnswer::Accept(_)) {
            return false;
        }
    }
    true
}
