//! Describes the events of the socket and of event streams. `gateway::wire` writes them; `tests/it` holds every
//! event that a test receives against these descriptions.
#![expect(dead_code, reason = "describes what `gateway::wire` writes")]

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::gateway::http::DiskPressure;
use crate::gateway::wire::SessionItem;
use crate::gateway::word_list;

/// A description of an event.
pub(super) struct EventSpec {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// True if a text stands before the object.
    pub(super) has_text: bool,
    pub(super) name_of_schema: fn() -> String,
    pub(super) schema: fn() -> RefOr<Schema>,
    pub(super) schemas: fn(&mut Vec<(String, RefOr<Schema>)>),
}

macro_rules! events {
    ($table:ident: $($(#[doc = $about:literal])+ $name:literal $(($text:ident))? = $payload:ident;)+) => {
        pub(super) const $table: &[EventSpec] = &[$(EventSpec {
            name: $name,
            about: concat!($($about),+),
            has_text: events!(@text $($text)?),
            name_of_schema: || <$payload as ToSchema>::name().into_owned(),
            schema: <$payload as PartialSchema>::schema,
            schemas: <$payload as ToSchema>::schemas,
        },)+];
    };
    (@text) => { false };
    (@text text) => { true };
}

events! { OF_SESSION:
    /// The first event of a connection: the session, and its state unless `resumed`.
    "system:ready" = SystemReady;
    /// A person's message; the text stands before the object.
    "user:message" (text) = UserMessage;
    /// A model request begins.
    "agent:thinking" = AgentThinking;
    /// A piece of the running answer. It is not kept: the whole text follows with the answer.
    "agent:delta" (text) = AgentDelta;
    /// The model said something with its calls.
    "agent:message" (text) = AgentMessage;
    /// The answer of the turn.
    "agent:response" (text) = AgentResponse;
    /// The turn was stopped.
    "agent:cancelled" = AgentCancelled;
    /// Something failed: a command, a turn or a call.
    "agent:error" (text) = AgentError;
    /// A call waits for a decision.
    "tool:approval_required" = ApprovalRequired;
    /// A view asks for a call.
    "tool:view_call" = ViewCall;
    /// A call was decided.
    "tool:decided" = ToolDecided;
    /// A call runs.
    "tool:started" = ToolStarted;
    /// Progress of a running call. Not kept.
    "tool:progress" = ToolProgress;
    /// A call has ended; its text stands before the object.
    "tool:output" (text) = ToolOutput;
    /// All calls of the turn. Only the latest one counts.
    "tool:queue" = ToolQueue;
    /// A server asks the person something while one of its calls runs.
    "elicitation:required" = ElicitationRequired;
    /// The person went to the page that a server asked to open.
    "elicitation:opened" = ElicitationOpened;
    /// Progress of a completion that a server asked for.
    "elicitation:sampling" = ElicitationSampling;
    /// A question of a server is over.
    "elicitation:resolved" = ElicitationResolved;
    /// The session shares the past of another one.
    "session:forked" = SessionForked;
    /// Progress of the copy of a fork's workspace. Not kept.
    "session:copying" = SessionCopying;
    /// The fork has its workspace.
    "session:workspace" = SessionWorkspace;
    /// Something of the session has changed; each event has one of the fields.
    "session:changed" = SessionChanged;
    /// Usage of the session. Only the latest one counts.
    "session:usage" = SessionUsage;
    /// A resource that was read for the session has changed at its server. Not kept.
    "session:resource_changed" = ResourceAddress;
    /// The model reads nothing from before.
    "history:reset" = HistoryReset;
    /// The model reads less than the whole conversation.
    "context:compacted" = ContextCompacted;
    /// A notice that is shown once. Not kept.
    "system:message" (text) = SystemMessage;
    /// The sandbox of the installation has changed. Not kept.
    "system:sandbox" = SystemSandbox;
    /// Progress of the installation of an MCP server's package. Not kept.
    "mcp:installation" = McpInstallation;
    /// The health of an MCP server has changed. Not kept.
    "mcp:health" = McpHealthNews;
    /// An MCP server was added. Not kept.
    "mcpAdded" = ServerNews;
    /// An MCP server was removed. Not kept.
    "mcpRemoved" = ServerNews;
    /// The person's connection to an MCP server has changed. Not kept.
    "mcpConnection" = ServerNews;
    /// The reason for the end of the connection, which follows.
    "error" (text) = ConnectionEnded;
}

events! { OF_LIST:
    /// A session of the person has changed, or there is a new one.
    "sessions:changed" = SessionItem;
    /// A session is gone.
    "sessions:removed" = SessionName;
    /// The calls of somebody else's session that wait for the person have changed.
    "approvals:changed" = SessionName;
    /// The client fell behind: it has to read the list again.
    "sessions:missed" = Nothing;
    /// The reason for the end of the connection, which follows.
    "error" (text) = ConnectionEnded;
}

/// A person, or a program that decided: a rule, a reviewing model, or Sepal.
#[derive(ToSchema)]
struct Person {
    /// The id; of a rule its own, of another program empty.
    id: String,
    /// The name.
    name: String,
}

/// The assistant of a session.
#[derive(ToSchema)]
struct SessionAssistantItem {
    /// The assistant's id.
    id: String,
    /// The number of the version that is in use.
    version: u64,
    /// The assistant's name.
    name: String,
    /// The purpose of the assistant.
    description: String,
    /// Messages that the empty session offers to begin with.
    openings: Vec<String>,
    /// The models that the session may use; empty = any model.
    models: Vec<SessionAssistantModel>,
}

/// A model that sessions of an assistant may use.
#[derive(ToSchema)]
struct SessionAssistantModel {
    /// The provider's name.
    provider: String,
    /// The model's id at that provider.
    model: String,
}

/// `system:ready`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SystemReady {
    /// The provider's kind; of Anthropic `claude`.
    provider: String,
    /// The provider's name, as `/api/providers` has it.
    provider_id: String,
    /// The model.
    model: String,
    /// The reasoning effort; `null` for what the settings say of the model.
    effort: Option<String>,
    /// The assistant that the session was started with, in the version that is in use; `null` without one.
    assistant: Option<SessionAssistantItem>,
    /// The session's own compaction strategies; empty = those of the settings.
    compaction: Vec<String>,
    /// The tokens of history that the settings let the model read; `null` for as many as its window holds.
    configured_max_tokens: Option<u64>,
    /// The tokens that the model can read; `null` if nobody knows.
    model_max_tokens: Option<u64>,
    /// The session's id.
    session_id: String,
    /// The engine's name of the session's container, while it runs here.
    container_id: Option<String>,
    /// The id of the journal that `seq` counts in.
    journal_id: String,
    /// The `seq` of the last event.
    seq: u64,
    /// The person who is connected.
    user: ReadyUser,
    /// True if the missed events follow one by one; otherwise `state` has everything.
    resumed: bool,
    /// The title; `null` until there is one.
    title: Option<String>,
    /// The state of the session.
    state: ReadyState,
    /// The version of Sepal.
    version: String,
    /// The sandbox of the installation.
    #[schema(value_type = Object)]
    sandbox: Value,
    /// The storage of sessions.
    storage: ReadyStorage,
    /// Limits of the connection.
    limits: ReadyLimits,
}

/// The person who is connected.
#[derive(ToSchema)]
struct ReadyUser {
    /// The id.
    id: String,
    /// The name.
    name: String,
    /// The role in the tenant.
    #[schema(value_type = word_list::UserRole)]
    role: String,
}

/// The storage of sessions.
#[derive(ToSchema)]
struct ReadyStorage {
    /// `sqlite`, `postgres` or `redis`.
    kind: String,
}

/// Limits of a connection.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ReadyLimits {
    /// The largest packet in bytes.
    frame_bytes: u64,
    /// The most commands that may wait for an answer; `null` for no limit.
    commands_per_socket: Option<u64>,
}

