//! Reads, sets and removes budgets (`/api/budgets`).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::agent::{BudgetChange, BudgetView, BudgetWhose};
use crate::domain::{BudgetLevel, BudgetPeriod, BudgetSource, Caller, Code, MicroUsd, SessionKey};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, Query, required};
use crate::gateway::word_list;

/// The largest limit of a budget, in US dollars.
const MAX_USD: f64 = 1e6;

/// The budgets that the caller may see.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BudgetsPage {
    /// The budgets that apply to the caller, or to the session that the query names; the one with the least
    /// money left first.
    in_force: Vec<BudgetItem>,
    /// All budgets that were set in the caller's tenant, for its admins; empty for others.
    set: Vec<BudgetItem>,
}

/// A budget and its current state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a form on the wire: each is a question of its own"
)]
struct BudgetItem {
    /// The level whose spending the budget limits.
    #[schema(value_type = word_list::BudgetLevel)]
    level: &'static str,
    /// The id of the session, person or group that the budget is for; `null` if it is for each session or
    /// person of the tenant, or for the tenant itself.
    subject: Option<String>,
    /// The name of the group, for a group's budget, or of the person, for a person's budget in `set`; absent
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The period in which the limit may be spent.
    #[schema(value_type = word_list::BudgetPeriod)]
    period: &'static str,
    /// The limit in US dollars.
    limit_usd: f64,
    /// The percentage of the limit at which people are warned.
    warn_percent: u8,
    /// True if spending beyond the limit is refused; otherwise people are only warned.
    is_hard: bool,
    /// The source of the budget.
    #[schema(value_type = word_list::BudgetSource)]
    source: &'static str,
    /// The amount already spent in the period, in US dollars; `null` if only admins may see it.
    used_usd: Option<f64>,
    /// The amount that running model requests have reserved, in US dollars; `null` if only admins may see it.
    reserved_usd: Option<f64>,
    /// The limit without the spent and reserved amounts, in US dollars, at least 0; `null` if only admins may
    /// see it.
    left_usd: Option<f64>,
    /// True if the spent amount has reached `warnPercent` of the limit.
    is_near: bool,
    /// True if the whole limit is spent.
    is_exhausted: bool,
    /// When the current period ends (RFC 3339); `null` for the period `whole`.
    resets_at: Option<String>,
    /// True if the caller may replace this budget.
    may_change: bool,
}

impl BudgetItem {
    fn of(view: BudgetView) -> Self {
        let (standing, has_sums) = (view.standing, view.has_sums);
        let sum = |amount: MicroUsd| has_sums.then(|| amount.as_usd());
        let budget = &standing.budget;
        Self {
            level: budget.level.as_str(),
            subject: Some(budget.subject.clone()).filter(|subject| !subject.is_empty()),
            name: view.name,
            period: budget.period.as_str(),
            limit_usd: budget.limit.as_usd(),
            warn_percent: budget.warn_percent,
            is_hard: budget.is_hard,
            source: match standing.source {
                BudgetSource::Subject => "subject",
                BudgetSource::Each => "each",
                BudgetSource::Settings => "settings",
            },
            used_usd: sum(standing.used),
            reserved_usd: sum(standing.reserved),
            left_usd: sum(standing.left()),
            is_near: standing.is_near(MicroUsd(0)),
            is_exhausted: standing.used >= budget.limit,
            resets_at: view.resets_at.map(crate::domain::Timestamp::to_rfc3339),
            may_change: view.may_change,
        }
    }
}

/// The session whose budgets are read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct BudgetsQuery {
    /// The id of one of the caller's sessions, to read the budgets that apply to that session.
    #[param(pattern = "^(ses_[0-9a-f]{32})?$")]
    session: Option<String>,
}

/// The budget to remove.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct BudgetQuery {
    /// `own` (a session, limited by its owner), `session` (a session, limited by an admin), `person`,
    /// `group_each` (each member of a group, for what they spend as members), `group_pooled` (all members of a
    /// group together) or `tenant`. The budget of a turn is a setting (`agent.chat.request_budget`).
    #[param(
        required,
        nullable = false,
        pattern = "^(own|session|person|group_each|group_pooled|tenant)$"
    )]
    level: Option<String>,
    /// The id of the session, person or group; required for `own` and groups. If absent or empty, the budget
    /// of each session or person of the tenant, or of the tenant itself.
    subject: Option<String>,
    /// `whole` for `own` and `session`; `day` or `month` for `person`, groups and `tenant`.
    #[param(required, nullable = false, pattern = "^(whole|day|month)$")]
    period: Option<String>,
}

