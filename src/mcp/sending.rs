//! What is known of a request whose sending failed: whether the server can have begun it.

use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::remote::below;
use crate::net;

/// Why a request cannot have run; `None` where it may have.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever rmcp adds may have come after the request"
)]
pub(super) fn cannot_have_run(error: &DynamicTransportError) -> Option<String> {
    // What was written to a stream may have been read before the stream broke.
    let error: &StreamableHttpError<reqwest::Error> = error.error.downcast_ref()?;
    match error {
        StreamableHttpError::Client(error) => match net::blocked(error) {
            Some(blocked) => Some(blocked.to_string()),
            None => error.is_connect().then(|| below(error)),
        },
        StreamableHttpError::SessionExpired => Some("its session has ended".to_owned()),
        StreamableHttpError::AuthRequired(_) => {
            Some("it answered with status 401: a key is missing or wrong in `headers`".to_owned())
        }
        StreamableHttpError::InsufficientScope(_) => {
            Some("it answered with status 403: the key in `headers` may not do that".to_owned())
        }
        StreamableHttpError::HttpStatus(answer) if answer.status < 500 => {
            Some(format!("it answered with status {}", answer.status))
        }
        _ => None,
    }
}