/// The state of a session.
#[derive(ToSchema)]
struct ReadyState {
    /// The last page of the transcript.
    transcript: ReadyTranscript,
    /// The calls of the turn.
    queue: ToolQueue,
    /// Usage of the session.
    usage: SessionUsage,
    /// The running turn; `null` if none runs.
    running: Option<RunningTurn>,
    /// The messages that wait for the next model request.
    waiting: Vec<WaitingMessage>,
}

/// A part of a transcript.
#[derive(ToSchema)]
struct ReadyTranscript {
    /// The events, oldest first.
    events: Vec<StoredEvent>,
    /// True if there are older ones.
    more: bool,
}

/// An event of a transcript, with the arguments of the live event.
#[derive(ToSchema)]
struct StoredEvent {
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
    /// The name.
    event: String,
    /// The arguments.
    args: Vec<Value>,
}

/// A turn that runs.
#[derive(ToSchema)]
struct RunningTurn {
    /// The turn's number.
    turn: u64,
    /// The number of its current model request.
    iteration: u64,
    /// The attempt of that request.
    attempt: u64,
    /// The thing that the turn waits for.
    #[schema(value_type = word_list::TurnPhase)]
    phase: String,
    /// The answer so far.
    text: String,
    /// The reasoning so far.
    reasoning: String,
    /// When the phase began (RFC 3339).
    since: String,
}

