//! Shows the audit, exports it, and checks it (`/api/audit`).

mod body;
mod export;
mod query;

use axum::Json;
use axum::extract::State;

use self::body::{AuditKeyBody, AuditRecordsPage, AuditState, AuditVerification};
use self::query::{AuditQuery, AuditScopeQuery};
use crate::agent::{AuditAccess, AuditError};
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;

/// The routes of the audit.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_audit))
        .routes(routes!(read_audit_key))
        .routes(routes!(read_audit_state))
        .routes(routes!(verify_audit))
        .routes(routes!(export::export_audit))
}

/// Lists the audit of the caller's tenant, newest first: acts, and decisions in sessions. Admins see everything,
/// members what they did themselves.
#[utoipa::path(get, path = "/api/audit", tag = "audit", params(AuditQuery), responses(
    (status = 200, body = AuditRecordsPage), (status = 400, body = Problem),
    (status = 403, body = Problem),
))]
async fn list_audit(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Json<AuditRecordsPage>, ApiError> {
    let checked = query.checked()?;
    let access = AuditAccess::of(&caller, checked.is_of_installation).map_err(AuditError::from)?;
    // What was acknowledged is shown.
    state.sessions.listed().await;
    let after = checked.after.as_ref();
    let page = state
        .audit
        .list(&access, checked.filter, after, checked.limit);
    Ok(Json(AuditRecordsPage::of(page.await?)))
}

/// Returns the public key that checks the signatures of the audit and of exported decisions.
#[utoipa::path(get, path = "/api/audit/key", tag = "audit", responses(
    (status = 200, body = AuditKeyBody), (status = 401, body = Problem),
))]
async fn read_audit_key(State(state): State<GatewayState>, _: Caller) -> Json<AuditKeyBody> {
    Json(AuditKeyBody::of(state.audit.key().public()))
}

/// Returns how far the audit is signed, and which places outside have the signatures.
#[utoipa::path(get, path = "/api/audit/state", tag = "audit", params(AuditScopeQuery), responses(
    (status = 200, body = AuditState), (status = 403, body = Problem),
))]
async fn read_audit_state(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<AuditScopeQuery>,
) -> Result<Json<AuditState>, ApiError> {
    let access = query.access(&caller)?;
    Ok(Json(AuditState::of(state.audit.standing(&access).await?)))
}

/// Checks the whole chain of the audit, its signatures, and the journals of the sessions that it named last.
/// `sepal audit verify` checks all journals, and with a key from elsewhere.
#[utoipa::path(post, path = "/api/audit/verify", tag = "audit", params(AuditScopeQuery), responses(
    (status = 200, body = AuditVerification), (status = 403, body = Problem),
))]
async fn verify_audit(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<AuditScopeQuery>,
) -> Result<Json<AuditVerification>, ApiError> {
    let access = query.access(&caller)?;
    Ok(Json(AuditVerification::of(
        &state.audit.check(&access).await?,
    )))
}

impl From<AuditError> for ApiError {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Refused(refusal) => refusal.into(),
            AuditError::Store(error) => error.into(),
        }
    }
}
