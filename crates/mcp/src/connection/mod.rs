//! Implements a client connection to one MCP server, over any byte stream or HTTP.

mod call;
mod handler;
mod handshake;
mod listening;
mod rounds;
mod task;
mod watched;
mod work;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use rmcp::RoleClient;
use rmcp::handler::client::progress::ProgressSubscriber;
use rmcp::model::{
    ClientRequest, CustomNotification, CustomRequest, CustomResult, ProgressNotificationParam,
    ProgressToken, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RunningService, ServiceError};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use self::call::{CallNews, ToolCall, ToolProgress, visit_pages};
pub use self::handler::ClientOffer;
use self::handler::Handler;
use self::handshake::HANDSHAKE_LIMIT;
use self::listening::Listening;
use self::rounds::{Inputs, Step};
use self::task::Told;
use self::watched::WatchedResources;
use self::work::Work;
use crate::error::Error;
use crate::mask::Cleaner;
use crate::sending;
use crate::standstill;
use crate::tasks::TaskState;
use crate::tools::listing::{self, Listed};
use crate::tools::result::ToolAnswer;
use crate::wire::message::{self, TASK};
use sepal_core::domain::Tool;

/// The time that a server may take to confirm the end of a cancelled call.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// The most news of a task that may wait for delivery.
const MAX_UNTOLD: usize = 8;

/// A live connection. Dropping it ends the stream.
pub struct Connection {
    server: String,
    service: RunningService<RoleClient, Handler>,
    /// The subscription to changes, for servers that send them only to subscribers.
    listening: Option<Listening>,
    /// The server's log lines, until somebody takes the receiver. Never held across an await.
    log: Mutex<Option<mpsc::Receiver<String>>>,
    /// Masks secrets in every text of the server that leaves this connection.
    cleaner: Cleaner,
    /// The entries that were left out when the tools were last listed. Never held across an await.
    tool_problems: Mutex<Vec<String>>,
}

impl Connection {
    /// Masks secrets in everything that the server says from now on: results, progress, definitions,
    /// refusals.
    #[must_use]
    pub fn cleaned_by(self, cleaner: Cleaner) -> Self {
        Self { cleaner, ..self }
    }

    /// Returns the server's name.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Lists the server's tools, bounded in number and size.
    pub async fn tools(&self) -> Result<Vec<Tool>, Error> {
        if !self.declares_tools() {
            return Ok(Vec::new());
        }
        let listed = listing::list(&self.server, self.service.peer());
        tokio::time::timeout(HANDSHAKE_LIMIT, listed)
            .await
            .unwrap_or(Err(Error::Timeout {
                after: HANDSHAKE_LIMIT,
                is_confirmed: false,
            }))
            .map(|Listed { tools, problems }| {
                let problems = problems.iter().map(|it| self.cleaner.clean(it));
                *self.tool_problems() = problems.collect();
                let has_tasks = self.takes_tasks() || task::has_extension(self);
                let tools = tools.into_iter();
                let tools = tools.map(|tool| listing::with_tasks(tool, &self.server, has_tasks));
                listing::cleaned(tools.collect(), &self.cleaner)
            })
            .map_err(|error| error.cleaned(&self.cleaner))
    }

    /// Returns what was left out when the tools were last listed, one sentence each.
    pub(crate) fn tool_problems(&self) -> MutexGuard<'_, Vec<String>> {
        let problems = self.tool_problems.lock();
        problems.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the server may be asked for tools. Some old servers declare no capabilities at all.
    fn declares_tools(&self) -> bool {
        self.peer().peer_info().is_none_or(|info| {
            let declared = &info.capabilities;
            let is_other = declared.resources.is_some() || declared.prompts.is_some();
            declared.tools.is_some() || !is_other
        })
    }

    /// Returns true if the server accepts task requests for tool calls (2025-11-25).
    fn takes_tasks(&self) -> bool {
        let info = self.peer().peer_info();
        info.is_some_and(|info| {
            let tasks = message::declared_tasks(&info.capabilities);
            let requests = tasks.and_then(|tasks| tasks.get("requests"));
            requests.is_some_and(|requests| requests.pointer("/tools/call").is_some())
        })
    }

    /// Returns a counter that changes whenever the server reports that its tools changed.
    pub fn tool_changes(&self) -> watch::Receiver<u64> {
        self.service.service().changes.subscribe()
    }

    /// Returns a counter that changes whenever the server reports that its resources or prompts changed.
    pub fn offer_changes(&self) -> watch::Receiver<u64> {
        self.service.service().offer_changes.subscribe()
    }

