//! Reads members of the sections with user-chosen names: from the file, overridden by the environment.

mod compaction;
pub(super) mod contexts;
mod of_models;
pub(super) mod oidc;
mod presets;
pub(super) mod providers;
pub(super) mod rules;
pub(super) mod servers;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::check::{Raw, accepts, check, quote};
use super::table::{Family, Field, FieldKind};
use super::value::ResolvedValue;
use super::{Problem, Source};

/// The configured fields of a member, by name.
pub(super) type Fields = BTreeMap<&'static str, ResolvedValue>;

/// The members of one family, by name.
pub(super) type Members = BTreeMap<String, Fields>;

/// One member as it is in the file.
pub(super) struct Member {
    /// The key of its family.
    pub(super) family: &'static str,
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) fields: Fields,
}

impl Member {
    /// Returns true if the member belongs to that family.
    pub(super) fn is_of(&self, family: &Family) -> bool {
        self.family == family.key
    }
}

/// The members as an object, for the tree of settings.
pub(super) fn tree(members: &Members) -> Value {
    let object = |fields: &Fields| {
        let fields = fields.iter();
        let fields = fields.map(|(name, field)| ((*name).to_owned(), field.value.clone()));
        Value::Object(fields.collect())
    };
    let members = members.iter();
    Value::Object(
        members
            .map(|(name, fields)| (name.clone(), object(fields)))
            .collect(),
    )
}

/// The path of a field, as error messages name it.
pub(super) fn path(family: &Family, name: &str, field: &str) -> String {
    [
        family.shown.trim_end_matches(|letter| letter != '.'),
        name,
        ".",
        field,
    ]
    .concat()
}

/// Returns true if a problem with the member was already reported; consequences of it are not reported.
fn has_problem(family: &Family, name: &str, problems: &[Problem]) -> bool {
    let below = path(family, name, "");
    problems
        .iter()
        .any(|problem| problem.path.starts_with(&below))
}

/// Describes the accepted values, as a phrase for people.
pub(super) fn field_accepts(kind: FieldKind) -> String {
    match kind {
        FieldKind::One(kind) => accepts(kind),
        FieldKind::Texts => "a list of texts".to_owned(),
        FieldKind::Arguments => "a list of texts, or one with spaces between them".to_owned(),
        FieldKind::Map => "a mapping of texts".to_owned(),
    }
}

/// Checks one field and records its problem, if any.
pub(super) fn checked_field(
    family: &Family,
    member: &str,
    field: &Field,
    given: (&Raw, &Source),
    problems: &mut Vec<Problem>,
) -> Option<ResolvedValue> {
    let (raw, source) = given;
    let checked = match field.kind {
        FieldKind::One(kind) => check(kind, raw),
        FieldKind::Texts => texts(raw, |letter| letter == ',' || letter.is_whitespace()),
        FieldKind::Arguments => arguments(raw),
        FieldKind::Map => map(raw),
    };
    match checked {
        Ok(value) => Some(ResolvedValue {
            value,
            source: source.clone(),
        }),
        Err(what) => {
            problems.push(Problem {
                path: path(family, member, field.name),
                source: Some(source.clone()),
                what,
                accepted: field_accepts(field.kind),
            });
            None
        }
    }
}

fn texts(raw: &Raw, separates: fn(char) -> bool) -> Result<Value, String> {
    match raw {
        Raw::Text(text) | Raw::Json(Value::String(text)) => {
            let items = text.split(separates).filter(|item| !item.is_empty());
            Ok(items.map(|item| json!(item)).collect())
        }
        Raw::Json(Value::Array(items)) => match items.iter().find(|item| !item.is_string()) {
            None => Ok(Value::Array(items.clone())),
            Some(item) => Err(format!("{} is not a text; put it in quotes", quote(item))),
        },
        Raw::Json(value) => Err(format!("{} is not a list", quote(value))),
    }
}

/// An argument may contain a comma; one that contains a space requires the list form.
fn arguments(raw: &Raw) -> Result<Value, String> {
    if let Raw::Text(text) = raw
        && text.trim_start().starts_with('[')
    {
        let list = serde_json::from_str(text);
        let list = list.map_err(|error| format!("the list cannot be read: {error}"))?;
        return texts(&Raw::Json(list), char::is_whitespace);
    }
    texts(raw, char::is_whitespace)
}

/// Does not quote the values, which may be secret.
fn map(raw: &Raw) -> Result<Value, String> {
    let Raw::Json(Value::Object(members)) = raw else {
        return Err("the value is not a mapping".to_owned());
    };
    match members.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(Value::Object(Map::clone(members))),
        Some((name, _)) => Err(format!(
            "the value of `{name}` is not a text; put it in quotes"
        )),
    }
}
