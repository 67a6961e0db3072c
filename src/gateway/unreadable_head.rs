//! Adds problem documents to the responses for requests whose head cannot be parsed: a request line that is
//! not HTTP, or an address or headers that are too long. The HTTP library answers these requests itself,
//! with a status and no body, before any route or layer sees them.

use axum::http::StatusCode;

use super::error::{self, ApiError};
use crate::domain::{Code, RequestId};

/// The headers that only the library's own responses have; our responses with these statuses have a body.
const MARKS: [&str; 2] = ["\r\nconnection: close\r\n", "\r\ncontent-length: 0\r\n"];

/// Replaces the library's own response with a problem document; `None` for any other response. `written` is
/// one write of the library, from the status line on.
pub fn explain(written: &[u8]) -> Option<Vec<u8>> {
    let status = written.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let (status, text) = match status {
        b"400" => (StatusCode::BAD_REQUEST, "the request is not valid HTTP/1.1"),
        b"414" => (StatusCode::URI_TOO_LONG, "the address is too long"),
        b"431" => (
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the headers are too many or too large",
        ),
        _ => return None,
    };
    let head = std::str::from_utf8(written).ok()?.to_ascii_lowercase();
    if !head.ends_with("\r\n\r\n") || !MARKS.iter().all(|mark| head.contains(mark)) {
        return None;
    }
    let error = ApiError::new(Code::InvalidArguments, text).with_status(status);
    let id = RequestId::from_bits(rand::random());
    let body = error::document(error, &id);
    let reason = status.canonical_reason().unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/problem+json\r\n\
         x-content-type-options: nosniff\r\ncache-control: no-store\r\nx-request-id: {}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        status.as_u16(),
        id.as_str(),
        body.len(),
    );
    Some([head.into_bytes(), body].concat())
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn an_answer_without_a_body_gets_one_and_others_stay() {
        let bare = "HTTP/1.1 414 URI Too Long\r\nconnection: close\r\ncontent-length: 0\r\n\
                    date: Sat, 28 Nov 2026 04:00:00 GMT\r\n\r\n";
        let told = String::from_utf8(explain(bare.as_bytes()).unwrap()).unwrap();
        assert!(told.starts_with("HTTP/1.1 414 URI Too Long\r\n"), "{told}");
        assert!(
            told.contains("\"detail\":\"the address is too long\""),
            "{told}"
        );
        let (head, body) = told.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        for other in [
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 41",
            "",
        ] {
            assert_eq!(explain(other.as_bytes()), None, "{other}");
        }
    }
}
