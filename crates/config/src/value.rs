//! Holds the checked values by key, between the sources and the typed settings.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check::{Raw, accepts, check};
use super::table::Definition;
use super::{Problem, Source, Sources};

/// The checked value of one key. No `Debug`, because it may be a secret.
#[derive(Clone)]
pub(super) struct ResolvedValue {
    pub(super) value: Value,
    pub(super) source: Source,
}

/// The checked values by key.
pub(super) type Values = BTreeMap<&'static str, ResolvedValue>;

/// The first of the variables that is set and not empty.
pub(super) fn variable<'a>(
    mut names: impl Iterator<Item = &'a str>,
    sources: &Sources,
) -> Option<(Raw, Source)> {
    names.find_map(|name| {
        let value = sources.env.get(name)?;
        let is_set = !value.trim().is_empty();
        is_set.then(|| (Raw::Text(value.clone()), Source::Env(name.to_owned())))
    })
}

/// Checks one given value and records its problem, if any.
pub(super) fn checked(
    definition: &Definition,
    raw: &Raw,
    source: &Source,
    problems: &mut Vec<Problem>,
) -> Option<ResolvedValue> {
    match check(definition.kind, raw) {
        Ok(value) => Some(ResolvedValue {
            value,
            source: source.clone(),
        }),
        Err(what) => {
            problems.push(Problem {
                path: definition.key.to_owned(),
                source: Some(source.clone()),
                what,
                accepted: accepts(definition.kind),
            });
            None
        }
    }
}
