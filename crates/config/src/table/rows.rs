//! All settings of this version.

use super::Fallback::{Is, Words};
use super::Kind::{
    Attributes, Database, Flag, Headers, Host, Hosts, ListOf, Listen, Model, NamedUrls, Networks,
    Number, OneOf, Origins, Provider, PublicKeys, Redis, Secret, Smtp, Template, Text, Texts, Url,
    Whole,
};
use super::words::{
    ADDERS, APPROVALS, AUTH_MODES, CACHE_TTLS, COMPACTIONS, DRIVERS, EDITS, EFFORTS, ENTRY_ROLES,
    FLAVOURS, FORMATS, LEVELS, RECORD_FORMATS, SCIM_LINKS, STRATEGIES, TENANT_ADDERS, TITLES,
    TOOL_SEARCHES,
};
use super::{Definition, Kind};

/// Builds the table without a struct literal per row.
macro_rules! settings {
    (since $since:literal: $($key:literal [$($env:literal)+] $(/ $provider:literal $vendor:literal)*
        $kind:expr, $fallback:expr, $doc:literal;)*) => {
        /// Every setting of this version, in the order of the documentation.
        pub const SETTINGS: &[Definition] = &[$(Definition {
            key: $key,
            env: &[$($env),+],
            vendor: &[$(($provider, $vendor)),*],
            kind: $kind,
            fallback: $fallback,
            doc: $doc,
            since: $since,
        }),*];
    };
}

const U32: u64 = u32::MAX as u64;
const MIB: u64 = 1024 * 1024;

/// The compaction thresholds that can be set, in input tokens.
pub(super) const COMPACTION_THRESHOLD: Kind = Whole(1_000, U32);

