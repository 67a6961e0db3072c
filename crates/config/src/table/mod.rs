//! The one table of settings: key, environment names, kind, default, meaning.
//!
//! `rows` holds the settings, `families` the sections whose members have free names.

mod families;
mod later;
mod policy;
mod rows;
mod words;

pub(super) use families::provider_kind;
pub use families::{CONTEXTS, Family, Field, FieldKind, PROVIDERS, SERVERS};
pub use later::LATER;
pub use policy::RULES;
pub use rows::SETTINGS;

/// Every family.
pub const FAMILIES: &[Family] = &[PROVIDERS, CONTEXTS, SERVERS, RULES];

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text but an empty one.
    Text,
    /// `provider/model`.
    Model,
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
    /// Some of the listed words, in the order in which they count.
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
    /// Where the database is; may hold a password, so it is never quoted or shown.
    Database,
    /// Where Redis is; may hold a password, so it is never quoted or shown.
    Redis,
    /// Where an SMTP relay is; may hold a password, so it is never quoted or shown.
    Smtp,
    /// Headers of requests; may hold a key, so they are never quoted or shown.
    Headers,
    /// Names with values, for everybody to see.
    Attributes,
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
    pub kind: Kind,
    /// What holds without it.
    pub fallback: Fallback,
    pub doc: &'static str,
    /// The version that first had it.
    pub since: &'static str,
}

/// A name that is reserved for a later version and refused by this one; `*` stands for any rest.
#[derive(Debug, Clone, Copy)]
pub struct Later {
    /// Its path in the file.
    pub key: &'static str,
    /// Its names in the environment.
    pub env: &'static [&'static str],
}

/// Other spellings of file keys, after camelCase has been undone. Files of Saiki have `llm` at the top
/// (S3.37).
pub(super) const KEY_ALIASES: &[(&str, &str)] = &[
    ("agent.llm.system_prompt", "agent.llm.prompt_template"),
    ("llm", "agent.llm"),
];

/// The definition of a key.
pub fn find(key: &str) -> Option<&'static Definition> {
    SETTINGS.iter().find(|definition| definition.key == key)
}
