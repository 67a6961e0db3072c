//! Reads `agent.context.providers`: further context for models, as the file defines it.

use super::{Fields, Member, Members, has_problem, path};
use crate::Problem;
use crate::check::is_name;
use crate::table::CONTEXTS;

/// The kinds, each with its required and its optional fields.
const KINDS: &[(&str, &[&str], &[&str])] = &[
    ("file", &["path"], &["role"]),
    ("database", &["database_url", "query"], &["limit"]),
    (
        "rest",
        &["url"],
        &["headers", "input_parameter", "pointer", "limit"],
    ),
];
/// Optional fields of all kinds.
const SHARED: &[&str] = &["kind", "position", "tenants", "relevant", "max_age_s"];

/// Reads the context providers with their fields.
pub(crate) fn read(members: Vec<Member>, problems: &mut Vec<Problem>) -> Members {
    let mut providers = Members::new();
    for member in members {
        if is_name(&member.name) {
            check(&member.name, &member.fields, problems);
            providers.insert(member.name, member.fields);
        } else {
            problems.push(Problem {
                path: CONTEXTS.shown.to_owned(),
                source: Some(member.source),
                what: "the name cannot be used".to_owned(),
                accepted: "1 to 64 letters, digits, `_` or `-`".to_owned(),
            });
        }
    }
    providers
}

fn check(name: &str, fields: &Fields, problems: &mut Vec<Problem>) {
    if has_problem(&CONTEXTS, name, problems) {
        return;
    }
    let mut refuse = |field: &str, what: String, accepted: &str| {
        problems.push(Problem {
            path: path(&CONTEXTS, name, field),
            source: fields.get(field).map(|field| field.source.clone()),
            what,
            accepted: accepted.to_owned(),
        });
    };
    let kind = fields.get("kind").and_then(|kind| kind.value.as_str());
    let found = KINDS.iter().find(|(known, ..)| Some(*known) == kind);
    let Some((kind, needed, more)) = found else {
        refuse(
            "kind",
            "it is missing".to_owned(),
            "`file`, `database` or `rest`",
        );
        return;
    };
    for field in needed.iter().filter(|field| !fields.contains_key(*field)) {
        refuse(
            field,
            format!("a provider of kind `{kind}` needs it"),
            "a value",
        );
    }
    let allowed = |field: &str| {
        let mut lists = [*needed, *more, SHARED].into_iter();
        lists.any(|list| list.contains(&field))
    };
    for field in fields.keys().filter(|field| !allowed(field)) {
        let what = format!("a provider of kind `{kind}` has no such field");
        refuse(field, what, "leave it out");
    }
}
