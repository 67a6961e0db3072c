//! Stores usage, projected from the journals: a row for each attempt of a model request and for each call of
//! a tool. The rows are never used for decisions and never changed: an existing row stays.

mod query;
mod report;

use serde_json::json;

use super::super::Error;
use super::super::db::{Arg, Db, PerRow, Statement, args};
use super::audit::{DecisionRow, keep_decisions};
use super::{budgets, session_id, tenant_id};
use sepal_core::domain::{
    CommitId, MicroUsd, RequestParts, RequestPurpose, SessionKey, Timestamp, TokenUsage, UserId,
};

pub use report::{
    CallSums, DAY_MS, Direction, RequestSums, Sorting, UsageBy, UsageFilter, UsageGroup,
};

/// The most sessions of one page.
const MAX_ROWS: i64 = 200;

/// The event and the commit from which a row comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPlace {
    pub commit: CommitId,
    /// The position of the event in the commit.
    pub index: u64,
    pub at: Timestamp,
    /// The owner of the session.
    pub owner: UserId,
}

/// One attempt of a model request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRow {
    pub place: EventPlace,
    pub turn: u64,
    /// The number of the model request in the turn, from 1; 0 = the request was made outside of the turn's
    /// iterations.
    pub iteration: u64,
    /// The number of the attempt, from 1.
    pub attempt: u64,
    pub purpose: RequestPurpose,
    /// True if the attempt resulted in an answer.
    pub is_answer: bool,
    pub provider: String,
    pub model: String,
    pub usage: TokenUsage,
    /// The cost, if the price was known.
    pub cost: Option<MicroUsd>,
    /// The price list from which the cost was calculated.
    pub price_version: Option<String>,
    /// The amount charged to budgets if the price was unknown.
    pub charged: Option<MicroUsd>,
    /// The composition of the input, as far as the journal tells.
    pub parts: RequestParts,
}

/// A finished call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    pub place: EventPlace,
    pub server: String,
    pub tool: String,
    /// The outcome, by its name in `tool:output`.
    pub status: &'static str,
    pub duration_ms: u64,
    /// The estimated number of tokens in the result.
    pub result_tokens: u64,
    /// The rule that decided the call, if one did.
    pub rule: Option<String>,
}

/// The usage of some commits of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageRows {
    pub requests: Vec<RequestRow>,
    pub calls: Vec<CallRow>,
    /// What was decided, for the audit.
    pub decisions: Vec<DecisionRow>,
}

impl UsageRows {
    /// Appends the usage of later commits.
    pub fn append(&mut self, mut later: Self) {
        self.requests.append(&mut later.requests);
        self.calls.append(&mut later.calls);
        self.decisions.append(&mut later.decisions);
    }
}

/// Builds a few statements that store the rows of all these sessions.
pub(super) fn keep(used: &[(&SessionKey, &UsageRows)]) -> Vec<Statement> {
    let sessions = || used.iter().copied();
    let requests =
        sessions().flat_map(|(key, rows)| rows.requests.iter().map(move |row| (key, row)));
    let calls = sessions().flat_map(|(key, rows)| rows.calls.iter().map(move |row| (key, row)));
    let decisions =
        sessions().flat_map(|(key, rows)| rows.decisions.iter().map(move |row| (key, row)));
    let kept = KEEP_REQUESTS
        .statements(requests.map(args_of_request))
        .chain(KEEP_CALLS.statements(calls.map(args_of_call)))
        .chain(keep_decisions(decisions));
    // In the same transaction, so that budget reserved for these requests becomes either spent or free.
    let ended = sessions().filter_map(|(key, rows)| {
        let ended = rows.requests.iter().map(|row| (row.turn, row.iteration));
        Some((key, ended.max()?))
    });
    kept.chain(budgets::settle(ended)).collect()
}

/// The progress of projecting a session's usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageProgress {
    pub key: SessionKey,
    /// The journal version up to which all rows are stored.
    pub version: u64,
}

/// Access to the stored usage.
pub struct Usage<'s> {
    db: &'s Db,
}

