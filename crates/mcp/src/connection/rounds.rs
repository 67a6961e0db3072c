//! Runs one call over as many requests as its server needs. A server of 2026-07-28 answers with the inputs
//! that it needs first, and then gets the call again with these inputs (multi round-trip requests, SEP-2322).

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{
    InputRequest, InputRequests, InputRequiredResult, InputResponses, ProgressToken, RequestId,
    ServerRequest,
};
use rmcp::service::{RequestContext, RequestHandle, Service as _};
use serde_json::Value;

use super::{Connection, ToolCall};
use crate::error::Error;
use crate::tasks::{TaskState, relation};
use crate::tools::result::ToolAnswer;

/// The number of times that a server may ask for inputs before it answers.
const MAX_ROUNDS: u32 = 10;
/// The most inputs that a server may ask for at once.
const MAX_INPUTS: usize = 20;
/// The pause before the call is sent again to a server that asked for no inputs; it doubles with each round.
const PAUSE: Duration = Duration::from_millis(50);

/// The inputs with which a server continues.
pub(super) struct Inputs {
    pub(super) responses: InputResponses,
    /// The server's opaque state, which is returned unchanged.
    pub(super) state: Option<String>,
}

/// The answer to one request.
pub(super) enum Step {
    Done(ToolAnswer),
    InputRequired(InputRequiredResult),
    /// The server runs the call as a task from here on.
    Task(TaskState),
}

/// The state of a call after a step.
pub(super) enum Advance {
    Done(ToolAnswer),
    GoesOn,
    Task(TaskState),
}

/// A running call.
pub(super) struct Rounds<'a> {
    connection: &'a Connection,
    call: &'a ToolCall,
    handle: RequestHandle<RoleClient>,
    /// The inputs are being collected; then the call is sent again.
    answering: Option<BoxFuture<'a, Result<RequestHandle<RoleClient>, Error>>>,
    count: u32,
}

impl<'a> Rounds<'a> {
    pub(super) async fn begin(
        connection: &'a Connection,
        call: &'a ToolCall,
    ) -> Result<Self, Error> {
        Ok(Self {
            connection,
            call,
            handle: connection.send(call, None).await?,
            answering: None,
            count: 0,
        })
    }

    /// Returns the token of the current round's progress messages.
    pub(super) fn progress_token(&self) -> ProgressToken {
        self.handle.progress_token.clone()
    }

    /// Waits for the next step. Cancel safe: dropping the future loses nothing.
    pub(super) async fn advance(&mut self) -> Result<Advance, Error> {
        if let Some(answering) = &mut self.answering {
            let handle = answering.await;
            self.answering = None;
            self.handle = handle?;
            return Ok(Advance::GoesOn);
        }
        match self.connection.read((&mut self.handle.rx).await)? {
            Step::Done(answer) => Ok(Advance::Done(answer)),
            Step::Task(created) => Ok(Advance::Task(created)),
            Step::InputRequired(wanted) => {
                self.count += 1;
                let inputs = wanted.input_requests.as_ref().map_or(0, InputRequests::len);
                if self.count > MAX_ROUNDS || inputs > MAX_INPUTS {
                    return Err(Error::Refused(
                        "it asks for more and more before it answers".to_owned(),
                    ));
                }
                let again = again(self.connection, self.call, wanted, self.count);
                self.answering = Some(again.boxed());
                Ok(Advance::GoesOn)
            }
        }
    }

    /// Tells the server to stop, and waits for its last message; `None` if none came, so the call may still
    /// run. Between two rounds nothing runs at the server.
    pub(super) async fn stop(&mut self, reason: &str) -> Option<Result<ToolAnswer, Error>> {
        if self.answering.is_some() {
            return Some(Err(Error::Cancelled { is_confirmed: true }));
        }
        self.connection.stop(&mut self.handle, reason).await
    }
}

/// Collects the inputs that the server asks for, and sends the call again.
async fn again(
    connection: &Connection,
    call: &ToolCall,
    wanted: InputRequiredResult,
    round: u32,
) -> Result<RequestHandle<RoleClient>, Error> {
    let requests = wanted.input_requests.unwrap_or_default();
    if requests.is_empty() {
        tokio::time::sleep(PAUSE * 2_u32.saturating_pow(round)).await;
    }
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        let given = given(connection, &key, None, &request).await?;
        responses.insert(key, given);
    }
    let state = wanted.request_state;
    connection
        .send(call, Some(Inputs { responses, state }))
        .await
}

/// Returns the answer to an input request, from the handler that answers a server's requests during a call.
pub(super) async fn given(
    connection: &Connection,
    key: &str,
    task: Option<&str>,
    request: &InputRequest,
) -> Result<Value, Error> {
    let refused = |text: String| Error::Refused(format!("it asks before it answers: {text}"));
    let odd = |error: serde_json::Error| refused(error.to_string());
    let request = serde_json::to_value(request).map_err(odd)?;
    let request: ServerRequest = serde_json::from_value(request).map_err(odd)?;
    let peer = connection.peer().clone();
    let mut context = RequestContext::new(RequestId::String(key.into()), peer);
    if let Some(task) = task {
        context.meta.0.0.extend([relation(task)]);
    }
    let answer = connection
        .service
        .service()
        .handle_request(request, context);
    let answer = answer
        .await
        .map_err(|error| refused(error.message.into_owned()))?;
    serde_json::to_value(answer).map_err(odd)
}
