//! What may be asked of usage, and the sums that answer.

use crate::domain::{MicroUsd, RequestParts, SessionId, TenantId, Timestamp, TokenUsage, UserId};

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// What is summed apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// Days of UTC.
    Day,
    /// Days, and in them models.
    DayAndModel,
    Person,
    Model,
    Session,
    /// What models were asked for: turns, titles, or summaries of what left the context.
    Purpose,
    /// MCP servers: their calls, and what their definitions took of requests.
    Server,
    /// Tools of MCP servers.
    Tool,
}

impl UsageBy {
    /// Whether calls of tools are summed, and not model requests.
    pub fn is_of_calls(self) -> bool {
        matches!(self, Self::Server | Self::Tool)
    }
}

/// What is summed at all.
#[derive(Debug, Clone)]
pub struct UsageFilter {
    pub tenant: TenantId,
    /// Of one person; none = of everybody in the tenant.
    pub owner: Option<UserId>,
    /// Who is told the titles of their own sessions, and of nobody else's: not even the order tells.
    pub reader: UserId,
    /// From this time on.
    pub from: Timestamp,
    /// Before this time.
    pub to: Timestamp,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub session: Option<SessionId>,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorting {
    /// What it is grouped by.
    Name,
    Cost,
    Tokens,
    /// Model requests, or calls.
    Count,
    /// Time that calls took.
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

/// Whether the smallest comes first, or the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// Sums of model requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestSums {
    /// Attempts, those without an answer included.
    pub requests: u64,
    pub tokens: TokenUsage,
    /// Attempts whose tokens we counted, because the provider reported nothing.
    pub estimated_requests: u64,
    /// Their tokens, input and output.
    pub estimated_tokens: u64,
    /// Cost of those whose price was known.
    pub cost: MicroUsd,
    /// Those whose price was not known.
    pub unpriced_requests: u64,
    /// What the input was for; all servers together under one name.
    pub parts: RequestParts,
}

/// Sums of calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallSums {
    pub calls: u64,
    /// Those that failed, or whose outcome nobody knows.
    pub failed: u64,
    pub duration_ms: u64,
    /// Tokens of the results, estimated.
    pub result_tokens: u64,
    /// Tokens that definitions took of model requests; of servers only.
    pub definition_tokens: u64,
}

/// What is summed together; only what was grouped by is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageGroup<S> {
    /// The day in UTC.
    pub day: Option<Timestamp>,
    pub owner: Option<UserId>,
    /// The person's name, while there is such a person.
    pub owner_name: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub session: Option<SessionId>,
    /// The title of the reader's own session, while there is such a session.
    pub title: Option<String>,
    /// What models were asked for, by its name in the database.
    pub purpose: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub sums: S,
}
