//! The compaction strategies of a tenant: admins set them for the sessions that chose none themselves.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{Caller, Code, Right, StrategyName};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::gateway::word_list;

/// The compaction strategies for sessions that chose none themselves. Compaction makes room in a session's
/// context when earlier turns do not fit.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CompactionDefaults {
    /// The strategies in force, in order: the first one that makes enough room is used.
    #[schema(value_type = Vec<word_list::Compaction>)]
    strategies: Vec<&'static str>,
    /// The strategies that the tenant's admins set; `null` if they set none.
    #[schema(value_type = Option<Vec<word_list::Compaction>>)]
    tenant: Option<Vec<&'static str>>,
    /// The strategies of the settings.
    #[schema(value_type = Vec<word_list::Compaction>)]
    settings: Vec<&'static str>,
}

/// The compaction strategies to set for the tenant's sessions.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct SetCompactionRequest {
    /// The strategies, in order: the first one that makes enough room is used. `none` is allowed only alone.
    #[schema(required, nullable = false, value_type = Vec<word_list::Compaction>, min_items = 1)]
    strategies: Option<Vec<StrategyName>>,
}

/// Returns the compaction strategies for sessions of the caller's tenant, and their source.
#[utoipa::path(get, path = "/api/models/compaction", tag = "models", responses(
    (status = 200, body = CompactionDefaults), (status = 401, body = Problem),
))]
pub(super) async fn read_compaction(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Json<CompactionDefaults> {
    Json(in_force(&state, &caller))
}

/// Sets the compaction strategies of the caller's tenant, from the next model request on. Only for admins.
#[utoipa::path(put, path = "/api/models/compaction", tag = "models",
    request_body = SetCompactionRequest,
    responses((status = 200, body = CompactionDefaults), (status = 400, body = Problem),
        (status = 403, body = Problem)),
)]
pub(super) async fn set_compaction(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<SetCompactionRequest>,
) -> Result<Json<CompactionDefaults>, ApiError> {
    need_admin(&caller)?;
    let strategies = required("strategies", body.strategies)?;
    let tenant = &caller.tenant.id;
    let providers = &state.providers;
    providers.set_compaction(tenant, Some(strategies)).await?;
    Ok(Json(in_force(&state, &caller)))
}

/// Removes the compaction strategies that were set for the caller's tenant. Only for admins.
#[utoipa::path(delete, path = "/api/models/compaction", tag = "models", responses(
    (status = 200, body = CompactionDefaults), (status = 403, body = Problem),
))]
pub(super) async fn clear_compaction(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<CompactionDefaults>, ApiError> {
    need_admin(&caller)?;
    let tenant = &caller.tenant.id;
    state.providers.set_compaction(tenant, None).await?;
    Ok(Json(in_force(&state, &caller)))
}

fn need_admin(caller: &Caller) -> Result<(), ApiError> {
    if caller.may(Right::ManageModels) {
        return Ok(());
    }
    let text = "only an admin of the tenant may choose for everybody in it";
    Err(ApiError::new(Code::NotAllowed, text))
}

fn in_force(state: &GatewayState, caller: &Caller) -> CompactionDefaults {
    let names = |strategies: &[StrategyName]| -> Vec<&'static str> {
        strategies
            .iter()
            .map(|strategy| strategy.as_str())
            .collect()
    };
    let tenant = state.providers.compaction(&caller.tenant.id);
    let settings = state.sessions.settings_strategies();
    CompactionDefaults {
        strategies: names(tenant.as_deref().unwrap_or(settings)),
        tenant: tenant.as_deref().map(names),
        settings: names(settings),
    }
}