    /// Adds a resource to the change subscription; returns false if the server needs a request for each
    /// resource.
    pub(crate) fn listens_for(&self, uri: &str) -> bool {
        let listening = self.listening.as_ref();
        listening.inspect(|listening| listening.add(uri)).is_some()
    }

    /// Returns the resources whose changes are watched.
    pub(crate) fn resources(&self) -> &WatchedResources {
        &self.service.service().resources
    }

    /// Takes the receiver of the server's log messages, one line each, from the handshake on. The lines may
    /// contain secrets. `None` if it was already taken.
    pub fn take_log(&self) -> Option<mpsc::Receiver<String>> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.take()
    }

    /// Returns true if the stream has ended.
    pub fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// Calls a tool. `on_news` receives the server's messages during the call; `cancel` stops the call, which
    /// then has two seconds to end. A call that succeeds within that time still counts as successful.
    pub async fn call(
        &self,
        call: ToolCall,
        cancel: &CancellationToken,
        on_news: impl FnMut(CallNews),
    ) -> Result<ToolAnswer, Error> {
        let answer = self.ask(call, cancel, on_news).await;
        answer.map_err(|error| error.cleaned(&self.cleaner))
    }

    /// Sends a request that is not a tool call. At the time limit, the request is cancelled.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, Error> {
        let request = CustomRequest::new(method, Some(params));
        let answer = self.answer(request.into(), limit).await?;
        if let ServerResult::CustomResult(CustomResult(value)) = answer {
            Ok(value)
        } else if matches!(answer, ServerResult::EmptyResult(_)) {
            // rmcp reads an empty object in this form.
            Ok(json!({}))
        } else {
            Err(Error::Refused("the answer has another form".to_owned()))
        }
    }

    /// Sends a request and returns the answer in whatever form it has.
    pub(crate) async fn answer(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<ServerResult, Error> {
        let mut options = PeerRequestOptions::no_options();
        options.timeout = Some(limit);
        let handle = self.peer().send_cancellable_request(request, options);
        let handle = handle
            .await
            .map_err(|_| self.unreachable("its connection has ended".to_owned()))?;
        let answer = handle.await_response().await;
        answer.map_err(|error| self.failed(&error).cleaned(&self.cleaner))
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    pub(crate) fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    async fn ask(
        &self,
        call: ToolCall,
        cancel: &CancellationToken,
        mut on_news: impl FnMut(CallNews),
    ) -> Result<ToolAnswer, Error> {
        let (tell, mut told) = mpsc::channel(MAX_UNTOLD);
        let mut work = Work::begin(self, &call, tell).await?;
        let mut token = work.progress_token();
        let mut news = self.progress(token.as_ref()).await;
        let mut standstill = call.standstill.clone();
        let (mut done_of, mut total) = (0.0, None);
        let desk = &self.service.service().desk;
        let (heard, mut questions) = desk.hear();
        let still = call
            .standstill
            .clone()
            .map(|standstill| standstill.is_still);
        let pauses: Vec<_> = still.into_iter().chain([desk.is_asking()]).collect();
        let mut limit = work.limit();
        let deadline = standstill::passed(limit, pauses.clone());
        tokio::pin!(deadline);
        work.is_heard(&heard);
        loop {
            tokio::select! {
                answer = work.advance() => {
                    if let Some(answer) = answer? {
                        return Ok(answer);
                    }
                    work.is_heard(&heard);
                    if token != work.progress_token() {
                        token = work.progress_token();
                        news = self.progress(token.as_ref()).await;
                    }
                    if limit != work.limit() {
                        limit = work.limit();
                        deadline.set(standstill::passed(limit, pauses.clone()));
                    }
                }
                Some(said) = next_of(&mut news) => {
                    (done_of, total) = (said.progress, said.total);
                    on_news(self.progressed(done_of, total, said.message.as_deref()));
                }
                Some(told) = told.recv() => on_news(match told {
                    Told::Status(words) => self.progressed(done_of, total, Some(&words)),
                    Told::Created(task) => CallNews::Task(task),
                }),
                Some(question) = questions.recv() => {
                    // A question with a secret in its address is cancelled.
                    let question = question.cleaned(&self.cleaner);
                    if let Some(question) = question {
                        on_news(CallNews::Question(Box::new(question)));
                    }
                }
                words = standstill::begins(&mut standstill) => {
                    on_news(self.progressed(done_of, total, Some(words)));
                }
                () = cancel.cancelled() => return work.cancelled().await,
                () = &mut deadline => return work.timed_out(limit).await,
            }
        }
    }

    fn progressed(&self, progress: f64, total: Option<f64>, words: Option<&str>) -> CallNews {
        let message = words.map(|text| self.cleaner.clean(text));
        CallNews::Progress(ToolProgress {
            progress,
            total,
            message,
        })
    }

    async fn progress(&self, token: Option<&ProgressToken>) -> Option<ProgressSubscriber> {
        let progress = &self.service.service().progress;
        Some(progress.subscribe(token?.clone()).await)
    }

    async fn send(
        &self,
        call: &ToolCall,
        inputs: Option<Inputs>,
    ) -> Result<RequestHandle<RoleClient>, Error> {
        let options = PeerRequestOptions::no_options();
        let sent = self
            .peer()
            .send_cancellable_request(call.request(inputs, self.takes_tasks()), options);
        sent.await
            // The connection had ended before the request was sent.
            .map_err(|_| self.unreachable("its connection has ended".to_owned()))
    }

    fn unreachable(&self, reason: String) -> Error {
        let server = self.server.clone();
        Error::Unreachable { server, reason }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "every other answer is equally wrong, whatever rmcp adds"
    )]
    fn read(
        &self,
        answer: Result<Result<ServerResult, ServiceError>, tokio::sync::oneshot::error::RecvError>,
    ) -> Result<Step, Error> {
        match answer
            .map_err(|_| self.gone())?
            .map_err(|error| self.failed(&error))?
        {
            ServerResult::CallToolResult(result) => {
                Ok(Step::Done(ToolAnswer::from_wire(result, &self.cleaner)))
            }
            ServerResult::InputRequiredResult(wanted) => Ok(Step::InputRequired(wanted)),
            ServerResult::CustomResult(CustomResult(said)) => match said.get(TASK) {
                Some(task) => Ok(Step::Task(TaskState::read(task)?)),
                None => Err(Error::Refused("the answer is not a tool result".to_owned())),
            },
            _ => Err(Error::Refused("the answer is not a tool result".to_owned())),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the error type of rmcp may grow; what is not known is quoted"
    )]
    pub(crate) fn failed(&self, error: &ServiceError) -> Error {
        match error {
            ServiceError::McpError(data) => Error::of_answer(&self.server, data),
            ServiceError::TransportSend(error) => sending::failed(&self.server, error),
            ServiceError::TransportClosed => self.gone(),
            // This request is not a call: it is cancelled without waiting for a confirmation.
            ServiceError::Timeout { timeout } => Error::Timeout {
                after: *timeout,
                is_confirmed: false,
            },
            other => Error::Refused(other.to_string()),
        }
    }

    fn gone(&self) -> Error {
        let server = self.server.clone();
        Error::Gone { server }
    }

    /// Tells the server to stop a call, and waits for the server's last message about it; `None` if none
    /// came, so the call may still run.
    async fn stop(
        &self,
        handle: &mut RequestHandle<RoleClient>,
        reason: &str,
    ) -> Option<Result<ToolAnswer, Error>> {
        // Not sent as rmcp's own type: with that, rmcp ends the request as soon as the notification is
        // written, and drops what the server sends afterwards.
        let params = json!({ "requestId": handle.id, "reason": reason });
        let told = CustomNotification::new("notifications/cancelled", Some(params));
        let last = async {
            let told = self.service.peer().send_notification(told.into()).await;
            told.ok()?;
            match self.read((&mut handle.rx).await) {
                Err(Error::Gone { .. } | Error::Unreachable { .. } | Error::NoAnswer { .. }) => {
                    None
                }
                Ok(Step::Done(answer)) => Some(Ok(answer)),
                Ok(Step::Task(created)) => task::cancel(self, &created.id).await,
                // Nothing runs at the server until it gets the inputs.
                Ok(Step::InputRequired(_)) => Some(Err(Error::Cancelled { is_confirmed: true })),
                Err(error) => Some(Err(error)),
            }
        };
        let last = tokio::time::timeout(CANCEL_GRACE, last).await;
        last.ok().flatten()
    }

    /// Ends the stream at once: pending requests end with [`Error::Gone`].
    pub fn hang_up(&self) {
        self.service.cancellation_token().cancel();
    }

    /// Closes the connection in an orderly way.
    pub async fn close(mut self) {
        if let Err(error) = self.service.close_with_timeout(CANCEL_GRACE).await {
            tracing::debug!(mcp.server = %self.server, %error, "The connection did not end in order");
        }
    }
}

async fn next_of(news: &mut Option<ProgressSubscriber>) -> Option<ProgressNotificationParam> {
    match news {
        Some(news) => news.next().await,
        None => None,
    }
}