/// A budget to set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetBudgetRequest {
    /// `own` (a session, limited by its owner), `session` (a session, limited by an admin), `person`,
    /// `group_each` (each member of a group, for what they spend as members), `group_pooled` (all members of a
    /// group together) or `tenant`. The budget of a turn is a setting (`agent.chat.request_budget`).
    #[schema(
        required,
        nullable = false,
        pattern = "^(own|session|person|group_each|group_pooled|tenant)$"
    )]
    level: Option<String>,
    /// The id of the session, person or group; required for `own` and groups. If absent or empty, the budget
    /// is for each session or person of the tenant, or for the tenant itself.
    subject: Option<String>,
    /// `whole` for `own` and `session`; `day` or `month` for `person`, groups and `tenant`.
    #[schema(required, nullable = false, pattern = "^(whole|day|month)$")]
    period: Option<String>,
    /// The limit in US dollars.
    #[schema(required, nullable = false, minimum = 0, maximum = 1_000_000)]
    limit_usd: Option<f64>,
    /// The percentage of the limit at which people are warned; 80 if absent.
    #[schema(minimum = 1, maximum = 100)]
    warn_percent: Option<u8>,
    /// True to refuse spending beyond the limit, false to only warn people; true if absent.
    is_hard: Option<bool>,
}

/// Returns the budgets that apply to the caller or to one of the caller's sessions and, for admins, all
/// budgets that were set.
#[utoipa::path(get, path = "/api/budgets", tag = "budgets", params(BudgetsQuery), responses(
    (status = 200, body = BudgetsPage), (status = 404, body = Problem),
))]
pub(super) async fn read_budgets(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<BudgetsQuery>,
) -> Result<Json<BudgetsPage>, ApiError> {
    let budgets = state.sessions.budgets();
    if budgets.has_any(&caller.tenant.id) {
        // Waits until the sums contain everything that was spent so far.
        state.sessions.listed().await;
    }
    let session = match query.session.filter(|id| !id.is_empty()) {
        None => None,
        Some(id) => Some(session_row(&state, &caller, &id).await?),
    };
    let assistant = match &session {
        Some(row) => state.sessions.assistant_budget(&row.key, &caller).await?,
        None => None,
    };
    let mut in_force = budgets
        .in_force(&caller, session.as_ref(), assistant)
        .await?;
    in_force.sort_by_key(|view| view.standing.left());
    let set = budgets.list(&caller).await?;
    Ok(Json(BudgetsPage {
        in_force: in_force.into_iter().map(BudgetItem::of).collect(),
        set: set.into_iter().map(BudgetItem::of).collect(),
    }))
}

async fn session_row(
    state: &GatewayState,
    caller: &Caller,
    id: &str,
) -> Result<crate::store::records::SessionRow, ApiError> {
    let missing = || ApiError::new(Code::SessionNotFound, "there is no such session");
    let key = SessionKey {
        tenant: caller.tenant.id.clone(),
        session: crate::domain::SessionId::parse(id).ok_or_else(missing)?,
    };
    let row = state.sessions.row(&key, caller).await?;
    row.ok_or_else(missing)
}

/// Sets a budget, which applies from the next model request on.
///
/// The caller may limit their own sessions. Admins may limit any session, a person, a group, or the
/// tenant.
#[utoipa::path(put, path = "/api/budgets", tag = "budgets", request_body = SetBudgetRequest,
    responses((status = 204), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn set_budget(
    State(state): State<GatewayState>,
    caller: Caller,
    Body(body): Body<SetBudgetRequest>,
) -> Result<StatusCode, ApiError> {
    let whose = whose(body.level, body.subject, body.period)?;
    let limit = required("limitUsd", body.limit_usd)?;
    if !(0.0..=MAX_USD).contains(&limit) {
        return Err(wrong("limitUsd", "a budget has 0 to 1000000 dollars"));
    }
    if body
        .warn_percent
        .is_some_and(|part| !(1..=100).contains(&part))
    {
        return Err(wrong("warnPercent", "`warnPercent` is 1 to 100"));
    }
    let change = BudgetChange {
        limit: MicroUsd::from_usd(limit),
        warn_percent: body.warn_percent,
        is_hard: body.is_hard.unwrap_or(true),
    };
    state.sessions.listed().await;
    let budgets = state.sessions.budgets();
    budgets.put(&caller, &whose, &change).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a budget.
#[utoipa::path(delete, path = "/api/budgets", tag = "budgets", params(BudgetQuery),
    responses((status = 204), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn delete_budget(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<BudgetQuery>,
) -> Result<StatusCode, ApiError> {
    let whose = whose(query.level, query.subject, query.period)?;
    state.sessions.listed().await;
    state.sessions.budgets().delete(&caller, &whose).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn whose(
    level: Option<String>,
    subject: Option<String>,
    period: Option<String>,
) -> Result<BudgetWhose, ApiError> {
    let level = required("level", level)?;
    let level = BudgetLevel::parse(&level).ok_or_else(|| {
        let text =
            "`level` is `own`, `session`, `person`, `group_each`, `group_pooled` or `tenant`";
        wrong("level", text)
    })?;
    let period = required("period", period)?;
    let period = BudgetPeriod::parse(&period)
        .ok_or_else(|| wrong("period", "`period` is `whole`, `day` or `month`"))?;
    Ok(BudgetWhose {
        level,
        subject: subject.filter(|subject| !subject.is_empty()),
        period,
    })
}

fn wrong(field: &'static str, text: &str) -> ApiError {
    ApiError::of_field(Code::InvalidArguments, field, text)
}
