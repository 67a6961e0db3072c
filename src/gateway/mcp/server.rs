//! Implements the MCP server, whose only tool asks the agent.

use std::sync::Arc;

use async_trait::async_trait;
#[expect(deprecated, reason = "clients of today still set the level (S0.54)")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, GetTaskParams, GetTaskResult, Implementation,
    JsonObject, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use super::approval::{DoorReply, HearsOnlyAnswers, elicit, pass_on};
use super::asking::{Asking, result};
use super::notices::{Notices, Threshold};
use super::question::{Door, News, QuestionText};
use super::tasks::{Round, TaskClient, Tasks};
use crate::agent::AssistantView;
use crate::domain::Caller;
use crate::session::{Call, Elicitation, ElicitationAnswer};
use crate::store::records::AssistantLevel;

/// The argument that names the assistant which answers.
const ASSISTANT: &str = "assistant";
/// The most assistants that the tool's description names.
const MAX_NAMED: usize = 50;

/// The server of one client.
#[derive(Clone)]
pub(super) struct AgentServer {
    pub(super) asking: Asking,
    /// The user who started the process on standard input and output; over HTTP each request has its own
    /// caller.
    pub(super) local: Option<Caller>,
    pub(super) threshold: Threshold,
    pub(super) tasks: Tasks,
}

/// The client that made a call, as the question's door.
struct ClientDoor {
    /// The connection over which the client can be asked, if it can.
    peer: Option<Peer<RoleServer>>,
    notices: Notices,
}

#[async_trait]
impl Door for ClientDoor {
    async fn decide(&self, call: &Call) -> DoorReply {
        match &self.peer {
            Some(peer) => elicit(peer, call).await,
            None => DoorReply::Nobody,
        }
    }

    async fn fill_in(&self, asked: &Elicitation) -> Option<ElicitationAnswer> {
        pass_on(self.peer.as_ref()?, asked).await
    }

    async fn report(&self, news: News<'_>) {
        self.notices.report(news).await;
    }
}

impl AgentServer {
    /// The tool, with the assistants from which the caller may choose.
    fn tool(&self, assistants: &[AssistantView]) -> Tool {
        let tool = &self.asking.exposure.tool;
        let mut schema = json!({
            "type": "object",
            "properties": {
                tool.argument_name.as_str(): {
                    "type": "string",
                    "description": tool.argument_description,
                },
            },
            "required": [tool.argument_name],
        });
        if !assistants.is_empty() && tool.argument_name != ASSISTANT {
            let names = assistants.iter().take(MAX_NAMED);
            let names: Vec<&str> = names.map(|view| view.row.name.as_str()).collect();
            let description = format!(
                "The name or id of the assistant that answers; without it, the agent as it is. \
                 There are: {}",
                names.join(", ")
            );
            let described = json!({ "type": "string", "description": description });
            if let Some(Value::Object(properties)) = schema.get_mut("properties") {
                properties.insert(ASSISTANT.to_owned(), described);
            }
        }
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

    /// Reads the question from the arguments of a call; the error says what the client has to correct.
    pub(super) fn read(
        &self,
        name: &str,
        arguments: Option<&JsonObject>,
    ) -> Result<QuestionText, String> {
        let tool = &self.asking.exposure.tool;
        if name != tool.name {
            return Err(format!("there is no tool `{name}`, only `{}`", tool.name));
        }
        let argument = &tool.argument_name;
        let given = |name: &str| arguments.and_then(|arguments| arguments.get(name));
        let text = match given(argument) {
            Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
            Some(Value::String(_)) => return Err(format!("the argument `{argument}` is empty")),
            None | Some(Value::Null) => {
                return Err(format!("the argument `{argument}` is missing"));
            }
            Some(_) => return Err(format!("the argument `{argument}` is not a text")),
        };
        let assistant = match given(ASSISTANT).filter(|_| argument != ASSISTANT) {
            Some(Value::String(name)) if !name.trim().is_empty() => Some(name.trim().to_owned()),
            Some(Value::String(_) | Value::Null) | None => None,
            Some(_) => return Err(format!("the argument `{ASSISTANT}` is not a text")),
        };
        Ok(QuestionText { text, assistant })
    }

    /// Returns the client of a task, from the caller and capabilities of its request.
    fn task_client(&self, context: &RequestContext<RoleServer>) -> Result<TaskClient, ErrorData> {
        let caller = self.caller(context).ok_or_else(nobody)?;
        let capabilities = context.client_capabilities();
        let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
        // Forms were the only mode before modes had names.
        let has_forms = elicitation.is_some_and(|it| it.form.is_some() || it.url.is_none());
        Ok(TaskClient { caller, has_forms })
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Option<Caller> {
        let parts = context.extensions.get::<axum::http::request::Parts>();
        let of_request = parts.and_then(|parts| parts.extensions.get::<Caller>());
        of_request.or(self.local.as_ref()).cloned()
    }
}

fn nobody() -> ErrorData {
    ErrorData::invalid_request("nobody is signed in", None)
}

impl ServerHandler for AgentServer {
    #[expect(deprecated, reason = "clients of today still use logging (S0.54)")]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools()
            .enable_tasks();
        let agent = &self.asking.exposure.agent;
        let implementation = Implementation::new(agent.name.clone(), agent.version.clone());
        ServerConfig::new(capabilities.build()).with_server_info(implementation)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == self.asking.exposure.tool.name).then(|| self.tool(&[]))
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
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut assistants = match self.caller(&context) {
            // Without a list, the tool still takes the argument.
            Some(caller) => {
                let listed = self.asking.sessions.assistants().list(&caller).await;
                listed.unwrap_or_default()
            }
            None => Vec::new(),
        };
        assistants.retain(|view| view.level >= AssistantLevel::Use);
        Ok(ListToolsResult::with_all_items(vec![
            self.tool(&assistants),
        ]))
    }

