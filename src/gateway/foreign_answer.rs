//! Receives browsers that another server sends back with its answer.

use axum::http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

use super::GatewayState;

/// The longest query of an answer, in bytes.
const MAX_QUERY: usize = 16 * 1024;

/// Leads a browser to a page of ours, which reads the answer behind the `#` and sends it by POST: a GET changes
/// nothing. `from` names the server that answers, and is part of the address. Returns `None` if the answer is too
/// long, or cannot stand in an address.
pub(super) fn lead_to_page(
    state: &GatewayState,
    page: &str,
    from: &str,
    query: Option<String>,
) -> Option<Response> {
    let query = query.unwrap_or_default();
    // `at` stands before the other server's own parameters, because the first of a name counts.
    let location = format!("{}{page}#at={from}&{query}", state.access.base_path());
    let location = HeaderValue::from_str(&location).ok();
    let location = location.filter(|_| query.len() <= MAX_QUERY)?;
    let headers = [
        (LOCATION, location),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    Some((StatusCode::SEE_OTHER, headers).into_response())
}
