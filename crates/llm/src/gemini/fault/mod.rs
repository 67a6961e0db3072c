//! Classifies errors of a `generateContent` server by their status or a reason in their details. Context
//! overflow has no status of its own and is recognized by the message.

use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::stream::text::or_default;
use crate::transport::endpoint::Origin;
use crate::transport::verdict::Verdict;
use crate::transport::{Refused, quote};
use crate::{Error, Refusal};

/// Phrases by which the vendor reports a full context window.
const OVERFLOW_WORDS: &[&str] = &[
    "exceeds the maximum number of tokens",
    "exceeds the context",
    "context window",
    "input is too long",
];

/// `{"error": …}`, alone or as the only element of a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Envelope {
    One { error: ErrorForm },
    List([Enclosed; 1]),
}

#[derive(Deserialize)]
struct Enclosed {
    error: ErrorForm,
}

#[derive(Default, Deserialize)]
struct ErrorForm {
    #[serde(default)]
    code: Option<u16>,
    #[serde(default, deserialize_with = "or_default")]
    message: String,
    #[serde(default, deserialize_with = "or_default")]
    status: String,
    #[serde(default, deserialize_with = "or_default")]
    details: Vec<Detail>,
}

/// A detail of any kind: the field names of the kinds do not clash.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    #[serde(default)]
    reason: Value,
    #[serde(default)]
    retry_delay: Value,
}

/// Classifies an error response; its body may be anything.
pub(in crate::gemini) fn refused(origin: Origin<'_>, refused: &Refused) -> Error {
    let form = match serde_json::from_str(&refused.body) {
        Ok(Envelope::One { error } | Envelope::List([Enclosed { error }])) => error,
        Err(_) => ErrorForm::default(),
    };
    let words = if form.message.is_empty() {
        refused.body.clone()
    } else {
        form.message.clone()
    };
    let mut said = quote(&words, origin.key);
    if said.is_empty() {
        said = format!("HTTP {}", refused.status);
    }
    let retry_after = refused.retry_after.or_else(|| form.retry_delay());
    let kind = form
        .kind()
        .unwrap_or_else(|| Verdict::of_status(refused.status));
    kind.into_error(origin, said, retry_after)
}

/// Classifies an error object in the middle of a stream. The request was already accepted, so an error
/// without a known status or code counts as a server fault.
pub(in crate::gemini) fn in_stream(origin: Origin<'_>, json: &str) -> Error {
    let form: ErrorForm = serde_json::from_str(json).unwrap_or_default();
    let words = if form.message.is_empty() {
        json
    } else {
        form.message.as_str()
    };
    let said = quote(words, origin.key);
    let status = form.code.and_then(|code| StatusCode::from_u16(code).ok());
    let kind = form.kind().or(status.map(Verdict::of_status));
    kind.unwrap_or(Verdict::Broken)
        .into_error(origin, said, form.retry_delay())
}

impl ErrorForm {
    fn kind(&self) -> Option<Verdict> {
        if self.details.iter().any(|d| d.reason == "API_KEY_INVALID") {
            return Some(Verdict::Refused(Refusal::Key));
        }
        Some(match self.status.as_str() {
            "RESOURCE_EXHAUSTED" => Verdict::Limited,
            "UNAVAILABLE" | "INTERNAL" | "DEADLINE_EXCEEDED" | "ABORTED" | "CANCELLED"
            | "UNKNOWN" => Verdict::Broken,
            "UNAUTHENTICATED" | "PERMISSION_DENIED" => Verdict::Refused(Refusal::Key),
            "NOT_FOUND" => Verdict::Refused(Refusal::Address),
            "INVALID_ARGUMENT" if self.is_overflow() => Verdict::Overflow,
            "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" | "UNIMPLEMENTED" => {
                Verdict::Refused(Refusal::Request)
            }
            _ => return None,
        })
    }

    fn is_overflow(&self) -> bool {
        let words = self.message.to_ascii_lowercase();
        OVERFLOW_WORDS.iter().any(|sign| words.contains(sign))
    }

    /// Reads a delay such as `"34s"` or `"34.07s"` from the details.
    fn retry_delay(&self) -> Option<Duration> {
        let mut delays = self.details.iter().filter_map(|detail| {
            let seconds: f64 = detail
                .retry_delay
                .as_str()?
                .strip_suffix('s')?
                .parse()
                .ok()?;
            Duration::try_from_secs_f64(seconds).ok()
        });
        delays.next()
    }
}

#[cfg(test)]
mod tests;
