//! Why a server could not be connected to.

use sepal_core::domain::Fault;

/// A situation with an authorisation server.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// Nobody answers, or the guard keeps the request in.
    #[error("`{host}` cannot be reached: {reason}")]
    Unreachable {
        /// Whose address it is; nothing else of the address, which may hold a key.
        host: String,
        reason: String,
    },
    /// What the server or its authorisation server says of itself cannot be used.
    #[error("the server's authorisation cannot be used: {0}")]
    Metadata(String),
    /// The metadata or the answer comes from another issuer than the one that was asked.
    #[error(
        "the answer is of the issuer `{found}`, and `{expected}` was asked: nothing was sent to it"
    )]
    OtherIssuer { expected: String, found: String },
    /// The client of the entry is registered with another issuer than the one that was found.
    #[error(
        "the client of this entry is registered with `{expected}`, and the server now names \
         `{found}`: the secret was not sent. If both are right, an admin sets `oauth.issuer` to the \
         new one and gives the secret again"
    )]
    OtherClient { expected: String, found: String },
    /// There is no way to become a client of it.
    #[error(
        "the authorisation server does not register clients by itself: register one there, and set \
         `oauth.clientId` (and `oauth.clientSecret`) in the entry"
    )]
    NoClient,
    /// The authorisation server refused, in its own words.
    #[error("the authorisation server refused: {0}")]
    Refused(String),
    /// It does not know us, or not any more.
    #[error(
        "the authorisation server does not know this client: check `oauth.clientId` and \
             `oauth.clientSecret` if the entry has them, then connect again"
    )]
    UnknownClient,
    /// The grant is not valid any more.
    #[error("the connection to the server has ended or was taken back; connect again")]
    InvalidGrant,
    /// It was asked for something that is no token, or gave none.
    #[error("the authorisation server gave no usable token: {0}")]
    Token(&'static str),
}

impl AuthorizationError {
    /// Who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unreachable { .. } => Fault::Transient,
            Self::InvalidGrant => Fault::Validation,
            Self::Metadata(_)
            | Self::OtherIssuer { .. }
            | Self::OtherClient { .. }
            | Self::NoClient
            | Self::UnknownClient
            | Self::Refused(_)
            | Self::Token(_) => Fault::External,
        }
    }
}
