//! Assembles the arguments of one call from pieces, each addressed by a `JSONPath` (RFC 9535, names and
//! indexes only). Pure.

use serde_json::{Map, Number, Value};

use crate::gemini::wire::PieceForm;

/// The deepest path that a piece may have.
const MAX_DEPTH: usize = 64;
/// The largest integer up to which the vendor's floating-point numbers are exact.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The arguments so far.
#[derive(Debug, Default)]
pub(super) struct Pieces(Map<String, Value>);

/// A piece does not fit the arguments before it.
#[derive(Debug, thiserror::Error)]
#[error("a piece of a call's arguments that fits nowhere")]
pub(super) struct Misfit;

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

impl Pieces {
    /// Merges arguments that arrived complete.
    pub(super) fn merge(&mut self, whole: Map<String, Value>) {
        self.0.extend(whole);
    }

    /// Adds the next piece. A text is appended to the text at its path; any other value replaces the old one.
    pub(super) fn take(&mut self, piece: &PieceForm<'_>) -> Result<(), Misfit> {
        let steps = steps(&piece.json_path.0).ok_or(Misfit)?;
        let Some(value) = value(piece) else {
            return Ok(());
        };
        let (Step::Name(first), rest) = steps.split_first().ok_or(Misfit)? else {
            return Err(Misfit);
        };
        let place = self.0.entry(first.clone()).or_insert(Value::Null);
        let place = rest.iter().try_fold(place, descend)?;
        match (place, value) {
            (Value::String(text), Value::String(more)) => text.push_str(&more),
            (Value::Object(_) | Value::Array(_), _) => return Err(Misfit),
            (place, value) => *place = value,
        }
        Ok(())
    }

    /// The arguments as JSON; without the closing brace if they are incomplete, so that they are not mistaken
    /// for complete ones.
    pub(super) fn into_json(self, is_whole: bool) -> String {
        let mut json = Value::Object(self.0).to_string();
        if !is_whole {
            json.pop();
        }
        json
    }
}

/// Goes one step down the path; an empty place becomes an object or a list, as the step requires.
fn descend<'v>(place: &'v mut Value, step: &Step) -> Result<&'v mut Value, Misfit> {
    if place.is_null() {
        *place = match step {
            Step::Name(_) => Value::Object(Map::new()),
            Step::Index(_) => Value::Array(Vec::new()),
        };
    }
    match (place, step) {
        (Value::Object(fields), Step::Name(name)) => {
            Ok(fields.entry(name.clone()).or_insert(Value::Null))
        }
        (Value::Array(items), Step::Index(index)) => {
            // A list may grow by one only: a gap would invent values.
            if *index == items.len() {
                items.push(Value::Null);
            }
            items.get_mut(*index).ok_or(Misfit)
        }
        _ => Err(Misfit),
    }
}

/// The value of a piece, if it has one.
fn value(piece: &PieceForm<'_>) -> Option<Value> {
    if let Some(text) = &piece.string_value {
        return Some(Value::String(text.0.clone().into_owned()));
    }
    if let Value::Number(number) = &piece.number_value {
        return Some(Value::Number(exact(number.clone())));
    }
    if let Value::Bool(flag) = piece.bool_value {
        return Some(Value::Bool(flag));
    }
    piece.is_null.then_some(Value::Null)
}

/// Turns a whole number such as `3.0` into an integer, because tools that require integers refuse it.
fn exact(number: Number) -> Number {
    let float = number.as_f64().filter(|_| number.is_f64());
    let whole = float.filter(|float| float.fract() == 0.0 && float.abs() <= MAX_EXACT);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole and within what is exact"
    )]
    whole.map_or(number, |float| Number::from(float as i64))
}

/// Parses a path such as `$.a.b[0]['c']`; `None` if it is invalid or too deep.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    if !path.starts_with('$') && !path.starts_with('[') {
        let (name, after) = name(path)?;
        steps.push(name);
        rest = after;
    }
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('.') {
            Some(rest) => name(rest)?,
            None => bracket(rest.strip_prefix('[')?)?,
        };
        steps.push(step);
        rest = after;
        if steps.len() > MAX_DEPTH {
            return None;
        }
    }
    (!steps.is_empty()).then_some(steps)
}

fn name(text: &str) -> Option<(Step, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    (!name.is_empty() && name != "*").then(|| (Step::Name(name.to_owned()), rest))
}

/// Parses the text after a `[`: an index or a quoted name.
fn bracket(text: &str) -> Option<(Step, &str)> {
    let quote = text.chars().next()?;
    if !matches!(quote, '\'' | '"') {
        let (index, rest) = text.split_once(']')?;
        return Some((Step::Index(index.parse().ok()?), rest));
    }
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => name.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            char if char == quote => {
                let rest = text.get(at + char.len_utf8()..)?.strip_prefix(']')?;
                return Some((Step::Name(name), rest));
            }
            char => name.push(char),
        }
    }
    None
}
