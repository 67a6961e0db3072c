//! Describes why a server did not open, for people and for the model.

use super::reason;
use super::stderr::Said;
use crate::catalogue::entry::ServerEntry;
use crate::catalogue::installations::Unavailable;
use sepal_core::domain::{Code, Fault};
use sepal_mcp as mcp;
use sepal_mcp::Cleaner;
use sepal_mcp::config::{EntryProblem, Missing};
use sepal_net as net;
use sepal_sandbox as sandbox;
use sepal_store as store;

/// The error of an opening.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error("`{}`: {}", .0.field, .0.message)]
    Entry(EntryProblem),
    #[error("{0}")]
    Unsupported(&'static str),
    #[error(transparent)]
    Package(#[from] Unavailable),
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    #[error(transparent)]
    Server(#[from] mcp::Error),
    #[error(transparent)]
    Authority(#[from] net::AuthorityError),
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// A failed opening, without secrets, for people and for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub text: String,
    pub is_transient: bool,
    pub stderr: Vec<String>,
    pub reason: Option<&'static str>,
}

impl Failure {
    /// Returns the text for the model: the cause, the likely reason and the last ten lines of stderr.
    pub fn told(&self) -> String {
        let mut text = self.text.clone();
        if let Some(reason) = self.reason {
            text.push_str("\nLikely reason: ");
            text.push_str(reason);
        }
        if !self.stderr.is_empty() {
            let from = self.stderr.len().saturating_sub(10);
            let last = self.stderr.get(from..).unwrap_or_default().join("\n");
            text.push_str("\nIts last words on stderr:\n");
            text.push_str(&last);
        }
        text
    }
}

/// Makes the failure of a cause, without secrets.
pub(crate) fn failure(
    cause: &Cause,
    cleaner: &Cleaner,
    said: &Said,
    entry: &ServerEntry,
) -> Failure {
    let (code, is_transient) = match cause {
        Cause::Sandbox(error) => (
            Code::SandboxUnavailable,
            matches!(error.fault(), Fault::Transient),
        ),
        Cause::Server(mcp::Error::Unauthorized { .. }) => (Code::AuthorizationRequired, false),
        Cause::Server(error) => (Code::ToolFailed, matches!(error.fault(), Fault::Transient)),
        Cause::Store(_) => (Code::StoreUnavailable, true),
        Cause::Missing(_)
        | Cause::Entry(_)
        | Cause::Unsupported(_)
        | Cause::Package(_)
        | Cause::Authority(_) => (Code::ToolFailed, false),
    };
    if let Cause::Store(error) = cause {
        tracing::warn!(mcp.server = %entry.name, ?error, "The secrets of a server cannot be read");
    }
    let stderr = said.last();
    let text = cleaner.clean(&cause.to_string());
    let text = match cause {
        Cause::Server(_) => text,
        Cause::Store(_) => "the records do not answer".to_owned(),
        Cause::Missing(_)
        | Cause::Entry(_)
        | Cause::Unsupported(_)
        | Cause::Package(_)
        | Cause::Authority(_)
        | Cause::Sandbox(_) => {
            format!("the MCP server `{}` does not start: {text}", entry.name)
        }
    };
    Failure {
        code,
        reason: reason::likely(&text, &stderr),
        text,
        is_transient,
        stderr,
    }
}
