//! Errors of changing and reading the registry.

use super::catalogue::tool_report::ToolReport;
use sepal_mcp::config::{EntryProblem, FileError};
use sepal_store as store;

/// An error of the registry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller may not do this.
    #[error("{0}")]
    NotAllowed(&'static str),
    /// The caller's role may not add servers with this transport.
    #[error("{0}")]
    NoTransport(String),
    /// The caller may not let their own servers reach these hosts.
    #[error("{0}")]
    NoHosts(String),
    /// Fields are invalid; all of them are named.
    #[error("the entry is not valid")]
    Invalid(Vec<EntryProblem>),
    /// The name is taken.
    #[error(
        "there is an MCP server `{0}` already, perhaps one that somebody has for themselves alone: \
         choose another name"
    )]
    Taken(String),
    /// The tenant has reached its limit of servers.
    #[error(
        "a tenant has at most {0} MCP servers of its own: remove one that nobody uses, or ask an \
         installation admin for one that serves all tenants"
    )]
    Full(usize),
    /// The person has reached their limit of servers.
    #[error("a person has at most {0} MCP servers of their own: remove one that you do not use")]
    OwnFull(usize),
    /// The entry comes from the operator's settings.
    #[error("the MCP server `{0}` comes from the operator's settings and cannot be changed here")]
    ReadOnly(String),
    /// There is no such server that this person can see.
    #[error("there is no MCP server `{0}`")]
    NotFound(String),
    /// The tenant stores no bundle with this SHA-256.
    #[error(
        "there is no bundle with the SHA-256 `{0}`: upload its file (bundles that no server uses are \
         removed after an hour)"
    )]
    NoBundle(String),
    /// The server offers no such tool.
    #[error("the MCP server `{server}` has no tool `{tool}`")]
    NoTool { server: String, tool: String },
    /// The tool's definition is not the one that the decision was about.
    #[error(
        "the definition of `{}` is another than the one that you decided about: read it, then decide \
         again with its `hash`", .0.name
    )]
    ChangedTool(Box<ToolReport>),
    /// The requested operation on a server's package is not possible now.
    #[error("{0}")]
    Package(String),
    /// The newer version of the package is not the one that was shown.
    #[error(
        "the newer version of the package of `{0}` is another than the one that you looked at: look \
         at it, then decide again"
    )]
    ReplacedPackage(String),
    /// `mcp-config.json` was not changed.
    #[error(transparent)]
    File(FileError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// An error about one invalid field.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
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
