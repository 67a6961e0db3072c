//! The debug hook of the agent as an MCP server (S0.48): with `runtime.transports.debug`, logs every request
//! of a client and its answer at any door, with secrets redacted.

#[expect(deprecated, reason = "clients of today still set the level (S0.54)")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde::Serialize;
use serde_json::Value;

use super::server::AgentServer;
use crate::telemetry::redact_json;

/// The maximum number of logged characters of a message.
const MOST: usize = 16_000;

/// The server of one client, whose messages are logged if the operator enables it.
#[derive(Clone)]
pub(super) struct LoggedServer {
    server: AgentServer,
    door: &'static str,
}

impl LoggedServer {
    /// Wraps the server at the named door.
    pub(super) fn at(door: &'static str, server: AgentServer) -> Self {
        Self { server, door }
    }

    fn log(&self, what: &'static str, method: &str, message: &impl Serialize) {
        if self.server.asking.exposure.logs_messages {
            log(self.door, what, method, message);
        }
    }

    fn log_answer<T: Serialize>(&self, method: &str, answer: &Result<T, ErrorData>) {
        match answer {
            Ok(answer) => self.log("answer", method, answer),
            Err(error) => self.log("error", method, error),
        }
    }
}

/// Logs one message at `debug`, with secrets redacted.
pub(super) fn log(door: &'static str, what: &'static str, method: &str, message: &impl Serialize) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let text = serde_json::to_string(message).unwrap_or_default();
    let text = redact_json(&text, MOST);
    tracing::debug!(mcp.door = door, "MCP {what} `{method}`: {text}");
}

/// Forwards requests to the server, and logs each request and its answer.
macro_rules! logged {
    ($($name:ident $method:literal $request:ty => $answer:ty;)*) => {$(
        async fn $name(
            &self,
            request: $request,
            context: RequestContext<RoleServer>,
        ) -> Result<$answer, ErrorData> {
            self.log("request", $method, &request);
            let answer = self.server.$name(request, context).await;
            self.log_answer($method, &answer);
            answer
        }
    )*};
}

impl ServerHandler for LoggedServer {
    logged! {
        initialize "initialize" InitializeRequestParams => InitializeResult;
        list_tools "tools/list" Option<PaginatedRequestParams> => ListToolsResult;
        list_prompts "prompts/list" Option<PaginatedRequestParams> => ListPromptsResult;
        list_resources "resources/list" Option<PaginatedRequestParams> => ListResourcesResult;
        list_resource_templates "resources/templates/list"
            Option<PaginatedRequestParams> => ListResourceTemplatesResult;
        complete "completion/complete" CompleteRequestParams => CompleteResult;
        on_custom_request "another" CustomRequest => CustomResult;
        get_task "tasks/get" GetTaskParams => GetTaskResult;
        update_task "tasks/update" UpdateTaskParams => ();
        cancel_task "tasks/cancel" CancelTaskParams => ();
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.log("request", "tools/call", &request);
        let answer = self.server.call_tool(request, context).await;
        // The agent never answers with a request for more input.
        if let Ok(CallToolResponse::Complete(result)) = &answer {
            self.log("answer", "tools/call", result);
        } else if let Ok(CallToolResponse::Task(task)) = &answer {
            self.log("answer", "tools/call", task);
        } else if let Err(error) = &answer {
            self.log("error", "tools/call", error);
        }
        answer
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.log("request", "prompts/get", &request);
        self.server.get_prompt(request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.log("request", "resources/read", &request);
        self.server.read_resource(request, context).await
    }

    #[expect(deprecated, reason = "clients of today still set the level (S0.54)")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.log("request", "logging/setLevel", &request);
        let answer = self.server.set_level(request, context).await;
        self.log_answer("logging/setLevel", &answer);
        answer
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.log("request", "ping", &Value::Null);
        let answer = self.server.ping(context).await;
        self.log_answer("ping", &answer);
        answer
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        self.log("request", "server/discover", &Value::Null);
        let answer = self.server.discover(context).await;
        self.log_answer("server/discover", &answer);
        answer
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.log("notification", "notifications/cancelled", &notification);
        self.server.on_cancelled(notification, context).await;
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.log("notification", "notifications/initialized", &Value::Null);
        self.server.on_initialized(context).await;
    }

    fn get_info(&self) -> ServerConfig {
        self.server.get_info()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.get_tool(name)
    }
}
