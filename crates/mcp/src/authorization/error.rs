//! Errors of authorising us at a server.

use sepal_core::domain::Fault;

/// An error of an authorisation server or of its metadata.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// The server does not answer, or the network guard blocked the request.
    #[error("`{host}` cannot be reached: {reason}")]
    Unreachable {
        /// The host of the address only: the rest of the address may hold a key.
        host: String,
        reason: String,
    },
    /// The metadata of the server or of its authorisation server cannot be used.
    #[error("the server's authorisation cannot be used: {0}")]
    Metadata(String),
    /// The metadata or the answer names another issuer than the expected one.
    #[error(
        "the answer is of the issuer `{found}`, and `{expected}` was asked: nothing was sent to it"
    )]
    OtherIssuer { expected: String, found: String },
    /// The entry's client is registered with another issuer than the one that was found.
    #[error(
        "the client of this entry is registered with `{expected}`, and the server now names \
         `{found}`: the secret was not sent. If both are right, an admin sets `oauth.issuer` to the \
         new one and gives the secret again"
    )]
    OtherClient { expected: String, found: String },
    /// There is no way to obtain a client identity at the authorisation server.
    #[error(
        "the authorisation server does not register clients by itself: register one there, and set \
         `oauth.clientId` (and `oauth.clientSecret`) in the entry"
    )]
    NoClient,
    /// The authorisation server refused; the text is the server's own.
    #[error("the authorisation server refused: {0}")]
    Refused(String),
    /// The authorisation server does not know the client, or no longer knows it.
    #[error(
        "the authorisation server does not know this client: check `oauth.clientId` and \
             `oauth.clientSecret` if the entry has them, then connect again"
    )]
    UnknownClient,
    /// The grant is no longer valid.
    #[error("the connection to the server has ended or was taken back; connect again")]
    InvalidGrant,
    /// The authorisation server returned no usable token.
    #[error("the authorisation server gave no usable token: {0}")]
    Token(&'static str),
}

impl AuthorizationError {
    /// Returns the fault class, which says who has to act.
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
