//! Rules about calls (`/api/rules`): lists, creates, removes, previews and simulates them.

mod body;
mod conditions;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

pub(super) use self::body::RuleItem;
use self::body::{NewRuleBody, RuleOfferItem, RulePreview, session_key};
pub(super) use self::body::{approver, glob};
pub(super) use self::conditions::ConditionsBody;
use crate::agent::{Change, RuleAccess, SimulatedCall};
use crate::domain::{CallId, Caller, SessionKey, Timestamp};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query};
use crate::gateway::paging::PageQuery;
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

/// The session whose own rules are included.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct RulesQuery {
    /// The id of one of the caller's sessions, to include the session's own rules.
    #[param(pattern = "^(ses_[0-9a-f]{32})?$")]
    session: Option<String>,
}

impl RulesQuery {
    fn session(self, caller: &Caller) -> Result<Option<SessionKey>, ApiError> {
        let id = self.session.filter(|id| !id.is_empty());
        id.map(|id| session_key(caller, &id)).transpose()
    }
}

/// The rules that apply in the caller's sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RulesPage {
    /// The rules, in order of precedence.
    rules: Vec<RuleItem>,
    /// The cursor of the next page; `null` if there is none.
    next_cursor: Option<String>,
}

/// A new rule.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CreateRuleResponse {
    /// The rule.
    rule: RuleItem,
    /// True if the call from which the rule was made is approved.
    has_approved: bool,
}

/// Lists the rules that apply in the caller's sessions, of every origin.
#[utoipa::path(get, path = "/api/rules", tag = "rules", params(RulesQuery, PageQuery), responses(
    (status = 200, body = RulesPage), (status = 404, body = Problem),
))]
async fn list_rules(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<RulesQuery>,
    Query(part): Query<PageQuery>,
) -> Result<Json<RulesPage>, ApiError> {
    let session = query.session(&caller)?;
    let rules = RuleAccess::of(&state.sessions);
    let rules = rules.list(&caller, session.as_ref()).await?;
    let rules = rules.into_iter().map(RuleItem::of).collect();
    let page = part.page(rules, RuleItem::key)?;
    Ok(Json(RulesPage {
        rules: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// Creates a rule for one of the caller's sessions, for all of them or, as an admin, for those of a group's
/// members or everybody's.
///
/// The rule decides from now on, also about waiting calls. With `callId` it is made from a call, which it
/// approves if it allows.
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

/// Removes a rule. Calls that it allowed and that have not started need an approval again.
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

/// Returns a rule in words, with a call that it decides and a call that it does not. Nothing is stored.
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

/// The effect that a rule would have had on past calls.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SimulationResponse {
    /// The number of the caller's calls that were examined, 500 at most.
    calls: usize,
    /// The calls that would be decided differently, newest first.
    changed: Vec<ChangedCall>,
    /// The calls of other people, for a rule of a group or the tenant; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<ConcernedCalls>,
}

/// Calls in the sessions of other people.
///
/// The response does not say which of them would be decided differently: that depends on their arguments,
/// which a rule could be made to reveal letter by letter.
#[derive(Debug, Serialize, ToSchema)]
struct ConcernedCalls {
    /// The number of calls that were examined, 500 at most.
    calls: usize,
    /// The number of them whose tools the rule names.
    concerned: usize,
}

/// A call of the caller that would be decided differently.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChangedCall {
    /// The id of the call's session.
    session: String,
    /// The MCP server's name.
    server: String,
    /// The tool's name at its server.
    tool: String,
    /// The time of the call (RFC 3339).
    at: String,
    /// The arguments with which the call ran, or would have run.
    #[schema(value_type = Object)]
    arguments: serde_json::Value,
    /// The effect without the rule.
    #[schema(value_type = word_list::ToolEffect)]
    before: &'static str,
    /// The effect with the rule.
    #[schema(value_type = word_list::ToolEffect)]
    after: &'static str,
    /// The reason, as a sentence.
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

/// Returns the effect that a rule would have had on the caller's last 500 calls and, for a rule of a
/// group or the tenant, the number of other people's calls that it concerns. Nothing is stored.
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

/// The rules that could be made from a waiting call.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleOffers {
    /// The rules, the one that is about the fewest calls first.
    offers: Vec<RuleOfferItem>,
}

/// Lists the rules that could be made from a waiting call, in words.
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
        .offers(&caller, &key, &call)
        .await?;
    Ok(Json(RuleOffers {
        offers: offers.iter().map(RuleOfferItem::of).collect(),
    }))
}
