//! Why a person is not connected.

use crate::mcp::authorization::AuthorizationError;
use crate::store;

/// Why a person is not connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// They may only look.
    #[error("viewers connect to no servers")]
    NotAllowed,
    /// There is none, for this person.
    #[error("there is no MCP server `{0}`")]
    NotFound(String),
    /// It is none that people connect to.
    #[error("people do not connect to the MCP server `{0}`: {1}")]
    NotForPeople(String, &'static str),
    /// Something that was sent cannot be.
    #[error("{1}")]
    Invalid(&'static str, &'static str),
    /// They did not begin this, took too long, or it was used.
    #[error(
        "this answer belongs to no authorisation that you began here and that still waits: connect \
         again"
    )]
    Stale,
    /// They came back to another issuer's address.
    #[error(
        "this answer came to the address of another issuer than the one that you were sent to: \
         nothing was sent to it; connect again"
    )]
    OtherAddress,
    /// The entry does not work.
    #[error("{0}")]
    Entry(String),
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    #[error(transparent)]
    Store(#[from] store::Error),
}
