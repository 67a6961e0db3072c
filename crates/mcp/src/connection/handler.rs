//! Handles the client side of a connection: answers requests of the server, and forwards its notifications.

#![expect(
    deprecated,
    reason = "SEP-2577 ends roots, sampling and logging in a later revision; today's servers use both"
)]

use std::sync::Arc;

use rmcp::handler::client::progress::ProgressDispatcher;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    CustomNotification, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult,
    ElicitationCapability, ErrorCode, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    ResourceUpdatedNotificationParam, Root, SamplingCapability, TASKS_EXTENSION_ID,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use super::watched::WatchedResources;
use crate::elicitation::Desk;
use crate::tasks;
use sepal_core::domain::VIEW_TYPE;

/// The most log lines of a server that may wait. A server that floods us loses lines, and nothing else waits.
const WAITING_LINES: usize = 256;

/// The extension with which tools have views (MCP Apps).
const VIEWS: &str = "io.modelcontextprotocol/ui";

/// The requests that a server may make, beside questions to the person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientOffer {
    /// The addresses (`file://…`) of the folders in which the server may work; may be empty.
    pub roots: Vec<String>,
    /// True if the server may request completions of a model.
    pub samples: bool,
}

#[derive(Clone)]
pub(super) struct Handler {
    pub(super) progress: ProgressDispatcher,
    /// Counts the server's notifications that its tools changed.
    pub(super) changes: Arc<watch::Sender<u64>>,
    /// Counts the server's notifications that its resources or prompts changed.
    pub(super) offer_changes: Arc<watch::Sender<u64>>,
    pub(super) resources: Arc<WatchedResources>,
    /// Receives the server's questions to the person.
    pub(super) desk: Arc<Desk>,
    log: mpsc::Sender<String>,
    offer: Arc<ClientOffer>,
    /// True if servers of 2026-07-28 are told that we follow tasks.
    follows_tasks: bool,
}

impl Handler {
    /// Creates a handler, and the receiver of the server's log lines.
    pub(super) fn new(offer: ClientOffer, follows_tasks: bool) -> (Self, mpsc::Receiver<String>) {
        let (log, lines) = mpsc::channel(WAITING_LINES);
        let handler = Self {
            progress: ProgressDispatcher::new(),
            changes: Arc::new(watch::channel(0).0),
            offer_changes: Arc::new(watch::channel(0).0),
            resources: Arc::default(),
            desk: Arc::default(),
            log,
            offer: Arc::new(offer),
            follows_tasks,
        };
        (handler, lines)
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.client_info = Implementation::new("sepal", env!("CARGO_PKG_VERSION"));
        info.capabilities = if self.offer.roots.is_empty() {
            ClientCapabilities::default()
        } else {
            ClientCapabilities::builder().enable_roots().build()
        };
        let extensions = info.capabilities.extensions.get_or_insert_default();
        if self.follows_tasks {
            extensions.insert(TASKS_EXTENSION_ID.to_owned(), Map::new());
        }
        let views = json!({ "mimeTypes": [VIEW_TYPE] });
        let views = views.as_object().cloned().unwrap_or_default();
        extensions.insert(VIEWS.to_owned(), views);
        info.capabilities.sampling = self.offer.samples.then(SamplingCapability::default);
        let form = FormElicitationCapability::new().with_schema_validation(true);
        info.capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(form)
                .with_url(UrlElicitationCapability::new()),
        );
        info
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let task = tasks::related(&context.meta.0.0).map(ToOwned::to_owned);
        self.desk.ask(asked, task.as_deref(), context.ct).await
    }

    async fn create_message(
        &self,
        asked: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.offer.samples {
            let text = "sampling is off for this server: an administrator of Sepal can allow it in \
                        the server's entry (`sampling: true`)";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None));
        }
        let task = tasks::related(&context.meta.0.0).map(ToOwned::to_owned);
        self.desk.sample(asked, task.as_deref(), context.ct).await
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        if notification.method == "notifications/elicitation/complete" {
            let params = notification.params.as_ref();
            let id = params.and_then(|params| params.get("elicitationId"));
            if let Some(id) = id.and_then(Value::as_str) {
                self.desk.complete(id);
            }
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "elicitation/create" {
            let text = "the parameters cannot be read: a form has flat fields of type string, number, \
                        integer, boolean, or a choice; `mode: \"url\"` has `message`, `url` and \
                        `elicitationId`";
            return Err(ErrorData::invalid_params(text, None));
        }
        if request.method == "sampling/createMessage" {
            let text = "the parameters cannot be read: `messages` of `user` and `assistant` with \
                        text, and `maxTokens`";
            return Err(ErrorData::invalid_params(text, None));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            request.method,
            None,
        ))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.offer.roots.iter().map(Root::new);
        Ok(ListRootsResult::new(roots.collect()))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.handle_notification(params).await;
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.send_modify(|count| *count += 1);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.offer_changes.send_modify(|count| *count += 1);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.offer_changes.send_modify(|count| *count += 1);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.resources.changed(&params.uri);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // The channel is full or its receiver is gone: the line is lost.
        let _ = self.log.try_send(line(&params));
    }
}

/// Formats a log message as `[warning] logger: text`, on one line.
fn line(said: &LoggingMessageNotificationParam) -> String {
    let level = match said.level {
        LoggingLevel::Debug => "debug",
        LoggingLevel::Info => "info",
        LoggingLevel::Notice => "notice",
        LoggingLevel::Warning => "warning",
        LoggingLevel::Error => "error",
        LoggingLevel::Critical => "critical",
        LoggingLevel::Alert => "alert",
        LoggingLevel::Emergency => "emergency",
    };
    let logger = said.logger.as_ref();
    let logger = logger.map_or_else(String::new, |logger| format!("{logger}: "));
    let text = said.data.as_str();
    let text = text.map_or_else(|| said.data.to_string(), ToOwned::to_owned);
    format!("[{level}] {logger}{text}").replace(['\n', '\r'], " ")
}
