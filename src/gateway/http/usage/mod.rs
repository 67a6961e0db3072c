//! Reports usage: sums of model requests and of calls, as JSON or as a table for spreadsheets.

mod body;
mod query;
mod table;

use axum::Json;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};

use self::body::UsagePage;
use self::query::{CheckedQuery, UsageQuery};
use crate::agent::UsageAccess;
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;

const CSV: &str = "text/csv";
/// The most rows of a table, which is built in memory as a whole.
const MAX_TABLE: usize = 10_000;

/// Returns a usage report. Members see their own usage, admins that of their tenant.
#[utoipa::path(get, path = "/api/usage", tag = "usage", params(UsageQuery), responses(
    (status = 200, description = "What was used. With `format=csv`, or `Accept: text/csv`, all rows \
        as a table, 10,000 at most.", content((UsagePage = "application/json"), (String = "text/csv"))),
    (status = 403, body = Problem),
))]
pub(in crate::gateway::http) async fn read_usage(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<UsageQuery>,
) -> Result<Response, ApiError> {
    let is_table = query.wants_table()? || accepts_table(&headers);
    let CheckedQuery {
        mut request,
        person,
        days,
    } = query.checked()?;
    let access = UsageAccess::of(&caller, person)?;
    if is_table {
        request.limit = MAX_TABLE;
    }
    let report = state.sessions.usage(&access, &request).await?;
    if !is_table {
        let next = report.has_more.then(|| request.offset + request.limit);
        return Ok(Json(UsagePage::new(days, report, next)).into_response());
    }
    if report.has_more {
        let text = format!("the table would have more than {MAX_TABLE} rows; ask for fewer days");
        return Err(ApiError::of_field(Code::InvalidArguments, "from", text));
    }
    let table = table::write(&report.groups).map_err(|error| {
        tracing::error!(%error, "A table of what was used cannot be written");
        ApiError::new(Code::Internal, "internal error")
    })?;
    let mut response = table.into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    headers.insert(CONTENT_TYPE, kind);
    let name = format!("attachment; filename=\"usage-{}-{}.csv\"", days.0, days.1);
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Returns true if the first media type in the client's `Accept` is CSV.
fn accepts_table(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let first = accept.and_then(|accept| accept.split([',', ';']).next());
    first.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(CSV))
}
