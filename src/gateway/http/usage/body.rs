//! The JSON form of usage.

use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;

use crate::agent::{UsageGroups, UsageReport};
use crate::store::records::{CallSums, RequestSums, UsageGroup};

/// A usage report.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct UsagePage {
    /// The first day, in UTC.
    #[schema(value_type = String)]
    from: Date,
    /// The last day, in UTC.
    #[schema(value_type = String)]
    to: Date,
    /// The sums of all model requests in these days, independent of the page.
    totals: RequestUsage,
    /// The groups of the page.
    items: Vec<UsageItem>,
    /// The `cursor` of the next page; `null` on the last page.
    next_cursor: Option<String>,
}

/// A group of the report. Only the fields by which the report is grouped are present.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageItem {
    /// The day, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// The person whose sessions used something.
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<UsagePerson>,
    /// The provider's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// The model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The session's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The title of the session, if it is the caller's own and still exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The purpose of the model requests: `turn`, `title`, or `compaction` for summaries of turns that left
    /// the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    purpose: Option<String>,
    /// The MCP server's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The tool's name at its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The sums of model requests; absent in groups by server or tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<RequestUsage>,
    /// The sums of calls; present only in groups by server or tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<CallUsage>,
}

/// A person whose sessions used something.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsagePerson {
    /// The person's user id.
    id: String,
    /// The person's name; `null` if the person no longer exists.
    name: Option<String>,
}

/// The usage of model requests.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestUsage {
    /// The number of attempts, including those without an answer.
    requests: u64,
    /// All input tokens, including cached ones.
    input_tokens: u64,
    /// Input tokens that were read from the provider's cache.
    cached_tokens: u64,
    /// Input tokens that were written to the provider's cache.
    cache_write_tokens: u64,
    /// Input tokens that were written to the provider's cache for a longer time.
    cache_write_long_tokens: u64,
    /// All output tokens, including reasoning.
    output_tokens: u64,
    /// Output tokens of reasoning.
    reasoning_tokens: u64,
    /// Input and output tokens together.
    total_tokens: u64,
    /// The number of attempts whose tokens Sepal counted itself, because the provider reported none.
    estimated_requests: u64,
    /// The tokens of these attempts, which are included in `totalTokens`.
    estimated_tokens: u64,
    /// The cost in US dollars of the attempts whose price was known; `null` if there were attempts and none
    /// had a known price.
    cost_usd: Option<f64>,
    /// The number of attempts whose price was unknown; `costUsd` does not include them.
    unpriced_requests: u64,
    /// The composition of `inputTokens`.
    parts: UsageParts,
}

/// The composition of `inputTokens`, which is the sum of these parts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsageParts {
    /// Tokens of the system prompt, and of context providers other than the history.
    system: u64,
    /// Tokens of tool definitions.
    tools: u64,
    /// Tokens of messages and answers before the newest message.
    history: u64,
    /// Tokens of the results of tools.
    results: u64,
    /// Tokens of the newest message.
    message: u64,
    /// Tokens of pictures and documents.
    attachments: u64,
    /// Tokens of reasoning that was sent back.
    reasoning: u64,
    /// Tokens of requests by releases that did not count parts.
    unknown: u64,
}

/// The usage of calls.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallUsage {
    /// The number of calls.
    calls: u64,
    /// The number of calls that failed or whose outcome is unknown.
    failed: u64,
    /// The total duration in milliseconds.
    duration_ms: u64,
    /// The estimated tokens of the results.
    result_tokens: u64,
    /// The tokens of the server's tool definitions in model requests; 0 in groups by tool.
    definition_tokens: u64,
}

impl UsagePage {
    pub(super) fn new(days: (Date, Date), report: UsageReport, next: Option<usize>) -> Self {
        let items = match report.groups {
            UsageGroups::Requests(groups) => {
                let items = groups.into_iter().map(|group| {
                    let requests = Some(RequestUsage::of(&group.sums));
                    UsageItem::new(group, requests, None)
                });
                items.collect()
            }
            UsageGroups::Calls(groups) => {
                let items = groups.into_iter().map(|group| {
                    let calls = Some(CallUsage::of(&group.sums));
                    UsageItem::new(group, None, calls)
                });
                items.collect()
            }
        };
        Self {
            from: days.0,
            to: days.1,
            totals: RequestUsage::of(&report.totals),
            items,
            next_cursor: next.map(|offset| offset.to_string()),
        }
    }
}

impl UsageItem {
    fn new<S>(
        group: UsageGroup<S>,
        requests: Option<RequestUsage>,
        calls: Option<CallUsage>,
    ) -> Self {
        Self {
            day: group.day.map(|day| day.date().to_string()),
            person: group.owner.map(|id| UsagePerson {
                id: id.to_string(),
                name: group.owner_name,
            }),
            provider: group.provider,
            model: group.model,
            session: group.session.map(|id| id.to_string()),
            title: group.title.filter(|title| !title.is_empty()),
            purpose: group.purpose,
            server: group.server,
            tool: group.tool,
            requests,
            calls,
        }
    }
}

impl RequestUsage {
    fn of(sums: &RequestSums) -> Self {
        let (tokens, parts) = (&sums.tokens, &sums.parts);
        let is_unknown = sums.requests > 0 && sums.unpriced_requests == sums.requests;
        Self {
            requests: sums.requests,
            input_tokens: tokens.input_tokens,
            cached_tokens: tokens.cached_tokens,
            cache_write_tokens: tokens.cache_write_tokens,
            cache_write_long_tokens: tokens.cache_write_long_tokens,
            output_tokens: tokens.output_tokens,
            reasoning_tokens: tokens.reasoning_tokens,
            total_tokens: tokens.total(),
            estimated_requests: sums.estimated_requests,
            estimated_tokens: sums.estimated_tokens,
            cost_usd: (!is_unknown).then(|| sums.cost.as_usd()),
            unpriced_requests: sums.unpriced_requests,
            parts: UsageParts {
                system: parts.system,
                tools: parts.all_tools(),
                history: parts.history,
                results: parts.results,
                message: parts.message,
                attachments: parts.attachments,
                reasoning: parts.reasoning,
                unknown: tokens.input_tokens.saturating_sub(parts.total()),
            },
        }
    }
}

impl CallUsage {
    fn of(sums: &CallSums) -> Self {
        Self {
            calls: sums.calls,
            failed: sums.failed,
            duration_ms: sums.duration_ms,
            result_tokens: sums.result_tokens,
            definition_tokens: sums.definition_tokens,
        }
    }
}
