//! The MCP server itself: one tool that asks the agent.

use std::sync::Arc;

use async_trait::async_trait;
#[expect(deprecated, reason = "clients of today still set the level (S0.54)")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ContentBlock, Implementation, JsonObject,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use super::approval::{Heard, elicit, pass_on};
use super::notices::{Notices, Threshold};
use super::question::{Door, Ending, News, Question};
use super::{Exposure, Life};
use crate::agent::{Sessions, limit_reached};
use crate::domain::{Caller, Resource, SessionKey, Shares};
use crate::session::{Call, Elicitation, ElicitationAnswer, Refusal};

/// One client's view of the agent.
#[derive(Clone)]
pub(super) struct AgentServer {
    pub(super) sessions: Sessions,
    pub(super) exposure: Arc<Exposure>,
    pub(super) life: Life,
    /// Whoever started the process; over HTTP each request brings its own caller.
    pub(super) local: Option<Caller>,
    pub(super) threshold: Threshold,
    /// Questions that are being answered, of all clients.
    pub(super) questions: Arc<Shares>,
}

/// Questions to the agent.
const QUESTIONS: Resource = Resource {
    name: "questions",
    plural: "questions that are being answered",
    remedy: "wait for an answer",
    total: "runtime.limits.questions",
    setting: "runtime.limits.questions",
};

/// The door of a call: the client that made it.
struct ClientDoor {
    peer: Peer<RoleServer>,
    notices: Notices,
}

#[async_trait]
impl Door for ClientDoor {
    async fn decide(&self, call: &Call) -> Heard {
        elicit(&self.peer, call).await
    }

    async fn fill_in(&self, asked: &Elicitation) -> Option<ElicitationAnswer> {
        pass_on(&self.peer, asked).await
    }

    async fn tell(&self, news: News<'_>) {
        self.notices.tell(news).await;
    }
}

impl AgentServer {
    fn tool(&self) -> Tool {
        let tool = &self.exposure.tool;
        let schema = json!({
            "type": "object",
            "properties": {
                tool.argument_name.as_str(): {
                    "type": "string",
                    "description": tool.argument_description,
                },
            },
            "required": [tool.argument_name],
        });
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => JsonObject::new(),
        };
        Tool::new(
            tool.name.clone(),
            tool.description.clone(),
            Arc::new(schema),
        )
    }

    /// The question in a call; what is wrong with it is the caller's to mend.
    pub(super) fn read(
        &self,
        name: &str,
        arguments: Option<&JsonObject>,
    ) -> Result<String, String> {
        let tool = &self.exposure.tool;
        if name != tool.name {
            return Err(format!("there is no tool `{name}`, only `{}`", tool.name));
        }
        let argument = &tool.argument_name;
        match arguments.and_then(|arguments| arguments.get(argument)) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            Some(Value::String(_)) => Err(format!("the argument `{argument}` is empty")),
            None | Some(Value::Null) => Err(format!("the argument `{argument}` is missing")),
            Some(_) => Err(format!("the argument `{argument}` is not a text")),
        }
    }

    /// Asks on a task of its own: when the client leaves, the turn is still stopped in order.
    pub(super) async fn answer(
        &self,
        caller: Caller,
        text: String,
        door: impl Door + 'static,
    ) -> CallToolResult {
        let share = match self.questions.take(caller.holder(), 1) {
            Ok(share) => share,
            Err(reached) => return result(Err(limit_reached(&QUESTIONS, reached))),
        };
        let stop = self.life.stop.child_token();
        let _stops = stop.clone().drop_guard();
        let (sessions, exposure) = (self.sessions.clone(), Arc::clone(&self.exposure));
        let asking = self.life.tasks.spawn(async move {
            let question = Question {
                sessions: &sessions,
                caller: &caller,
                text,
                ways: &exposure.approval,
                has_page: exposure.has_page,
                limit: exposure.turn_limit,
                stop,
            };
            let asked = question.ask(&door).await;
            // It counts until the turn has come to rest, whenever its client left.
            drop(share);
            asked
        });
        match asking.await {
            Ok(asked) => result(asked),
            Err(error) => {
                tracing::error!(%error, "A question broke off");
                CallToolResult::error(vec![ContentBlock::text("internal error")])
            }
        }
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Option<Caller> {
        let parts = context.extensions.get::<axum::http::request::Parts>();
        let of_request = parts.and_then(|parts| parts.extensions.get::<Caller>());
        of_request.or(self.local.as_ref()).cloned()
    }
}

/// The tool's result: the answer as text, or why there is none.
fn result(asked: Result<(SessionKey, Ending), Refusal>) -> CallToolResult {
    let failed = |code: &str, text: &str| {
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(json!({ "code": code, "error": text }));
        result
    };
    match asked {
        Ok((_, Ending::Answered(text))) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Ok((_, Ending::Failed(code, text))) => {
            // S3.30: what whoever asked reads instead of an answer.
            let mut result = failed(code.as_str(), &text);
            result.content = vec![ContentBlock::text(format!(
                "Error processing request: {text}"
            ))];
            result
        }
        Ok((_, Ending::Cancelled)) => failed("cancelled", "the question was stopped"),
        Err(refusal) => failed(refusal.code.as_str(), &refusal.message),
    }
}

impl ServerHandler for AgentServer {
    #[expect(deprecated, reason = "clients of today still use logging (S0.54)")]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools();
        let agent = &self.exposure.agent;
        let implementation = Implementation::new(agent.name.clone(), agent.version.clone());
        ServerConfig::new(capabilities.build()).with_server_info(implementation)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == self.exposure.tool.name).then(|| self.tool())
    }

    #[expect(deprecated, reason = "clients of today still set the level (S0.54)")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let level = serde_json::to_value(request.level);
        let level = level.and_then(serde_json::from_value);
        let level = level.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        self.threshold.set(level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.tool()]))
    }

    // What is not declared is not there. rmcp would answer with an empty list.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<
            ListResourceTemplatesRequestMethod,
        >())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let read = self.read(&request.name, request.arguments.as_ref());
        let text = read.map_err(|text| ErrorData::invalid_params(text, None))?;
        let Some(caller) = self.caller(&context) else {
            return Err(ErrorData::invalid_request("nobody is signed in", None));
        };
        let token = context.meta.get_progress_token();
        let door = ClientDoor {
            peer: context.peer.clone(),
            notices: Notices::new(context.peer.clone(), self.threshold.clone(), token),
        };
        tokio::select! {
            result = self.answer(caller, text, door) => Ok(result.into()),
            // Dropping the answer stops the turn; a cancelled request gets no reply.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}
