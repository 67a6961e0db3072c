//! Extracts the texts of a commit, for the index and for the snippets of hits.

use serde_json::Value;

use crate::domain::Attachment;
use crate::session::{Call, Commit, Event, Outcome, SaidCall};
use crate::store::records::{NewText, TextChange, TextKind};

/// Returns a commit's changes to the session's texts, in order.
pub(super) fn changes(commit: &Commit) -> Vec<TextChange> {
    commit
        .shown()
        .flat_map(|(seq, event)| of_event(commit, seq, event))
        .collect()
}

/// Returns the text of a commit at that place.
pub(super) fn text_at(commit: &Commit, seq: u64, part: u64) -> Option<String> {
    changes(commit).into_iter().find_map(|change| match change {
        TextChange::Put(text) if (text.seq, text.part) == (seq, part) => Some(text.text),
        TextChange::Put(_) | TextChange::Remove { .. } => None,
    })
}

/// The text of a view's call.
fn called_text(call: &Call) -> String {
    format!("{} {}", call.name, arguments_text(&call.args))
}

/// The text of a call's result.
fn gave(name: &str, outcome: &Outcome) -> String {
    format!("{name}: {}", outcome_text(outcome))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most events have no text")]
fn of_event(commit: &Commit, seq: u64, event: &Event) -> Vec<TextChange> {
    let put = |seq, part, kind, text| put(commit, (seq, part), kind, text);
    let change = match event {
        // A session has one title, so its place is fixed.
        Event::TitleSet { title, .. } => put(0, 0, TextKind::Title, title.clone()),
        Event::UserMessage {
            text, attachments, ..
        } => put(seq, 0, TextKind::Message, message_text(text, attachments)),
        Event::Said { text, calls, .. } => return of_said(commit, seq, text, calls),
        Event::ViewCalled { call, .. } => put(seq, 0, TextKind::Call, called_text(call)),
        Event::Answered { text, .. }
        | Event::Cancelled {
            text: Some(text), ..
        } => put(seq, 0, TextKind::Answer, text.clone()),
        Event::Decided {
            edited: Some(edited),
            ..
        } => put(seq, 0, TextKind::Call, arguments_text(&edited.args)),
        Event::Ended { name, outcome, .. } => put(seq, 0, TextKind::Output, gave(name, outcome)),
        Event::Withdrawn { message_seq, .. } => Some(TextChange::Remove { seq: *message_seq }),
        _ => None,
    };
    change.into_iter().collect()
}

/// Returns the text of an answer, and the calls that it asked for.
fn of_said(commit: &Commit, seq: u64, text: &str, calls: &[SaidCall]) -> Vec<TextChange> {
    let said = put(commit, (seq, 0), TextKind::Answer, text.to_owned());
    let calls = (1..).zip(calls);
    let calls = calls.map(|(part, call)| put(commit, (seq, part), TextKind::Call, call_text(call)));
    std::iter::once(said).chain(calls).flatten().collect()
}

/// Returns a message with the names of its attachments.
fn message_text(text: &str, attachments: &[Attachment]) -> String {
    let names = attachments.iter().map(|file| file.name.as_str());
    let lines: Vec<&str> = std::iter::once(text).chain(names).collect();
    lines.join("\n")
}

/// Makes a change, unless the text is blank.
fn put(
    commit: &Commit,
    (seq, part): (u64, u64),
    kind: TextKind,
    text: String,
) -> Option<TextChange> {
    let is_empty = text.trim().is_empty();
    (!is_empty).then_some(TextChange::Put(NewText {
        seq,
        part,
        kind,
        at: commit.at,
        version: commit.version,
        text,
    }))
}

fn call_text(call: &SaidCall) -> String {
    match arguments_text(&call.args) {
        arguments if arguments.is_empty() => call.name.clone(),
        arguments => format!("{} {arguments}", call.name),
    }
}

/// Writes names and values as people read them: JSON escapes would add words of their own.
fn arguments_text(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    text.trim_end().to_owned()
}

fn write(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(is) => text.push_str(if *is { "true " } else { "false " }),
        Value::Number(number) => {
            text.push_str(&number.to_string());
            text.push(' ');
        }
        Value::String(string) => {
            text.push_str(string);
            text.push(' ');
        }
        Value::Array(values) => values.iter().for_each(|value| write(text, value)),
        Value::Object(fields) => {
            for (name, value) in fields {
                text.push_str(name);
                text.push_str(": ");
                write(text, value);
            }
        }
    }
}

/// Returns the tool's output, or the reason that a person gave for a rejection. Texts of our own are left
/// out.
fn outcome_text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Completed { output } | Outcome::Failed { output, .. } => &output.text,
        Outcome::Rejected {
            reason: Some(reason),
        } => reason,
        Outcome::Rejected { reason: None } | Outcome::Cancelled | Outcome::Unknown { .. } => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::arguments_text;

    fn check(args: &Value, expected: &str) {
        assert_eq!(arguments_text(args), expected);
    }

    #[test]
    fn arguments_read_as_their_words() {
        check(
            &json!({ "path": "a.txt", "lines": [1, "two\n"], "force": true, "x": null }),
            "force: true lines: 1 two\n path: a.txt x:",
        );
        check(&json!({}), "");
    }
}