/// A message that waits.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct WaitingMessage {
    /// The text.
    text: String,
    /// The id that the client gave it.
    client_message_id: Option<String>,
    /// The `seq` of its `user:message`.
    seq: u64,
    /// The attachments.
    attachments: Vec<Attachment>,
}

/// `user:message`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct UserMessage {
    /// The author.
    author: Person,
    /// The id that the client gave it.
    client_message_id: Option<String>,
    /// The reasoning effort of its turn.
    effort: Option<String>,
    /// The attachments.
    attachments: Option<Vec<Attachment>>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// A file of a message or a result; its content is at `/api/sessions/{id}/attachments/{blob}`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct Attachment {
    /// The id of the content.
    id: String,
    /// The file's name.
    name: String,
    /// The media type.
    media_type: String,
    /// The size.
    bytes: u64,
    /// The width of a picture in pixels.
    width: Option<u32>,
    /// The height of a picture in pixels.
    height: Option<u32>,
    /// The resource of an MCP server that it was read from.
    source: Option<ResourceAddress>,
}

/// The address of a resource of an MCP server.
#[derive(ToSchema)]
struct ResourceAddress {
    /// The server.
    server: String,
    /// The address at the server.
    uri: String,
}

/// `agent:thinking`.
#[derive(ToSchema)]
struct AgentThinking {
    /// The turn's number.
    turn: u64,
    /// The number of the model request in the turn.
    iteration: u64,
    /// The model.
    model: String,
    /// The `seq`s of the waiting messages that the request takes.
    took: Vec<u64>,
    /// True if the last answer is asked for again.
    retry: bool,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `agent:delta`.
#[derive(ToSchema)]
struct AgentDelta {
    /// The turn's number.
    turn: u64,
    /// The number of the model request in the turn.
    iteration: u64,
    /// The attempt: the text of a higher one replaces that of lower ones.
    attempt: u64,
    /// The place of the piece in its kind, in UTF-16 code units.
    offset: u64,
    /// The kind of text.
    #[schema(value_type = word_list::DeltaKind)]
    kind: String,
}

/// The reasoning of a model.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct Thought {
    /// The text, its first 64 KiB.
    text: String,
    /// The duration.
    duration_ms: Option<u64>,
    /// The bytes that were left out.
    left_out_bytes: Option<u64>,
}

/// The model that answered in the place of the one that was asked.
#[derive(ToSchema)]
struct AnsweredBy {
    /// The provider.
    provider: String,
    /// The model.
    model: String,
    /// The reason.
    reason: String,
}

/// `agent:message`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct AgentMessage {
    /// The turn's number.
    turn: u64,
    /// The number of the model request in the turn.
    iteration: u64,
    /// The calls that the model asks for.
    calls: Vec<SaidCall>,
    /// The reasoning before the answer.
    reasoning: Option<Thought>,
    /// Present if another model answered.
    answered_by: Option<AnsweredBy>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// A call that the model asks for.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SaidCall {
    /// The call's id.
    call_id: String,
    /// The tool.
    name: String,
    /// The server of the tool.
    server: String,
    /// The arguments.
    args: Value,
}

/// `agent:response`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct AgentResponse {
    /// The turn's number.
    turn: u64,
    /// The model.
    model: String,
    /// The tokens of the request.
    usage: RequestTokens,
    /// The cost in US dollars; absent if the price is unknown.
    cost: Option<f64>,
    /// The duration of the turn.
    duration_ms: u64,
    /// The time until the first piece of the last request.
    first_token_ms: Option<u64>,
    /// Why the answer ended.
    finish: String,
    /// The reasoning before the answer.
    reasoning: Option<Thought>,
    /// More about an unusual end, in words.
    stop_detail: Option<String>,
    /// The number of calls of the answer that mean nothing.
    dropped_calls: Option<u64>,
    /// Present if another model answered.
    answered_by: Option<AnsweredBy>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// The tokens of a model request.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct RequestTokens {
    /// All tokens that were sent.
    input_tokens: u64,
    /// Of these, those from the provider's cache.
    cached_tokens: u64,
    /// Of these, those written to the provider's cache.
    cache_write_tokens: Option<u64>,
    /// Of these, those with the longer life.
    cache_write_long_tokens: Option<u64>,
    /// All tokens that were generated.
    output_tokens: u64,
    /// Of these, those of reasoning.
    reasoning_tokens: u64,
    /// True if Sepal counted them, because the provider did not.
    is_estimated: bool,
}

