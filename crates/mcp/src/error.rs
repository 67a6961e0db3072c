//! Errors of MCP servers and of calls to them.

use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};

use super::elicitation::Address;
use super::mask::Cleaner;
use super::tasks::TaskEnd;
use super::wire::lenient;
use super::wire::oversized::{self, MAX_MESSAGE_BYTES, Size};
use sepal_core::domain::Fault;

/// The JSON-RPC error code that asks the person to open pages first (`URLElicitationRequired`).
const PAGE_REQUIRED: ErrorCode = ErrorCode(-32042);

/// An error of an MCP server or of a call to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server did not finish the handshake.
    #[error("the MCP server `{server}` did not complete the handshake: {reason}")]
    Handshake {
        server: String,
        /// The server's behavior, or the cause of the failure.
        reason: String,
    },
    /// The server does not know `initialize`: it speaks a later protocol version.
    #[error("the MCP server `{server}` knows no handshake (`initialize`)")]
    NoHandshake { server: String },
    /// The server cannot be reached: nothing that was sent to it ran.
    #[error("the MCP server `{server}` cannot be reached: {reason}")]
    Unreachable { server: String, reason: String },
    /// The person has to sign in to the server first; nothing that was sent to it ran.
    #[error(
        "the MCP server `{server}` needs to be connected: its person has to sign in to it{}",
        .scopes.as_deref().map_or(String::new(), |scopes| format!(" and allow `{scopes}`"))
    )]
    Unauthorized {
        server: String,
        /// The scopes that the server asks for, separated by spaces.
        scopes: Option<String>,
    },
    /// The person has to open pages first; nothing that was sent to the server ran.
    #[error("the MCP server wants its person to open a page first: {}", .addresses.iter().map(|it| it.url.as_str()).collect::<Vec<_>>().join(" "))]
    AddressRequired { addresses: Vec<Address> },
    /// The server refused the request before it began to run.
    #[error("the MCP server `{server}` did not take the call: {reason}")]
    NotTaken { server: String, reason: String },
    /// The server sent something else than an answer to the call, which may have run.
    #[error("the MCP server `{server}` gave no answer to the call: {reason}")]
    NoAnswer {
        server: String,
        /// The server's message, or the form of its answer.
        reason: String,
    },
    /// The answer is larger than the limit.
    #[error("the answer is too large: it has {size}, and at most {most} are read")]
    TooLarge {
        /// The size of the answer.
        size: Size,
        /// The limit, in bytes.
        most: usize,
    },
    /// The stream ended while a request ran; the call may have run.
    #[error("the MCP server `{server}` went away during the call")]
    Gone { server: String },
    /// The server did not answer in time and was told to cancel.
    #[error("no answer within {} s", .after.as_secs())]
    Timeout {
        after: Duration,
        /// True if the server confirmed within the grace time that the call is over.
        is_confirmed: bool,
    },
    /// We cancelled the call.
    #[error("the call was cancelled")]
    Cancelled {
        /// True if the server confirmed within the grace time that the call is over.
        is_confirmed: bool,
    },
    /// The task that the server created for the call ended without a result.
    #[error(transparent)]
    Task(TaskEnd),
    /// The server answered with a JSON-RPC error.
    #[error("the MCP server refused the call: {0}")]
    Refused(String),
}

impl From<TaskEnd> for Error {
    fn from(end: TaskEnd) -> Self {
        Self::Task(end)
    }
}

impl Error {
    /// Converts the JSON-RPC error that the server sent instead of an answer.
    pub(super) fn of_answer(server: &str, data: &ErrorData) -> Self {
        match oversized::size(data) {
            Some(size) => Self::TooLarge {
                size,
                most: MAX_MESSAGE_BYTES,
            },
            None if lenient::is_unreadable(data) => Self::NoAnswer {
                server: server.to_owned(),
                reason: data.message.to_string(),
            },
            None if data.code == PAGE_REQUIRED => match Address::required(data.data.as_ref()) {
                Ok(addresses) => Self::AddressRequired { addresses },
                Err(reason) => Self::Refused(format!("{} ({reason})", data.message)),
            },
            None => Self::Refused(data.message.to_string()),
        }
    }

    /// Returns the error with secrets masked in the server's words.
    pub(super) fn cleaned(mut self, cleaner: &Cleaner) -> Self {
        match &mut self {
            Self::Handshake { reason, .. }
            | Self::Unreachable { reason, .. }
            | Self::NotTaken { reason, .. }
            | Self::NoAnswer { reason, .. }
            | Self::Task(
                TaskEnd::Cancelled(reason)
                | TaskEnd::Failed(reason)
                | TaskEnd::Unreadable(reason)
                | TaskEnd::Odd(reason),
            )
            | Self::Refused(reason) => *reason = cleaner.clean(reason),
            Self::Unauthorized { scopes, .. } => {
                *scopes = scopes.take().map(|scopes| cleaner.clean(&scopes));
            }
            Self::AddressRequired { addresses } => {
                let is_clean = |address: &Address| cleaner.clean(&address.url) == address.url;
                if !addresses.iter().all(is_clean) {
                    let reason = "it wants a page opened with a secret of its own in the address";
                    return Self::Refused(reason.to_owned());
                }
                for address in addresses {
                    address.message = cleaner.clean(&address.message);
                }
            }
            Self::NoHandshake { .. }
            | Self::Gone { .. }
            | Self::TooLarge { .. }
            | Self::Timeout { .. }
            | Self::Task(TaskEnd::Forgotten)
            | Self::Cancelled { .. } => {}
        }
        self
    }

    /// Returns the fault class, which says who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unreachable { .. } => Fault::Transient,
            Self::Handshake { .. }
            | Self::NoHandshake { .. }
            | Self::NotTaken { .. }
            | Self::NoAnswer { .. }
            | Self::TooLarge { .. }
            | Self::Gone { .. }
            | Self::Timeout { .. }
            | Self::Task(_)
            | Self::Refused(_) => Fault::External,
            Self::Unauthorized { .. } | Self::AddressRequired { .. } | Self::Cancelled { .. } => {
                Fault::Validation
            }
        }
    }
}
