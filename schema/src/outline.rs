//! Walks over the schemas within a schema, counts them against the bounds, and adds the cost of each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::budget::{Cost, STEP};
use super::{
    Error, MAX_BYTES, MAX_DEPTH, MAX_PARTS, MAX_PATTERN_BYTES, MAX_PATTERN_WEIGHT, MAX_PATTERNS,
    MAX_REFERENCES, MAX_UNFOLDED, pattern, short,
};

/// Keywords that contain a schema.
const ONE: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords that contain a list of schemas.
const LISTS: &[&str] = &["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords that contain schemas by name.
const NAMED: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords whose target depends on the evaluation path.
const DYNAMIC: &[&str] = &["$dynamicRef", "$recursiveRef"];
/// Keywords that only store schemas by name and validate nothing themselves.
const STORES: &[&str] = &["$defs", "definitions"];

/// Returns the schema with the cost of each part added, if it is within all bounds.
pub(crate) fn counted(schema: &Value) -> Result<Value, Error> {
    let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_BYTES {
        return Err(Error::TooLarge(bytes));
    }
    check_depth(schema)?;
    let mut counted = schema.clone();
    let mut walk = Walk::default();
    walk.schema(&mut counted, String::new(), true)?;
    walk.check_references()?;
    walk.check_unfolded()?;
    Ok(counted)
}

/// Checks the nesting depth without recursion, because the depth is still unbounded here.
fn check_depth(schema: &Value) -> Result<(), Error> {
    let mut open = vec![(schema, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|it| (it, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}

#[derive(Default)]
struct Walk {
    /// The parts by their JSON pointer, with the pointers of the parts that are evaluated with them.
    parts: BTreeMap<String, Vec<String>>,
    /// The pointers of named parts, by name (`$anchor`).
    anchors: BTreeMap<String, String>,
    /// The references: the pointer of the part, and its `$ref`.
    references: Vec<(String, String)>,
    patterns: usize,
    pattern_weight: u64,
}

impl Walk {
    fn schema(&mut self, schema: &mut Value, at: String, is_root: bool) -> Result<(), Error> {
        let Value::Object(members) = schema else {
            // `true`, `false`, and values that `jsonschema` will refuse.
            self.parts.insert(at, Vec::new());
            return Ok(());
        };
        if self.parts.len() >= MAX_PARTS {
            return Err(Error::TooManyParts);
        }
        self.parts.insert(at.clone(), Vec::new());
        self.names(members, &at, is_root)?;
        let cost = self.cost(members)?;
        let mut checked = Vec::new();
        for (keyword, value) in members.iter_mut() {
            for (place, inner) in inner_schemas(keyword, value, &at) {
                if !STORES.contains(&keyword.as_str()) {
                    checked.push(place.clone());
                }
                self.schema(inner, place, false)?;
            }
        }
        self.parts.insert(at, checked);
        members.insert(STEP.to_owned(), cost.to_json());
        Ok(())
    }

    /// Records the name of a part and its reference, and refuses keywords with a dynamic meaning.
    fn names(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        is_root: bool,
    ) -> Result<(), Error> {
        let mut dynamic = DYNAMIC.iter().copied();
        if let Some(keyword) = dynamic.find(|keyword| members.contains_key(*keyword)) {
            return Err(Error::Keyword(keyword));
        }
        // A part with its own `$id` would change the meaning of the references below it.
        if !is_root && members.get("$id").is_some_and(Value::is_string) {
            return Err(Error::Keyword("$id"));
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                self.anchors.insert(name.to_owned(), at.to_owned());
            }
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            if self.references.len() >= MAX_REFERENCES {
                return Err(Error::TooManyReferences);
            }
            self.references.push((at.to_owned(), reference.to_owned()));
        }
        Ok(())
    }

    fn cost(&mut self, members: &Map<String, Value>) -> Result<Cost, Error> {
        let own = members.get("pattern").and_then(Value::as_str);
        let named = members.get("patternProperties").and_then(Value::as_object);
        let named = named.into_iter().flat_map(Map::keys).map(String::as_str);
        let mut patterns = 0_u64;
        for pattern in own.into_iter().chain(named) {
            self.patterns += 1;
            if self.patterns > MAX_PATTERNS {
                return Err(Error::TooManyPatterns);
            }
            if pattern.len() > MAX_PATTERN_BYTES {
                let beginning: String = pattern.chars().take(40).collect();
                return Err(Error::LongPattern(beginning));
            }
            if pattern::needs_backtracking(pattern) {
                return Err(Error::Backtracking(short(pattern)));
            }
            patterns = patterns.saturating_add(pattern::weight(pattern));
        }
        self.pattern_weight = self.pattern_weight.saturating_add(patterns);
        if self.pattern_weight > MAX_PATTERN_WEIGHT {
            return Err(Error::HeavyPatterns);
        }
        let entries = members.values().map(|value| match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        });
        let entries: usize = entries.sum();
        Ok(Cost {
            fixed: 1 + entries as u64 / 16,
            patterns,
        })
    }

    /// Checks that each reference leads to a part that was walked, and so has a cost.
    fn check_references(&mut self) -> Result<(), Error> {
        for (from, reference) in std::mem::take(&mut self.references) {
            let wrong = || Error::Reference(short(&reference));
            let fragment = reference.strip_prefix('#').ok_or_else(wrong)?;
            let fragment = unescaped(fragment).ok_or_else(wrong)?;
            let place = if fragment.is_empty() || fragment.starts_with('/') {
                fragment
            } else {
                self.anchors.get(&fragment).cloned().ok_or_else(wrong)?
            };
            if !self.parts.contains_key(&place) {
                return Err(wrong());
            }
            if let Some(checked) = self.parts.get_mut(&from) {
                checked.push(place);
            }
        }
        Ok(())
    }

    /// Checks the number of parts after replacing every reference by its target. A cyclic reference ends the
    /// count, because evaluation continues there only with a smaller value.
    fn check_unfolded(&self) -> Result<(), Error> {
        let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
        let mut above: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<(&str, bool)> = vec![("", false)];
        open.extend(self.parts.keys().map(|place| (place.as_str(), false)));
        // The root is counted first, because most other parts are below it.
        open.reverse();
        while let Some((place, is_done)) = open.pop() {
            let inner = self.parts.get(place).map(Vec::as_slice).unwrap_or_default();
            if is_done {
                above.remove(place);
                let size = inner.iter().map(|it| sizes.get(it.as_str()).unwrap_or(&1));
                let size = size.fold(1_u64, |sum, size| sum.saturating_add(*size));
                if size > MAX_UNFOLDED {
                    return Err(Error::ReferencesMultiply);
                }
                sizes.insert(place, size);
            } else if !sizes.contains_key(place) && above.insert(place) {
                open.push((place, true));
                open.extend(inner.iter().map(|it| (it.as_str(), false)));
            }
        }
        Ok(())
    }
}

/// Returns the schemas that a keyword contains, with their pointers.
fn inner_schemas<'v>(
    keyword: &str,
    value: &'v mut Value,
    at: &str,
) -> Vec<(String, &'v mut Value)> {
    let place = format!("{at}/{}", escaped(keyword));
    if ONE.contains(&keyword) && (value.is_object() || value.is_boolean()) {
        return vec![(place, value)];
    }
    match value {
        Value::Array(items) if LISTS.contains(&keyword) => {
            let items = items.iter_mut().enumerate();
            items
                .map(|(n, item)| (format!("{place}/{n}"), item))
                .collect()
        }
        Value::Object(members) if NAMED.contains(&keyword) => {
            // A dependency may be a list of names instead of a schema.
            let members = members.iter_mut().filter(|(_, inner)| !inner.is_array());
            members
                .map(|(name, inner)| (format!("{place}/{}", escaped(name)), inner))
                .collect()
        }
        Value::Array(_)
        | Value::Object(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => Vec::new(),
    }
}

/// Escapes a name for a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Decodes the percent-encoding of a fragment; `None` if it is invalid.
fn unescaped(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let byte = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(byte).ok()?);
    }
    String::from_utf8(bytes).ok()
}
