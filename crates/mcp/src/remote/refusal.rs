//! Describes an answer with a failure status, and decides whether the request can have begun to run.

use std::fmt;

use reqwest::StatusCode;
use rmcp::model::ErrorCode;

/// The most characters quoted of the server's words.
const MAX_WORDS: usize = 300;

/// An answer with a failure status.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    /// The code of the JSON-RPC error in the answer, which names no request.
    code: Option<i64>,
    /// The server's words, on one line.
    words: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: Option<i64>, words: Option<&str>) -> Self {
        let one_line = |words: &str| {
            let words: Vec<&str> = words.split_whitespace().collect();
            words.join(" ").chars().take(MAX_WORDS).collect()
        };
        Self {
            status,
            code,
            words: words.map(one_line),
        }
    }

    /// Returns true if the request cannot have begun to run.
    ///
    /// A status from 400 to 499 says that the request was refused as faulty. A status above says that the
    /// server, or a proxy before it, failed: it may have begun to run the request, unless it also says that
    /// it could not understand the request.
    pub(crate) fn is_before_running(&self) -> bool {
        let was_not_understood = self.code.is_some_and(|code| {
            [
                ErrorCode::PARSE_ERROR,
                ErrorCode::INVALID_REQUEST,
                ErrorCode::METHOD_NOT_FOUND,
                ErrorCode::INVALID_PARAMS,
            ]
            .iter()
            .any(|known| i64::from(known.0) == code)
        });
        self.status.is_client_error() || was_not_understood
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "it answered with status {}",
            self.status.as_u16()
        )?;
        if let Some(words) = &self.words {
            write!(formatter, " and said: {words}")?;
        }
        match self.status {
            StatusCode::UNAUTHORIZED => formatter.write_str(
                "; it refuses the credentials: a key is missing, wrong or no longer valid in \
                 `headers`. Set a valid one there, or the secret that stands for it",
            ),
            StatusCode::FORBIDDEN => formatter.write_str(
                "; the key in `headers` may not do that. Use one that may, or give it the right",
            ),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => formatter.write_str(
                "; nothing takes messages there. Check the address; a server of the old HTTP with \
                 SSE needs the transport `sse`",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::Refusal;

    #[test]
    fn what_a_server_may_have_begun_is_told_from_what_it_refused() {
        let check = |status: u16, code: Option<i64>, expected: bool| {
            let status = StatusCode::from_u16(status).unwrap();
            let refusal = Refusal::new(status, code, code.and(Some("no")));
            assert_eq!(refusal.is_before_running(), expected, "{refusal}");
        };
        for status in [400, 401, 403, 404, 409, 429] {
            check(status, None, true);
            check(status, Some(-32_000), true);
        }
        for status in [302, 500, 502, 503, 504] {
            check(status, None, false);
            check(status, Some(-32_000), false);
            check(status, Some(-32_603), false);
            check(status, Some(-32_600), true);
        }
    }
}