impl<'s> Usage<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Stores the usage of a session up to `version`. The rows must continue the stored ones without a gap.
    pub async fn add(&self, key: &SessionKey, rows: &UsageRows, version: u64) -> Result<(), Error> {
        let mut statements = keep(&[(key, rows)]);
        statements.push(Statement::new(
            "UPDATE sessions SET usage_version = $3 \
             WHERE tenant = $1 AND id = $2 AND usage_version < $3",
            args![key.tenant.as_str(), key.session.as_str(), int(version)],
        ));
        self.db.execute_in_turn(statements).await
    }

    /// The progress of a session; `None` if it is not in the list of sessions.
    pub async fn progress(&self, key: &SessionKey) -> Result<Option<UsageProgress>, Error> {
        let sql = "SELECT tenant, id, usage_version FROM sessions WHERE tenant = $1 AND id = $2";
        let whom = args![key.tenant.as_str(), key.session.as_str()];
        let row: Option<ProgressRow> = self.db.fetch_optional(sql, whom).await?;
        row.map(progress).transpose()
    }

    /// A page of the progress of all sessions. It starts after `last`, in the order of keys.
    pub async fn all_progress(
        &self,
        last: Option<&SessionKey>,
    ) -> Result<Vec<UsageProgress>, Error> {
        let sql = "SELECT tenant, id, usage_version FROM sessions WHERE (tenant, id) > ($1, $2) \
                   ORDER BY tenant, id LIMIT $3";
        self.page(sql, last).await
    }

    /// A page of the sessions whose usage is behind their row. It starts after `last`, in the order of keys.
    pub async fn behind(&self, last: Option<&SessionKey>) -> Result<Vec<UsageProgress>, Error> {
        let sql = "SELECT tenant, id, usage_version FROM sessions WHERE usage_version < version \
                   AND (tenant, id) > ($1, $2) ORDER BY tenant, id LIMIT $3";
        self.page(sql, last).await
    }

    async fn page(
        &self,
        sql: &'static str,
        last: Option<&SessionKey>,
    ) -> Result<Vec<UsageProgress>, Error> {
        let after = args![
            last.map_or("", |key| key.tenant.as_str()),
            last.map_or("", |key| key.session.as_str()),
            MAX_ROWS
        ];
        let rows: Vec<ProgressRow> = self.db.fetch_all(sql, after).await?;
        rows.into_iter().map(progress).collect()
    }
}

type ProgressRow = (String, String, i64);

fn progress((tenant, id, version): ProgressRow) -> Result<UsageProgress, Error> {
    let key = SessionKey {
        tenant: tenant_id(tenant)?,
        session: session_id(id)?,
    };
    Ok(UsageProgress {
        key,
        version: u64::try_from(version).unwrap_or(0),
    })
}

/// Converts a count to the integer type of the database.
fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

const KEEP_REQUESTS: PerRow = PerRow {
    before: "INSERT INTO model_requests (tenant, session, commit_id, place, at, owner, turn, \
        iteration, attempt, is_answer, provider, model, input_tokens, cached_tokens, \
        cache_write_tokens, cache_write_long_tokens, output_tokens, reasoning_tokens, \
        is_estimated, cost, price_version, part_system, part_tools, part_history, part_results, \
        part_message, part_attachments, part_reasoning, purpose, charged, tools) VALUES ",
    row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    between: ", ",
    after: " ON CONFLICT DO NOTHING",
};

fn args_of_request((key, row): (&SessionKey, &RequestRow)) -> Vec<Arg> {
    let (usage, parts) = (&row.usage, &row.parts);
    let mut values = args_of_place(key, &row.place);
    values.extend(args![
        int(row.turn),
        int(row.iteration),
        int(row.attempt),
        row.is_answer,
        row.provider.as_str(),
        row.model.as_str(),
        int(usage.input_tokens),
        int(usage.cached_tokens),
        int(usage.cache_write_tokens),
        int(usage.cache_write_long_tokens),
        int(usage.output_tokens),
        int(usage.reasoning_tokens),
        usage.is_estimated,
        Arg::Int(row.cost.map(|cost| int(cost.0))),
        row.price_version.as_deref(),
        // The table distinguishes only two parts before the history: tools, and everything else.
        int(parts.system.saturating_add(parts.all_context())),
        int(parts.all_tools()),
        int(parts.history),
        int(parts.results),
        int(parts.message),
        int(parts.attachments),
        int(parts.reasoning),
        row.purpose.as_str(),
        Arg::Int(row.charged.map(|charged| int(charged.0))),
        json!(parts.tools).to_string().as_str()
    ]);
    values
}

const KEEP_CALLS: PerRow = PerRow {
    before: "INSERT INTO tool_calls (tenant, session, commit_id, place, at, owner, server, tool, \
        status, duration_ms, result_tokens, rule) VALUES ",
    row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    between: ", ",
    after: " ON CONFLICT DO NOTHING",
};

fn args_of_call((key, row): (&SessionKey, &CallRow)) -> Vec<Arg> {
    let mut values = args_of_place(key, &row.place);
    values.extend(args![
        row.server.as_str(),
        row.tool.as_str(),
        row.status,
        int(row.duration_ms),
        int(row.result_tokens),
        row.rule.as_deref()
    ]);
    values
}

fn args_of_place(key: &SessionKey, place: &EventPlace) -> Vec<Arg> {
    args![
        key.tenant.as_str(),
        key.session.as_str(),
        place.commit.as_str(),
        int(place.index),
        place.at.0,
        place.owner.as_str()
    ]
}
