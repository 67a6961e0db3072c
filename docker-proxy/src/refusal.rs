//! Why a request is not carried out, in the words and the form that a Docker client shows.

use hyper::StatusCode;

/// What a client is told instead of an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The request itself is odd.
    #[error("{0}")]
    Malformed(String),
    /// A body without a length.
    #[error("send the body with a `Content-Length` and without `Transfer-Encoding`")]
    NoLength,
    /// A body beyond all sense.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body did not come.
    #[error("the body did not arrive within {0} seconds")]
    TooSlow(u64),
    /// Not one of our calls.
    #[error(
        "`{method} {path}` is not passed on by Sepal's Docker proxy; docs/docker-proxy.md lists what is"
    )]
    NoCall { method: String, path: String },
    /// The template has something else there, or nothing.
    #[error("`{field}` is not allowed by Sepal's Docker proxy: {remedy}")]
    Field { field: String, remedy: String },
    /// Not ours, or not there: which of both is nobody's business.
    #[error("No such {kind}: {name}")]
    Missing { kind: &'static str, name: String },
    /// Ours would have that name, but somebody else's has it.
    #[error(
        "the {kind} `{name}` exists and is not of this proxy; remove it at the engine, or give the \
         proxy the label that it carries (`--label`)"
    )]
    Foreign { kind: &'static str, name: String },
    /// There are as many as may be.
    #[error(
        "there are {limit} {kind} of Sepal's already, as many as its Docker proxy allows; remove what \
         is not needed, or let it have more (`{setting}`)"
    )]
    Full {
        kind: &'static str,
        limit: usize,
        setting: &'static str,
    },
    /// The engine's own answer.
    #[error("{message}")]
    Engine { status: StatusCode, message: String },
    /// No answer.
    #[error(
        "no container engine answers at `{address}` ({said}); start it (`systemctl start docker`), \
         or let the proxy reach its socket"
    )]
    Away { address: String, said: String },
    /// An answer that makes no sense.
    #[error("the engine answered with {0}")]
    Odd(String),
}

impl Refusal {
    /// A field that may not be as it is.
    pub(crate) fn field(field: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Field {
            field: field.into(),
            remedy: remedy.into(),
        }
    }

    /// The code of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::NoLength => StatusCode::LENGTH_REQUIRED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::NoCall { .. } | Self::Field { .. } | Self::Foreign { .. } => {
                StatusCode::FORBIDDEN
            }
            Self::Missing { .. } => StatusCode::NOT_FOUND,
            // Not the engine's 409, by which Sepal knows that a name is taken.
            Self::Full { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Engine { status, .. } => *status,
            Self::Away { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Odd(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Whether somebody asked for what they may not have, which an operator wants to know.
    pub(crate) fn is_suspicious(&self) -> bool {
        match self {
            Self::Malformed(_)
            | Self::NoLength
            | Self::TooLarge(_)
            | Self::TooSlow(_)
            | Self::NoCall { .. }
            | Self::Field { .. }
            | Self::Foreign { .. }
            | Self::Full { .. }
            | Self::Away { .. }
            | Self::Odd(_) => true,
            Self::Missing { .. } | Self::Engine { .. } => false,
        }
    }
}
