//! Classifies errors of a Messages server by their type, else by the status. Context overflow has no type of
//! its own and is recognized by the message.

use serde::Deserialize;

use crate::stream::text::Text;
use crate::transport::endpoint::Origin;
use crate::transport::verdict::Verdict;
use crate::transport::{Refused, quote};
use crate::{Error, Refusal};

/// Phrases by which the vendor reports a full context window.
const OVERFLOW_WORDS: &[&str] = &[
    "prompt is too long",
    "exceed context limit",
    "exceeds the context",
    "context window",
    "input is too long",
];

/// `{"type": "error", "error": {"type": …, "message": …}}`.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    error: ErrorForm<'a>,
}

#[derive(Default, Deserialize)]
struct ErrorForm<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    message: Text<'a>,
}

/// Classifies an error response; its body may be anything.
pub(super) fn refused(origin: Origin<'_>, refused: &Refused) -> Error {
    let form = serde_json::from_str(&refused.body).map(|whole: Envelope<'_>| whole.error);
    let form = form.unwrap_or_default();
    let words = match form.message.0.as_ref() {
        "" => refused.body.as_str(),
        message => message,
    };
    let mut said = quote(words, origin.key);
    if said.is_empty() {
        said = format!("HTTP {}", refused.status);
    }
    let kind = by_type(&form.kind.0, words).unwrap_or_else(|| Verdict::of_status(refused.status));
    kind.into_error(origin, said, refused.retry_after)
}

/// Classifies an error object in the middle of a stream. The request was already accepted, so an unknown type
/// counts as a server fault.
pub(super) fn in_stream(origin: Origin<'_>, json: &str) -> Error {
    let form: ErrorForm<'_> = serde_json::from_str(json).unwrap_or_default();
    let words = match form.message.0.as_ref() {
        "" => json,
        message => message,
    };
    let kind = by_type(&form.kind.0, words).unwrap_or(Verdict::Broken);
    kind.into_error(origin, quote(words, origin.key), None)
}

fn by_type(kind: &str, words: &str) -> Option<Verdict> {
    Some(match kind {
        "rate_limit_error" => Verdict::Limited,
        "overloaded_error" | "api_error" | "timeout_error" => Verdict::Broken,
        "request_too_large" => Verdict::Overflow,
        "invalid_request_error" => {
            let words = words.to_ascii_lowercase();
            if OVERFLOW_WORDS.iter().any(|sign| words.contains(sign)) {
                Verdict::Overflow
            } else {
                Verdict::Refused(Refusal::Request)
            }
        }
        "authentication_error" | "permission_error" => Verdict::Refused(Refusal::Key),
        "billing_error" => Verdict::Refused(Refusal::Quota),
        "not_found_error" => Verdict::Refused(Refusal::Address),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::StatusCode;

    use super::{in_stream, refused};
    use crate::Error;
    use crate::transport::Refused;
    use crate::transport::endpoint::Origin;
    use crate::transport::verdict::Verdict;

    const ORIGIN: Origin<'_> = Origin {
        provider: "p",
        key: Some("sk-ant-secret"),
    };

    fn answer(status: u16, body: &str) -> Error {
        let refusal = Refused {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: Some(Duration::from_secs(7)),
            body: body.to_owned(),
        };
        refused(ORIGIN, &refusal)
    }

    fn check(status: u16, body: &str, expected: &str, said: &str) {
        let error = answer(status, body);
        assert_eq!(Verdict::word(&error), expected, "{status} {body}");
        assert!(error.to_string().contains(said), "{error}");
    }

    fn body(kind: &str, message: &str) -> String {
        format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#
        )
    }

    #[test]
    fn a_refusal_is_known_by_its_type() {
        check(
            401,
            &body("authentication_error", "invalid x-api-key"),
            "key",
            "x-api-key",
        );
        check(
            403,
            &body("permission_error", "no sk-ant-secret"),
            "key",
            "no [key]",
        );
        check(
            404,
            &body("not_found_error", "model: x"),
            "address",
            "model: x",
        );
        check(429, &body("rate_limit_error", "slow"), "limited", "slow");
        check(
            529,
            &body("overloaded_error", "Overloaded"),
            "unavailable",
            "Overloaded",
        );
        check(500, &body("api_error", "oops"), "unavailable", "oops");
        check(504, &body("timeout_error", "late"), "unavailable", "late");
        check(
            400,
            &body("invalid_request_error", "bad field"),
            "request",
            "bad field",
        );
        check(402, &body("billing_error", "pay"), "quota", "pay");
        check(413, &body("request_too_large", "big"), "overflow", "big");
    }

    #[test]
    fn a_full_window_is_known_by_its_words() {
        let words = "prompt is too long: 208310 tokens > 200000 maximum";
        check(
            400,
            &body("invalid_request_error", words),
            "overflow",
            "208310",
        );
        let words = "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000";
        check(
            400,
            &body("invalid_request_error", words),
            "overflow",
            "188240",
        );
        check(
            429,
            &body("rate_limit_error", "prompt is too long"),
            "limited",
            "",
        );
    }

    #[test]
    fn without_a_type_the_status_decides() {
        check(
            529,
            "<html>Overloaded</html>",
            "unavailable",
            "<html>Overloaded",
        );
        check(502, "", "unavailable", "HTTP 502");
        check(429, "", "limited", "HTTP 429");
        check(401, "{}", "key", "{}");
        check(403, r#"{"error":"forbidden"}"#, "key", "forbidden");
        check(404, "nothing here", "address", "nothing here");
        check(413, "", "overflow", "HTTP 413");
        check(418, "", "request", "HTTP 418");
        let wait = Some(Duration::from_secs(7));
        assert_eq!(answer(429, "").retry_after(), wait);
        assert_eq!(answer(529, "").retry_after(), wait);
    }

    #[test]
    fn an_error_in_a_stream_is_known_by_its_type() {
        fn check(json: &str, expected: &str) {
            assert_eq!(Verdict::word(&in_stream(ORIGIN, json)), expected, "{json}");
        }
        check(
            r#"{"type":"overloaded_error","message":"Overloaded"}"#,
            "unavailable",
        );
        check(r#"{"type":"rate_limit_error","message":"x"}"#, "limited");
        check(
            r#"{"type":"invalid_request_error","message":"prompt is too long"}"#,
            "overflow",
        );
        check(r#"{"type":"never_heard","message":"x"}"#, "unavailable");
        check("7", "unavailable");
        check(r#""plain words""#, "unavailable");
    }
}
