//! The one table of settings: key, environment names, kind, default, meaning.

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text but an empty one.
    Text,
    /// A text that is never shown, logged or quoted in a problem.
    Secret,
    /// `true` or `false`.
    Flag,
    /// A whole number between two bounds, both included.
    Whole(u64, u64),
    /// A number between two bounds, both included.
    Number(f64, f64),
    /// One of the listed words.
    OneOf(&'static [Word]),
    /// A Jinja2 template.
    Template,
    /// A host name or address, without scheme and port.
    Host,
    /// An `http` or `https` address.
    Url,
    /// A list of origins: scheme, host and port.
    Origins,
    /// A list of addresses or networks.
    Networks,
    /// Where the database is; may hold a password, so it is never quoted whole.
    Database,
}

/// One word of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Accepted.
    Is(&'static str),
    /// Accepted as another spelling of the second.
    Alias(&'static str, &'static str),
    /// Known, but not in this version.
    Later(&'static str),
}

/// What holds when nobody set the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// This value, spelled as in the environment.
    Is(&'static str),
    /// Nothing, or what other settings suggest; the text is for the documentation.
    Words(&'static str),
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// Its path in the file.
    pub key: &'static str,
    /// Its names in the environment, the first one winning.
    pub env: &'static [&'static str],
    /// Names that count only for one model provider: `(provider, name)`.
    pub vendor: &'static [(&'static str, &'static str)],
    /// What it accepts.
    pub kind: Kind,
    /// What holds without it.
    pub fallback: Fallback,
    /// What it does.
    pub doc: &'static str,
    /// The version that first had it.
    pub since: &'static str,
}

/// A name that CONTRACTS promises and this version refuses; `*` stands for any rest.
#[derive(Debug, Clone, Copy)]
pub struct Later {
    /// Its path in the file.
    pub key: &'static str,
    /// Its names in the environment.
    pub env: &'static [&'static str],
}

/// Other spellings of file keys, after camelCase has been undone.
pub(super) const KEY_ALIASES: &[(&str, &str)] =
    &[("agent.llm.system_prompt", "agent.llm.prompt_template")];

/// The definition of a key.
pub fn find(key: &str) -> Option<&'static Definition> {
    SETTINGS.iter().find(|definition| definition.key == key)
}

/// Lays the table out without a struct literal per line.
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

use Fallback::{Is, Words};
use Kind::{
    Database, Flag, Host, Networks, Number, OneOf, Origins, Secret, Template, Text, Url, Whole,
};

const U32: u64 = u32::MAX as u64;
const MIB: u64 = 1024 * 1024;
const LEVELS: &[Word] = &[
    Word::Is("trace"),
    Word::Is("debug"),
    Word::Is("info"),
    Word::Is("warn"),
    Word::Is("error"),
    Word::Alias("warning", "warn"),
];
const FORMATS: &[Word] = &[Word::Is("text"), Word::Is("json")];
const PROVIDERS: &[Word] = &[
    Word::Is("openai"),
    Word::Is("openai-compatible"),
    Word::Is("scripted"),
    Word::Alias("chatgpt", "openai"),
    Word::Later("anthropic"),
    Word::Later("claude"),
    Word::Later("gemini"),
    Word::Later("google"),
];
const DRIVERS: &[Word] = &[
    Word::Is("auto"),
    Word::Is("bubblewrap"),
    Word::Is("none"),
    Word::Later("docker"),
];
const AUTH_MODES: &[Word] = &[Word::Is("password"), Word::Is("none"), Word::Later("oidc")];

