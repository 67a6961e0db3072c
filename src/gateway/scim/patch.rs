//! Applies patches (RFC 7644, section 3.5.2) as the standard and as Entra and Okta write them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::filter::{Comparison, Filter, PatchPath};
use super::schema::{Attribute, Kind, Schema, find, one_of};
use super::{ScimType, invalid};
use crate::gateway::error::ApiError;

/// The most operations of one patch.
const MOST_OPERATIONS: usize = 1_000;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Add,
    Replace,
    Remove,
}

/// Applies a patch to a resource in the form that [`Schema::read`] gives. Attributes that are not kept are passed
/// over.
pub(super) fn apply(
    schema: &Schema,
    resource: &mut Map<String, Value>,
    body: &Value,
) -> Result<(), ApiError> {
    let operations = member(body, "Operations").and_then(Value::as_array);
    let operations = operations
        .ok_or_else(|| invalid(ScimType::InvalidSyntax, "`Operations` has to be a list"))?;
    if operations.len() > MOST_OPERATIONS {
        let text = "a patch has at most 1000 operations";
        return Err(invalid(ScimType::TooMany, text));
    }
    for operation in operations {
        let verb = member(operation, "op").and_then(Value::as_str);
        let verb = match verb.unwrap_or_default().to_ascii_lowercase().as_str() {
            "add" => Verb::Add,
            "replace" => Verb::Replace,
            "remove" => Verb::Remove,
            _ => {
                let text = "`op` has to be `add`, `replace` or `remove`";
                return Err(invalid(ScimType::InvalidSyntax, text));
            }
        };
        let value = member(operation, "value").unwrap_or(&Value::Null);
        let path = member(operation, "path").and_then(Value::as_str);
        match path.filter(|path| !path.is_empty()) {
            Some(path) => at_path(schema, resource, verb, (path, value), true)?,
            None if verb == Verb::Remove => {
                let text = "`remove` needs a `path`";
                return Err(invalid(ScimType::NoTarget, text));
            }
            None => without_path(schema, resource, verb, value)?,
        }
    }
    Ok(())
}

/// Applies an operation whose value is a part of the resource. Entra and others write paths as names there.
fn without_path(
    schema: &Schema,
    resource: &mut Map<String, Value>,
    verb: Verb,
    value: &Value,
) -> Result<(), ApiError> {
    let Value::Object(members) = value else {
        let text = "without a `path`, `value` has to be an object";
        return Err(invalid(ScimType::InvalidSyntax, text));
    };
    for (name, value) in members {
        at_path(schema, resource, verb, (name, value), false)?;
    }
    Ok(())
}

fn at_path(
    schema: &Schema,
    resource: &mut Map<String, Value>,
    verb: Verb,
    (text, value): (&str, &Value),
    is_strict: bool,
) -> Result<(), ApiError> {
    let path = match PatchPath::parse(text) {
        Ok(path) => path,
        Err(_) if !is_strict => return Ok(()),
        Err(error) => {
            let text = format!("the path `{text}` cannot be read: {error}");
            return Err(invalid(ScimType::InvalidPath, text));
        }
    };
    let name = path.attribute.name.as_str();
    // Whole extensions stand as names, too: their last part is then taken for an attribute.
    let is_foreign = !path.attribute.is_of(schema.id);
    let Some(attribute) = schema.find(name).filter(|_| !is_foreign) else {
        let is_own = ["id", "meta", "schemas"].contains(&name) && !is_foreign;
        if is_foreign || !is_strict || schema.is_ignored(name) {
            return Ok(());
        }
        if is_own {
            return Err(read_only(name));
        }
        let text = format!("there is no attribute `{text}`");
        return Err(invalid(ScimType::InvalidPath, text));
    };
    if attribute.is_read_only {
        return if is_strict {
            Err(read_only(name))
        } else {
            Ok(())
        };
    }
    let part = match (&path.attribute.part, attribute.kind) {
        (None, _) => None,
        (Some(part), Kind::Complex(parts)) => match find(parts, part) {
            Some(part) => Some(part),
            // A part that is not kept, such as `name.middleName`.
            None => return Ok(()),
        },
        (Some(_), Kind::Text | Kind::Flag | Kind::Reference) => {
            let text = format!("`{name}` has no parts");
            return Err(invalid(ScimType::InvalidPath, text));
        }
    };
    if path.filter.is_some() && !attribute.is_many {
        let text = format!("`{name}` has one value, which no filter chooses");
        return Err(invalid(ScimType::InvalidPath, text));
    }
    let target = Target {
        schema,
        attribute,
        part,
        filter: path.filter.as_ref(),
    };
    match (verb, attribute.is_many) {
        (Verb::Remove, false) => target.remove_one(resource),
        (Verb::Remove, true) => target.remove_some(resource, value),
        (Verb::Add | Verb::Replace, false) => target.set_one(resource, value),
        (Verb::Add | Verb::Replace, true) => target.set_many(resource, verb, value),
    }
}

