//! The sections whose members have user-chosen names: model providers, context providers, MCP servers and OpenID
//! providers.

use super::rows::COMPACTION_THRESHOLD;
use super::words::{CACHE_TTLS, COMPACTIONS, FLAVOURS, PROVIDER_KINDS, SCIM_LINKS};
use super::{Kind, Word};

/// A section whose members are named by the operator.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// The path, as keys are compared.
    pub key: &'static str,
    /// The path with a member, as people write it.
    pub shown: &'static str,
    /// The purpose of the section.
    pub doc: &'static str,
    /// The fields of a member.
    pub fields: &'static [Field],
    /// The variables, perhaps with `<n>` for an index from 0, and the meaning of each.
    pub env: &'static [(&'static str, &'static str)],
}

/// One field of a member.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name; camelCase and `snake_case` are both accepted.
    pub name: &'static str,
    pub kind: FieldKind,
    pub doc: &'static str,
}

/// The values that a field accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldKind {
    /// The values of a setting of this kind.
    One(Kind),
    /// Texts; separated by commas or spaces if they are in one text.
    Texts,
    /// Texts, separated by spaces if they are in one text; or a JSON list.
    Arguments,
    /// Texts by name; never shown.
    Map,
}

impl Kind {
    /// The kinds of providers.
    pub(crate) const PROVIDER_KIND: Self = Self::OneOf(PROVIDER_KINDS);
    /// The APIs of a provider.
    pub(crate) const FLAVOUR: Self = Self::OneOf(FLAVOURS);
    /// The lifetimes of prompt cache entries.
    pub(crate) const CACHE_TTL: Self = Self::OneOf(CACHE_TTLS);
}

/// The canonical name of a provider's kind, with aliases resolved (D12).
pub(crate) fn provider_kind(name: &str) -> Option<&'static str> {
    let given = name.trim().to_ascii_lowercase();
    PROVIDER_KINDS.iter().find_map(|word| match word {
        Word::Is(kind) => (*kind == given).then_some(*kind),
        Word::Alias(alias, kind) => (*alias == given).then_some(*kind),
        Word::Later(_) => None,
    })
}

const fn field(name: &'static str, kind: FieldKind, doc: &'static str) -> Field {
    Field { name, kind, doc }
}

const TEXT: FieldKind = FieldKind::One(Kind::Text);
const FLAG: FieldKind = FieldKind::One(Kind::Flag);
const TRANSPORTS: FieldKind = FieldKind::One(Kind::OneOf(&[
    Word::Is("stdio"),
    Word::Is("stdio-docker"),
    Word::Is("http"),
    Word::Is("sse"),
]));
const WORKSPACES: FieldKind = FieldKind::One(Kind::OneOf(&[
    Word::Is("none"),
    Word::Is("ro"),
    Word::Is("rw"),
]));

