//! Errors of connecting a person to a server.

use sepal_mcp::authorization::AuthorizationError;
use sepal_store as store;

/// An error of connecting a person to a server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The caller is a viewer.
    #[error("viewers connect to no servers")]
    NotAllowed,
    /// There is no such server that this person can see.
    #[error("there is no MCP server `{0}`")]
    NotFound(String),
    /// People do not connect to this server.
    #[error("people do not connect to the MCP server `{0}`: {1}")]
    NotForPeople(String, &'static str),
    /// A field is invalid: its name, and the message.
    #[error("{1}")]
    Invalid(&'static str, &'static str),
    /// This person began no such authorization, it took too long, or it was used before.
    #[error(
        "this answer belongs to no authorisation that you began here and that still waits: connect \
         again"
    )]
    Stale,
    /// The person came back to the redirect address of another issuer.
    #[error(
        "this answer came to the address of another issuer than the one that you were sent to: \
         nothing was sent to it; connect again"
    )]
    OtherAddress,
    /// The server's entry cannot be filled in.
    #[error("{0}")]
    Entry(String),
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    #[error(transparent)]
    Store(#[from] store::Error),
}
