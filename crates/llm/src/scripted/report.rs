//! Writes the scripted model's report on the results that it received. Pure.

use std::fmt::Write;

use sepal_core::domain::{Entry, ModelCall};

/// The most characters of one result that are quoted.
const MAX_QUOTE: usize = 2_000;

/// A call and its result; without a result the text is empty and the call counts as failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'a> {
    call: &'a ModelCall,
    text: &'a str,
    is_error: bool,
}

/// The calls of one answer.
pub(super) type Round<'a> = Vec<Told<'a>>;

/// The rounds of calls in the entries.
pub(super) fn rounds(entries: &[Entry]) -> Vec<Round<'_>> {
    let rounds = entries.iter().filter_map(|entry| match entry {
        Entry::Assistant { calls, .. } if !calls.is_empty() => {
            Some(calls.iter().map(|call| told(call, entries)).collect())
        }
        Entry::Assistant { .. }
        | Entry::User { .. }
        | Entry::ToolResult { .. }
        | Entry::Note { .. } => None,
    });
    rounds.collect()
}

pub(super) fn went_well(told: &Told<'_>) -> bool {
    !told.is_error
}

/// Reports every call with its result.
pub(super) fn report(rounds: &[Round<'_>]) -> String {
    let all = || rounds.iter().flatten();
    let failed = all().filter(|told| told.is_error).count();
    let mut text = match failed {
        0 => "Done. This is what the tools gave me:\n".to_owned(),
        1 => "One call did not go through. This is what I read:\n".to_owned(),
        many => format!("{many} calls did not go through. This is what I read:\n"),
    };
    for told in all() {
        let state = if told.is_error {
            "did not work"
        } else {
            "gave"
        };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n**{}** {} {state}:\n\n{}\n",
            told.call.name,
            object(told.call),
            quote(told.text)
        );
    }
    if let Some(remark) = all().find_map(explain) {
        let _ = write!(text, "\n{remark}\n");
    }
    text
}

fn told<'a>(call: &'a ModelCall, entries: &'a [Entry]) -> Told<'a> {
    let result = entries.iter().find_map(|entry| match entry {
        Entry::ToolResult {
            call_id,
            text,
            is_error,
            ..
        } if *call_id == call.id => Some((text.as_str(), *is_error)),
        Entry::ToolResult { .. }
        | Entry::User { .. }
        | Entry::Assistant { .. }
        | Entry::Note { .. } => None,
    });
    let (text, is_error) = result.unwrap_or(("", true));
    Told {
        call,
        text,
        is_error,
    }
}

/// The object of a call: its path or command.
fn object(call: &ModelCall) -> String {
    let field = |name: &str| call.args.get(name).and_then(|value| value.as_str());
    field("path")
        .or_else(|| field("command"))
        .map(|text| format!("`{text}`"))
        .unwrap_or_default()
}

/// A fenced block, whose fence is longer than any in the text.
fn quote(text: &str) -> String {
    let cut = text.char_indices().nth(MAX_QUOTE).map(|(at, _)| at);
    let shown = cut.and_then(|at| text.get(..at)).unwrap_or(text);
    let more = if cut.is_some() { "\n…" } else { "" };
    let mut fence = "```".to_owned();
    while shown.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}text\n{}{more}\n{fence}", shown.trim_end())
}

/// A sentence about a command's output.
fn explain(told: &Told<'_>) -> Option<String> {
    let command = told.call.args.get("command")?.as_str()?;
    if told.is_error {
        return None;
    }
    let lines = told.text.lines().count();
    Some(if command.starts_with("uname") {
        "The first word names the kernel, the second the machine (here: the sandbox), \
         the rest its version and processor."
            .to_owned()
    } else if lines == 1 {
        format!("`{command}` printed one line.")
    } else {
        format!("`{command}` printed {lines} lines.")
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX_QUOTE, quote};

    #[test]
    fn a_quote_is_bounded_and_cannot_leave_its_fence() {
        assert_eq!(quote("a\n"), "```text\na\n```");
        assert_eq!(quote("``` b"), "````text\n``` b\n````");
        assert!(quote(&"ä".repeat(MAX_QUOTE + 1)).contains("\n…\n"));
    }
}
