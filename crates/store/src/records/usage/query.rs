//! Sums usage.
//!
//! One statement serves every grouping: a column that is not grouped by is null in every row of the inner
//! query.

use super::super::super::Error;
use super::super::super::db::{Arg, Db, args};
use super::super::{session_id, user_id};
use super::report::{
    CallSums, DAY_MS, Direction, RequestSums, Sorting, UsageBy, UsageFilter, UsageGroup,
};
use super::{Usage, int};
use sepal_core::domain::{MicroUsd, RequestParts, SessionId, Timestamp, TokenUsage, UserId};

/// The inner query groups, and the outer one adds names and sorts.
const REQUESTS: &str = "SELECT grouped.*, users.name AS owner_name, sessions.title AS title FROM ( \
    SELECT CASE WHEN $1 THEN at / 86400000 END AS day, \
    CASE WHEN $2 THEN owner END AS owner, \
    CASE WHEN $3 THEN provider END AS provider, \
    CASE WHEN $3 THEN model END AS model, \
    CASE WHEN $4 THEN session END AS session, \
    CASE WHEN $17 THEN purpose END AS purpose, \
    CAST(COUNT(*) AS BIGINT) AS requests, \
    CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens, \
    CAST(COALESCE(SUM(cached_tokens), 0) AS BIGINT) AS cached_tokens, \
    CAST(COALESCE(SUM(cache_write_tokens), 0) AS BIGINT) AS cache_write_tokens, \
    CAST(COALESCE(SUM(cache_write_long_tokens), 0) AS BIGINT) AS cache_write_long_tokens, \
    CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens, \
    CAST(COALESCE(SUM(reasoning_tokens), 0) AS BIGINT) AS reasoning_tokens, \
    CAST(COALESCE(SUM(CASE WHEN is_estimated THEN 1 ELSE 0 END), 0) AS BIGINT) \
    AS estimated_requests, \
    CAST(COALESCE(SUM(CASE WHEN is_estimated THEN input_tokens + output_tokens ELSE 0 END), 0) \
    AS BIGINT) AS estimated_tokens, \
    CAST(COALESCE(SUM(cost), 0) AS BIGINT) AS cost, \
    CAST(COUNT(*) - COUNT(cost) AS BIGINT) AS unpriced_requests, \
    CAST(COALESCE(SUM(part_system), 0) AS BIGINT) AS part_system, \
    CAST(COALESCE(SUM(part_tools), 0) AS BIGINT) AS part_tools, \
    CAST(COALESCE(SUM(part_history), 0) AS BIGINT) AS part_history, \
    CAST(COALESCE(SUM(part_results), 0) AS BIGINT) AS part_results, \
    CAST(COALESCE(SUM(part_message), 0) AS BIGINT) AS part_message, \
    CAST(COALESCE(SUM(part_attachments), 0) AS BIGINT) AS part_attachments, \
    CAST(COALESCE(SUM(part_reasoning), 0) AS BIGINT) AS part_reasoning \
    FROM model_requests WHERE tenant = $5 AND ($6 = '' OR owner = $6) AND at >= $7 AND at < $8 \
    AND ($9 = '' OR provider = $9) AND ($10 = '' OR model = $10) AND ($11 = '' OR session = $11) \
    GROUP BY 1, 2, 3, 4, 5, 6) AS grouped \
    LEFT JOIN users ON users.tenant = $5 AND users.id = grouped.owner \
    LEFT JOIN sessions ON sessions.tenant = $5 AND sessions.id = grouped.session \
    AND sessions.owner = $16 \
    ORDER BY CASE $12 WHEN 'cost' THEN grouped.cost WHEN 'tokens' THEN \
    grouped.input_tokens + grouped.output_tokens WHEN 'count' THEN grouped.requests \
    ELSE grouped.day END * $13, \
    CASE WHEN $13 > 0 THEN COALESCE(users.name, grouped.owner, grouped.model, grouped.purpose) END, \
    CASE WHEN $13 < 0 THEN COALESCE(users.name, grouped.owner, grouped.model, grouped.purpose) END \
    DESC, \
    CASE WHEN $13 > 0 THEN sessions.title END, CASE WHEN $13 < 0 THEN sessions.title END DESC, \
    grouped.day, grouped.owner, grouped.provider, grouped.model, grouped.session \
    LIMIT $14 OFFSET $15";

