//! Defines the reasons that a request is refused, with the message and status that a Docker client shows.

use hyper::StatusCode;

/// The error that a client gets instead of an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The request itself is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The body has no `Content-Length`.
    #[error("send the body with a `Content-Length` and without `Transfer-Encoding`")]
    NoLength,
    /// The body is too large.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body did not arrive in time.
    #[error("the body did not arrive within {0} seconds")]
    TooSlow(u64),
    /// The call is not in the table.
    #[error(
        "`{method} {path}` is not passed on by Sepal's Docker proxy; docs/docker-proxy.md lists what is"
    )]
    NoCall { method: String, path: String },
    /// The template has another value for the field, or lacks the field.
    #[error("`{field}` is not allowed by Sepal's Docker proxy: {remedy}")]
    Field { field: String, remedy: String },
    /// The object is foreign or missing; which of both is not disclosed.
    #[error("No such {kind}: {name}")]
    Missing { kind: &'static str, name: String },
    /// A foreign object has the name that ours would get.
    #[error(
        "the {kind} `{name}` exists and is not of this proxy; remove it at the engine, or give the \
         proxy the label that it carries (`--label`)"
    )]
    Foreign { kind: &'static str, name: String },
    /// The limit on such objects is reached.
    #[error(
        "there are {limit} {kind} of Sepal's already, as many as its Docker proxy allows; remove what \
         is not needed, or let it have more (`{setting}`)"
    )]
    Full {
        kind: &'static str,
        limit: usize,
        setting: &'static str,
    },
    /// The engine answered with an error.
    #[error("{message}")]
    Engine { status: StatusCode, message: String },
    /// The engine does not answer.
    #[error(
        "no container engine answers at `{address}` ({said}); start it (`systemctl start docker`), \
         or let the proxy reach its socket"
    )]
    Away { address: String, said: String },
    /// The engine's answer is invalid.
    #[error("the engine answered with {0}")]
    Odd(String),
}

impl Refusal {
    /// Creates the refusal of a field.
    pub(crate) fn field(field: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Field {
            field: field.into(),
            remedy: remedy.into(),
        }
    }

    /// Returns the status code of the answer.
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
            // Not the engine's 409, which tells Sepal that a name is taken.
            Self::Full { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Engine { status, .. } => *status,
            Self::Away { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Odd(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns true if the operator should know of the refusal: the client asked for something that is not
    /// allowed, or the engine failed.
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