settings! { since "0.1":
    "runtime.log.level" ["SPL_LOG_LEVEL"] OneOf(LEVELS), Is("info"),
        "The least serious entries that are logged; `fatal`: what the process cannot go on with, and panics; `panic`: those alone; `silly` is another word for `trace`.";
    "runtime.log.output" ["SPL_LOG_OUTPUT"] Text, Is("stderr"),
        "Where the log goes: `stderr`, `stdout`, or the path of a file that is appended to.";
    "runtime.log.format" ["SPL_LOG_FORMAT"] OneOf(FORMATS), Is("text"),
        "Lines for people, or one JSON object a line.";
    "runtime.transports.stdio.enabled" ["SPL_STDIO_ENABLED"] Flag, Is("true"),
        "Whether `sepal agent` serves on standard input and output, and whether a start without a command means `sepal agent` if HTTP is off. `--daemon` and `--call` work either way.";
    "runtime.transports.stdio.buffer_size" ["SPL_STDIO_BUFFER_SIZE"] Whole(1024, 64 * MIB), Is("8192"),
        "Bytes that are read from standard input at once.";
    "runtime.transports.debug" ["SPL_MCP_DEBUG"] Flag, Is("false"),
        "Whether each message of MCP clients to the agent (`/mcp`, `/sse` with `/message`, standard input) and its answer are logged at `debug`, without what looks like a secret.";
    "runtime.transports.http.enabled" ["SPL_HTTP_ENABLED"] Flag, Is("true"),
        "Whether the gateway listens; a file that turns it off means `sepal agent`.";
    "runtime.transports.http.host" ["SPL_HTTP_HOST" "HOST"] Host,
        Words("`localhost`; in a container `0.0.0.0`, unless `auth.mode` is `none`"),
        "The address or name to listen on.";
    "runtime.transports.http.port" ["SPL_HTTP_PORT" "PORT"] Whole(0, 65535), Is("3000"),
        "The port to listen on; 0 takes any free one.";
    "runtime.http.public_url" ["SPL_PUBLIC_URL"] Url, Words("none"),
        "The address under which people reach the gateway, when it is not the one it listens on.";
    "runtime.http.allowed_origins" ["SPL_ALLOWED_ORIGINS"] Origins, Words("the same origin only"),
        "Pages of other origins that may call the gateway from a browser.";
    "runtime.http.trusted_proxies" ["SPL_TRUSTED_PROXIES"] Networks, Words("none"),
        "Proxies whose forwarding headers are believed.";
    "runtime.outgoing.allow" ["SPL_OUTGOING_ALLOW"] Networks, Words("none"),
        "Private addresses that tenants may name as a provider, an MCP server or a webhook; all others of this machine and its networks are refused.";
    "runtime.limits.commands_per_socket" ["SPL_LIMIT_COMMANDS_PER_SOCKET"] Whole(0, U32), Is("5"),
        "Unanswered commands that a socket may have; 0 = no limit.";
    "runtime.limits.frame_bytes" ["SPL_LIMIT_FRAME_BYTES"] Whole(0, U32), Is("1048576"),
        "Bytes that one message of a client may have; 0 = no limit.";
    "runtime.limits.connects_per_minute" ["SPL_LIMIT_CONNECTS_PER_MINUTE"] Whole(0, U32), Is("120"),
        "Failed handshakes per minute and address; 0 = no limit.";
    "runtime.limits.sockets_per_user" ["SPL_LIMIT_SOCKETS_PER_USER"] Whole(0, U32), Is("50"),
        "Sockets that one user may have open; 0 = no limit.";
    "runtime.limits.sockets" ["SPL_LIMIT_SOCKETS"] Whole(0, U32), Is("10000"),
        "Sockets in all; 0 = no limit.";
    "runtime.limits.sockets_per_tenant" ["SPL_LIMIT_SOCKETS_PER_TENANT"] Whole(0, U32), Words("three quarters of `runtime.limits.sockets`"),
        "Sockets that the people of one tenant may have open; 0 = no limit.";
    "runtime.limits.waiting_bytes_per_socket" ["SPL_LIMIT_WAITING_BYTES_PER_SOCKET"] Whole(0, U32), Is("4194304"),
        "Bytes of commands that may wait for one socket, where more than one waits; 0 = no limit.";
    "runtime.limits.waiting_bytes" ["SPL_LIMIT_WAITING_BYTES"] Whole(0, U32), Is("268435456"),
        "Bytes of commands that may wait for all sockets; 0 = no limit.";
    "runtime.limits.waiting_bytes_per_user" ["SPL_LIMIT_WAITING_BYTES_PER_USER"] Whole(0, U32), Words("a quarter of `runtime.limits.waiting_bytes`"),
        "Bytes of commands that may wait for the sockets of one user; 0 = no limit.";
    "runtime.limits.waiting_bytes_per_tenant" ["SPL_LIMIT_WAITING_BYTES_PER_TENANT"] Whole(0, U32), Words("three quarters of `runtime.limits.waiting_bytes`"),
        "Bytes of commands that may wait for the sockets of one tenant; 0 = no limit.";
    "runtime.limits.sessions" ["SPL_LIMIT_SESSIONS"] Whole(0, U32), Is("10000"),
        "Sessions in memory; 0 = no limit. One that nobody uses leaves memory, and earlier where another needs its room.";
    "runtime.limits.sessions_per_user" ["SPL_LIMIT_SESSIONS_PER_USER"] Whole(0, U32), Words("a quarter of `runtime.limits.sessions`"),
        "Sessions of one user in memory; 0 = no limit.";
    "runtime.limits.sessions_per_tenant" ["SPL_LIMIT_SESSIONS_PER_TENANT"] Whole(0, U32), Words("three quarters of `runtime.limits.sessions`"),
        "Sessions of one tenant in memory; 0 = no limit.";
    "runtime.limits.requests_per_minute" ["SPL_LIMIT_REQUESTS_PER_MINUTE"] Whole(0, U32), Is("6000"),
        "Requests that one user may send to the REST door in a minute; 0 = no limit.";
    "runtime.limits.new_sessions_per_user" ["SPL_LIMIT_NEW_SESSIONS_PER_USER"] Whole(0, U32), Is("120"),
        "Sessions that one user may create in a minute; 0 = no limit.";
    "runtime.limits.new_sessions_per_tenant" ["SPL_LIMIT_NEW_SESSIONS_PER_TENANT"] Whole(0, U32), Is("1200"),
        "Sessions that the people of one tenant may create in a minute; 0 = no limit.";
    "runtime.limits.sandboxes_per_user" ["SPL_LIMIT_SANDBOXES_PER_USER"] Whole(0, U32), Words("a quarter of `sandbox.max`"),
        "Sandboxes that may run for one user; 0 = no limit but `sandbox.max`.";
    "runtime.limits.sandboxes_per_tenant" ["SPL_LIMIT_SANDBOXES_PER_TENANT"] Whole(0, U32), Words("three quarters of `sandbox.max`"),
        "Sandboxes that may run for the people of one tenant; 0 = no limit but `sandbox.max`.";
    "runtime.limits.questions" ["SPL_LIMIT_QUESTIONS"] Whole(0, U32), Is("1000"),
        "Questions to the agent as an MCP server (`/mcp`, `/message`) that are being answered; 0 = no limit.";
    "runtime.limits.questions_per_user" ["SPL_LIMIT_QUESTIONS_PER_USER"] Whole(0, U32), Words("a quarter of `runtime.limits.questions`"),
        "Those of one user; 0 = no limit.";
    "runtime.limits.questions_per_tenant" ["SPL_LIMIT_QUESTIONS_PER_TENANT"] Whole(0, U32), Words("three quarters of `runtime.limits.questions`"),
        "Those of one tenant; 0 = no limit.";
    "runtime.limits.streams" ["SPL_LIMIT_STREAMS"] Whole(0, U32), Is("2000"),
        "Connections and event streams of MCP clients (`/mcp`, `/sse`); 0 = no limit. A client that listens beside its connection has two.";
    "runtime.limits.streams_per_user" ["SPL_LIMIT_STREAMS_PER_USER"] Whole(0, U32), Words("a quarter of `runtime.limits.streams`"),
        "Those of one user; 0 = no limit.";
    "runtime.limits.streams_per_tenant" ["SPL_LIMIT_STREAMS_PER_TENANT"] Whole(0, U32), Words("three quarters of `runtime.limits.streams`"),
        "Those of one tenant; 0 = no limit.";
    "runtime.limits.connections" ["SPL_LIMIT_CONNECTIONS"] Whole(0, U32), Is("20000"),
        "Open HTTP connections, sockets among them; 0 = no limit.";
    "runtime.limits.connections_per_address" ["SPL_LIMIT_CONNECTIONS_PER_ADDRESS"] Whole(0, U32), Words("a tenth of `runtime.limits.connections`"),
        "Those of one address; 0 = no limit. Loopback and trusted proxies have none of their own: of each client behind such a proxy, as many requests may run.";
    "runtime.limits.body_seconds" ["SPL_LIMIT_BODY_SECONDS"] Whole(0, 86_400), Is("60"),
        "Seconds that the body of a request may take, and one more for each KiB of it that came; 0 = no limit.";
    "runtime.limits.attachment_mb" ["SPL_LIMIT_ATTACHMENT_MB"] Whole(0, 100), Is("20"),
        "MiB of one file that people attach to a message; 0 = nobody attaches anything. Images are kept smaller than they came.";
    "runtime.limits.attachments_mb_per_session" ["SPL_LIMIT_ATTACHMENTS_MB_PER_SESSION"] Whole(0, 100_000), Is("200"),
        "MiB of attachments that one session keeps, those that tools return among them.";
    "runtime.limits.upload_mb" ["SPL_LIMIT_UPLOAD_MB"] Whole(0, 100_000), Is("100"),
        "MiB of one file that people upload into a session's workspace; 0 = nobody uploads anything. The workspace has a limit of its own.";
    "runtime.socket.ping_interval_ms" ["SPL_SOCKET_PING_INTERVAL_MS"] Whole(100, 3_600_000), Is("25000"),
        "Milliseconds between two heartbeats of a socket.";
    "runtime.socket.ping_timeout_ms" ["SPL_SOCKET_PING_TIMEOUT_MS"] Whole(100, 3_600_000), Is("20000"),
        "Milliseconds that a client has to answer a heartbeat.";
    "runtime.socket.max_payload" ["SPL_SOCKET_MAX_PAYLOAD"] Whole(1024, 100 * MIB), Is("1048576"),
        "Bytes of one transport packet or polling body.";
    "runtime.metrics.listen" ["SPL_METRICS_LISTEN"] Listen, Words("off"),
        "Where `/metrics` is answered without a key, for Prometheus: never where tenants reach it.";
    "agent.name" ["SPL_AGENT_NAME" "AGENT_NAME"] Text, Is("sepal"),
        "The name under which the agent introduces itself.";
    "agent.version" ["SPL_AGENT_VERSION" "AGENT_VERSION"] Text, Words("the version of the program"),
        "The version under which the agent introduces itself.";
    "agent.tool.name" ["SPL_TOOL_NAME" "TOOL_NAME"] Text, Is("process"),
        "The name of the one tool that the agent offers as an MCP server.";
    "agent.tool.description" ["SPL_TOOL_DESCRIPTION" "TOOL_DESCRIPTION"] Text,
        Is("Process tool for handling user queries with LLM"),
        "What the tool says of itself.";
    "agent.tool.argument_name" ["SPL_TOOL_ARGUMENT_NAME" "TOOL_ARGUMENT_NAME"] Text, Is("input"),
        "The name of the tool's one argument.";
    "agent.tool.argument_description" ["SPL_TOOL_ARGUMENT_DESCRIPTION" "TOOL_ARGUMENT_DESCRIPTION"] Text,
        Is("The user query to process"),
        "What the argument says of itself.";
    "agent.approval" ["SPL_AGENT_APPROVAL"] ListOf(APPROVALS), Is("elicit, web, deny"),
        "Who decides about calls of the agent as an MCP server, the first way that is possible: its client, a person in the page, nobody; `auto` lets everything run.";
    "agent.chat.max_tokens" ["SPL_CHAT_MAX_TOKENS" "CHAT_MAX_TOKENS" "MAX_HISTORY_TOKENS"] Whole(0, U32), Is("30000"),
        "Tokens of history that the model is shown; 0 = as many as its window holds.";
    "agent.chat.max_messages" ["SPL_CHAT_MAX_MESSAGES"] Whole(0, U32), Is("50"),
        "Messages of history that the model is shown; 0 = no limit.";
    "agent.chat.max_llm_iterations" ["SPL_CHAT_MAX_ITERATIONS" "CHAT_MAX_ITERATIONS" "SPL_CHAT_MAX_LLM_ITERATIONS"] Whole(1, 1000), Is("25"),
        "Model requests that one turn may make.";
    "agent.chat.max_same_calls" ["SPL_CHAT_MAX_SAME_CALLS"] Whole(0, 1000), Is("5"),
        "How often in a row one turn may make the very same calls while they give the same; once more, and they are not run, which the model reads. 0 = no limit.";
    "agent.chat.turn_timeout_s" ["SPL_CHAT_TURN_TIMEOUT" "CHAT_TURN_TIMEOUT"] Whole(0, 604_800), Is("3600"),
        "Seconds that a turn may go on without a person, at every door: since the message that began it, or since a person's last message or decision in it; while it waits for a decision, no time runs. An MCP client or `sepal agent --call` waits as long for an answer, approvals included. 0 = no limit.";
    "agent.chat.approval_expiry_s" ["SPL_CHAT_APPROVAL_EXPIRY" "CHAT_APPROVAL_EXPIRY"] Whole(0, 31_536_000), Is("0"),
        "Seconds that a call waits for a decision before it is rejected, which the model reads; 0 = it waits until somebody decides.";
    "agent.chat.edits_by_others" ["SPL_CHAT_EDITS_BY_OTHERS"] OneOf(EDITS), Is("ask-owner"),
        "What becomes of arguments that somebody changes who is asked about a call of another person: `ask-owner` lets them run once the owner of the session has said yes to them, too; `refuse` refuses the change.";
    "agent.chat.compaction_strategy" ["SPL_CHAT_COMPACTION_STRATEGY" "CHAT_COMPACTION_STRATEGY"] ListOf(STRATEGIES), Is("delete-middle, delete-old"),
        "What leaves the context if earlier turns do not fit; the ways are applied one after the other until the rest fits: `delete-old` drops the oldest turns, `delete-middle` turns between the first and the newest, `partial-summary` replaces the oldest turns with a summary that a model writes, `none` drops nothing (a request that does not fit the model's window fails, and `max_tokens` and `max_messages` do not count). Short results come before all of them. `sepal agent` begins with `delete-old`.";
    "agent.chat.summary_budget_tokens" ["SPL_CHAT_SUMMARY_BUDGET_TOKENS" "CHAT_SUMMARY_BUDGET_TOKENS"] Whole(0, U32), Is("100000"),
        "Tokens that one summary of `partial-summary` may take, question and answer and a second try together; what leaves is not summarised where that is not enough. 0 = no summaries.";
    "agent.chat.titles" ["SPL_CHAT_TITLES"] OneOf(TITLES), Is("first-words"),
        "Who gives sessions their titles: `first-words` takes those of the first message; `model` asks the cheapest model of the session's own provider once, after the first answer, which costs a few hundred tokens for each session. A title that a person gave stays.";
    "agent.chat.request_budget" ["SPL_CHAT_REQUEST_BUDGET" "CHAT_REQUEST_BUDGET"] Number(0.0, 1e9), Is("0.0"),
        "US dollars that one turn may cost, a person's message with everything that follows from it; 0 = no limit.";
    "agent.chat.session_budget" ["SPL_CHAT_SESSION_BUDGET" "CHAT_SESSION_BUDGET"] Number(0.0, 1e9), Is("0.0"),
        "US dollars that one session may cost, unless an admin of its tenant says otherwise; 0 = no limit.";
    "agent.context.workspace_instructions" ["SPL_CONTEXT_WORKSPACE_INSTRUCTIONS"] Flag, Is("true"),
        "Whether models read `AGENTS.md` and `CLAUDE.md` at the top of a session's workspace, once there may be files.";
    "agent.context.workspace_instructions_kb" ["SPL_CONTEXT_WORKSPACE_INSTRUCTIONS_KB"] Whole(1, 256), Is("32"),
        "KiB that models read of each of these files.";
    "agent.skills.enabled" ["SPL_SKILLS"] Flag, Is("true"),
        "Whether sessions have skills: folders with a `SKILL.md` that people keep, or that lie in a workspace (docs/skills.md).";
    "agent.skills.workspace" ["SPL_SKILLS_WORKSPACE"] Flag, Is("true"),
        "Whether models are told of the skills below `.skills`, `.claude/skills` and `.agents/skills` of a session's workspace, once there may be files.";
    "agent.skills.max_offered" ["SPL_SKILLS_MAX_OFFERED"] Whole(1, 500), Is("50"),
        "Skills that a model request describes; of the others it says the names.";
    "agent.skills.max_kept" ["SPL_SKILLS_MAX_KEPT"] Whole(1, 1000), Is("100"),
        "Skills that one person, and that a tenant, may keep.";
    "agent.skills.max_kb" ["SPL_SKILLS_MAX_KB"] Whole(16, 65_536), Is("8192"),
        "KiB that the files of one skill may have together, and that its archive may have.";
    "agent.skills.max_files" ["SPL_SKILLS_MAX_FILES"] Whole(1, 2000), Is("200"),
        "Files that one skill may have.";
    "agent.reviewer.model" ["SPL_REVIEWER_MODEL"] Model, Words("none; a person is always asked"),
        "The model that may say yes, in the place of the person, to calls that rules with `reviewed` ask for: `provider/model`. It reads the tool, the arguments and what the person said last, and can be wrong or be talked into a yes: open only calls to it whose harm you would bear (docs/rules.md).";
    "agent.reviewer.timeout_s" ["SPL_REVIEWER_TIMEOUT"] Whole(1, 600), Is("20"),
        "Seconds that it may take for one call, after which the person alone decides; they may decide at any time.";
    "agent.mcp_registry.enabled" ["SPL_MCP_REGISTRY_ENABLED"] Flag, Is("true"),
        "Whether those who may add MCP servers can look them up in a registry. It is asked only when somebody looks.";
    "agent.mcp_registry.url" ["SPL_MCP_REGISTRY_URL"] Url, Is("https://registry.modelcontextprotocol.io"),
        "The MCP registry, without `/v0.1`.";
    "agent.mcp_registry.file" ["SPL_MCP_REGISTRY_FILE"] Text, Words("none; the registry is asked"),
        "A file that is read in its place, for machines without internet: an answer of the registry's `/v0.1/servers`, a list of them, or a list of `server.json`.";
    "agent.mcp_roles.tenant.stdio" ["SPL_MCP_TENANT_STDIO"] OneOf(TENANT_ADDERS), Is("admin"),
        "The lowest role that may add an MCP server for everybody in their tenant, where it is a command or a package that runs in a sandbox. For all tenants, installation admins add servers; servers that are there already stay.";
    "agent.mcp_roles.tenant.stdio_docker" ["SPL_MCP_TENANT_STDIO_DOCKER"] OneOf(TENANT_ADDERS), Is("admin"),
        "The same for container images.";
    "agent.mcp_roles.tenant.http" ["SPL_MCP_TENANT_HTTP"] OneOf(TENANT_ADDERS), Is("admin"),
        "The same for remote servers.";
    "agent.mcp_roles.tenant.sse" ["SPL_MCP_TENANT_SSE"] OneOf(TENANT_ADDERS), Is("admin"),
        "The same for remote servers that speak the old HTTP with SSE.";
    "agent.mcp_roles.person.stdio" ["SPL_MCP_PERSON_STDIO"] OneOf(ADDERS), Is("member"),
        "The lowest role that may add an MCP server for themselves alone, where it is a command or a package that runs in a sandbox.";
    "agent.mcp_roles.person.stdio_docker" ["SPL_MCP_PERSON_STDIO_DOCKER"] OneOf(ADDERS), Is("admin"),
        "The same for container images.";
    "agent.mcp_roles.person.http" ["SPL_MCP_PERSON_HTTP"] OneOf(ADDERS), Is("member"),
        "The same for remote servers.";
    "agent.mcp_roles.person.sse" ["SPL_MCP_PERSON_SSE"] OneOf(ADDERS), Is("member"),
        "The same for remote servers that speak the old HTTP with SSE.";
    "agent.llm.provider" ["SPL_LLM_PROVIDER" "LLM_PROVIDER"] Provider,
        Words("the first of `openai`, `anthropic`, `gemini`, `mistral`, `cohere` with a key, `openai-compatible` with only a base URL, else `scripted`"),
        "Who runs the model unless a session chose otherwise: a kind, `mistral`, `cohere`, or a name of `agent.llm.providers`; `scripted` follows a script and needs no key.";
    "agent.llm.api_key" ["SPL_LLM_API_KEY" "LLM_API_KEY"]
        / "openai" "OPENAI_API_KEY" / "anthropic" "ANTHROPIC_API_KEY" / "gemini" "GEMINI_API_KEY"
        / "mistral" "MISTRAL_API_KEY" / "cohere" "COHERE_API_KEY"
        Secret, Words("none"),
        "The key of the default provider; a vendor's variable goes to that vendor. Prefer the environment to the file.";
    "agent.llm.api_keys" ["SPL_LLM_API_KEYS" "LLM_API_KEYS"] Secret, Words("none"),
        "Further keys of the default provider, separated by commas: they answer in their order while those before them are out, limited or without credit.";
    "agent.llm.base_url" ["SPL_LLM_BASE_URL" "LLM_BASE_URL"]
        / "openai" "OPENAI_BASE_URL" / "anthropic" "ANTHROPIC_BASE_URL" / "gemini" "GEMINI_BASE_URL"
        Url, Words("the provider's own"),
        "Where the default provider's API is, with its version path.";
    "agent.llm.api" ["SPL_LLM_API" "LLM_API"] OneOf(FLAVOURS), Is("auto"),
        "Which of OpenAI's interfaces the default provider is spoken to in; `auto` is Responses at OpenAI's own address and Chat Completions anywhere else.";
    "agent.llm.cache_ttl" ["SPL_LLM_CACHE_TTL" "LLM_CACHE_TTL"] OneOf(CACHE_TTLS), Is("5m"),
        "How long the default provider's prompt cache keeps what it is given: only Anthropic lets that be chosen, and writing for an hour costs more.";
    "agent.llm.compaction" ["SPL_LLM_COMPACTION" "LLM_COMPACTION"] OneOf(COMPACTIONS), Is("sepal"),
        "Who makes room in the context of the default provider's models: `sepal`, or `vendor` where the vendor can do it itself, which only Anthropic and OpenAI's Responses can.";
    "agent.llm.compaction_threshold" ["SPL_LLM_COMPACTION_THRESHOLD" "LLM_COMPACTION_THRESHOLD"] COMPACTION_THRESHOLD, Words("what Sepal's own limits say, at most three quarters of what fits the window"),
        "Tokens of input from which on the vendor compacts; Anthropic takes 50,000 at the least.";
    "agent.llm.model" ["SPL_LLM_MODEL" "LLM_MODEL"] Text,
        Words("`gpt-4o`, `claude-sonnet-4-5-20250929`, `gemini-2.0-flash-exp` or `scripted`; `openai-compatible` needs one"),
        "The default provider's model, by the provider's name for it.";
    "agent.llm.unpriced_request_usd" ["SPL_LLM_UNPRICED_REQUEST_USD"] Number(0.0, 1e6), Is("0.0"),
        "US dollars that budgets count for each request to a model whose price nobody knows; 0 = such a request is refused where a budget is set.";
    "agent.llm.temperature" ["SPL_LLM_TEMPERATURE" "LLM_TEMPERATURE"] Number(0.0, 2.0), Words("not sent"),
        "How freely the model chooses its words; sent only when set.";
    "agent.llm.effort" ["SPL_LLM_EFFORT" "LLM_EFFORT"] OneOf(EFFORTS), Words("as the model does by itself"),
        "How much models think before they answer, where neither session nor model says anything else; only sent when set.";
    "agent.llm.max_tokens" ["SPL_LLM_MAX_TOKENS" "LLM_MAX_TOKENS" "MAX_OUTPUT_TOKENS"] Whole(0, U32), Words("not sent; 8192 for `anthropic`, which asks for one"),
        "Tokens that one answer may have; sent only when set and not 0.";
    "agent.llm.context_window" ["SPL_LLM_CONTEXT_WINDOW" "LLM_CONTEXT_WINDOW"] Whole(1_024, U32), Words("32768 is assumed"),
        "Tokens that those models of the default provider can read that the catalogue does not know.";
    "agent.llm.defer_tools_percent" ["SPL_LLM_DEFER_TOOLS_PERCENT" "LLM_DEFER_TOOLS_PERCENT"] Whole(0, 100), Is("3"),
        "Percent of the model's window that the definitions of the servers' tools may take: above it they are not sent, and the model finds tools by search; 0 = they are always sent.";
    "agent.llm.tool_search" ["SPL_LLM_TOOL_SEARCH" "LLM_TOOL_SEARCH"] OneOf(TOOL_SEARCHES), Is("auto"),
        "Who searches tools whose definitions are not sent: `auto` is the vendor at Anthropic's and OpenAI's own addresses, for models that have a search, and Sepal anywhere else; `vendor` is the vendor behind a proxy too; `sepal` is always Sepal.";
    "agent.llm.prompt_template" ["SPL_LLM_PROMPT_TEMPLATE" "LLM_PROMPT_TEMPLATE"] Template,
        Is("You are a helpful assistant. {{input}}. Available tools: {{tools}}"),
        "The system prompt, a Jinja2 template. `system_prompt` is another name for it.";
    "agent.llm.retry.max_retries" ["SPL_LLM_RETRY_MAX_RETRIES" "LLM_RETRY_MAX_RETRIES"] Whole(0, 20), Is("3"),
        "How often a request that failed for a passing reason is repeated.";
    "agent.llm.retry.initial_backoff" ["SPL_LLM_RETRY_INITIAL_BACKOFF" "LLM_RETRY_INITIAL_BACKOFF"] Number(0.0, 3600.0), Is("1.0"),
        "Seconds before the first repetition.";
    "agent.llm.retry.max_backoff" ["SPL_LLM_RETRY_MAX_BACKOFF" "LLM_RETRY_MAX_BACKOFF"] Number(0.0, 3600.0), Is("30.0"),
        "The longest wait before a repetition, in seconds.";
    "agent.llm.retry.backoff_multiplier" ["SPL_LLM_RETRY_BACKOFF_MULTIPLIER" "LLM_RETRY_BACKOFF_MULTIPLIER"] Number(1.0, 100.0), Is("2.0"),
        "By how much each wait is longer than the one before.";
    "agent.llm.breaker.faults" ["SPL_LLM_BREAKER_FAULTS" "LLM_BREAKER_FAULTS"] Whole(0, 1000), Is("5"),
        "Passing faults in a row after which a provider is not asked for a while, and every request fails at once; one time-out is enough where nobody was answered meanwhile. 0 = it is always asked.";
    "agent.llm.breaker.pause" ["SPL_LLM_BREAKER_PAUSE" "LLM_BREAKER_PAUSE"] Number(0.1, 3600.0), Is("30.0"),
        "Seconds before one request tries whether such a provider is back; twice as long each time that it is not.";
    "agent.llm.fallback" ["SPL_LLM_FALLBACK" "LLM_FALLBACK"] Text, Words("none"),
        "What answers instead while the default provider is out, limited or without credit: `provider/model`, several separated by commas. The session says so, and pays that model's price.";
    "agent.llm.scripted_pace_ms" ["SPL_LLM_SCRIPTED_PACE_MS"] Whole(0, 10_000), Is("15"),
        "Milliseconds between two pieces of the scripted model's answer.";
    "agent.llm.local_servers" ["SPL_LLM_LOCAL_SERVERS"] NamedUrls,
        Is("ollama=http://localhost:11434/v1,lm-studio=http://localhost:1234/v1,llama-cpp=http://localhost:8080/v1,vllm=http://localhost:8000/v1"),
        "Model servers that the page looks for when an administrator adds a provider: each is asked for its list of models only. From a container the machine is `host.docker.internal`.";
    "store.data_dir" ["SPL_DATA_DIR"] Text, Is("data"),
        "The folder that holds what outlives the process.";
    "store.database_url" ["SPL_DATABASE_URL" "DATABASE_URL"] Database, Words("`sqlite://<store.data_dir>/sepal.db`"),
        "The database.";
    "store.redis_url" ["SPL_REDIS_URL" "REDIS_URL"] Redis, Words("none; everything is in the database"),
        "The Redis that keeps live sessions, shared by several gateways.";
    "store.allow_volatile" ["SPL_ALLOW_VOLATILE" "ALLOW_VOLATILE"] Flag, Is("false"),
        "Whether a Redis that may forget, without AOF or with eviction, is taken all the same.";
    "store.history_ttl_seconds" ["SPL_HISTORY_TTL_SECONDS" "HISTORY_TTL_SECONDS"] Whole(0, U32), Is("0"),
        "Seconds without activity after which a session in Redis is forgotten; 0 = never.";
    "store.compression" ["SPL_ENABLE_CONVERSATION_COMPRESSION" "ENABLE_CONVERSATION_COMPRESSION"] Flag, Is("true"),
        "Whether stored conversations are compressed; either form is always readable.";
    "sandbox.driver" ["SPL_SANDBOX"] OneOf(DRIVERS), Is("auto"),
        "What seals tools in; `none` turns sandboxed tools off.";
    "sandbox.image" ["SPL_SANDBOX_IMAGE"] Text, Words("`sepal/sandbox:<version>`"),
        "The image of a sandbox (`docker`).";
    "sandbox.runtime" ["SPL_SANDBOX_RUNTIME"] Text, Words("the engine's"),
        "The engine's runtime for sandboxes, for example `runsc` (`docker`).";
    "sandbox.network" ["SPL_SANDBOX_NETWORK"] Hosts, Is("none"),
        "The hosts that commands in a session's sandbox may reach, such as `pypi.org`, `*.example.com` or `db.example.com:5432`; without a port, 443 and 80.";
    "sandbox.network_on_request" ["SPL_SANDBOX_NETWORK_ON_REQUEST"] Hosts, Is("none"),
        "The hosts that people may let the commands of a session of theirs reach, by a rule for that session; everything else takes an administrator of the tenant.";
    "sandbox.docker_host" ["SPL_SANDBOX_DOCKER_HOST" "DOCKER_HOST"] Text, Words("the engine's own socket"),
        "Where the engine is, for example `unix:///run/docker.sock` (`docker`).";
    "sandbox.pool_size" ["SPL_SANDBOX_POOL_SIZE"] Whole(0, 1000), Is("2"),
        "Sandboxes that wait started for a session, from the first call of a tool on (`docker`).";
    "sandbox.memory_mb" ["SPL_SANDBOX_MEMORY_MB"] Whole(32, 1_048_576), Is("512"),
        "Memory of one sandbox in MiB.";
    "sandbox.cpus" ["SPL_SANDBOX_CPUS"] Number(0.01, 1024.0), Is("0.5"),
        "Processor cores of one sandbox.";
    "sandbox.pids" ["SPL_SANDBOX_PIDS"] Whole(8, 4_194_304), Is("128"),
        "Processes and threads of one sandbox.";
    "sandbox.workspace_mb" ["SPL_SANDBOX_WORKSPACE_MB"] Whole(1, 1_048_576), Is("1024"),
        "Size of one workspace in MiB.";
    "sandbox.min_free_mb" ["SPL_SANDBOX_MIN_FREE_MB"] Whole(0, 16_777_216), Is("512"),
        "MiB that stay free on the disks of data and workspaces: below, sandboxes are paused until there is room; 0 = never.";
    "sandbox.output_kb" ["SPL_SANDBOX_OUTPUT_KB"] Whole(0, 1024), Is("1024"),
        "KiB of what one command writes to stdout, and of stderr, that people can open and save; of longer output they see the beginning and the end. 0 = only those two.";
    "sandbox.command_timeout_s" ["SPL_SANDBOX_COMMAND_TIMEOUT"] Whole(1, 86_400), Is("30"),
        "Seconds that one command may take.";
    "sandbox.max" ["SPL_SANDBOX_MAX"] Whole(1, 100_000), Is("100"),
        "Sandboxes of this gateway that may run at the same time: each MCP server that runs in one counts, and warm ones too.";
    "sandbox.idle_minutes" ["SPL_SANDBOX_IDLE_MINUTES"] Whole(1, 525_600), Is("15"),
        "Minutes without a call after which a sandbox is stopped; its workspace stays.";
    "sandbox.checkpoints" ["SPL_SANDBOX_CHECKPOINTS"] Whole(0, 10_000), Is("200"),
        "Steps of the history of one session's workspace, each of which can be undone; 0 = no history is kept.";
    "sandbox.checkpoints_mb" ["SPL_SANDBOX_CHECKPOINTS_MB"] Whole(0, 100_000), Is("64"),
        "MiB of files' contents that are kept for the history of one session's workspace, in the database; 0 = no history is kept.";
    "sandbox.packages.enabled" ["SPL_PACKAGES"] Flag, Is("true"),
        "Whether packages of MCP servers (`npx`, `uvx` and the like) are installed; without, such entries are refused.";
    "sandbox.packages.npm_registry" ["SPL_NPM_REGISTRY"] Url, Is("https://registry.npmjs.org"),
        "Where packages of npm come from.";
    "sandbox.packages.pypi_index" ["SPL_PYPI_INDEX"] Url, Is("https://pypi.org/simple"),
        "Where Python packages come from: the address of an index as pip takes it.";
    "sandbox.packages.hosts" ["SPL_PACKAGES_HOSTS"] Text, Words("none; `files.pythonhosted.org` where the index is `pypi.org`"),
        "More hosts that an installation may reach beside the registry, where that keeps its files elsewhere; comma-separated.";
    "sandbox.packages.image" ["SPL_PACKAGES_IMAGE"] Text, Words("`sepal/packages:<version>`"),
        "The image in which packages are installed and run: that of the sandboxes with Node and Python (`docker`).";
    "sandbox.packages.memory_mb" ["SPL_PACKAGES_MEMORY_MB"] Whole(128, 1_048_576), Is("1024"),
        "Memory of one installation in MiB.";
    "sandbox.packages.size_mb" ["SPL_PACKAGES_SIZE_MB"] Whole(16, 1_048_576), Is("1024"),
        "What one installation may fill in MiB.";
    "sandbox.packages.bundle_mb" ["SPL_PACKAGES_BUNDLE_MB"] Whole(1, 256), Is("64"),
        "The size of a bundle (`.mcpb`) that may be uploaded, in MiB; what it unpacks to is held by `sandbox.packages.size_mb`.";
    "sandbox.packages.timeout_s" ["SPL_PACKAGES_TIMEOUT"] Whole(10, 86_400), Is("600"),
        "Seconds that one installation may take.";
    "auth.mode" ["SPL_AUTH"] OneOf(AUTH_MODES), Is("password"),
        "How people sign in; `none` only when nobody else can reach the gateway.";
    "auth.secret_key" ["SPL_SECRET_KEY"] Secret, Words("made once, `secret.key` in `store.data_dir`"),
        "What stored provider keys and secrets are sealed with; several gateways on one database share it.";
    "auth.former_secret_key" ["SPL_FORMER_SECRET_KEY"] Secret, Words("none"),
        "The secret key before `auth.secret_key`, until every gateway was started once with both (`docs/operations.md`).";
    "auth.proxy.header" ["SPL_AUTH_PROXY_HEADER"] Text, Words("none; no proxy signs people in"),
        "The header in which a proxy names the account that it let in, for example `X-Forwarded-User` or `Remote-User` (`docs/sign-in.md`). It counts only from `auth.proxy.addresses`.";
    "auth.proxy.addresses" ["SPL_AUTH_PROXY_ADDRESSES"] Networks, Words("none; needed with a header"),
        "The addresses from which that proxy connects, as the gateway sees them. From any other address the headers are ignored, whatever `X-Forwarded-For` says.";
    "auth.proxy.name" ["SPL_AUTH_PROXY_NAME"] Text, Is("proxy"),
        "The name of the proxy in accounts and in the audit. Accounts belong to it: under another name, everybody is somebody new.";
    "auth.proxy.email_header" ["SPL_AUTH_PROXY_EMAIL_HEADER"] Text, Words("none"),
        "The header with the mail address, for which the proxy vouches.";
    "auth.proxy.name_header" ["SPL_AUTH_PROXY_NAME_HEADER"] Text, Words("none"),
        "The header with the name that a new person gets; without it their account.";
    "auth.proxy.groups_header" ["SPL_AUTH_PROXY_GROUPS_HEADER"] Text, Words("none"),
        "The header with the groups, separated by `,` or `|`.";
    "auth.proxy.tenant" ["SPL_AUTH_PROXY_TENANT"] Text, Words("`default`, or by `auth.proxy.tenants`"),
        "The name of the tenant that people come into.";
    "auth.proxy.tenants" ["SPL_AUTH_PROXY_TENANTS"] Texts, Words("none"),
        "Tenants by the domain of the mail address, as `domain=tenant`; others are not let in.";
    "auth.proxy.roles" ["SPL_AUTH_PROXY_ROLES"] Texts, Words("none"),
        "The roles of groups, as `group=role`; the highest counts, at each sign-in.";
    "auth.proxy.groups" ["SPL_AUTH_PROXY_GROUPS"] Texts, Words("none"),
        "The groups here that the proxy's groups fill at each sign-in, as `their group=our group`.";
    "auth.proxy.same_groups" ["SPL_AUTH_PROXY_SAME_GROUPS"] Flag, Is("false"),
        "Whether each group of the proxy fills the group of the same name.";
    "auth.proxy.default_role" ["SPL_AUTH_PROXY_DEFAULT_ROLE"] OneOf(ENTRY_ROLES), Is("member"),
        "With `roles`, the role of people whom no group gives one; without, the role of new people. `none` keeps them out.";
    "auth.proxy.create_people" ["SPL_AUTH_PROXY_CREATE_PEOPLE"] Flag, Is("true"),
        "Whether a person is made when an account first signs in.";
    "auth.proxy.scim_link" ["SPL_AUTH_PROXY_SCIM_LINK"] OneOf(SCIM_LINKS), Is("none"),
        "How an account that comes in for the first time is that of a person whom the tenant's directory made by SCIM (`docs/scim.md`): `sub` if the account equals their `externalId`, `preferred_username` or `email` if its name (without `name_header` the account) or mail address equals their `userName`.";
    "auth.proxy.logout_url" ["SPL_AUTH_PROXY_LOGOUT_URL"] Url, Words("none; people stay signed in at the proxy"),
        "Where the browser goes after signing out here, for example the proxy's `/oauth2/sign_out`.";
    "notifications.first_retry" ["SPL_NOTIFICATIONS_FIRST_RETRY"] Number(0.01, 3600.0), Is("5.0"),
        "Seconds before a webhook or mail that failed is tried again; the waits after that are 6, 60, 360, 1440 and 3600 times as long, then it is given up.";
    "notifications.mail_delay" ["SPL_NOTIFICATIONS_MAIL_DELAY"] Number(0.0, 86_400.0), Is("60.0"),
        "Seconds that calls have waited before their person gets a mail: whoever decides before gets none.";
    "notifications.titles" ["SPL_NOTIFICATIONS_TITLES"] Flag, Is("false"),
        "Whether webhooks and mail tell the title of the session: it may be the first words of a message.";
    "notifications.smtp.url" ["SPL_SMTP_URL"] Smtp, Words("none; nobody gets mail"),
        "The relay that takes mail: `smtps://user:password@host` (TLS, port 465) or `smtp://…` (STARTTLS, port 587). Plain SMTP is spoken to this machine, and with `?tls=none`.";
    "notifications.smtp.from" ["SPL_SMTP_FROM"] Text, Words("none; needed with a relay"),
        "The sender of mail, for example `Sepal <sepal@example.org>`.";
    "audit.key" ["SPL_AUDIT_KEY"] Secret, Words("drawn once; the store keeps it sealed"),
        "The private key that signs the audit: Ed25519 in PEM (`openssl genpkey -algorithm ed25519`), or 64 hex digits. With a key from elsewhere, nobody who has the store alone can sign.";
    "audit.key_file" ["SPL_AUDIT_KEY_FILE"] Text, Words("none"),
        "A file with that key instead.";
    "audit.trusted_keys" ["SPL_AUDIT_TRUSTED_KEYS"] PublicKeys, Words("none"),
        "Former public keys of the audit, as `sepal audit key` printed them: in base64url, as PEM, or as a file with it. What they signed counts beside what the present key signs.";
    "audit.seal_minutes" ["SPL_AUDIT_SEAL_MINUTES"] Whole(1, 1440), Is("60"),
        "Minutes between two signatures of the audit, where something was added to it. A server that stops signs too.";
    "audit.retention_days" ["SPL_AUDIT_RETENTION_DAYS"] Whole(0, 36_500), Is("0"),
        "Days for which records of the audit are kept; 0 keeps them for ever. A signed record says what was removed.";
    "audit.arguments" ["SPL_AUDIT_ARGUMENTS"] Flag, Is("true"),
        "Whether the signed document of a session's decisions has the arguments of its calls for the session's owner. Their hashes are always there.";
    "audit.anchor.file" ["SPL_AUDIT_ANCHOR_FILE"] Text, Words("none"),
        "A file that each signature is appended to: on another machine, or one that can only be appended to.";
    "audit.anchor.webhook" ["SPL_AUDIT_ANCHOR_WEBHOOK"] Url, Words("none"),
        "An address that each signature is posted to.";
    "audit.anchor.webhook_secret" ["SPL_AUDIT_ANCHOR_WEBHOOK_SECRET"] Secret, Words("none; the messages are not signed"),
        "What signs these messages, as other webhooks: `whsec_` and 24 to 64 bytes in Base64.";
    "audit.anchor.mail" ["SPL_AUDIT_ANCHOR_MAIL"] Text, Words("none"),
        "A mail address that gets each signature, by `notifications.smtp`.";
    "audit.anchor.timestamp" ["SPL_AUDIT_ANCHOR_TIMESTAMP"] Url, Words("none"),
        "A time-stamp service (RFC 3161) that says when each signature existed.";
    "audit.siem.webhook" ["SPL_AUDIT_SIEM_WEBHOOK"] Url, Words("none"),
        "An address that each record of the audit is posted to.";
    "audit.siem.webhook_secret" ["SPL_AUDIT_SIEM_WEBHOOK_SECRET"] Secret, Words("none; the messages are not signed"),
        "What signs these messages.";
    "audit.siem.syslog" ["SPL_AUDIT_SIEM_SYSLOG"] Text, Words("none"),
        "A syslog receiver (RFC 5424) that gets each record: `tls://host:6514` or `tcp://host:601`.";
    "audit.siem.format" ["SPL_AUDIT_SIEM_FORMAT"] OneOf(RECORD_FORMATS), Is("ocsf"),
        "The form of records: `ocsf`, `cef`, or `jsonl`, the records as they are.";
    "telemetry.otlp_endpoint" ["SPL_OTEL_EXPORTER_OTLP_ENDPOINT" "OTEL_EXPORTER_OTLP_ENDPOINT"] Url, Words("none; nothing is traced"),
        "The collector that gets traces by OTLP over HTTP, for example `http://localhost:4318`; `/v1/traces` is added.";
    "telemetry.otlp_headers" ["SPL_OTEL_EXPORTER_OTLP_HEADERS" "OTEL_EXPORTER_OTLP_HEADERS"] Headers, Words("none"),
        "Headers that the collector is sent, such as its key.";
    "telemetry.service_name" ["SPL_OTEL_SERVICE_NAME" "OTEL_SERVICE_NAME"] Text,
        Words("`service.name` of the attributes below, else `sepal`"),
        "The name under which the gateway stands in traces (`service.name`).";
    "telemetry.resource_attributes" ["SPL_OTEL_RESOURCE_ATTRIBUTES" "OTEL_RESOURCE_ATTRIBUTES"] Attributes, Words("none"),
        "What traces say of this gateway beside its name and version, for example `deployment.environment.name=production`.";
}