/// `agent.llm.providers`.
pub const PROVIDERS: Family = Family {
    key: "agent.llm.providers",
    shown: "agent.llm.providers.<name>",
    doc: "Providers that exist beside each other, so that a session may choose. A vendor's variables \
          make or fill the entry of that vendor, and `agent.llm.*` the entry of the default provider; \
          an entry is needed only for what those cannot say. `mistral` and `cohere` are names that \
          say where they are: entries of the kind `openai-compatible` with address and model filled in.",
    fields: &[
        field(
            "kind",
            FieldKind::One(Kind::PROVIDER_KIND),
            "What it speaks; without it the entry's name says so.",
        ),
        field("api_key", FieldKind::One(Kind::Secret), "Its key."),
        field(
            "api_keys",
            FieldKind::One(Kind::Secret),
            "Further keys, separated by commas, for when those before them are out.",
        ),
        field(
            "base_url",
            FieldKind::One(Kind::Url),
            "Where its API is, with its version path; `openai-compatible` needs it.",
        ),
        field(
            "api",
            FieldKind::One(Kind::FLAVOUR),
            "Which of OpenAI's interfaces it is spoken to in; `auto` is Responses at OpenAI's own address and Chat Completions anywhere else.",
        ),
        field(
            "cache_ttl",
            FieldKind::One(Kind::CACHE_TTL),
            "How long its prompt cache keeps what it is given, where that can be chosen.",
        ),
        field(
            "compaction",
            FieldKind::One(Kind::OneOf(COMPACTIONS)),
            "Who makes room in the context of its models: `sepal`, or `vendor` at Anthropic and in OpenAI's Responses.",
        ),
        field(
            "compaction_threshold",
            FieldKind::One(COMPACTION_THRESHOLD),
            "Tokens of input from which on the vendor compacts; Anthropic takes 50,000 at the least.",
        ),
        field(
            "fallback",
            TEXT,
            "What answers instead while it is out: `provider/model`, several separated by commas.",
        ),
        field(
            "models",
            FieldKind::Texts,
            "Models to offer beside those that it lists itself; the first is its default.",
        ),
        field(
            "context_window",
            FieldKind::One(Kind::Whole(1_024, u32::MAX as u64)),
            "Tokens that those of its models can read that the catalogue does not know; 32768 is assumed without it.",
        ),
        field(
            "context_windows",
            FieldKind::Texts,
            "The same for single models, as `model=tokens`; goes before the catalogue.",
        ),
        field(
            "max_outputs",
            FieldKind::Texts,
            "Tokens of the longest answer of single models, as `model=tokens`; goes before the catalogue.",
        ),
        field(
            "efforts",
            FieldKind::Texts,
            "How much single models think where a session says nothing else, as `model=effort`.",
        ),
        field(
            "prices",
            FieldKind::Texts,
            "What single models cost in US dollars per million tokens, as `model=input/output`, then perhaps `/cached`, `/cache write` and `/long cache write`; goes before the catalogue.",
        ),
    ],
    env: &[],
};

/// `agent.context.providers`.
pub const CONTEXTS: Family = Family {
    key: "agent.context.providers",
    shown: "agent.context.providers.<name>",
    doc: "What else models read (`docs/context.md`). Each is asked once for a turn; what fails is told in the \
          session, and the turn goes on without it. A name is 1 to 64 letters, digits, `_` or `-`.",
    fields: &[
        field(
            "kind",
            FieldKind::One(Kind::OneOf(&[
                Word::Is("file"),
                Word::Is("database"),
                Word::Is("rest"),
            ])),
            "What it reads.",
        ),
        field(
            "path",
            TEXT,
            "The file, on the gateway's machine, of at most 128 KiB (`file`).",
        ),
        field(
            "role",
            FieldKind::One(Kind::OneOf(&[Word::Is("system"), Word::Is("material")])),
            "Whether the file is part of the system prompt; `material` without it (`file`).",
        ),
        field(
            "database_url",
            FieldKind::One(Kind::Database),
            "Where the database is: SQLite or PostgreSQL (`database`).",
        ),
        field(
            "query",
            TEXT,
            "A `SELECT`, the newest rows first; `$1` is the tenant's id, `$2` the question (`database`).",
        ),
        field(
            "url",
            FieldKind::One(Kind::Url),
            "The address that is read; a private one only where `runtime.outgoing.allow` has it (`rest`).",
        ),
        field(
            "headers",
            FieldKind::Map,
            "What is sent with every request (`rest`).",
        ),
        field(
            "input_parameter",
            TEXT,
            "The parameter of the address in which the question is sent; without it it is not (`rest`).",
        ),
        field(
            "pointer",
            TEXT,
            "The JSON pointer of the part of the answer that counts, for example `/items` (`rest`).",
        ),
        field(
            "limit",
            FieldKind::One(Kind::Whole(1, 1_000)),
            "Records at most; 20 without it (`database`, `rest`).",
        ),
        field(
            "relevant",
            FieldKind::One(Kind::Whole(1, 1_000)),
            "Of the records only so many, those that share most words with the question.",
        ),
        field(
            "max_age_s",
            FieldKind::One(Kind::Whole(1, u32::MAX as u64)),
            "Only records whose `timestamp` is not older than so many seconds.",
        ),
        field(
            "tenants",
            FieldKind::Texts,
            "The ids of the tenants whose sessions read it; everybody's without it.",
        ),
        field(
            "position",
            FieldKind::One(Kind::OneOf(&[Word::Is("before"), Word::Is("after")])),
            "`before` the conversation, or `after` it, right before the newest question; without it files stand before it and the others after.",
        ),
    ],
    env: &[],
};