/// `agent:cancelled`.
#[derive(ToSchema)]
struct AgentCancelled {
    /// The turn's number.
    turn: u64,
    /// The answer so far.
    text: Option<String>,
    /// The reasoning so far.
    reasoning: Option<Thought>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `agent:error`; of a failed command it has the form of a refusal.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct AgentError {
    /// The stable code (docs/errors.md).
    code: String,
    /// The person who has to act.
    #[schema(value_type = word_list::ErrorCategory)]
    category: String,
    /// True if the same may work later.
    retryable: bool,
    /// The turn that failed.
    turn: Option<u64>,
    /// The call that failed.
    call_id: Option<String>,
    /// The tool of that call.
    name: Option<String>,
    /// The text, of a refused command.
    message: Option<String>,
    /// The wrong field of a refused command.
    field: Option<String>,
    /// The id in the log.
    request_id: String,
    /// The position in the session; absent for a refused command.
    seq: Option<u64>,
    /// When it happened (RFC 3339); absent for a refused command.
    at: Option<String>,
}

/// A call as people see it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct Card {
    /// The tool.
    name: String,
    /// The arguments; absent if there are none.
    args: Option<Value>,
    /// The arguments as JSON text, if they have whole numbers beyond 2^53 - 1.
    args_text: Option<String>,
    /// The call's id.
    call_id: String,
    /// The place among the calls of the turn, from 1.
    queue_position: u64,
    /// The number of calls of the turn.
    total_in_queue: u64,
    /// The server of the tool.
    server: String,
    /// The tool's title.
    title: Option<String>,
    /// The tool's description; empty for a call that could not be valid.
    description: String,
    /// The JSON Schema of the arguments.
    schema: Option<Value>,
    /// The server's claims about the tool.
    annotations: Option<Annotations>,
    /// Where the call would run.
    runs_in: Option<RunsIn>,
    /// Why the call cannot have a dry run.
    #[schema(value_type = Option<word_list::NoDryRun>)]
    no_dry_run: Option<String>,
    /// Present if the definition of the tool has changed.
    drift: Option<DefinitionDrift>,
    /// The file that a write would change.
    file: Option<WrittenFile>,
    /// Why the call needs a decision, in words.
    why: String,
    /// The digest of exactly what would run; sent back with the decision.
    digest: Option<String>,
    /// When the call was asked for (RFC 3339).
    since: String,
    /// Whose yes the call needs, if the owner's alone does not do.
    approvers: Option<Vec<String>>,
    /// The people who have approved so far.
    consents: Option<Vec<Person>>,
    /// True if the yes needs a fresh gesture.
    fresh_gesture: Option<bool>,
    /// When the call expires (RFC 3339).
    expires_at: Option<String>,
    /// The review by a model.
    review: Option<Review>,
    /// The dry run.
    dry_run: Option<DryRunReport>,
    /// True if the reader may decide.
    may_decide: bool,
    /// The state of the call.
    #[schema(value_type = word_list::CallStatus)]
    status: String,
    /// The beginning of what a completed call gave.
    result: Option<String>,
    /// The beginning of why a call gave nothing.
    error: Option<String>,
    /// The person or rule that decided.
    decided_by: Option<Person>,
    /// By what the person showed that they were there.
    #[schema(value_type = Option<word_list::GestureMeans>)]
    gesture: Option<String>,
    /// True if a person changed the arguments.
    edited: bool,
    /// The arguments that were proposed.
    original_args: Option<Value>,
    /// The person who changed the arguments last.
    edited_by: Option<Person>,
    /// The model's text with the call.
    said: String,
    /// True if the tool is used for the first time.
    first_use: bool,
    /// The view that asks for the call.
    asked_by: Option<AskingView>,
}

/// `tool:approval_required`.
#[derive(ToSchema)]
struct ApprovalRequired {
    #[schema(inline)]
    #[serde(flatten)]
    card: Card,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// A server's claims about its tool.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of MCP")]
struct Annotations {
    /// The tool changes nothing.
    read_only_hint: Option<bool>,
    /// The tool may destroy something.
    destructive_hint: Option<bool>,
    /// A repeated call has no further effect.
    idempotent_hint: Option<bool>,
    /// The tool reaches the outside world.
    open_world_hint: Option<bool>,
}

/// Where a call runs.
#[derive(ToSchema)]
struct RunsIn {
    /// The kind of place.
    #[schema(value_type = word_list::RunsInKind)]
    kind: String,
    /// The hosts that it may reach.
    hosts: Vec<String>,
}

/// The definition of the tool has changed.
#[derive(ToSchema)]
struct DefinitionDrift {
    /// When that was seen (RFC 3339).
    since: String,
}

/// A file as it was when the model asked to write it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct WrittenFile {
    /// True if it exists.
    exists: bool,
    /// The number of lines, of text of at most 4 MiB.
    lines: Option<u64>,
    /// The size.
    bytes: u64,
    /// True if it is text.
    is_text: bool,
}

