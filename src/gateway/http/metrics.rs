//! Serves metrics for Prometheus (`/metrics`) to admins of the installation, because the metrics cover all
//! tenants together. `runtime.metrics.listen` serves the same without a key, at an address of its own.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::domain::{Caller, Code};
use crate::gateway::error::{ApiError, Problem};
use crate::telemetry::metrics::{CONTENT_TYPE as FORM, exposition};

/// Returns the metrics of this gateway in the text format of Prometheus. Only for admins of the installation.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses(
    (status = 200, body = String, content_type = "application/openmetrics-text"),
    (status = 401, body = Problem), (status = 403, body = Problem),
))]
pub(super) async fn read_metrics(caller: Caller) -> Result<Response, ApiError> {
    if !caller.user.installation_admin {
        let text = "only an administrator of the installation may do this";
        return Err(ApiError::new(Code::NotAllowed, text));
    }
    Ok(figures())
}

/// Serves the same without a key, for a listener that only the operator's own network reaches.
pub fn open_metrics() -> Router {
    Router::new().route("/metrics", get(async || figures()))
}

fn figures() -> Response {
    ([(CONTENT_TYPE, FORM)], exposition()).into_response()
}
