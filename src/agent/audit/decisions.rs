//! Derives the rows of the audit's index from commits: what was decided in sessions. The journals prove it.

use serde_json::Value;

use crate::session::proof::RecordForm;
use crate::session::{Commit, Control};
use crate::store::records::DecisionRow;

/// The rows of a commit that follows the state `before`, from its decision records.
pub(in crate::agent) fn decision_rows(
    before: &Control,
    commit: &Commit,
    records: Vec<RecordForm>,
) -> Vec<DecisionRow> {
    let row = |(place, RecordForm { value, text: body })| {
        let text = |path: &str| {
            let text = value.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default()
        };
        let tool = match text("/call/tool") {
            "" => tool_of(before, text("/call")),
            tool => tool.to_owned(),
        };
        let is_person = matches!(text("/by/kind"), "" | "person");
        let person = Some(text("/by/id")).filter(|id| is_person && !id.is_empty());
        DecisionRow {
            version: commit.version,
            place,
            at: commit.at,
            act: text("/act").to_owned(),
            person: person.map(str::to_owned),
            tool,
            verdict: text("/verdict").to_owned(),
            body,
        }
    };
    (0..).zip(records).map(row).collect()
}

/// The tool of a call that a record only names.
fn tool_of(before: &Control, id: &str) -> String {
    let mut calls = before.calls();
    let call = calls.find(|call| call.id.as_str() == id);
    call.map_or_else(Default::default, |call| {
        let tool = call.facts.as_ref().map(|facts| &facts.tool.tool);
        tool.unwrap_or(&call.name).clone()
    })
}
