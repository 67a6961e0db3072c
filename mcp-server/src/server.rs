//! The MCP side: which tool is meant, are the arguments right, and how a result looks on the wire.

use std::{sync::Arc, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        Annotations, CallToolRequestParams, CallToolResponse, CallToolResult,
        CompleteRequestMethod, CompleteRequestParams, CompleteResult, ContentBlock, CustomRequest,
        CustomResult, EmbeddedResource, Implementation, JsonObject, ListPromptsRequestMethod,
        ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
        ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ResourceContents, Role, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    command::{self, Groups, Progress},
    custom::{self, answer, params},
    failure::Failure,
    files::{
        self, Incoming, InstructionsParams, Part, SkillPart, SkillsParams, Workspace,
        checkpoints::Scans, people::Uploads,
    },
    settings::Settings,
    stops::Stops,
    tools::{self, ExecuteCommand},
};

/// Shown to the model once, before the tools.
const INSTRUCTIONS: &str = "A sealed Linux sandbox without network. All paths are below the \
    workspace folder, which keeps its files for the whole session.";

/// What the gateway asks before it shows people a write. No tool: a model never reads of it, and it
/// changes nothing.
const FILE_FACTS: &str = "sepal/fileFacts";

/// How the gateway puts what people attached into the workspace. No tool either.
const PLACE_ATTACHMENT: &str = "sepal/placeAttachment";

/// What the gateway asks for before it asks a model. No tool either, and it changes nothing.
const WORKSPACE_INSTRUCTIONS: &str = "sepal/workspaceInstructions";

/// How the gateway puts the files of a skill that a model uses into the workspace. No tool either.
const PLACE_SKILL: &str = "sepal/placeSkill";

/// What the gateway asks for before it asks a model. No tool either, and it changes nothing.
const WORKSPACE_SKILLS: &str = "sepal/workspaceSkills";

/// The parameters of [`FILE_FACTS`].
#[derive(Deserialize)]
struct FileFactsParams {
    /// As a `write_file` would name it.
    path: String,
}

/// Answers `tools/list` and `tools/call`.
pub(crate) struct Server {
    workspace: Arc<Workspace>,
    incoming: Arc<Incoming>,
    uploads: Arc<Uploads>,
    incoming_skill: Arc<Incoming>,
    scans: Arc<Scans>,
    settings: Settings,
    tools: Vec<Tool>,
    groups: Groups,
    stops: Stops,
    /// The client has left.
    ended: CancellationToken,
}

impl Server {
    pub(crate) fn new(
        workspace: Workspace,
        settings: Settings,
        groups: Groups,
        stops: Stops,
        ended: CancellationToken,
    ) -> Result<Self, String> {
        Ok(Self {
            workspace: Arc::new(workspace),
            incoming: Arc::default(),
            uploads: Arc::default(),
            incoming_skill: Arc::default(),
            scans: Arc::default(),
            settings,
            tools: tools::definitions()?,
            groups,
            stops,
            ended,
        })
    }

