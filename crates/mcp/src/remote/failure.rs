//! Defines the reasons that a request to a server over HTTP has no answer.

use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::refusal::Refusal;
use crate::authorization::AuthorizationError;

/// The reason that a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The server could not be reached, or its answer broke off.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    /// The server answered with a failure status.
    #[error("{0}")]
    Refused(Refusal),
    /// The server is at another address; the request did not run.
    #[error("it has moved to `{0}`: set this as its address")]
    Moved(String),
    /// The server wants a person to connect, or to allow these scopes too.
    #[error("it wants its person to connect")]
    NeedsPerson(Option<String>),
    /// No token could be obtained for the request.
    #[error(transparent)]
    Token(AuthorizationError),
}

/// The error type of rmcp's HTTP transport around [`Failure`].
pub(crate) type Error = StreamableHttpError<Failure>;

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Client(failure)
    }
}
