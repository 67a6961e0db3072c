//! Classifies errors of a Chat Completions server by their code. Servers without codes are classified by the
//! status; only a context overflow is recognized by the message.

use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::transport::endpoint::Origin;
use crate::transport::verdict::Verdict;
use crate::transport::{Refused, quote};
use crate::{Error, Refusal};

/// Phrases by which servers without a code report a full context window. No other fault is recognized by the
/// message.
const OVERFLOW_WORDS: &[&str] = &[
    "maximum context length",
    "maximum prompt length",
    "context window",
    "context length exceeded",
    "context size",
    "exceeds the context",
    "prompt is too long",
    "too many tokens",
    "input is too long",
];

/// Classifies an error response; its body may be anything.
pub(super) fn refused(origin: Origin<'_>, refused: &Refused) -> Error {
    let said = Said::read(&refused.body).unwrap_or_else(|| Said {
        message: refused.body.clone(),
        ..Said::default()
    });
    said.into_error(origin, Some(refused.status), refused.retry_after)
}

/// Classifies an error object in the middle of a stream.
pub(super) fn in_stream(origin: Origin<'_>, json: &str) -> Error {
    let said = Said::read(json).unwrap_or_else(|| Said {
        message: json.to_owned(),
        ..Said::default()
    });
    let status = said.status();
    said.into_error(origin, status, None)
}

/// The fields of an error that all servers share.
#[derive(Debug, Default)]
struct Said {
    message: String,
    /// `code` and `type`, if they are texts.
    words: Vec<String>,
    /// `code`, if it is a number.
    number: Option<u16>,
    /// The tool that the error is about, as its place in the request, if the message does not say it.
    tool: Option<String>,
}

/// `{"error": …}`, or the error itself, or `FastAPI`'s `{"detail": …}`.
#[derive(Deserialize)]
struct ErrorForm {
    error: Option<Value>,
    message: Option<Value>,
    detail: Option<Value>,
    msg: Option<Value>,
    code: Option<Value>,
    r#type: Option<Value>,
    param: Option<Value>,
}

