//! Rules about calls (`/api/rules`): lists, creates, removes, previews and simulates them.

mod body;
mod conditions;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use self::body::{NewRuleBody, RuleItem, RuleOfferItem, RulePreview, session_key};
use crate::agent::{Change, RuleAccess, SimulatedCall};
use crate::domain::{CallId, Caller, SessionKey, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query};
use crate::gateway::word_list;

/// The routes of rules.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(list_rules, create_rule))
        .routes(routes!(delete_rule))
        .routes(routes!(preview_rule))
        .routes(routes!(simulate_rule))
        .routes(routes!(list_rule_offers))
}

/// Of what.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct RulesQuery {
    /// One of my sessions: its own rules too.
    #[param(pattern = "^(ses_[0-9a-f]{32})?$")]
    session: Option<String>,
}

impl RulesQuery {
    fn session(self, caller: &Caller) -> Result<Option<SessionKey>, ApiError> {
        let id = self.session.filter(|id| !id.is_empty());
        id.map(|id| session_key(caller, &id)).transpose()
    }
}

/// Rules.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RulesPage {
    /// In the order in which they count.
    rules: Vec<RuleItem>,
}

/// A rule was given.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CreateRuleResponse {
    rule: RuleItem,
    /// Whether the call that it was made from is approved.
    has_approved: bool,
}

/// The rules that hold in my sessions, wherever they come from.
#[utoipa::path(get, path = "/api/rules", tag = "rules", params(RulesQuery), responses(
    (status = 200, body = RulesPage), (status = 404, body = Problem),
))]
async fn list_rules(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<RulesQuery>,
) -> Result<Json<RulesPage>, ApiError> {
    let session = query.session(&caller)?;
    let rules = RuleAccess::of(&state.sessions);
    let rules = rules.list(&caller, session.as_ref()).await?;
    Ok(Json(RulesPage {
        rules: rules.into_iter().map(RuleItem::of).collect(),
    }))
}

/// Give a rule: for one of my sessions, for all of mine, or as an admin for everybody's. It decides from
/// now on, also about calls that wait. With `callId` it is made from a call, which is approved with it if
/// the rule allows.
#[utoipa::path(post, path = "/api/rules", tag = "rules", request_body = NewRuleBody,
    responses((status = 201, body = CreateRuleResponse), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
async fn create_rule(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<NewRuleBody>,
) -> Result<(StatusCode, Json<CreateRuleResponse>), ApiError> {
    let shown = body.digest();
    let new = body.new_rule(&caller)?;
    let given = RuleAccess::of(&state.sessions)
        .give(&caller, new, shown)
        .await?;
    let response = CreateRuleResponse {
        rule: RuleItem::of(given.view),
        has_approved: given.has_approved,
    };
    Ok((StatusCode::CREATED, Json(response)))
}

/// Take a rule back: what it let run and has not started is asked again.
#[utoipa::path(delete, path = "/api/rules/{id}", tag = "rules",
    params(("id" = String, Path), RulesQuery),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem)),
)]
async fn delete_rule(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<RulesQuery>,
) -> Result<StatusCode, ApiError> {
    let session = query.session(&caller)?;
    let rules = RuleAccess::of(&state.sessions);
    rules.remove(&caller, &id, session.as_ref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A rule in words, with an example that it is about and one that it is not. Nothing is kept.
#[utoipa::path(post, path = "/api/rules/preview", tag = "rules", request_body = NewRuleBody,
    responses((status = 200, body = RulePreview), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)),
)]
async fn preview_rule(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<NewRuleBody>,
) -> Result<Json<RulePreview>, ApiError> {
    let new = body.new_rule(&caller)?;
    let rule = RuleAccess::of(&state.sessions)
        .preview(&caller, &new)
        .await?;
    Ok(Json(RulePreview::of(rule)))
}

/// What a rule would have changed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SimulationResponse {
    /// The number of calls in my sessions that were looked at, 500 at most.
    calls: usize,
    /// Those that would be decided otherwise, the newest first.
    changed: Vec<ChangedCall>,
    /// Of a rule for the tenant: how many calls of others it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<ConcernedCalls>,
}

/// Calls in the sessions of others. What a rule would change of them is not told: it follows from their
/// arguments, which a rule could be made to ask for letter by letter.
#[derive(Debug, Serialize, ToSchema)]
struct ConcernedCalls {
    /// The number of calls that were looked at, 500 at most.
    calls: usize,
    /// The number of them whose tools the rule names.
    concerned: usize,
}

/// A call in my sessions that would be decided otherwise.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChangedCall {
    session: String,
    server: String,
    tool: String,
    at: String,
    /// With what it ran, or would have run.
    #[schema(value_type = Object)]
    arguments: serde_json::Value,
    #[schema(value_type = word_list::ToolEffect)]
    before: &'static str,
    #[schema(value_type = word_list::ToolEffect)]
    after: &'static str,
    /// Why, in words.
    because: String,
}

impl ChangedCall {
    fn of(call: SimulatedCall) -> Self {
        Self {
            session: call.session.to_string(),
            server: call.tool.server,
            tool: call.tool.tool,
            at: Timestamp::to_rfc3339(call.at),
            arguments: call.arguments,
            before: call.before.as_str(),
            after: call.after.as_str(),
            because: call.because,
        }
    }
}

/// What a rule would have changed of my last 500 calls, and how many calls of others a rule of the tenant is
/// about. Nothing is kept.
#[utoipa::path(post, path = "/api/rules/simulate", tag = "rules", request_body = NewRuleBody,
    responses((status = 200, body = SimulationResponse), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem)),
)]
async fn simulate_rule(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<NewRuleBody>,
) -> Result<Json<SimulationResponse>, ApiError> {
    let new = body.new_rule(&caller)?;
    let change = Change::Give(&new);
    let simulation = RuleAccess::of(&state.sessions)
        .simulate(&caller, change)
        .await?;
    Ok(Json(SimulationResponse {
        others: simulation.others.map(|others| ConcernedCalls {
            calls: others.calls,
            concerned: others.concerned,
        }),
        calls: simulation.calls,
        changed: simulation
            .changed
            .into_iter()
            .map(ChangedCall::of)
            .collect(),
    }))
}

/// What could be decided about calls like one that waits.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleOffers {
    /// The one that is about the fewest calls first.
    offers: Vec<RuleOfferItem>,
}

/// The rules that could be made from a call that waits, in words.
#[utoipa::path(get, path = "/api/sessions/{id}/calls/{call}/rules", tag = "rules",
    params(("id" = String, Path), ("call" = String, Path)),
    responses((status = 200, body = RuleOffers), (status = 404, body = Problem)),
)]
async fn list_rule_offers(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((id, call)): Path<(String, String)>,
) -> Result<Json<RuleOffers>, ApiError> {
    let key = session_key(&caller, &id)?;
    let call = CallId::from_wire(call);
    let offers = RuleAccess::of(&state.sessions)
        .offers(&caller, (&key, &call))
        .await?;
    Ok(Json(RuleOffers {
        offers: offers.iter().map(RuleOfferItem::of).collect(),
    }))
}
