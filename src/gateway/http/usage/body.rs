//! The JSON form of usage.

use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;

use crate::agent::{UsageGroups, UsageReport};
use crate::store::records::{CallSums, RequestSums, UsageGroup};

/// What was used.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct UsagePage {
    /// The first day, in UTC.
    #[schema(value_type = String)]
    from: Date,
    /// The last day.
    #[schema(value_type = String)]
    to: Date,
    /// All model requests of these days together, whatever the page shows.
    totals: RequestUsage,
    items: Vec<UsageItem>,
    /// For `cursor`, if there is more.
    next_cursor: Option<String>,
}

/// What is summed together; it names only what was grouped by.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageItem {
    /// The day, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<UsagePerson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The title of the caller's own session, while there is such a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// What models were asked for: `turn`, `title`, or `compaction` for summaries of what left the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    purpose: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Model requests; not of servers and tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<RequestUsage>,
    /// Calls; of servers and tools only.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<CallUsage>,
}

/// A person whose sessions used something.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsagePerson {
    id: String,
    /// `null` where there is no such person any more.
    name: Option<String>,
}

/// What model requests used.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestUsage {
    /// Attempts, those that became no answer included.
    requests: u64,
    /// Everything sent, cached tokens included.
    input_tokens: u64,
    cached_tokens: u64,
    cache_write_tokens: u64,
    cache_write_long_tokens: u64,
    /// Everything generated, reasoning included.
    output_tokens: u64,
    reasoning_tokens: u64,
    /// Input and output.
    total_tokens: u64,
    /// Attempts whose tokens Sepal counted itself, because the provider reported nothing.
    estimated_requests: u64,
    /// Their part of `totalTokens`.
    estimated_tokens: u64,
    /// US dollars of the requests whose price was known; `null` where none was.
    cost_usd: Option<f64>,
    /// Requests whose price was unknown; not in `costUsd`.
    unpriced_requests: u64,
    parts: UsageParts,
}

/// What `inputTokens` were for; the parts are their sum.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsageParts {
    /// The system prompt.
    system: u64,
    /// Definitions of tools.
    tools: u64,
    /// What people and the model said before the newest message.
    history: u64,
    /// Results of tools.
    results: u64,
    /// The newest message.
    message: u64,
    /// Pictures and documents.
    attachments: u64,
    /// Reasoning that was sent back.
    reasoning: u64,
    /// Requests of releases that did not count parts.
    unknown: u64,
}

/// What calls of tools used.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallUsage {
    calls: u64,
    /// Those that failed, or whose outcome nobody knows.
    failed: u64,
    duration_ms: u64,
    /// Tokens of the results, estimated.
    result_tokens: u64,
    /// Tokens that definitions took of model requests; 0 for a single tool.
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
