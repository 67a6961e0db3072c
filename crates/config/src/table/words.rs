//! The words that settings with a choice accept.

use super::Word;

pub(super) const LEVELS: &[Word] = &[
    Word::Is("trace"),
    Word::Is("debug"),
    Word::Is("info"),
    Word::Is("warn"),
    Word::Is("error"),
    Word::Is("fatal"),
    Word::Is("panic"),
    Word::Alias("warning", "warn"),
    Word::Alias("silly", "trace"),
];
pub(super) const FORMATS: &[Word] = &[Word::Is("text"), Word::Is("json")];
/// The forms in which receivers get records of the audit.
pub(super) const RECORD_FORMATS: &[Word] = &[Word::Is("ocsf"), Word::Is("cef"), Word::Is("jsonl")];
/// The kinds of model providers (D12).
pub(super) const PROVIDER_KINDS: &[Word] = &[
    Word::Is("openai"),
    Word::Is("anthropic"),
    Word::Is("gemini"),
    Word::Is("openai-compatible"),
    Word::Is("scripted"),
    Word::Alias("chatgpt", "openai"),
    Word::Alias("claude", "anthropic"),
    Word::Alias("google", "gemini"),
];
/// The efforts. A number of tokens can be set for single models only.
pub(super) const EFFORTS: &[Word] = &[
    Word::Is("off"),
    Word::Is("minimal"),
    Word::Is("low"),
    Word::Is("medium"),
    Word::Is("high"),
    Word::Is("max"),
];
/// The choice between OpenAI's two APIs.
pub(super) const FLAVOURS: &[Word] = &[
    Word::Is("auto"),
    Word::Is("responses"),
    Word::Is("chat-completions"),
    Word::Alias("chat", "chat-completions"),
];
/// The parties that may search tools.
pub(super) const TOOL_SEARCHES: &[Word] =
    &[Word::Is("auto"), Word::Is("vendor"), Word::Is("sepal")];
/// The lifetimes of prompt cache entries.
pub(super) const CACHE_TTLS: &[Word] = &[Word::Is("5m"), Word::Is("1h")];
/// The parties that may compact the context of a provider's models.
pub(super) const COMPACTIONS: &[Word] = &[Word::Is("sepal"), Word::Is("vendor")];
pub(super) const APPROVALS: &[Word] = &[
    Word::Is("elicit"),
    Word::Is("web"),
    Word::Is("deny"),
    Word::Is("auto"),
];
/// The lowest roles that may add MCP servers for everybody in a tenant.
pub(super) const TENANT_ADDERS: &[Word] =
    &[Word::Is("nobody"), Word::Is("owner"), Word::Is("admin")];
/// The lowest roles that may add MCP servers for themselves alone.
pub(super) const ADDERS: &[Word] = &[
    Word::Is("nobody"),
    Word::Is("owner"),
    Word::Is("admin"),
    Word::Is("member"),
];
pub(super) const EDITS: &[Word] = &[Word::Is("ask-owner"), Word::Is("refuse")];
pub(super) const TITLES: &[Word] = &[Word::Is("first-words"), Word::Is("model")];
pub(super) const STRATEGIES: &[Word] = &[
    Word::Is("delete-old"),
    Word::Is("delete-middle"),
    Word::Is("none"),
    Word::Is("partial-summary"),
];
pub(super) const DRIVERS: &[Word] = &[
    Word::Is("auto"),
    Word::Is("docker"),
    Word::Is("bubblewrap"),
    Word::Is("none"),
];
pub(super) const AUTH_MODES: &[Word] = &[Word::Is("password"), Word::Is("none")];
/// The claims by which an account is bound to a person whom a directory made.
pub(super) const SCIM_LINKS: &[Word] = &[
    Word::Is("none"),
    Word::Is("sub"),
    Word::Is("preferred_username"),
    Word::Is("email"),
];
/// The roles of people who come by an account elsewhere; `none` lets nobody in.
pub(super) const ENTRY_ROLES: &[Word] = &[
    Word::Is("viewer"),
    Word::Is("member"),
    Word::Is("admin"),
    Word::Is("owner"),
    Word::Is("none"),
];