/// The part of a resource that an operation is about.
struct Target<'a> {
    schema: &'a Schema,
    attribute: &'static Attribute,
    part: Option<&'static Attribute>,
    filter: Option<&'a Filter>,
}

impl Target<'_> {
    fn name(&self) -> &'static str {
        self.attribute.name
    }

    fn remove_one(&self, resource: &mut Map<String, Value>) -> Result<(), ApiError> {
        match self.part {
            Some(part) => {
                let parts = resource.get_mut(self.name());
                if let Some(parts) = parts.and_then(Value::as_object_mut) {
                    parts.remove(part.name);
                }
            }
            None if self.attribute.is_required => {
                let text = format!("`{}` always has a value", self.name());
                return Err(invalid(ScimType::InvalidValue, text));
            }
            None => {
                resource.remove(self.name());
            }
        }
        Ok(())
    }

    fn set_one(&self, resource: &mut Map<String, Value>, value: &Value) -> Result<(), ApiError> {
        let name = self.name().to_owned();
        if let Some(part) = self.part {
            let parts = resource.entry(name).or_insert_with(|| Map::new().into());
            if let Some(parts) = parts.as_object_mut() {
                set(parts, part, one_of(part, value)?);
            }
            return Ok(());
        }
        match self.schema.value_of(self.attribute, value)? {
            // The parts that are not named stay.
            Some(Value::Object(new)) => {
                let parts = resource.entry(name).or_insert_with(|| Map::new().into());
                if let Some(parts) = parts.as_object_mut() {
                    parts.extend(new);
                }
                Ok(())
            }
            Some(value) => {
                resource.insert(name, value);
                Ok(())
            }
            None => self.remove_one(resource),
        }
    }

    fn set_many(
        &self,
        resource: &mut Map<String, Value>,
        verb: Verb,
        value: &Value,
    ) -> Result<(), ApiError> {
        let known = resource.remove(self.name());
        let mut known = match known {
            Some(Value::Array(values)) => values,
            _ => Vec::new(),
        };
        if self.filter.is_some() || self.part.is_some() {
            self.change_some(&mut known, value)?;
        } else {
            let new = self.schema.value_of(self.attribute, value)?;
            let new = match new {
                Some(Value::Array(values)) => values,
                _ => Vec::new(),
            };
            if verb == Verb::Replace {
                known.clear();
            }
            join(&mut known, new);
        }
        let all = Value::Array(known);
        if let Some(all) = self.schema.value_of(self.attribute, &all)? {
            resource.insert(self.name().to_owned(), all);
        }
        Ok(())
    }

    /// Changes the values that the filter chooses. Where there is none, one is made of what the filter asks for,
    /// as clients expect.
    fn change_some(&self, known: &mut Vec<Value>, value: &Value) -> Result<(), ApiError> {
        let mut is_found = false;
        let new = match self.part {
            Some(part) => {
                let mut new = Map::new();
                set(&mut new, part, one_of(part, value)?);
                new
            }
            None => match one_of(self.attribute, value)? {
                Some(Value::Object(new)) => new,
                _ => Map::new(),
            },
        };
        for members in known.iter_mut().filter_map(Value::as_object_mut) {
            if self.filter.is_none_or(|filter| filter.fits(members)) {
                is_found = true;
                match self.part {
                    Some(part) => set(members, part, new.get(part.name).cloned()),
                    None => members.extend(new.clone()),
                }
            }
        }
        if is_found || new.is_empty() {
            return Ok(());
        }
        let mut made = self
            .filter
            .map_or_else(Map::new, |filter| self.made_of(filter));
        if self.filter.is_some() && made.is_empty() {
            let text = format!("no value of `{}` fits the filter", self.name());
            return Err(invalid(ScimType::NoTarget, text));
        }
        made.extend(new);
        known.push(Value::Object(made));
        Ok(())
    }

    /// The parts that a value has to have to fit a filter.
    fn made_of(&self, filter: &Filter) -> Map<String, Value> {
        let mut made = Map::new();
        let all = if let Filter::And(all) = filter {
            all.as_slice()
        } else {
            std::slice::from_ref(filter)
        };
        let Kind::Complex(parts) = self.attribute.kind else {
            return made;
        };
        for one in all {
            let Filter::Compare(path, Comparison::Equal, value) = one else {
                return Map::new();
            };
            if let Some(part) = find(parts, &path.name)
                && let Ok(Some(value)) = one_of(part, value)
            {
                made.insert(part.name.to_owned(), value);
            }
        }
        made
    }

    fn remove_some(
        &self,
        resource: &mut Map<String, Value>,
        value: &Value,
    ) -> Result<(), ApiError> {
        let Some(Value::Array(mut known)) = resource.remove(self.name()) else {
            return Ok(());
        };
        // Entra names the members that leave as the value.
        let named = self.schema.value_of(self.attribute, value)?;
        let named: HashSet<&str> = named.iter().flat_map(values_of).collect();
        match (self.part, self.filter) {
            (Some(part), filter) => {
                for members in known.iter_mut().filter_map(Value::as_object_mut) {
                    if filter.is_none_or(|filter| filter.fits(members)) {
                        members.remove(part.name);
                    }
                }
            }
            (None, Some(filter)) => {
                known.retain(|it| !it.as_object().is_some_and(|it| filter.fits(it)));
            }
            (None, None) if named.is_empty() => known.clear(),
            (None, None) => {
                known.retain(|it| !value_of(it).is_some_and(|it| named.contains(it)));
            }
        }
        let all = Value::Array(known);
        if let Some(all) = self.schema.value_of(self.attribute, &all)? {
            resource.insert(self.name().to_owned(), all);
        }
        Ok(())
    }
}

