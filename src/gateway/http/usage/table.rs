//! Writes usage as a table for spreadsheets (RFC 4180).

use crate::agent::UsageGroups;
use crate::domain::MicroUsd;
use crate::store::records::{CallSums, RequestSums, UsageGroup};

/// The characters with which a spreadsheet begins a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

const OF_REQUESTS: [&str; 27] = [
    "day",
    "person_id",
    "person",
    "provider",
    "model",
    "session",
    "title",
    "purpose",
    "requests",
    "input_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "cache_write_long_tokens",
    "output_tokens",
    "reasoning_tokens",
    "estimated_requests",
    "estimated_tokens",
    "cost_usd",
    "unpriced_requests",
    "system_tokens",
    "tools_tokens",
    "history_tokens",
    "results_tokens",
    "message_tokens",
    "attachments_tokens",
    "reasoning_sent_tokens",
    "unknown_tokens",
];

const OF_CALLS: [&str; 7] = [
    "server",
    "tool",
    "calls",
    "failed",
    "duration_ms",
    "result_tokens",
    "definition_tokens",
];

/// Writes the table; names that people chose cannot become formulas.
pub(super) fn write(groups: &UsageGroups) -> Result<Vec<u8>, csv::Error> {
    let mut table = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    match groups {
        UsageGroups::Requests(groups) => {
            table.write_record(OF_REQUESTS)?;
            for group in groups {
                table.write_record(of_requests(group))?;
            }
        }
        UsageGroups::Calls(groups) => {
            table.write_record(OF_CALLS)?;
            for group in groups {
                table.write_record(of_calls(group))?;
            }
        }
    }
    table.into_inner().map_err(|error| {
        let cause = error.into_error();
        csv::Error::from(cause)
    })
}

fn of_requests(group: &UsageGroup<RequestSums>) -> Vec<String> {
    let (sums, tokens) = (&group.sums, &group.sums.tokens);
    let parts = &sums.parts;
    let mut row: Vec<String> = vec![
        group
            .day
            .map(|day| day.date().to_string())
            .unwrap_or_default(),
        group
            .owner
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        text(group.owner_name.as_deref()),
        text(group.provider.as_deref()),
        text(group.model.as_deref()),
        group
            .session
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        text(group.title.as_deref()),
        text(group.purpose.as_deref()),
    ];
    let counts = [
        sums.requests,
        tokens.input_tokens,
        tokens.cached_tokens,
        tokens.cache_write_tokens,
        tokens.cache_write_long_tokens,
        tokens.output_tokens,
        tokens.reasoning_tokens,
        sums.estimated_requests,
        sums.estimated_tokens,
    ];
    row.extend(counts.map(|count| count.to_string()));
    row.push(cost(sums));
    let counts = [
        sums.unpriced_requests,
        parts.system,
        parts.all_tools(),
        parts.history,
        parts.results,
        parts.message,
        parts.attachments,
        parts.reasoning,
        tokens.input_tokens.saturating_sub(parts.total()),
    ];
    row.extend(counts.map(|count| count.to_string()));
    row
}

fn of_calls(group: &UsageGroup<CallSums>) -> Vec<String> {
    let sums = &group.sums;
    let names = [group.server.as_deref(), group.tool.as_deref()].map(text);
    let counts = [
        sums.calls,
        sums.failed,
        sums.duration_ms,
        sums.result_tokens,
        sums.definition_tokens,
    ];
    let counts = counts.map(|count| count.to_string());
    names.into_iter().chain(counts).collect()
}

/// Returns the cost in dollars to the last millionth, or `unknown` if no request had a known price.
fn cost(sums: &RequestSums) -> String {
    if sums.requests > 0 && sums.unpriced_requests == sums.requests {
        return "unknown".to_owned();
    }
    let MicroUsd(micro) = sums.cost;
    format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

fn text(name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    if name.starts_with(FORMULA) {
        return format!("'{name}");
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::write;
    use crate::agent::UsageGroups;
    use crate::domain::{MicroUsd, Timestamp, TokenUsage};
    use crate::store::records::{CallSums, RequestSums, UsageGroup};

    fn lines(groups: &UsageGroups) -> Vec<String> {
        let table = String::from_utf8(write(groups).unwrap()).unwrap();
        table.lines().skip(1).map(ToOwned::to_owned).collect()
    }

    #[test]
    fn names_cannot_become_formulas_and_an_unknown_price_is_no_number() {
        let group = |model: &str, requests, unpriced_requests| UsageGroup {
            day: Some(Timestamp(0)),
            model: Some(model.to_owned()),
            sums: RequestSums {
                requests,
                unpriced_requests,
                cost: MicroUsd(1_000_020),
                tokens: TokenUsage {
                    input_tokens: 7,
                    ..TokenUsage::default()
                },
                ..RequestSums::default()
            },
            ..UsageGroup::default()
        };
        let groups = vec![group("=1+1", 2, 1), group("a,\"b\"", 1, 1)];
        let written = lines(&UsageGroups::Requests(groups));
        assert_eq!(
            written,
            [
                "1970-01-01,,,,'=1+1,,,,2,7,0,0,0,0,0,0,0,1.000020,1,0,0,0,0,0,0,0,7",
                "1970-01-01,,,,\"a,\"\"b\"\"\",,,,1,7,0,0,0,0,0,0,0,unknown,1,0,0,0,0,0,0,0,7",
            ]
        );
        let calls = UsageGroup {
            server: Some("@corp".to_owned()),
            sums: CallSums {
                calls: 3,
                ..CallSums::default()
            },
            ..UsageGroup::default()
        };
        assert_eq!(
            lines(&UsageGroups::Calls(vec![calls])),
            ["'@corp,,3,0,0,0,0"]
        );
    }
}