    // Undeclared capabilities are answered as unknown methods, where rmcp would return an empty list.

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

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let client = self.task_client(&context)?;
        let task = self
            .tasks
            .get(&self.asking, client, &request.task_id)
            .await?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.task_client(&context)?;

        Box::pin(self.tasks.update(
            &self.asking,
            client,
            request.task_id.as_str(),
            request.input_responses,
        ))
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context).ok_or_else(nobody)?;
        self.tasks
            .cancel(&self.asking, &caller, &request.task_id)
            .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let read = self.read(&request.name, request.arguments.as_ref());
        let asked = read.map_err(|text| ErrorData::invalid_params(text, None))?;
        let client = self.task_client(&context)?;
        let capabilities = context.client_capabilities();
        if capabilities.is_some_and(|capabilities| capabilities.supports_tasks()) {
            let creating = self.tasks.create(&self.asking, client, asked);
            return Ok(match Box::pin(creating).await {
                Ok(task) => CallToolResponse::Task(task),
                Err(refusal) => result(Err(refusal)).into(),
            });
        }
        let token = context.meta.get_progress_token();
        let notices = Notices::new(context.peer.clone(), self.threshold.clone(), token);
        let cancelled = || Err(ErrorData::internal_error("cancelled", None));
        let version = context.protocol_version();
        let is_asked_in_rounds = version.is_some_and(|version| !version.has_initialize());
        if is_asked_in_rounds && client.has_forms {
            let round = Round {
                asked,
                state: request.request_state,
                answers: request.input_responses.unwrap_or_default(),
                notices,
            };
            return tokio::select! {
                answer = Box::pin(self.tasks.round(&self.asking, client, round)) => answer,
                () = context.ct.cancelled() => cancelled(),
            };
        }
        let parts = context.extensions.get::<axum::http::request::Parts>();
        let is_mute =
            parts.is_some_and(|parts| parts.extensions.get::<HearsOnlyAnswers>().is_some());
        let peer = (!is_mute).then(|| context.peer.clone());
        let door = ClientDoor { peer, notices };
        tokio::select! {
            result = self.asking.answer(client.caller, asked, door) => Ok(result.into()),
            // Dropping the answer stops the turn; a cancelled request gets no reply.
            () = context.ct.cancelled() => cancelled(),
        }
    }
}