/// A model's review of a call.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct Review {
    /// Its stage.
    #[schema(value_type = word_list::ReviewStatus)]
    status: String,
    /// The model.
    model: Option<String>,
    /// Its reason.
    reason: Option<String>,
    /// The cost, if the price is known.
    cost_usd: Option<f64>,
}

/// A call that was tried in a copy of the workspace.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct DryRunReport {
    /// Its stage.
    #[schema(value_type = word_list::DryRunStatus)]
    status: String,
    /// The person who asked for it.
    by: Person,
    /// When it began (RFC 3339).
    since: String,
    /// Digest of the call that it runs.
    digest: String,
    /// The beginning of what the tool gave.
    text: Option<String>,
    /// The bytes that were cut off.
    cut_bytes: Option<u64>,
    /// The exit code of a command.
    exit_code: Option<i64>,
    /// The duration of the call.
    duration_ms: Option<u64>,
    /// The duration of the copy.
    prepared_ms: Option<u64>,
    /// The number of changed paths.
    counts: Option<PathCounts>,
    /// The first of the changed paths.
    files: Option<Vec<DryRunPath>>,
    /// Changes that the dry run cannot see.
    unseen: Option<Vec<String>>,
    /// Names the result, for an approval that takes it.
    result: Option<String>,
    /// Why no approval may take it.
    no_result: Option<String>,
}

/// The number of changed paths.
#[derive(ToSchema)]
struct PathCounts {
    /// The new ones.
    created: u64,
    /// The changed ones.
    modified: u64,
    /// The deleted ones.
    deleted: u64,
    /// Folders of any change, which the other numbers leave out.
    folders: u64,
}

/// A path that a dry run changed.
#[derive(ToSchema)]
struct DryRunPath {
    /// The path in the workspace.
    path: String,
    /// The change.
    #[schema(value_type = word_list::PathChange)]
    change: String,
    /// The unified diff.
    diff: Option<String>,
    /// Why there is no diff.
    why: Option<String>,
}

/// The view that asks for a call.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct AskingView {
    /// The call whose view it is.
    call_id: String,
    /// The tool of that call.
    name: String,
    /// The client's own id of the showing.
    view_id: String,
    /// The client's own id of the request.
    request_id: String,
}