fn set(members: &mut Map<String, Value>, part: &Attribute, value: Option<Value>) {
    match value {
        Some(value) => {
            members.insert(part.name.to_owned(), value);
        }
        None => {
            members.remove(part.name);
        }
    }
}

/// Adds values that are not among the known ones. Of the primary ones the newest stays it.
fn join(known: &mut Vec<Value>, new: Vec<Value>) {
    let is_primary = |value: &Value| value.get("primary") == Some(&Value::Bool(true));
    if new.iter().any(is_primary) {
        for value in known.iter_mut().filter(|it| is_primary(it)) {
            if let Some(members) = value.as_object_mut() {
                members.insert("primary".to_owned(), Value::Bool(false));
            }
        }
    }
    let named: HashSet<String> = known
        .iter()
        .filter_map(value_of)
        .map(str::to_owned)
        .collect();
    let added = new
        .into_iter()
        .filter(|it| !value_of(it).is_some_and(|value| named.contains(value)));
    known.extend(added);
}

fn value_of(value: &Value) -> Option<&str> {
    value.get("value")?.as_str()
}

fn values_of(values: &Value) -> impl Iterator<Item = &str> {
    values.as_array().into_iter().flatten().filter_map(value_of)
}

/// The member of this name, in upper or lower case.
fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let mut members = value.as_object()?.iter();
    members
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

