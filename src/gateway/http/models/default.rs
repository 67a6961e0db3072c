//! The default model of new sessions: people set their own, admins that of their tenant or the installation.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::domain::{Caller, Code, Right, Scope};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::word_list;
use crate::providers::{DefaultFor, WantedModel};
use crate::session::ModelChoice;
use crate::tenancy::Clock;

/// The model with which new sessions of the caller begin.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelDefaults {
    /// The provider's name.
    provider: String,
    /// The model's name at the provider.
    model: String,
    /// The level that chose the model: `own`, `tenant` or `installation`; `settings` if no level chose one,
    /// or if the chosen model cannot answer.
    #[schema(value_type = word_list::ModelDefaultSource)]
    source: &'static str,
    /// The caller's choice for their own sessions; `null` if there is none.
    own: Option<DefaultModel>,
    /// The choice of the tenant's admins; `null` if there is none.
    tenant: Option<DefaultModel>,
    /// The choice for all tenants; `null` if there is none.
    installation: Option<DefaultModel>,
}

/// A provider's model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct DefaultModel {
    /// The provider's name.
    provider: String,
    /// The model's name at the provider.
    model: String,
}

/// The model with which new sessions are to begin.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct SetModelDefaultRequest {
    /// The provider's name.
    #[schema(required, nullable = false)]
    provider: Option<String>,
    /// The model's name at the provider; if absent, the provider's own default.
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    model: Option<String>,
    /// The sessions for which the default is set: `own` (the caller's), `tenant` or `installation`; `own` if
    /// absent.
    #[schema(pattern = "^(own|tenant|installation)$")]
    scope: Option<String>,
}

/// The default model to remove.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DefaultQuery {
    /// The sessions for which the default was set: `own` (the caller's), `tenant` or `installation`; `own` if
    /// absent.
    #[param(pattern = "^(own|tenant|installation)$")]
    scope: Option<String>,
}

/// Returns the model with which new sessions of the caller begin, and the level that chose it.
#[utoipa::path(get, path = "/api/models/default", tag = "models", responses(
    (status = 200, body = ModelDefaults), (status = 401, body = Problem),
))]
pub(super) async fn read_model_default(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Json<ModelDefaults> {
    Json(in_force(&state, &caller))
}

/// Sets the model with which new sessions begin: the caller's own or, for admins, everybody's.
#[utoipa::path(put, path = "/api/models/default", tag = "models",
    request_body = SetModelDefaultRequest,
    responses((status = 200, body = ModelDefaults), (status = 400, body = Problem),
        (status = 403, body = Problem)),
)]
pub(super) async fn set_model_default(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<SetModelDefaultRequest>,
) -> Result<Json<ModelDefaults>, ApiError> {
    let whose = whose(&caller, body.scope.as_deref())?;
    let provider = required("provider", body.provider)?;
    let wanted = WantedModel::new(Some(provider), body.model);
    let (tenant, user) = (&caller.tenant.id, &caller.user.id);
    state.providers.refresh_access(tenant).await;
    // Whoever chooses for others need not be able to use the model.
    let choice = if whose.user.is_some() {
        state.providers.choose((tenant, user), &wanted, None)?
    } else {
        state.providers.resolve((tenant, user), &wanted, None)?
    };
    if let Some(offer) = state.providers.find(tenant, &choice.provider) {
        offer.warn_of_end(&choice.model, Clock::system().now().date());
    }
    state.providers.set_default(whose, Some(choice)).await?;
    Ok(Json(in_force(&state, &caller)))
}

/// Removes a default model that was set.
#[utoipa::path(delete, path = "/api/models/default", tag = "models", params(DefaultQuery),
    responses((status = 200, body = ModelDefaults), (status = 400, body = Problem),
        (status = 403, body = Problem)),
)]
pub(super) async fn clear_model_default(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<DefaultQuery>,
) -> Result<Json<ModelDefaults>, ApiError> {
    let whose = whose(&caller, query.scope.as_deref())?;
    state.providers.set_default(whose, None).await?;
    Ok(Json(in_force(&state, &caller)))
}

/// Returns the level that `scope` names, or an error if the caller may not set its default.
fn whose(caller: &Caller, scope: Option<&str>) -> Result<DefaultFor, ApiError> {
    let refused = |text: &'static str| Err(ApiError::new(Code::NotAllowed, text));
    let tenant = &caller.tenant.id;
    match scope.unwrap_or("own") {
        "own" if !caller.user.role.may_act() => refused("a viewer has no sessions of their own"),
        "own" => Ok(DefaultFor::person(tenant, &caller.user.id)),
        "tenant" if !caller.may(Right::ManageModels) => {
            refused("only an admin of the tenant may choose for everybody in it")
        }
        "tenant" => Ok(DefaultFor::everybody(Scope::Tenant(tenant.clone()))),
        "installation" if !caller.user.installation_admin => {
            refused("only an administrator of the installation may choose for everybody")
        }
        "installation" => Ok(DefaultFor::everybody(Scope::Installation)),
        _ => {
            let text = "`scope` is `own`, `tenant` or `installation`";
            Err(ApiError::of_field(Code::InvalidArguments, "scope", text))
        }
    }
}

fn in_force(state: &GatewayState, caller: &Caller) -> ModelDefaults {
    let found = state
        .providers
        .defaults_of(&caller.tenant.id, &caller.user.id);
    // A model that its provider does not list is replaced, so only the provider shows whose choice it was.
    let is_it = |said: &Option<ModelChoice>| {
        said.as_ref()
            .is_some_and(|said| said.provider == found.choice.provider)
    };
    let sources = [
        ("own", &found.own),
        ("tenant", &found.tenant),
        ("installation", &found.installation),
    ];
    let source = sources.into_iter().find(|(_, said)| is_it(said));
    let item = |choice: &ModelChoice| DefaultModel {
        provider: choice.provider.clone(),
        model: choice.model.clone(),
    };
    ModelDefaults {
        source: source.map_or("settings", |(name, _)| name),
        own: found.own.as_ref().map(item),
        tenant: found.tenant.as_ref().map(item),
        installation: found.installation.as_ref().map(item),
        provider: found.choice.provider,
        model: found.choice.model,
    }
}