settings! { since "0.1":
    "runtime.log.level" ["SPL_LOG_LEVEL"] OneOf(LEVELS), Is("info"),
        "The least serious entries that are logged.";
    "runtime.log.output" ["SPL_LOG_OUTPUT"] Text, Is("stderr"),
        "Where the log goes: `stderr`, `stdout`, or the path of a file that is appended to.";
    "runtime.log.format" ["SPL_LOG_FORMAT"] OneOf(FORMATS), Is("text"),
        "Lines for people, or one JSON object a line.";
    "runtime.transports.http.enabled" ["SPL_HTTP_ENABLED"] Flag, Is("true"),
        "Whether the gateway listens at all.";
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
    "runtime.socket.ping_interval_ms" ["SPL_SOCKET_PING_INTERVAL_MS"] Whole(100, 3_600_000), Is("25000"),
        "Milliseconds between two heartbeats of a socket.";
    "runtime.socket.ping_timeout_ms" ["SPL_SOCKET_PING_TIMEOUT_MS"] Whole(100, 3_600_000), Is("20000"),
        "Milliseconds that a client has to answer a heartbeat.";
    "runtime.socket.max_payload" ["SPL_SOCKET_MAX_PAYLOAD"] Whole(1024, 100 * MIB), Is("1048576"),
        "Bytes of one transport packet or polling body.";
    "agent.name" ["SPL_AGENT_NAME" "AGENT_NAME"] Text, Is("sepal"),
        "The name under which the agent introduces itself.";
    "agent.version" ["SPL_AGENT_VERSION" "AGENT_VERSION"] Text, Words("the version of the program"),
        "The version under which the agent introduces itself.";
    "agent.chat.max_tokens" ["SPL_CHAT_MAX_TOKENS" "CHAT_MAX_TOKENS" "MAX_HISTORY_TOKENS"] Whole(0, U32), Is("30000"),
        "Tokens of history that the model is shown; 0 = as many as its window holds.";
    "agent.chat.max_messages" ["SPL_CHAT_MAX_MESSAGES"] Whole(0, U32), Is("50"),
        "Messages of history that the model is shown; 0 = no limit.";
    "agent.chat.max_llm_iterations" ["SPL_CHAT_MAX_ITERATIONS" "CHAT_MAX_ITERATIONS" "SPL_CHAT_MAX_LLM_ITERATIONS"] Whole(1, 1000), Is("25"),
        "Model requests that one turn may make.";
    "agent.llm.provider" ["SPL_LLM_PROVIDER" "LLM_PROVIDER"] OneOf(PROVIDERS),
        Words("`openai` with a key, `openai-compatible` with only a base URL, else `scripted`"),
        "Who runs the model; `scripted` follows a script and needs no key.";
    "agent.llm.api_key" ["SPL_LLM_API_KEY" "LLM_API_KEY"]
        / "openai" "OPENAI_API_KEY" / "anthropic" "ANTHROPIC_API_KEY" / "gemini" "GEMINI_API_KEY"
        Secret, Words("none"),
        "The provider's key. Prefer the environment to the file.";
    "agent.llm.base_url" ["SPL_LLM_BASE_URL" "LLM_BASE_URL"]
        / "openai" "OPENAI_BASE_URL" / "anthropic" "ANTHROPIC_BASE_URL" / "gemini" "GEMINI_BASE_URL"
        Url, Words("the provider's own"),
        "Where the provider's API is, with its version path.";
    "agent.llm.model" ["SPL_LLM_MODEL" "LLM_MODEL"] Text,
        Words("`gpt-4o` for `openai`, `scripted` for `scripted`; `openai-compatible` needs one"),
        "The model, by the provider's name for it.";
    "agent.llm.temperature" ["SPL_LLM_TEMPERATURE" "LLM_TEMPERATURE"] Number(0.0, 2.0), Words("not sent"),
        "How freely the model chooses its words; sent only when set.";
    "agent.llm.max_tokens" ["SPL_LLM_MAX_TOKENS" "LLM_MAX_TOKENS" "MAX_OUTPUT_TOKENS"] Whole(0, U32), Words("not sent"),
        "Tokens that one answer may have; sent only when set and not 0.";
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
    "agent.llm.scripted_pace_ms" ["SPL_LLM_SCRIPTED_PACE_MS"] Whole(0, 10_000), Is("15"),
        "Milliseconds between two pieces of the scripted model's answer.";
    "store.data_dir" ["SPL_DATA_DIR"] Text, Is("data"),
        "The folder that holds what outlives the process.";
    "store.database_url" ["SPL_DATABASE_URL" "DATABASE_URL"] Database, Words("`sqlite://<store.data_dir>/sepal.db`"),
        "The database.";
    "store.compression" ["SPL_ENABLE_CONVERSATION_COMPRESSION" "ENABLE_CONVERSATION_COMPRESSION"] Flag, Is("true"),
        "Whether stored conversations are compressed; either form is always readable.";
    "sandbox.driver" ["SPL_SANDBOX"] OneOf(DRIVERS), Is("auto"),
        "What seals tools in; `none` turns sandboxed tools off.";
    "sandbox.memory_mb" ["SPL_SANDBOX_MEMORY_MB"] Whole(32, 1_048_576), Is("512"),
        "Memory of one sandbox in MiB.";
    "sandbox.cpus" ["SPL_SANDBOX_CPUS"] Number(0.01, 1024.0), Is("0.5"),
        "Processor cores of one sandbox.";
    "sandbox.pids" ["SPL_SANDBOX_PIDS"] Whole(8, 4_194_304), Is("128"),
        "Processes and threads of one sandbox.";
    "sandbox.workspace_mb" ["SPL_SANDBOX_WORKSPACE_MB"] Whole(1, 1_048_576), Is("1024"),
        "Size of one workspace in MiB.";
    "sandbox.command_timeout_s" ["SPL_SANDBOX_COMMAND_TIMEOUT"] Whole(1, 86_400), Is("30"),
        "Seconds that one command may take.";
    "sandbox.max" ["SPL_SANDBOX_MAX"] Whole(1, 100_000), Is("100"),
        "Sandboxes that may run at the same time.";
    "sandbox.idle_minutes" ["SPL_SANDBOX_IDLE_MINUTES"] Whole(1, 525_600), Is("15"),
        "Minutes without a call after which a sandbox is stopped; its workspace stays.";
    "auth.mode" ["SPL_AUTH"] OneOf(AUTH_MODES), Is("password"),
        "How people sign in; `none` only when nobody else can reach the gateway.";
}