impl Said {
    fn read(json: &str) -> Option<Self> {
        if let Ok(text) = serde_json::from_str::<String>(json) {
            return Some(Self {
                message: text,
                ..Self::default()
            });
        }
        let mut form: ErrorForm = serde_json::from_str(json).ok()?;
        match form.error.take() {
            Some(Value::String(message)) => form.message = Some(Value::String(message)),
            Some(inner @ Value::Object(_)) => form = serde_json::from_value(inner).ok()?,
            Some(_) | None => {}
        }
        let message = match form.message.or(form.detail).or(form.msg)? {
            Value::String(text) => text,
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => other.to_string(),
        };
        let tool = form.param.as_ref().and_then(Value::as_str);
        let tool = tool.filter(|param| param.starts_with("tools[") && !message.contains(*param));
        let tool = tool.map(str::to_owned);
        let number = form.code.as_ref().and_then(|code| match code {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.as_u64(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        });
        let words = [form.code, form.r#type].into_iter().flatten();
        Some(Self {
            message,
            words: words
                .filter_map(|word| word.as_str().map(str::to_ascii_lowercase))
                .collect(),
            number: number.and_then(|number| u16::try_from(number).ok()),
            tool,
        })
    }

    fn is_any(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }

    fn status(&self) -> Option<StatusCode> {
        let number = self.number?;
        (400..600)
            .contains(&number)
            .then(|| StatusCode::from_u16(number).ok())
            .flatten()
    }

    fn is_overflow(&self, status: Option<StatusCode>) -> bool {
        if self.is_any(&[
            "context_length_exceeded",
            "exceed_context_size_error",
            "request_too_large",
        ]) || status == Some(StatusCode::PAYLOAD_TOO_LARGE)
        {
            return true;
        }
        let may_be =
            status.is_none_or(|s| s.is_client_error() && s != StatusCode::TOO_MANY_REQUESTS);
        let message = self.message.to_ascii_lowercase();
        may_be && OVERFLOW_WORDS.iter().any(|words| message.contains(words))
    }

    fn into_error(
        self,
        origin: Origin<'_>,
        status: Option<StatusCode>,
        retry_after: Option<Duration>,
    ) -> Error {
        let said = match (quote(&self.message, origin.key), status) {
            (said, Some(status)) if said.is_empty() => format!("HTTP {status}"),
            (said, _) => said,
        };
        let said = match &self.tool {
            Some(tool) => format!("{said} (`{tool}`)"),
            None => said,
        };
        let verdict = if self.is_overflow(status) {
            Verdict::Overflow
        } else {
            self.verdict(status)
        };
        verdict.into_error(origin, said, retry_after)
    }

    fn verdict(&self, status: Option<StatusCode>) -> Verdict {
        // OpenAI reports missing credit as 429, but waiting does not fill an account.
        if self.is_any(&["insufficient_quota", "billing_hard_limit_reached"]) {
            return Verdict::Refused(Refusal::Quota);
        }
        status.map_or_else(|| self.by_words(), Verdict::of_status)
    }

    /// Classifies an error without a status by its code and type. In the middle of a stream the request was
    /// already accepted, so an unknown error counts as a server fault.
    fn by_words(&self) -> Verdict {
        if self.is_any(&[
            "rate_limit_exceeded",
            "rate_limit_error",
            "requests",
            "tokens",
        ]) {
            Verdict::Limited
        } else if self.is_any(&[
            "invalid_request_error",
            "badrequesterror",
            "content_filter",
            "invalid_prompt",
        ]) {
            Verdict::Refused(Refusal::Request)
        } else if self.is_any(&[
            "authentication_error",
            "invalid_api_key",
            "permission_error",
        ]) {
            Verdict::Refused(Refusal::Key)
        } else {
            let known = self.words.iter().find_map(|word| of_word(word));
            known.unwrap_or(Verdict::Broken)
        }
    }
}

/// Classifies a code of other vendors by the word in it: `InvalidParameter`, `DataInspectionFailed`,
/// `Throttling.RateQuota`. A permanent refusal must not be tried again.
fn of_word(word: &str) -> Option<Verdict> {
    let has = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
    if has(&["throttl", "toomanyrequests", "ratelimit", "rate_limit"]) {
        Some(Verdict::Limited)
    } else if has(&[
        "apikey",
        "api_key",
        "unauthorized",
        "accessdenied",
        "access_denied",
    ]) {
        Some(Verdict::Refused(Refusal::Key))
    } else if has(&["arrearage", "insufficient", "quota"]) {
        Some(Verdict::Refused(Refusal::Quota))
    } else if has(&[
        "invalid",
        "inspection",
        "unsupported",
        "notfound",
        "not_found",
        "badrequest",
        "bad_request",
    ]) {
        Some(Verdict::Refused(Refusal::Request))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::{in_stream, refused};
    use crate::transport::Refused;
    use crate::transport::endpoint::Origin;
    use crate::transport::verdict::Verdict;

    const ORIGIN: Origin<'_> = Origin {
        provider: "p",
        key: Some("sk-secret"),
    };

    fn check(status: u16, body: &str, expected: &str, said: &str) {
        let refusal = Refused {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: None,
            body: body.to_owned(),
        };
        let error = refused(ORIGIN, &refusal);
        assert_eq!(Verdict::word(&error), expected, "{status} {body}");
        assert!(error.to_string().contains(said), "{error}");
    }

    #[test]
    fn a_refusal_is_known_by_its_status() {
        check(
            401,
            r#"{"error":{"message":"Wrong key sk-secret"}}"#,
            "key",
            "key [key]",
        );
        check(
            403,
            "<html>Forbidden</html>",
            "key",
            "<html>Forbidden</html>",
        );
        check(
            404,
            r#"{"error":"model 'x' not found"}"#,
            "address",
            "'x' not found",
        );
        check(
            400,
            r#"{"detail":[{"loc":["body","x"],"msg":"bad"}]}"#,
            "request",
            "bad",
        );
        check(
            422,
            r#"{"error":{"message":"bad field"}}"#,
            "request",
            "bad field",
        );
        check(402, "", "quota", "HTTP 402");
        check(408, "", "unavailable", "HTTP 408");
        check(500, "upstream\n\n  died", "unavailable", "upstream died");
        check(
            502,
            "<html><h1>Bad Gateway</h1></html>",
            "unavailable",
            "Bad Gateway",
        );
        check(529, r#"{"error":null}"#, "unavailable", "null");
        check(301, "", "request", "HTTP 301");
    }

    #[test]
    fn a_rate_limit_is_not_an_empty_account() {
        let body = r#"{"error":{"message":"slow","type":"tokens","code":"rate_limit_exceeded"}}"#;
        check(429, body, "limited", "slow");
        check(429, "", "limited", "HTTP 429");
        let body = r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#;
        check(429, body, "quota", "pay");
    }

    #[test]
    fn a_full_window_is_known_by_code_status_or_words() {
        let body = r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#;
        check(400, body, "overflow", "no");
        let body = r#"{"object":"error","message":"This model's maximum context length is 4096 tokens","code":400}"#;
        check(400, body, "overflow", "4096");
        let body = r#"{"error":{"code":400,"message":"big","type":"exceed_context_size_error"}}"#;
        check(400, body, "overflow", "big");
        check(413, "", "overflow", "HTTP 413");
        check(
            500,
            r#"{"error":"maximum context length"}"#,
            "unavailable",
            "",
        );
        check(
            429,
            r#"{"error":"too many tokens per minute"}"#,
            "limited",
            "",
        );
    }

    #[test]
    fn an_error_in_a_stream_is_known_by_its_code() {
        fn check(json: &str, expected: &str) {
            assert_eq!(Verdict::word(&in_stream(ORIGIN, json)), expected, "{json}");
        }
        check(r#"{"message":"x","code":429}"#, "limited");
        check(r#"{"message":"x","code":"rate_limit_exceeded"}"#, "limited");
        check(r#"{"message":"x","code":502}"#, "unavailable");
        check(r#"{"message":"x","code":"429"}"#, "limited");
        check(r#"{"message":"x","type":"server_error"}"#, "unavailable");
        check(
            r#"{"message":"x","type":"invalid_request_error"}"#,
            "request",
        );
        check(
            r#"{"message":"x","code":"context_length_exceeded"}"#,
            "overflow",
        );
        for (code, expected) in [
            ("InvalidParameter", "request"),
            ("DataInspectionFailed", "request"),
            ("ModelNotFound", "request"),
            ("Arrearage", "quota"),
            ("InvalidApiKey", "key"),
            ("Throttling.RateQuota", "limited"),
            ("InternalError", "unavailable"),
        ] {
            check(&format!(r#"{{"message":"x","code":"{code}"}}"#), expected);
        }
        check(r#""plain words""#, "unavailable");
        check("7", "unavailable");
    }
}
