//! Derives the rows of the audit's index from commits: what was decided in sessions. The journals prove it.

use serde_json::Value;

use crate::domain::UserId;
use crate::session::proof::DecisionRecord;
use crate::session::{Commit, Control, Event};
use crate::store::records::DecisionRow;

/// The rows of a commit that follows the state `before`, from its decision records.
pub(in crate::agent) fn decision_rows(
    before: &Control,
    commit: &Commit,
    records: &[DecisionRecord],
) -> Vec<DecisionRow> {
    let Some(owner) = owner(before, commit).filter(|_| !records.is_empty()) else {
        return Vec::new();
    };
    let rows = (0..).zip(records).filter_map(|(place, record)| {
        let body = serde_json::to_value(record).ok()?;
        let text = |path: &str| {
            body.pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (server, tool) = match text("/call/tool") {
            "" => tool_of(before, text("/call")),
            tool => (text("/call/server").to_owned(), tool.to_owned()),
        };
        let person = body.pointer("/by/id").and_then(Value::as_str);
        let is_person = matches!(text("/by/kind"), "" | "person");
        Some(DecisionRow {
            version: commit.version,
            place,
            at: commit.at,
            owner: owner.clone(),
            act: text("/act").to_owned(),
            person: person.filter(|_| is_person).map(str::to_owned),
            server,
            tool,
            verdict: text("/verdict").to_owned(),
            body: body.to_string(),
        })
    });
    rows.collect()
}

fn owner(before: &Control, commit: &Commit) -> Option<UserId> {
    let created = commit.events.iter().find_map(|event| {
        if let Event::Created { owner, .. } = event {
            Some(&owner.id)
        } else {
            None
        }
    });
    before
        .owner
        .as_ref()
        .map(|owner| &owner.id)
        .or(created)
        .cloned()
}

/// Server and tool of a call that a record only names.
fn tool_of(before: &Control, id: &str) -> (String, String) {
    let call = before.calls().find(|call| call.id.as_str() == id);
    call.map_or_else(Default::default, |call| {
        let tool = call.facts.as_ref().map(|facts| &facts.tool.tool);
        (call.server().to_owned(), tool.unwrap_or(&call.name).clone())
    })
}
