//! A walk over the schemas within a schema: counts them against the bounds, and gives each its price.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::budget::{Cost, STEP};
use super::{
    Error, MAX_BYTES, MAX_DEPTH, MAX_PARTS, MAX_PATTERN_BYTES, MAX_PATTERN_WEIGHT, MAX_PATTERNS,
    MAX_REFERENCES, MAX_UNFOLDED, pattern, short,
};

/// Keywords that hold a schema.
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
/// Keywords that hold a list of schemas.
const LISTS: &[&str] = &["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords that hold schemas by name.
const NAMED: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords that refer to a schema by the way on which it was reached.
const DYNAMIC: &[&str] = &["$dynamicRef", "$recursiveRef"];
/// Keywords that hold schemas only by name, and check nothing where they stand.
const STORES: &[&str] = &["$defs", "definitions"];

/// The schema with the price of each part in it, if it is within all bounds.
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

/// Without recursion, because the depth is what is not known yet.
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
    /// The parts by their place, with the places that are checked with them.
    parts: BTreeMap<String, Vec<String>>,
    /// Names of parts (`$anchor`), with their places.
    anchors: BTreeMap<String, String>,
    /// From which place, to where.
    references: Vec<(String, String)>,
    patterns: usize,
    pattern_weight: u64,
}

impl Walk {
    fn schema(&mut self, schema: &mut Value, at: String, is_root: bool) -> Result<(), Error> {
        let Value::Object(members) = schema else {
            // `true`, `false`, and what `jsonschema` will refuse.
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

    /// The name of a part, and the part that it refers to.
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
        // A part with an address of its own would change what references below it mean.
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

    /// A reference leads to a part that was walked, and so has a price.
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

    /// The number of parts once every reference is replaced by its target. A reference back to where
    /// it came from ends the count: evaluation goes on there only with a smaller value.
    fn check_unfolded(&self) -> Result<(), Error> {
        let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
        let mut above: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<(&str, bool)> = vec![("", false)];
        open.extend(self.parts.keys().map(|place| (place.as_str(), false)));
        // The root is counted first, on whose way most of the others are.
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

/// The schemas that a keyword holds, with their places.
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
            // A dependency may be a list of names.
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

/// A name as a JSON pointer has it.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A fragment without its percent signs; none = they say no text.
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
