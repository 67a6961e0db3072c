//! `agent.context`: the context that models get beside the conversation.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::read;

/// `agent.context`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// True if models get `AGENTS.md` and `CLAUDE.md` of the workspace.
    pub workspace_instructions: bool,
    /// The most KiB that are read of each of these files.
    pub workspace_instructions_kb: u32,
    /// The other context providers, by name.
    pub providers: BTreeMap<String, ContextProviderEntry>,
}

/// `agent.skills`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skills {
    /// True if sessions have skills.
    pub enabled: bool,
    /// True if sessions get the skills of their workspace.
    pub workspace: bool,
    /// The most skills that one request describes.
    pub max_offered: usize,
    /// The most skills of one person, and of one tenant.
    pub max_kept: u64,
    /// The most KiB of one skill.
    pub max_kb: u64,
    /// The most files of one skill.
    pub max_files: usize,
}

/// One entry of `agent.context.providers`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextProviderEntry {
    pub kind: ContextKind,
    /// The path of the file on the gateway's machine.
    #[serde(default)]
    pub path: Option<String>,
    /// The role of the file.
    #[serde(default)]
    pub role: ContextRole,
    /// The address of the database; may hold a password.
    #[serde(default)]
    pub database_url: Option<SecretString>,
    /// The SQL query.
    #[serde(default)]
    pub query: Option<String>,
    /// The URL to read.
    #[serde(default, deserialize_with = "read::parsed_option")]
    pub url: Option<Url>,
    /// Headers of each request; may hold a key.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The URL parameter that receives the question.
    #[serde(default)]
    pub input_parameter: Option<String>,
    /// The JSON pointer to the relevant part of the response.
    #[serde(default)]
    pub pointer: Option<String>,
    /// The most records.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Keeps only this many records: those that are most relevant to the question.
    #[serde(default)]
    pub relevant: Option<u32>,
    /// The greatest age of a record, in seconds.
    #[serde(default)]
    pub max_age_s: Option<u32>,
    /// The tenants whose sessions get this context; empty = all.
    #[serde(default)]
    pub tenants: Vec<String>,
    /// The position in the request; `None` = the default of the kind.
    #[serde(default)]
    pub position: Option<ContextPosition>,
}

impl ContextProviderEntry {
    /// The position in a request. By default, files come first, because they seldom change.
    pub fn position(&self) -> ContextPosition {
        self.position.unwrap_or(match self.kind {
            ContextKind::File => ContextPosition::Before,
            ContextKind::Database | ContextKind::Rest => ContextPosition::After,
        })
    }
}

/// The source of a context provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextKind {
    /// A file on the gateway's machine.
    File,
    /// The rows of a query.
    Database,
    /// The response of a URL.
    Rest,
}

/// The role of a file in the request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextRole {
    /// As part of the system prompt.
    System,
    /// As reference material.
    #[default]
    Material,
}

/// The position of a context in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextPosition {
    /// Before the conversation.
    Before,
    /// Right before the newest question.
    After,
}
