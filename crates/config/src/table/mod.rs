//! The table of settings: key, environment variables, kind, default, meaning.
//!
//! `rows` holds the settings, `families` the sections whose members have user-chosen names.

mod families;
mod later;
mod policy;
mod rows;
mod words;

pub(super) use families::provider_kind;
pub use families::{CONTEXTS, Family, Field, FieldKind, OIDC, PROVIDERS, SERVERS};
pub use later::LATER;
pub use policy::RULES;
pub use rows::SETTINGS;

/// Every family.
pub const FAMILIES: &[Family] = &[PROVIDERS, CONTEXTS, SERVERS, OIDC, RULES];

/// The values that a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text that is not empty.
    Text,
    /// `provider/model`.
    Model,
    /// A text that is never shown, logged or quoted in a problem.
    Secret,
    /// `true` or `false`.
    Flag,
    /// An integer between two inclusive bounds.
    Whole(u64, u64),
    /// A number between two inclusive bounds.
    Number(f64, f64),
    /// One of the listed words.
    OneOf(&'static [Word]),
    /// Some of the listed words, in order of precedence.
    ListOf(&'static [Word]),
    /// The kind of a model provider, or the name of an entry of `agent.llm.providers`.
    Provider,
    /// A Jinja2 template.
    Template,
    /// A host name or address, without scheme and port.
    Host,
    /// An IP address with a port.
    Listen,
    /// An `http` or `https` address.
    Url,
    /// A list of origins: scheme, host and port.
    Origins,
    /// A list of addresses or networks.
    Networks,
    /// `none`, or a list of hosts that may be reached, each with a port where needed.
    Hosts,
    /// The address of a database; may hold a password, so it is never quoted or shown.
    Database,
    /// The address of a Redis server; may hold a password, so it is never quoted or shown.
    Redis,
    /// The address of an SMTP relay; may hold a password, so it is never quoted or shown.
    Smtp,
    /// HTTP headers; may hold a key, so they are never quoted or shown.
    Headers,
    /// Names with values, which are not secret.
    Attributes,
    /// Names with `http` or `https` addresses.
    NamedUrls,
    /// A list of public keys: as texts, or as files that hold one.
    PublicKeys,
    /// A list of texts.
    Texts,
}

/// A word of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// An accepted word.
    Is(&'static str),
    /// An alias of the second word.
    Alias(&'static str, &'static str),
    /// A word that only a later version accepts.
    Later(&'static str),
}

/// The value of a key that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// This value, spelled as in the environment.
    Is(&'static str),
    /// No value, or one derived from other settings; the text is for the documentation.
    Words(&'static str),
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// The path in the file.
    pub key: &'static str,
    /// The environment variables; the first one that is set takes precedence.
    pub env: &'static [&'static str],
    /// Variables that apply to one model provider only: `(provider, name)`.
    pub vendor: &'static [(&'static str, &'static str)],
    pub kind: Kind,
    /// The default.
    pub fallback: Fallback,
    pub doc: &'static str,
    /// The first version with the setting.
    pub since: &'static str,
}

/// A name that is reserved for a later version and refused by this one; `*` stands for any suffix.
#[derive(Debug, Clone, Copy)]
pub struct Later {
    /// The path in the file.
    pub key: &'static str,
    /// The environment variables.
    pub env: &'static [&'static str],
}

/// Other spellings of file keys, after conversion to snake case. Files of Saiki have `llm` at the top level
/// (S3.37).
pub(super) const KEY_ALIASES: &[(&str, &str)] = &[
    ("agent.llm.system_prompt", "agent.llm.prompt_template"),
    ("llm", "agent.llm"),
];

/// Finds the definition of a key.
pub fn find(key: &str) -> Option<&'static Definition> {
    SETTINGS.iter().find(|definition| definition.key == key)
}
