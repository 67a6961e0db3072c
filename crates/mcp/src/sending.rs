//! Decides, for a request whose sending failed, whether the server can have begun to run it.

use rmcp::transport::DynamicTransportError;

use super::error::Error;
use super::remote::{self, Failure};
use sepal_net as net;
use sepal_net::below;

/// Returns the error for a request that was not sent or has no readable answer.
pub(super) fn failed(server: &str, error: &DynamicTransportError) -> Error {
    let server = server.to_owned();
    // The server may have read what was written before the stream broke.
    let Some(error) = error.error.downcast_ref::<remote::HttpError>() else {
        return Error::Gone { server };
    };
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "whatever rmcp adds may have come after the request"
    )]
    match error {
        remote::HttpError::Client(Failure::Client(error)) => match net::blocked(error) {
            Some(blocked) => {
                let reason = blocked.to_string();
                Error::Unreachable { server, reason }
            }
            None if error.is_connect() => {
                let reason = below(error);
                Error::Unreachable { server, reason }
            }
            None => Error::Gone { server },
        },
        remote::HttpError::Client(Failure::NeedsPerson(scopes)) => {
            let scopes = scopes.clone();
            Error::Unauthorized { server, scopes }
        }
        remote::HttpError::Client(Failure::Token(error)) => remote::without_token(server, error),
        remote::HttpError::Client(Failure::Refused(refusal)) => {
            let reason = refusal.to_string();
            if refusal.is_before_running() {
                Error::NotTaken { server, reason }
            } else {
                Error::NoAnswer { server, reason }
            }
        }
        remote::HttpError::Client(Failure::Moved(_)) => Error::NotTaken {
            server,
            reason: error.to_string(),
        },
        remote::HttpError::SessionExpired => Error::NotTaken {
            server,
            reason: "its session has ended".to_owned(),
        },
        remote::HttpError::UnexpectedContentType(_)
        | remote::HttpError::UnexpectedServerResponse(_) => Error::NoAnswer {
            server,
            reason: "it answered with something that is no message".to_owned(),
        },
        _ => Error::Gone { server },
    }
}
