//! Why a request to a server over HTTP has no answer.

use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::refusal::Refusal;
use crate::authorization::AuthorizationError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It could not be asked, or its answer broke off.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    /// It answered with a status that is none of success.
    #[error("{0}")]
    Refused(Refusal),
    /// It wants a person to connect, or to allow these scopes too.
    #[error("it wants its person to connect")]
    NeedsPerson(Option<String>),
    /// There is no token to ask it with.
    #[error(transparent)]
    Token(AuthorizationError),
}

/// What the library makes of it.
pub(crate) type Error = StreamableHttpError<Failure>;

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Client(failure)
    }
}