/// Sums calls, and also the tokens of tool definitions, which are known for each server but not for each
/// tool. `$tools` lists those of a request.
macro_rules! calls {
    ($tools:literal) => {
        concat!(
            "SELECT server, tool, CAST(SUM(calls) AS BIGINT) AS calls, \
            CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(duration_ms) AS BIGINT) AS duration_ms, \
            CAST(SUM(result_tokens) AS BIGINT) AS result_tokens, \
            CAST(SUM(definition_tokens) AS BIGINT) AS definition_tokens FROM ( \
            SELECT server, CASE WHEN $1 THEN tool END AS tool, 1 AS calls, \
            CASE WHEN status IN ('failed', 'unknown') THEN 1 ELSE 0 END AS failed, \
            duration_ms, result_tokens, 0 AS definition_tokens FROM tool_calls \
            WHERE tenant = $2 AND ($3 = '' OR owner = $3) AND at >= $4 AND at < $5 \
            AND ($6 = '' OR session = $6) UNION ALL \
            SELECT tools.key AS server, NULL AS tool, 0 AS calls, 0 AS failed, 0 AS duration_ms, \
            0 AS result_tokens, CAST(tools.value AS BIGINT) AS definition_tokens \
            FROM model_requests r CROSS JOIN ",
            $tools,
            " AS tools \
            WHERE NOT $1 AND r.tenant = $2 AND ($3 = '' OR r.owner = $3) AND r.at >= $4 \
            AND r.at < $5 AND ($6 = '' OR r.session = $6)) AS parts \
            GROUP BY server, tool \
            ORDER BY CASE $7 WHEN 'count' THEN SUM(calls) WHEN 'duration' THEN SUM(duration_ms) \
            WHEN 'tokens' THEN SUM(result_tokens) + SUM(definition_tokens) ELSE 0 END * $8, \
            CASE WHEN $8 > 0 THEN server END, CASE WHEN $8 < 0 THEN server END DESC, server, tool \
            LIMIT $9 OFFSET $10"
        )
    };
}
const CALLS_IN_SQLITE: &str = calls!("json_each(r.tools)");
const CALLS_IN_POSTGRES: &str = calls!("json_each_text(CAST(r.tools AS json))");

impl Usage<'_> {
    /// The sums of model requests in each group, from `offset` on.
    pub async fn of_requests(
        &self,
        filter: &UsageFilter,
        by: UsageBy,
        (sorting, direction): (Sorting, Direction),
        (offset, limit): (usize, usize),
    ) -> Result<Vec<UsageGroup<RequestSums>>, Error> {
        let is_by = |wanted: &[UsageBy]| wanted.contains(&by);
        let mut values = args![
            is_by(&[UsageBy::Day, UsageBy::DayAndModel]),
            is_by(&[UsageBy::Person, UsageBy::Session]),
            is_by(&[UsageBy::Model, UsageBy::DayAndModel]),
            is_by(&[UsageBy::Session])
        ];
        values.extend(of_requests(filter));
        values.extend(args![
            sorting.as_str(),
            sign(direction),
            int(limit as u64),
            int(offset as u64),
            filter.reader.as_str(),
            is_by(&[UsageBy::Purpose])
        ]);
        let rows: Vec<RequestsRow> = self.db.fetch_all(REQUESTS, values).await?;
        rows.into_iter().map(RequestsRow::into_group).collect()
    }

    /// The sums of all model requests together.
    pub async fn total_of_requests(&self, filter: &UsageFilter) -> Result<RequestSums, Error> {
        let mut values = args![false, false, false, false];
        values.extend(of_requests(filter));
        values.extend(args![
            Sorting::Name.as_str(),
            1_i64,
            1_i64,
            0_i64,
            filter.reader.as_str(),
            false
        ]);
        let row: Option<RequestsRow> = self.db.fetch_optional(REQUESTS, values).await?;
        let group = row.map(RequestsRow::into_group).transpose()?;
        Ok(group.map(|group| group.sums).unwrap_or_default())
    }

    /// The sums of calls in each group, from `offset` on.
    pub async fn of_calls(
        &self,
        filter: &UsageFilter,
        by: UsageBy,
        (sorting, direction): (Sorting, Direction),
        (offset, limit): (usize, usize),
    ) -> Result<Vec<UsageGroup<CallSums>>, Error> {
        let values = args![
            by == UsageBy::Tool,
            filter.tenant.as_str(),
            filter.owner.as_ref().map_or("", UserId::as_str),
            filter.from.0,
            filter.to.0,
            filter.session.as_ref().map_or("", SessionId::as_str),
            sorting.as_str(),
            sign(direction),
            int(limit as u64),
            int(offset as u64)
        ];
        let sql = match self.db {
            Db::Sqlite(_) => CALLS_IN_SQLITE,
            Db::Postgres(_) => CALLS_IN_POSTGRES,
        };
        let rows: Vec<CallsRow> = self.db.fetch_all(sql, values).await?;
        Ok(rows.into_iter().map(CallsRow::into_group).collect())
    }
}