/// `agent.connections.mcpServers`.
pub const SERVERS: Family = Family {
    key: "agent.connections.mcp_servers",
    shown: "agent.connections.mcpServers.<id>",
    doc: "MCP servers whose tools sessions get. The common `{command, args}` shape loads as it is. \
          A name is 1 to 64 letters, digits, `_` or `-`. Where file and environment name the same \
          server, the environment wins field by field; a list that is given, even an empty one, replaces.",
    fields: &[
        field(
            "transport",
            TRANSPORTS,
            "How it is reached; without it `http` where there is a `url`, else `stdio`.",
        ),
        field(
            "enabled",
            FLAG,
            "Whether sessions get it; `true` without it.",
        ),
        field("description", TEXT, "What it is for."),
        field(
            "toolPrefix",
            TEXT,
            "What stands in front of its tools' names.",
        ),
        field("includeTools", FieldKind::Texts, "Only these of its tools."),
        field(
            "excludeTools",
            FieldKind::Texts,
            "Not these of its tools; goes before `includeTools`.",
        ),
        field(
            "timeout",
            FieldKind::One(Kind::Whole(1, 86_400)),
            "Seconds that one call may take.",
        ),
        field(
            "trusted",
            FLAG,
            "Whether the hints of its tools are believed.",
        ),
        field(
            "sampling",
            FLAG,
            "Whether it may ask the session's model for completions, each of which a person allows.",
        ),
        field("command", TEXT, "The program (`stdio`)."),
        field("args", FieldKind::Arguments, "Its arguments."),
        field("env", FieldKind::Map, "Its environment."),
        field("cwd", TEXT, "Where it starts, below `/workspace`."),
        field("containerImage", TEXT, "The image (`stdio-docker`)."),
        field(
            "containerEnv",
            FieldKind::Map,
            "The image's environment, beside `env`.",
        ),
        field(
            "containerMemory",
            FieldKind::One(Kind::Whole(16, 1_048_576)),
            "Its memory in MiB.",
        ),
        field(
            "containerCpu",
            FieldKind::One(Kind::Number(0.01, 1024.0)),
            "Its processor cores.",
        ),
        field(
            "network",
            FieldKind::One(Kind::Hosts),
            "The hosts that it may reach, such as `api.example.com`, `*.example.com` or `db.example.com:5432`; without a port, 443 and 80.",
        ),
        field(
            "workspace",
            WORKSPACES,
            "What it may do with the session's files.",
        ),
        field(
            "url",
            FieldKind::One(Kind::Url),
            "Where it is (`http`, `sse`).",
        ),
        field(
            "headers",
            FieldKind::Map,
            "What is sent with every request to it.",
        ),
    ],
    env: &[
        (
            "SPL_MCPS_<n>_ID",
            "the name; needed wherever another of its variables is set",
        ),
        ("SPL_MCPS_<n>_COMMAND", "`command`"),
        (
            "SPL_MCPS_<n>_ARGS",
            "`args`, separated by spaces, or a JSON list",
        ),
        ("SPL_MCPS_<n>_URL", "`url`"),
        (
            "SPL_MCPS_<n>_INCLUDE_TOOLS",
            "`includeTools`, separated by commas or spaces; a comma alone is an empty list",
        ),
        ("SPL_MCPS_<n>_EXCLUDE_TOOLS", "`excludeTools`, the same way"),
        (
            "SPL_MCPS_<n>_NETWORK",
            "`network`: hosts, separated by commas or spaces; a comma alone is none",
        ),
        ("SPL_MCPS_<n>_SAMPLING", "`sampling`"),
    ],
};

