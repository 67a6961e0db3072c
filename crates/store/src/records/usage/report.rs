//! Defines the filters of usage reports, and their sums.

use sepal_core::domain::{
    MicroUsd, RequestParts, SessionId, TenantId, Timestamp, TokenUsage, UserId,
};

/// The number of milliseconds in a day.
pub const DAY_MS: i64 = 86_400_000;

/// The grouping of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// By day in UTC.
    Day,
    /// By day, and by model within each day.
    DayAndModel,
    Person,
    Model,
    Session,
    /// By the purpose of the model request: turns, titles, or summaries of entries that left the context.
    Purpose,
    /// By MCP server: its calls, and the tokens of its tool definitions in requests.
    Server,
    /// By tool of an MCP server.
    Tool,
}

impl UsageBy {
    /// Returns true if the report sums calls of tools, false if it sums model requests.
    pub fn is_of_calls(self) -> bool {
        matches!(self, Self::Server | Self::Tool)
    }
}

/// Selects the usage to sum.
#[derive(Debug, Clone)]
pub struct UsageFilter {
    pub tenant: TenantId,
    /// The usage of one person; `None` = of everyone in the tenant.
    pub owner: Option<UserId>,
    /// The reader of the report, who sees the titles of their own sessions only. Other titles do not affect
    /// the order either.
    pub reader: UserId,
    /// The start of the period, inclusive.
    pub from: Timestamp,
    /// The end of the period, exclusive.
    pub to: Timestamp,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub session: Option<SessionId>,
}

/// The value by which groups are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorting {
    /// The name of the group.
    Name,
    Cost,
    Tokens,
    /// The number of model requests, or of calls.
    Count,
    /// The total duration of calls.
    Duration,
}

impl Sorting {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Count => "count",
            Self::Duration => "duration",
        }
    }
}

/// The order of sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// Sums of model requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestSums {
    /// The number of attempts, including those without an answer.
    pub requests: u64,
    pub tokens: TokenUsage,
    /// The number of attempts whose tokens were estimated, because the provider reported none.
    pub estimated_requests: u64,
    /// The input and output tokens of these attempts.
    pub estimated_tokens: u64,
    /// The cost of the attempts whose price was known.
    pub cost: MicroUsd,
    /// The number of attempts whose price was not known.
    pub unpriced_requests: u64,
    /// The composition of the input, with the tools of all servers together under an empty name.
    pub parts: RequestParts,
}

/// Sums of calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallSums {
    pub calls: u64,
    /// The number of calls that failed or whose outcome is unknown.
    pub failed: u64,
    pub duration_ms: u64,
    /// The estimated number of tokens in the results.
    pub result_tokens: u64,
    /// The tokens of tool definitions in model requests. Only reports by server have them.
    pub definition_tokens: u64,
}

/// The sums of one group. Only the fields by which the report groups are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageGroup<S> {
    /// The start of the day in UTC.
    pub day: Option<Timestamp>,
    pub owner: Option<UserId>,
    /// The person's name, if the person still exists.
    pub owner_name: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub session: Option<SessionId>,
    /// The title, if the session still exists and is the reader's own.
    pub title: Option<String>,
    /// The purpose of the model requests, by its name in the database.
    pub purpose: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub sums: S,
}