fn of_requests(filter: &UsageFilter) -> Vec<Arg> {
    args![
        filter.tenant.as_str(),
        filter.owner.as_ref().map_or("", UserId::as_str),
        filter.from.0,
        filter.to.0,
        filter.provider.as_deref().unwrap_or_default(),
        filter.model.as_deref().unwrap_or_default(),
        filter.session.as_ref().map_or("", SessionId::as_str)
    ]
}

fn sign(direction: Direction) -> i64 {
    match direction {
        Direction::Ascending => 1,
        Direction::Descending => -1,
    }
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[derive(sqlx_macros::FromRow)]
struct RequestsRow {
    day: Option<i64>,
    owner: Option<String>,
    owner_name: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    session: Option<String>,
    title: Option<String>,
    purpose: Option<String>,
    requests: i64,
    input_tokens: i64,
    cached_tokens: i64,
    cache_write_tokens: i64,
    cache_write_long_tokens: i64,
    output_tokens: i64,
    reasoning_tokens: i64,
    estimated_requests: i64,
    estimated_tokens: i64,
    cost: i64,
    unpriced_requests: i64,
    part_system: i64,
    part_tools: i64,
    part_history: i64,
    part_results: i64,
    part_message: i64,
    part_attachments: i64,
    part_reasoning: i64,
}

impl RequestsRow {
    fn into_group(self) -> Result<UsageGroup<RequestSums>, Error> {
        let sums = self.sums();
        Ok(UsageGroup {
            day: self.day.map(|day| Timestamp(day.saturating_mul(DAY_MS))),
            owner: self.owner.map(user_id).transpose()?,
            owner_name: self.owner_name,
            provider: self.provider,
            model: self.model,
            session: self.session.map(session_id).transpose()?,
            title: self.title,
            purpose: self.purpose,
            server: None,
            tool: None,
            sums,
        })
    }

    fn sums(&self) -> RequestSums {
        RequestSums {
            requests: count(self.requests),
            tokens: TokenUsage {
                input_tokens: count(self.input_tokens),
                cached_tokens: count(self.cached_tokens),
                cache_write_tokens: count(self.cache_write_tokens),
                cache_write_long_tokens: count(self.cache_write_long_tokens),
                output_tokens: count(self.output_tokens),
                reasoning_tokens: count(self.reasoning_tokens),
                is_estimated: self.estimated_requests > 0,
            },
            estimated_requests: count(self.estimated_requests),
            estimated_tokens: count(self.estimated_tokens),
            cost: MicroUsd(count(self.cost)),
            unpriced_requests: count(self.unpriced_requests),
            parts: RequestParts {
                context: std::collections::BTreeMap::new(),
                system: count(self.part_system),
                tools: [(String::new(), count(self.part_tools))].into(),
                history: count(self.part_history),
                results: count(self.part_results),
                message: count(self.part_message),
                attachments: count(self.part_attachments),
                reasoning: count(self.part_reasoning),
            },
        }
    }
}

#[derive(sqlx_macros::FromRow)]
struct CallsRow {
    server: String,
    tool: Option<String>,
    calls: i64,
    failed: i64,
    duration_ms: i64,
    result_tokens: i64,
    definition_tokens: i64,
}

impl CallsRow {
    fn into_group(self) -> UsageGroup<CallSums> {
        UsageGroup {
            server: Some(self.server),
            tool: self.tool,
            sums: CallSums {
                calls: count(self.calls),
                failed: count(self.failed),
                duration_ms: count(self.duration_ms),
                result_tokens: count(self.result_tokens),
                definition_tokens: count(self.definition_tokens),
            },
            ..UsageGroup::default()
        }
    }
}