/// `auth.oidc`.
pub const OIDC: Family = Family {
    key: "auth.oidc",
    shown: "auth.oidc.<id>",
    doc: "Providers of OpenID Connect at which people sign in with their company's account (`docs/sign-in.md`), \
          beside those who have a password here. An id is 1 to 64 letters, digits, `_` or `-`, and part of the \
          address to which the provider sends people back: `/api/auth/oidc/<id>/callback`. The variables make \
          or fill the entry `company`.",
    fields: &[
        field(
            "name",
            TEXT,
            "What the button on the sign-in page says after “Continue with”; without it the id, and “your \
             company account” for an entry of the variables alone.",
        ),
        field(
            "issuer",
            FieldKind::One(Kind::Url),
            "The provider's address, as it names itself; https, unless it runs on this machine.",
        ),
        field(
            "client_id",
            TEXT,
            "The id that the provider gave this installation.",
        ),
        field(
            "client_secret",
            FieldKind::One(Kind::Secret),
            "The secret that goes with it; in the file best as `$NAME` of a variable.",
        ),
        field(
            "scopes",
            FieldKind::Texts,
            "What the provider is asked for; `openid profile email` without it.",
        ),
        field(
            "tenant",
            TEXT,
            "The name of the tenant that people come into; `default` without it and `tenants`.",
        ),
        field(
            "tenants",
            FieldKind::Texts,
            "Tenants by the domain of the mail address, as `domain=tenant`; others are not let in. The provider \
             has to say that the address is verified.",
        ),
        field(
            "groups_claim",
            TEXT,
            "The claim with a person's groups, by its name, or by its path with dots; `groups` without it.",
        ),
        field(
            "roles",
            FieldKind::Texts,
            "The roles of groups, as `group=role`; the highest counts, at each sign-in. A group with a space in its \
             name stands in the file, because the variable separates there.",
        ),
        field(
            "groups",
            FieldKind::Texts,
            "The groups here that groups of the provider fill at each sign-in, as `their group=our group`. Groups \
             that do not exist here are left out.",
        ),
        field(
            "same_groups",
            FLAG,
            "Whether each group of the provider fills the group of the same name; `false` without it.",
        ),
        field(
            "default_role",
            FieldKind::One(Kind::OneOf(&[
                Word::Is("viewer"),
                Word::Is("approver"),
                Word::Is("member"),
                Word::Is("admin"),
                Word::Is("owner"),
                Word::Is("none"),
            ])),
            "With `roles`, the role of people whom no group gives one; without, the role of new people. `none` \
             keeps them out; `member` without it.",
        ),
        field(
            "create_people",
            FLAG,
            "Whether a person is made when an account first signs in; `true` without it.",
        ),
        field(
            "scim_link",
            FieldKind::One(Kind::OneOf(SCIM_LINKS)),
            "How an account that signs in for the first time is that of a person whom the tenant's directory made \
             by SCIM (`docs/scim.md`): `sub` if it equals the person's `externalId`, `preferred_username` or a \
             verified `email` if it equals their `userName`. `none` without it: each account is a new person.",
        ),
        field(
            "step_up_acr",
            FieldKind::Texts,
            "How the provider has to check somebody who confirms a call there: its values of `acr`, the best first. \
             Any way counts without it.",
        ),
    ],
    env: &[
        ("SPL_OIDC_ISSUER", "`issuer`"),
        ("SPL_OIDC_CLIENT_ID", "`client_id`"),
        ("SPL_OIDC_CLIENT_SECRET", "`client_secret`"),
        ("SPL_OIDC_NAME", "`name`"),
        ("SPL_OIDC_SCOPES", "`scopes`, separated by commas or spaces"),
        ("SPL_OIDC_TENANT", "`tenant`"),
        ("SPL_OIDC_TENANTS", "`tenants`, the same way"),
        ("SPL_OIDC_GROUPS_CLAIM", "`groups_claim`"),
        ("SPL_OIDC_ROLES", "`roles`, the same way"),
        ("SPL_OIDC_GROUPS", "`groups`, the same way"),
        ("SPL_OIDC_SAME_GROUPS", "`same_groups`"),
        ("SPL_OIDC_DEFAULT_ROLE", "`default_role`"),
        ("SPL_OIDC_CREATE_PEOPLE", "`create_people`"),
        ("SPL_OIDC_SCIM_LINK", "`scim_link`"),
        (
            "SPL_OIDC_STEP_UP_ACR",
            "`step_up_acr`, the same way as `scopes`",
        ),
    ],
};