    /// Runs one of the file tools where blocking is allowed.
    async fn on_files<A, F>(&self, arguments: JsonObject, work: F) -> Result<Vec<String>, Failure>
    where
        A: DeserializeOwned + Send + 'static,
        F: FnOnce(&Workspace, &A) -> Result<Vec<String>, Failure> + Send + 'static,
    {
        let arguments: A = parse(arguments)?;
        let workspace = Arc::clone(&self.workspace);
        #[expect(
            clippy::disallowed_methods,
            reason = "the server of one sandbox, whose limits hold whatever it does"
        )]
        let done = tokio::task::spawn_blocking(move || work(&workspace, &arguments));
        done.await
            .map_err(|error| Failure::new(format!("The tool broke off: {error}. Try again.")))?
    }

    async fn on_file_facts(&self, request: &CustomRequest) -> Result<CustomResult, ErrorData> {
        let params: FileFactsParams = params(request)?;
        let workspace = Arc::clone(&self.workspace);
        answer(move || files::facts(&workspace, &params.path)).await
    }

    async fn on_instructions(&self, request: &CustomRequest) -> Result<CustomResult, ErrorData> {
        let params: InstructionsParams = params(request)?;
        let workspace = Arc::clone(&self.workspace);
        let read = move || files::instructions(&workspace, &params);
        answer(move || Ok(json!({ "files": read() }))).await
    }

    async fn on_attachment(&self, request: &CustomRequest) -> Result<CustomResult, ErrorData> {
        let part: Part = params(request)?;
        let (workspace, incoming) = (Arc::clone(&self.workspace), Arc::clone(&self.incoming));
        let place = move || files::place(&workspace, &incoming, &part);
        answer(move || place().map(|name| json!({ "name": name }))).await
    }

    async fn on_skill(&self, request: &CustomRequest) -> Result<CustomResult, ErrorData> {
        let part: SkillPart = params(request)?;
        let (workspace, incoming) = (
            Arc::clone(&self.workspace),
            Arc::clone(&self.incoming_skill),
        );
        let place = move || files::place_skill(&workspace, &incoming, &part);
        answer(move || place().map(|placed| json!({ "placed": placed }))).await
    }

    async fn on_skills(&self, request: &CustomRequest) -> Result<CustomResult, ErrorData> {
        let params: SkillsParams = params(request)?;
        let workspace = Arc::clone(&self.workspace);
        let read = move || files::skills(&workspace, &params);
        answer(move || Ok(json!({ "skills": read() }))).await
    }

    async fn on_command(
        &self,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<command::Report, Failure> {
        let arguments: ExecuteCommand = parse(arguments)?;
        let longest = self.settings.command_timeout;
        let timeout = arguments.timeout_s.map_or(longest, |seconds| {
            Duration::from_secs(seconds.into()).min(longest)
        });
        let progress = Progress::new(context.meta.get_progress_token(), context.peer.clone());
        let command = command::Order {
            line: &arguments.command,
            folder: &self.settings.workspace,
            timeout,
            output_bytes: self.settings.output_bytes,
        };
        let told = self.stops.of(&context.id);
        let stop = async {
            tokio::select! {
                () = told.cancelled() => (),
                () = context.ct.cancelled() => (),
                () = self.ended.cancelled() => (),
            }
        };
        command::run(command, &self.groups, progress, stop).await
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("sepal-mcp-server", env!("CARGO_PKG_VERSION"))
                    .with_title("Sepal sandbox"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
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

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == FILE_FACTS {
            return self.on_file_facts(&request).await;
        }
        if request.method == WORKSPACE_INSTRUCTIONS {
            return self.on_instructions(&request).await;
        }
        if request.method == PLACE_ATTACHMENT {
            return self.on_attachment(&request).await;
        }
        if request.method == PLACE_SKILL {
            return self.on_skill(&request).await;
        }
        if request.method == WORKSPACE_SKILLS {
            return self.on_skills(&request).await;
        }
        let workspace = Arc::clone(&self.workspace);
        custom::people(&request, workspace, &self.uploads, &self.scans).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match request.name.as_ref() {
            "read_file" => texts(self.on_files(arguments, files::read).await),
            "write_file" => texts(self.on_files(arguments, files::write).await),
            "list_files" => texts(self.on_files(arguments, files::list).await),
            "execute_command" => match self.on_command(arguments, &context).await {
                Ok(report) => executed(&report),
                Err(failure) => failed(&failure),
            },
            unknown => {
                return Err(ErrorData::invalid_params(
                    format!("there is no tool `{unknown}`"),
                    None,
                ));
            }
        };
        Ok(result.into())
    }
}

/// The model can mend its arguments, so a mismatch is a tool result and not a protocol fault.
fn parse<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Failure::new(format!(
            "The arguments do not fit the tool's schema: {error}. Call it again with the right ones."
        ))
    })
}

fn texts(result: Result<Vec<String>, Failure>) -> CallToolResult {
    match result {
        Ok(texts) => CallToolResult::success(texts.into_iter().map(ContentBlock::text).collect()),
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(failure.to_string())])
}

/// A stream that the text shows only in part, for people: the model has read its ends.
fn whole_output((name, bytes): (&str, &[u8])) -> ContentBlock {
    let blob = STANDARD.encode(bytes);
    let contents = ResourceContents::blob(blob, format!("sepal://output/{name}.txt"));
    let embedded = EmbeddedResource::new(contents.with_mime_type("text/plain"));
    let people = Annotations::default().with_audience(vec![Role::User]);
    ContentBlock::Resource(embedded.with_annotations(people))
}

/// A command that ran to its end is a success whatever its exit code says: `grep` without a match
/// is an answer. One that was stopped is an error.
fn executed(report: &command::Report) -> CallToolResult {
    let mut content = vec![ContentBlock::text(report.text())];
    content.extend(report.whole().map(whole_output));
    let mut result = if report.was_stopped() {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = Some(report.facts());
    result
}
