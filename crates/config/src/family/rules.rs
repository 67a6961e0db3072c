//! Reads `policy.rules`: rules about calls, as the file defines them.

use super::{Fields, Member, Members, has_problem, path};
use crate::Problem;
use crate::check::is_name;
use crate::settings::rule;
use crate::table::RULES;

/// Reads the rules with their fields.
pub(crate) fn read(members: Vec<Member>, problems: &mut Vec<Problem>) -> Members {
    let mut rules = Members::new();
    for member in members {
        if is_name(&member.name) {
            check(&member.name, &member.fields, problems);
            rules.insert(member.name, member.fields);
        } else {
            problems.push(Problem {
                path: RULES.shown.to_owned(),
                source: Some(member.source),
                what: "the name cannot be used".to_owned(),
                accepted: "1 to 64 letters, digits, `_` or `-`".to_owned(),
            });
        }
    }
    rules
}

fn check(name: &str, fields: &Fields, problems: &mut Vec<Problem>) {
    if has_problem(&RULES, name, problems) {
        return;
    }
    let values = fields.iter();
    let values = values.map(|(field, it)| ((*field).to_owned(), it.value.clone()));
    let Err((field, what)) = rule(name, &values.collect()) else {
        return;
    };
    problems.push(Problem {
        path: path(&RULES, name, field),
        source: fields.get(field).map(|field| field.source.clone()),
        what,
        accepted: "what docs/rules.md says of it".to_owned(),
    });
}
