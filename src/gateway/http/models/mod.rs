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
use self::list::Asked;
use self::probe::Verdict;
use crate::domain::{Caller, Code, Role};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;
use crate::gateway::word_list;

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

/// The models that can be asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AvailableModels {
    /// The provider of new sessions.
    provider: String,
    /// Their model. One that the provider does not list is replaced by a listed one; `problems`
    /// says so.
    model: String,
    /// The models of all providers, that of new sessions first.
    models: Vec<AvailableModel>,
    /// What is wrong with which provider; its models may be missing.
    problems: Vec<ProviderProblem>,
}

/// What is wrong with a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct ProviderProblem {
    /// Its name.
    provider: String,
    /// What is wrong, for people.
    problem: String,
}

/// What each provider and model answered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckedModels {
    /// The providers, that of new sessions first.
    providers: Vec<CheckedProvider>,
}

/// What a provider answered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckedProvider {
    /// Its name.
    provider: String,
    /// What it speaks.
    #[schema(value_type = word_list::ProviderWire)]
    kind: &'static str,
    /// What came of a small real request to each model.
    models: Vec<CheckedModel>,
    /// Chat models that were not asked, because there are too many.
    skipped: usize,
    /// Why it does not list its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What came of a small real request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckedModel {
    /// The model's name in requests.
    model: String,
    /// `available`, `not_found` or `error`.
    status: &'static str,
    /// Why it does not answer, in the provider's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// How long the answer took, in milliseconds.
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

/// How to ask.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ModelsQuery {
    /// Make a small real request to each chat model, at most 12 of each provider (S2.54). It costs
    /// money, so it takes an admin.
    #[serde(default, deserialize_with = "flag")]
    #[param(value_type = Option<bool>)]
    probe: bool,
    /// Ask the providers anew.
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

/// The models that can be asked for, of all providers.
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
    let asked = Asked {
        offers: state.providers.visible(whose),
        choice: state.providers.configured_choice(whose),
        is_fresh: query.refresh,
        payer: Box::new((state.sessions.budgets().clone(), caller.holder())),
    };
    let found = state.models.available(&asked, query.probe).await;
    Ok(Json(found))
}

/// Makes a small real request to each chat model, at most 12 of each provider, and says what came
/// of it (S2.55). It costs money, so it takes an admin, and pages of other sites may not ask for it. A
/// model that was asked within the last minute is not asked again: its result is given once more.
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
    let asked = Asked {
        offers: state.providers.visible(whose),
        choice: state.providers.configured_choice(whose),
        is_fresh: true,
        payer: Box::new((state.sessions.budgets().clone(), caller.holder())),
    };
    Ok(Json(state.models.check(&asked).await))
}

fn need_admin(caller: &Caller) -> Result<(), ApiError> {
    if caller.user.role >= Role::Admin || caller.user.installation_admin {
        return Ok(());
    }
    let text = "real requests to models cost money: only an admin may make them";
    Err(ApiError::new(Code::NotAllowed, text))
}
