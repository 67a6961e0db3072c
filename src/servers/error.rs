//! Why the registry was not changed, or not read.

use super::catalogue::tool_report::ToolReport;
use crate::mcp::config::{EntryProblem, FileError};
use crate::store;

/// A situation with the registry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The person may not do that.
    #[error("{0}")]
    NotAllowed(&'static str),
    /// The person's role may not add servers that are reached so.
    #[error("{0}")]
    NoTransport(String),
    /// The person may not let servers of theirs reach those hosts.
    #[error("{0}")]
    NoHosts(String),
    /// Fields are wrong, all of them named.
    #[error("the entry is not valid")]
    Invalid(Vec<EntryProblem>),
    /// The name is taken.
    #[error(
        "there is an MCP server `{0}` already, perhaps one that somebody has for themselves alone: \
         choose another name"
    )]
    Taken(String),
    /// The tenant has as many as it may.
    #[error(
        "a tenant has at most {0} MCP servers of its own: remove one that nobody uses, or ask an \
         installation admin for one that serves all tenants"
    )]
    Full(usize),
    /// The person has as many as they may.
    #[error("a person has at most {0} MCP servers of their own: remove one that you do not use")]
    OwnFull(usize),
    /// The entry is the operator's.
    #[error("the MCP server `{0}` comes from the operator's settings and cannot be changed here")]
    ReadOnly(String),
    /// There is none, for this person.
    #[error("there is no MCP server `{0}`")]
    NotFound(String),
    /// The tenant keeps no such bundle.
    #[error(
        "there is no bundle with the SHA-256 `{0}`: upload its file (bundles that no server uses are \
         removed after an hour)"
    )]
    NoBundle(String),
    /// It offers no such tool.
    #[error("the MCP server `{server}` has no tool `{tool}`")]
    NoTool { server: String, tool: String },
    /// The definition is another than the one that was decided about.
    #[error(
        "the definition of `{}` is another than the one that you decided about: read it, then decide \
         again with its `hash`", .0.name
    )]
    ChangedTool(Box<ToolReport>),
    /// What is asked of the package of a server cannot be done now.
    #[error("{0}")]
    Package(String),
    /// The newer version is another than the one that was shown.
    #[error(
        "the newer version of the package of `{0}` is another than the one that you looked at: look \
         at it, then decide again"
    )]
    ReplacedPackage(String),
    /// The file of the installation was not changed.
    #[error(transparent)]
    File(FileError),
    /// The records did not answer.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// One wrong field.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![EntryProblem {
            field: field.to_owned(),
            message: message.into(),
        }])
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Taken(name) => Self::Taken(name),
            FileError::Missing(name) => Self::NotFound(name),
            FileError::Broken(_) | FileError::Io(_) => Self::File(error),
        }
    }
}