fn read_only(name: &str) -> ApiError {
    invalid(ScimType::Mutability, format!("`{name}` cannot be changed"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::apply;
    use crate::gateway::scim::schema::{GROUP, Schema, USER};

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "so that tables are short")]
    fn check(schema: &Schema, before: Value, operations: Value, after: Value) {
        let mut resource = schema.read(&before).unwrap();
        let patch = json!({ "Operations": operations });
        apply(schema, &mut resource, &patch).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(Value::Object(resource), after, "{operations}");
    }

    #[test]
    fn users_are_patched_as_entra_and_okta_do() {
        let ann = json!({ "userName": "ann", "active": true });
        for operations in [
            json!([{ "op": "Replace", "path": "active", "value": "False" }]),
            json!([{ "op": "replace", "value": { "active": false } }]),
            json!([{ "op": "replace", "value": { "id": "x", "active": false, "title": "y" } }]),
            json!([{ "OP": "REPLACE", "PATH": "Active", "VALUE": false }]),
        ] {
            let after = json!({ "userName": "ann", "active": false });
            check(&USER, ann.clone(), operations, after);
        }
        let mail = |value: &str| json!({ "emails": [{ "type": "work", "value": value }] });
        let by_type = r#"emails[type eq "work"].value"#;
        for verb in ["Add", "Replace"] {
            for before in [json!({}), mail("old@b.c")] {
                let operation = json!([{ "op": verb, "path": by_type, "value": "new@b.c" }]);
                check(&USER, before, operation, mail("new@b.c"));
            }
        }
        let entra = json!([{ "op": "add", "value": {
            "displayName": "Ann", "name.familyName": "Lee", by_type: "a@b.c",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department": "X",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { "department": "X" },
        } }]);
        let after = json!({ "displayName": "Ann", "name": { "familyName": "Lee" },
            "emails": [{ "type": "work", "value": "a@b.c" }] });
        check(&USER, json!({}), entra, after);
        let name = json!({ "name": { "givenName": "Ann", "familyName": "Lee" } });
        let other = json!([{ "op": "replace", "path": "name", "value": { "familyName": "Ray" } }]);
        let after = json!({ "name": { "givenName": "Ann", "familyName": "Ray" } });
        check(&USER, name, other, after);
        let ignored = json!([
            { "op": "replace", "path": "title", "value": "x" },
            { "op": "add", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager", "value": "7" },
            { "op": "add", "path": r#"phoneNumbers[type eq "work"].value"#, "value": "7" },
        ]);
        check(
            &USER,
            json!({ "userName": "ann" }),
            ignored,
            json!({ "userName": "ann" }),
        );
    }

    #[test]
    fn members_join_and_leave() {
        let group = |ids: &[&str]| {
            let members: Vec<Value> = ids.iter().map(|id| json!({ "value": id })).collect();
            if members.is_empty() {
                return json!({ "displayName": "g" });
            }
            json!({ "displayName": "g", "members": members })
        };
        let both = [
            json!({ "value": "a" }),
            json!({ "value": "c", "display": "x" }),
        ];
        for (operation, after) in [
            (
                json!({ "op": "Add", "path": "members", "value": both }),
                &["a", "b", "c"][..],
            ),
            (
                json!({ "op": "add", "path": "members", "value": { "value": "c" } }),
                &["a", "b", "c"],
            ),
            (
                json!({ "op": "add", "value": { "members": both } }),
                &["a", "b", "c"],
            ),
            (
                json!({ "op": "replace", "path": "members", "value": both }),
                &["a", "c"],
            ),
            (
                json!({ "op": "Remove", "path": "members", "value": both }),
                &["b"],
            ),
            (
                json!({ "op": "remove", "path": r#"members[value eq "a"]"# }),
                &["b"],
            ),
            (
                json!({ "op": "remove", "path": r#"members[value eq "z"]"# }),
                &["a", "b"],
            ),
            (json!({ "op": "remove", "path": "members" }), &[]),
            (
                json!({ "op": "replace", "path": "members", "value": [] }),
                &[],
            ),
            (
                json!({ "op": "replace", "value": { "id": "x", "displayName": "g" } }),
                &["a", "b"],
            ),
        ] {
            check(&GROUP, group(&["a", "b"]), json!([operation]), group(after));
        }
    }

    #[test]
    fn what_cannot_be_patched_is_refused() {
        for operation in [
            json!({ "op": "move", "path": "active" }),
            json!({ "op": "remove" }),
            json!({ "op": "remove", "path": "userName" }),
            json!({ "op": "remove", "path": "active" }),
            json!({ "op": "replace", "path": "id", "value": "x" }),
            json!({ "op": "add", "path": "groups", "value": [{ "value": "x" }] }),
            json!({ "op": "replace", "path": "nothing", "value": "x" }),
            json!({ "op": "replace", "path": "emails[", "value": "x" }),
            json!({ "op": "replace", "path": "userName.x", "value": "x" }),
            json!({ "op": "replace", "path": "active", "value": "x" }),
            json!({ "op": "replace", "path": r#"emails[type sw "w"].value"#, "value": "x" }),
            json!({ "op": "replace", "value": "x" }),
        ] {
            let mut resource = USER.read(&json!({ "userName": "ann" })).unwrap();
            let patch = json!({ "Operations": [operation] });
            assert!(apply(&USER, &mut resource, &patch).is_err(), "{operation}");
        }
        let mut resource = serde_json::Map::new();
        assert!(apply(&USER, &mut resource, &json!({ "Operations": 7 })).is_err());
    }
}