/// `tool:view_call`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ViewCall {
    /// The call's id.
    call_id: String,
    /// The tool.
    name: String,
    /// The server of the tool.
    server: String,
    /// The arguments.
    args: Value,
    /// The view that asks.
    asked_by: Option<AskingView>,
    /// Whose view it is.
    by: Person,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `tool:decided`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ToolDecided {
    /// The call's id.
    call_id: String,
    /// True if it was approved.
    approved: bool,
    /// The person or rule that decided.
    by: Person,
    /// `taken_back` if an approval was taken back.
    #[schema(value_type = word_list::DecisionScope)]
    scope: String,
    /// True if a person changed the arguments.
    edited: bool,
    /// The person who changed them, if another one decided.
    edited_by: Option<Person>,
    /// The reason, in words.
    reason: Option<String>,
    /// The arguments that run, if a person changed them.
    args: Option<Value>,
    /// The rule that decided.
    rule: Option<String>,
    /// The id of that rule.
    rule_id: Option<String>,
    /// By what the person showed that they were there.
    #[schema(value_type = Option<word_list::GestureMeans>)]
    gesture: Option<String>,
    /// The result of a dry run that the call gets in the place of running.
    dry_run: Option<String>,
    /// The review by the model that approved it.
    review: Option<Review>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `tool:started`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ToolStarted {
    /// The call's id.
    call_id: String,
    /// The tool.
    name: String,
    /// The server of the tool.
    server: String,
    /// The digest of what runs.
    digest: String,
    /// The address of the tool's view.
    view: Option<String>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `tool:progress`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ToolProgress {
    /// The call's id.
    call_id: String,
    /// Its stage.
    progress: Option<f64>,
    /// When it is over, in the same unit.
    total: Option<f64>,
    /// In words.
    message: Option<String>,
}

/// `tool:output`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ToolOutput {
    /// The call's id.
    call_id: String,
    /// The tool.
    name: String,
    /// The server of the tool.
    server: String,
    /// The outcome of the call.
    #[schema(value_type = word_list::CallStatus)]
    status: String,
    /// The text once more, in the form of MCP.
    content: Vec<OutputText>,
    /// The duration.
    duration_ms: u64,
    /// The result as data.
    structured: Option<Value>,
    /// The exit code of a command.
    exit_code: Option<Value>,
    /// Present if the text is only a part.
    truncated: Option<Truncation>,
    /// The files that the tool returned.
    attachments: Option<Vec<Attachment>>,
    /// All pieces that the tool returned, if they are more than a text and pictures.
    blocks: Option<Vec<OutputBlock>>,
    /// Why the end of the call was not seen.
    cause: Option<String>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// A text in the form of MCP.
#[derive(ToSchema)]
struct OutputText {
    /// Always `text`.
    r#type: String,
    /// The text.
    text: String,
}

/// The size of a text before it was cut.
#[derive(ToSchema)]
struct Truncation {
    /// The bytes.
    bytes: u64,
}

/// A piece of what a tool returned.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct OutputBlock {
    /// The kind of piece, which says what fields it has.
    #[schema(value_type = word_list::BlockKind)]
    r#type: String,
    /// For whom it is.
    audience: Option<String>,
    /// The text.
    text: Option<String>,
    /// The file.
    attachment: Option<Attachment>,
    /// The address of the resource.
    uri: Option<String>,
    /// The media type that the server named.
    mime_type: Option<String>,
    /// The name of a linked resource.
    name: Option<String>,
    /// Its title.
    title: Option<String>,
    /// Its description.
    description: Option<String>,
    /// Its size.
    size: Option<u64>,
}

/// `tool:queue`.
#[derive(ToSchema)]
struct ToolQueue {
    /// The calls in their order.
    calls: Vec<Card>,
    /// The questions of servers that wait; absent if there are none.
    elicitations: Option<Vec<WaitingQuestion>>,
    /// The `seq` of the last event behind it.
    seq: u64,
}

/// A question of a server.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct WaitingQuestion {
    /// The question's id.
    elicitation_id: String,
    /// The call that asks.
    call_id: String,
    /// The server.
    server: String,
    /// The question, in words.
    message: String,
    /// When it asked (RFC 3339).
    asked_at: String,
    /// The kind of question.
    #[schema(value_type = word_list::QuestionMode)]
    mode: String,
    /// The JSON Schema of a form.
    schema: Option<Value>,
    /// The fields of a form in the server's order.
    order: Option<Vec<String>>,
    /// The address of a page.
    url: Option<String>,
    /// True if the person went to the page.
    opened: Option<bool>,
    /// The system prompt of a completion.
    system_prompt: Option<String>,
    /// The messages of a completion.
    messages: Option<Vec<CompletionMessage>>,
    /// The most tokens of a completion.
    max_tokens: Option<u64>,
    /// The temperature of a completion.
    temperature: Option<f64>,
    /// The texts that end a completion.
    stop_sequences: Option<Vec<String>>,
    /// Digest of the completion that an approval covers.
    digest: Option<String>,
    /// The model of a completion.
    model: Option<CompletionModel>,
    /// About how many tokens the model reads.
    input_tokens: Option<u64>,
    /// The stage of a completion.
    #[schema(value_type = Option<word_list::CompletionStage>)]
    stage: Option<String>,
    /// The person or rule that let the model be asked.
    by: Option<Person>,
    /// True if the answer is shown to the person first.
    review: Option<bool>,
    /// The answer of the model.
    answer: Option<CompletionAnswer>,
    /// Why there is no answer.
    problem: Option<CompletionProblem>,
}

/// A message of a completion.
#[derive(ToSchema)]
struct CompletionMessage {
    /// `user` or `assistant`.
    role: String,
    /// The text.
    text: String,
}

/// The model of a completion.
#[derive(ToSchema)]
struct CompletionModel {
    /// The provider.
    provider: String,
    /// The model.
    model: String,
}

/// The answer of a completion.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct CompletionAnswer {
    /// The text.
    text: String,
    /// The model.
    model: String,
    /// Why it ended.
    stop_reason: String,
}

/// Why a completion has no answer.
#[derive(ToSchema)]
struct CompletionProblem {
    /// The stable code.
    code: String,
    /// In words.
    text: String,
}

