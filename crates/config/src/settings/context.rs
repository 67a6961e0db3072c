//! `agent.context`: what models read beside the conversation.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::read;

/// `agent.context`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Whether they read `AGENTS.md` and `CLAUDE.md` of the workspace.
    pub workspace_instructions: bool,
    /// KiB of each of these files.
    pub workspace_instructions_kb: u32,
    /// Everything else, by name.
    pub providers: BTreeMap<String, ContextProviderEntry>,
}

/// `agent.skills`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skills {
    /// Whether sessions have any.
    pub enabled: bool,
    /// Whether they have those of their workspace.
    pub workspace: bool,
    /// Descriptions in one request.
    pub max_offered: usize,
    /// Skills of one person, and of one tenant.
    pub max_kept: u64,
    /// KiB of one skill.
    pub max_kb: u64,
    /// Files of one skill.
    pub max_files: usize,
}

/// One entry of `agent.context.providers`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextProviderEntry {
    pub kind: ContextKind,
    /// The file, on the gateway's machine.
    #[serde(default)]
    pub path: Option<String>,
    /// How the file is read.
    #[serde(default)]
    pub role: ContextRole,
    /// Where the database is; may hold a password.
    #[serde(default)]
    pub database_url: Option<SecretString>,
    /// What it is asked.
    #[serde(default)]
    pub query: Option<String>,
    /// The address that is read.
    #[serde(default, deserialize_with = "read::parsed_option")]
    pub url: Option<Url>,
    /// What is sent with each request; may hold a key.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The parameter of the address that says what was asked.
    #[serde(default)]
    pub input_parameter: Option<String>,
    /// Which part of the answer counts.
    #[serde(default)]
    pub pointer: Option<String>,
    /// Records at most.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Of them only so many, those that have most to do with the question.
    #[serde(default)]
    pub relevant: Option<u32>,
    /// Only what is not older than so many seconds.
    #[serde(default)]
    pub max_age_s: Option<u32>,
    /// Whose sessions read it; empty = everybody's.
    #[serde(default)]
    pub tenants: Vec<String>,
    /// Where it stands; `None` = as is usual for its kind.
    #[serde(default)]
    pub position: Option<ContextPosition>,
}

impl ContextProviderEntry {
    /// Where it stands in a request: a file seldom changes, the others do.
    pub fn position(&self) -> ContextPosition {
        self.position.unwrap_or(match self.kind {
            ContextKind::File => ContextPosition::Before,
            ContextKind::Database | ContextKind::Rest => ContextPosition::After,
        })
    }
}

/// What a provider reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextKind {
    /// A file of the gateway's machine.
    File,
    /// The rows of a query.
    Database,
    /// The answer of an address.
    Rest,
}

/// How a file is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextRole {
    /// As part of the system prompt.
    System,
    /// As material.
    #[default]
    Material,
}

/// Where contexts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextPosition {
    /// Before the conversation.
    Before,
    /// Right before the newest question.
    After,
}