/// Shortens [`LATER`].
const fn later(key: &'static str, env: &'static [&'static str]) -> Later {
    Later { key, env }
}

/// What CONTRACTS section 4 names and this version does not have.
pub const LATER: &[Later] = &[
    later("runtime.transports.stdio.*", &["SPL_STDIO_*"]),
    later("agent.tool.*", &["SPL_TOOL_*"]),
    later("agent.approval", &["SPL_AGENT_APPROVAL"]),
    later(
        "agent.chat.compaction_strategy",
        &["SPL_CHAT_COMPACTION_STRATEGY"],
    ),
    later("agent.chat.request_budget", &["SPL_CHAT_REQUEST_BUDGET"]),
    later("agent.chat.session_budget", &["SPL_CHAT_SESSION_BUDGET"]),
    later(
        "agent.chat.tool_result_limit",
        &["SPL_CHAT_TOOL_RESULT_LIMIT"],
    ),
    later("agent.llm.providers.*", &[]),
    later("agent.llm.api", &["SPL_LLM_API"]),
    later("agent.connections.*", &["SPL_MCPS_*"]),
    later("store.redis_url", &["SPL_REDIS_URL", "REDIS_URL"]),
    later("store.allow_volatile", &["SPL_ALLOW_VOLATILE"]),
    later(
        "store.history_ttl_seconds",
        &["SPL_HISTORY_TTL_SECONDS", "HISTORY_TTL_SECONDS"],
    ),
    later("sandbox.image", &["SPL_SANDBOX_IMAGE"]),
    later("sandbox.runtime", &["SPL_SANDBOX_RUNTIME"]),
    later("sandbox.network", &["SPL_SANDBOX_NETWORK"]),
    later("sandbox.pool_size", &["SPL_SANDBOX_POOL_SIZE"]),
    later("auth.secret_key", &["SPL_SECRET_KEY"]),
    later("auth.oidc.*", &["SPL_OIDC_*"]),
    // OTEL_EXPORTER_OTLP_ENDPOINT is not ours alone: machines set it for every program.
    later(
        "telemetry.otlp_endpoint",
        &["SPL_OTEL_EXPORTER_OTLP_ENDPOINT"],
    ),
];