/// `elicitation:required`.
#[derive(ToSchema)]
struct ElicitationRequired {
    #[schema(inline)]
    #[serde(flatten)]
    question: WaitingQuestion,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `elicitation:opened`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ElicitationOpened {
    /// The question's id.
    elicitation_id: String,
    /// The call that asks.
    call_id: String,
    /// The person who opened the page.
    by: Person,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `elicitation:sampling`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ElicitationSampling {
    /// The question's id.
    elicitation_id: String,
    /// The call that asks.
    call_id: String,
    /// The stage of the completion.
    #[schema(value_type = word_list::CompletionStage)]
    stage: String,
    /// The person or rule that let the model be asked.
    by: Option<Person>,
    /// True if the answer is shown to the person first.
    review: Option<bool>,
    /// The answer of the model.
    answer: Option<CompletionAnswer>,
    /// Digest of the answer that an approval covers.
    digest: Option<String>,
    /// Why there is no answer.
    problem: Option<CompletionProblem>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `elicitation:resolved`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ElicitationResolved {
    /// The question's id.
    elicitation_id: String,
    /// The call that asked.
    call_id: String,
    /// The person's action.
    action: String,
    /// The values of a form.
    content: Option<Value>,
    /// The person who answered.
    by: Option<Person>,
    /// Why nobody answered.
    reason: Option<String>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `session:forked`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SessionForked {
    /// The session whose past it is.
    session_id: String,
    /// The `seq` of the last event that both have.
    from_seq: u64,
    /// True if the workspace is copied; absent in forks of early releases.
    has_files: Option<bool>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `session:copying`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SessionCopying {
    /// The bytes so far.
    copied_bytes: u64,
}

/// `session:workspace`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SessionWorkspace {
    /// The bytes of the copy; absent if they are not known.
    copied_bytes: Option<u64>,
    /// Why the workspace is empty.
    empty: Option<String>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `session:changed`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SessionChanged {
    /// The new title.
    title: Option<String>,
    /// The message that was taken back, by the client's id.
    withdrawn: Option<String>,
    /// The `seq` of that message.
    message_seq: Option<u64>,
    /// A person's word on a call of unknown outcome.
    settled: Option<SettledCall>,
    /// The assistant, in its new version.
    assistant: Option<SessionAssistantItem>,
    /// The person who took the new version into use.
    by: Option<Person>,
    /// The new model.
    model: Option<String>,
    /// Its provider.
    provider: Option<String>,
    /// The reasoning effort.
    effort: Option<String>,
    /// True if the model reads as much as its window holds.
    whole_window: Option<bool>,
    /// The strategies for earlier turns that do not fit the context.
    compaction: Option<Vec<String>>,
    /// An attachment that is in the workspace now.
    placed: Option<PlacedFile>,
    /// A rule that was given for the session.
    rule_given: Option<GivenRule>,
    /// A rule that was taken back.
    rule_taken_back: Option<TakenBackRule>,
    /// A host that a command was refused.
    host_refused: Option<RefusedHost>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// A person's word on a call of unknown outcome.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SettledCall {
    /// The call's id.
    call_id: String,
    /// True if it ran.
    happened: bool,
    /// The person who said so.
    by: Person,
}

/// An attachment in the workspace.
#[derive(ToSchema)]
struct PlacedFile {
    /// The attachment's id.
    id: String,
    /// Its name.
    name: String,
    /// Its path in the workspace.
    path: String,
}

/// A rule of the session.
#[derive(ToSchema)]
struct GivenRule {
    /// The rule's id.
    id: String,
    /// The rule in words.
    sentence: String,
    /// The person who gave the rule.
    by: Person,
    /// The hosts that it lets commands reach.
    network: Option<Vec<String>>,
}

/// A rule that was taken back.
#[derive(ToSchema)]
struct TakenBackRule {
    /// The rule's id.
    id: String,
    /// The person who removed the rule.
    by: Person,
}

/// A host that a command was refused.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct RefusedHost {
    /// The host.
    host: String,
    /// The port.
    port: u16,
    /// The host as a rule would name it; `null` if no rule may.
    entry: Option<String>,
    /// True if the person may give that rule.
    on_request: bool,
    /// Why it was refused.
    reason: String,
}

/// `session:usage`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SessionUsage {
    /// All tokens.
    total_tokens: u64,
    /// The cost in US dollars, without requests of unknown price.
    total_cost: f64,
    /// The number of requests of unknown price.
    unpriced_requests: u64,
    /// Always `null`; budgets are at `/api/budgets`.
    budget: Option<f64>,
    /// The context that the model reads.
    context: ContextUse,
    /// Cost of one more request; `null` if unknown.
    going_on: Option<GoingOn>,
    /// The `seq` of the last event behind it.
    seq: u64,
}

/// The context that the model reads.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ContextUse {
    /// The tokens of the last request.
    used: u64,
    /// About how many tokens the next request takes.
    next_input: Option<u64>,
    /// The tokens that the model can read.
    window: Option<u64>,
    /// True if the window is only assumed.
    window_assumed: bool,
    /// The tokens by direction.
    parts: BTreeMap<String, u64>,
    /// The way the tokens were counted.
    counted: CountedBy,
    /// True if the model reads as much as its window holds.
    whole: bool,
    /// The earlier turns that the model no longer reads.
    left_out: Option<LeftOut>,
    /// The last request.
    request: Option<LastRequest>,
}

/// The way tokens were counted.
#[derive(ToSchema)]
struct CountedBy {
    /// The method.
    #[schema(value_type = word_list::TokenMethod)]
    method: String,
    /// The error of calibrated counts, as a share.
    error: Option<f64>,
}

/// The earlier turns that the model no longer reads.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct LeftOut {
    /// The number of messages.
    messages: u64,
    /// The oldest message that it still reads.
    from_seq: Option<u64>,
    /// True if the whole window would hold more.
    whole_reads_more: bool,
}

/// The last model request.
#[derive(ToSchema)]
struct LastRequest {
    /// The provider.
    provider: String,
    /// The model.
    model: String,
    /// The parts that its tokens were spent on.
    parts: RequestParts,
}

/// The parts that the tokens of a request were spent on.
#[derive(ToSchema)]
struct RequestParts {
    /// The system prompt.
    system: u64,
    /// The definitions of tools, by server.
    tools: BTreeMap<String, u64>,
    /// Tokens beside the conversation, by source.
    context: BTreeMap<String, u64>,
    /// Earlier turns.
    history: u64,
    /// Results of calls.
    results: u64,
    /// The message.
    message: u64,
    /// The attachments.
    attachments: u64,
    /// Reasoning.
    reasoning: u64,
}

/// Cost of one more model request.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct GoingOn {
    /// The tokens.
    tokens: u64,
    /// Of these, those from the provider's cache.
    cached_tokens: u64,
    /// The cost in US dollars; `null` if the price is unknown.
    cost: Option<f64>,
}

