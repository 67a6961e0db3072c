//! Lists the models that a caller may use, and checks whether they answer.

mod compaction;
mod default;
mod describe;
mod kind;
mod list;
mod probe;
mod tokens;

pub use list::ModelList;

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use self::describe::AvailableModel;
use self::list::ModelListRequest;
use self::probe::Verdict;
use crate::domain::{Caller, Code, Right};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;
use crate::gateway::word_list;
use crate::session::ModelChoice;

/// The routes below `/api/models`.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_models))
        .routes(routes!(
            default::read_model_default,
            default::set_model_default,
            default::clear_model_default
        ))
        .routes(routes!(
            compaction::read_compaction,
            compaction::set_compaction,
            compaction::clear_compaction
        ))
        .routes(routes!(check_models))
        .routes(routes!(tokens::count_tokens))
}

/// The models that sessions of the caller may use.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AvailableModels {
    /// The name of the provider of new sessions.
    provider: String,
    /// The model of new sessions. If the provider does not list the configured model, a listed model replaces
    /// it, and `problems` says so.
    model: String,
    /// The models of all providers, those of the provider of new sessions first.
    models: Vec<AvailableModel>,
    /// The problems of providers, whose models may be missing.
    problems: Vec<ProviderProblem>,
}

/// A problem of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct ProviderProblem {
    /// The provider's name.
    provider: String,
    /// The problem, for people.
    problem: String,
}

/// The result of a check of all providers and models.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckedModels {
    /// The providers, that of new sessions first.
    providers: Vec<CheckedProvider>,
}

/// The result of a check of one provider.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckedProvider {
    /// The provider's name.
    provider: String,
    /// The provider's kind.
    #[schema(value_type = word_list::ProviderWire)]
    kind: &'static str,
    /// The result of a small real request to each model that was asked.
    models: Vec<CheckedModel>,
    /// The number of chat models that were not asked, because there are too many.
    skipped: usize,
    /// The reason the provider did not list its models; absent if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The result of a small real request to a model.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckedModel {
    /// The model's name in requests.
    model: String,
    /// `available`, `not_found` or `error`.
    status: &'static str,
    /// The reason the model did not answer, in the provider's words; absent if it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// The duration of the request in milliseconds.
    latency_ms: u64,
}

impl CheckedModel {
    fn new(model: String, verdict: Verdict) -> Self {
        Self {
            model,
            status: verdict.status(),
            latency_ms: u64::try_from(verdict.latency.as_millis()).unwrap_or(u64::MAX),
            cause: verdict.problem,
        }
    }
}

/// The way in which models are listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ModelsQuery {
    /// True to make a small real request to each chat model, at most 12 of each provider (S2.54). Requests
    /// cost money, so only admins may make them.
    #[serde(default, deserialize_with = "flag")]
    #[param(value_type = Option<bool>)]
    probe: bool,
    /// True to ask the providers again instead of using cached lists.
    #[serde(default, deserialize_with = "flag")]
    #[param(value_type = Option<bool>)]
    refresh: bool,
}

/// Reads a flag: `?probe`, `?probe=1` and `?probe=true` set it.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "" | "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        other => Err(serde::de::Error::custom(format!(
            "`{other}` is neither true nor false"
        ))),
    }
}

/// Lists the models that sessions of the caller may use, of all providers.
#[utoipa::path(get, path = "/api/models/available", tag = "models", params(ModelsQuery), responses(
    (status = 200, body = AvailableModels), (status = 401, body = Problem), (status = 403, body = Problem),
))]
pub(super) async fn list_models(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
    Query(query): Query<ModelsQuery>,
) -> Result<Json<AvailableModels>, ApiError> {
    if query.probe {
        need_admin(&caller)?;
        state.access.check_guarded(&parts)?;
    }
    let whose = (&caller.tenant.id, &caller.user.id);
    state.providers.refresh_access(whose.0).await;
    let asked = ModelListRequest {
        offers: state.providers.visible(&caller.tenant.id, &caller.user.id),
        choice: state.providers.configured_choice(whose),
        is_fresh: query.refresh,
        payer: Box::new((state.sessions.budgets().clone(), caller.holder())),
    };
    let mut found = state.models.available(&asked, query.probe).await;
    found.models.retain(|model| {
        let choice = ModelChoice::new(model.provider.as_str(), model.id.as_str());
        state.providers.may_use(whose, &choice)
    });
    Ok(Json(found))
}

/// Makes a small real request to each chat model, at most 12 of each provider, and returns the results
/// (S2.55).
///
/// Requests cost money, so only admins may make them, and pages of other sites may not. The result of a model
/// that was asked within the last minute is returned again without a new request.
#[utoipa::path(get, path = "/api/models/check", tag = "models", responses(
    (status = 200, body = CheckedModels), (status = 401, body = Problem), (status = 403, body = Problem),
))]
pub(super) async fn check_models(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
) -> Result<Json<CheckedModels>, ApiError> {
    need_admin(&caller)?;
    state.access.check_guarded(&parts)?;
    let whose = (&caller.tenant.id, &caller.user.id);
    state.providers.refresh_access(whose.0).await;
    let asked = ModelListRequest {
        offers: state.providers.visible(&caller.tenant.id, &caller.user.id),
        choice: state.providers.configured_choice(whose),
        is_fresh: true,
        payer: Box::new((state.sessions.budgets().clone(), caller.holder())),
    };
    Ok(Json(state.models.check(&asked).await))
}

fn need_admin(caller: &Caller) -> Result<(), ApiError> {
    if caller.may(Right::TestModels) {
        return Ok(());
    }
    let text = "real requests to models cost money: only an admin, or somebody with the right `models.test`, may make them";
    Err(ApiError::new(Code::NotAllowed, text))
}