/// `history:reset`.
#[derive(ToSchema)]
struct HistoryReset {
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// `context:compacted`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ContextCompacted {
    /// The strategy, or what made the context smaller.
    strategy: String,
    /// The size before.
    before: Option<CompactedSize>,
    /// The size after.
    after: Option<CompactedSize>,
    /// The messages that left.
    left: Option<CompactedPart>,
    /// The summary that stands for them.
    summary: Option<String>,
    /// The model that wrote it.
    summarised_by: Option<Summariser>,
    /// The number of results that are shown in short form.
    results: Option<u64>,
    /// The position in the session.
    seq: u64,
    /// When it happened (RFC 3339).
    at: String,
}

/// A size of a context.
#[derive(ToSchema)]
struct CompactedSize {
    /// The number of messages; absent if the vendor compacted.
    messages: Option<u64>,
    /// The tokens.
    tokens: u64,
}

/// The messages that left a context.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct CompactedPart {
    /// Their number.
    messages: u64,
    /// The oldest message of a person among them.
    from_seq: Option<u64>,
    /// The first message of a person behind them.
    to_seq: Option<u64>,
}

/// The model that wrote a summary.
#[derive(ToSchema)]
struct Summariser {
    /// The provider.
    provider: String,
    /// The model.
    model: String,
    /// The tokens.
    tokens: Option<u64>,
    /// The cost in US dollars.
    cost: Option<f64>,
}

/// `system:message`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SystemMessage {
    /// The kind of notice.
    code: String,
    /// The turn that it concerns.
    turn: u64,
    /// Of a retry: the next attempt.
    attempt: Option<u64>,
    /// Of a retry: the last attempt.
    max_attempts: Option<u64>,
    /// Of a retry: the wait before it.
    delay_ms: Option<u64>,
    /// Of a retry: the code of the error.
    cause: Option<String>,
}

/// `system:sandbox`.
#[derive(ToSchema)]
struct SystemSandbox {
    /// The sandbox of the installation.
    sandbox: SandboxNow,
}

/// The sandbox of the installation.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct SandboxNow {
    /// The runtime.
    #[schema(value_type = word_list::SandboxKind)]
    kind: String,
    /// The hosts that commands may reach.
    network: String,
    /// True if sandboxes work.
    ok: bool,
    /// The mechanism that enforces each limit.
    limits: Option<BTreeMap<String, String>>,
    /// In words.
    detail: Option<String>,
    /// Present while the disk is nearly full.
    disk_pressure: Option<DiskPressure>,
}

/// `mcp:installation`.
#[derive(ToSchema)]
struct McpInstallation {
    /// The server.
    server: String,
    /// Progress of its package's installation.
    #[schema(value_type = word_list::InstallStateName)]
    state: String,
}

/// `mcp:health`.
#[derive(ToSchema)]
struct McpHealthNews {
    /// The server.
    server: String,
    /// Its health.
    #[schema(value_type = word_list::ServerStatus)]
    status: String,
    /// The fault.
    error: Option<String>,
}

/// News of an MCP server.
#[derive(ToSchema)]
struct ServerNews {
    /// The server.
    name: String,
}

/// `error`: the connection ends.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct ConnectionEnded {
    /// The stable code (docs/errors.md).
    code: String,
    /// The person who has to act.
    #[schema(value_type = Option<word_list::ErrorCategory>)]
    category: Option<String>,
    /// The id in the log.
    request_id: Option<String>,
}

/// The name of a session.
#[derive(ToSchema)]
struct SessionName {
    /// Its id.
    id: String,
}

/// An empty object.
#[derive(ToSchema)]
struct Nothing {}
