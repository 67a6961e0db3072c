//! JSON Schemas that strangers wrote, compiled and evaluated within bounds.
//!
//! Tenants, members and MCP servers send schemas, and models and servers send the values that are held
//! against them. This crate is the only one that depends on `jsonschema`, so every schema passes these
//! bounds: [`Schema::compile`] refuses a schema that is too large, too deep, or whose patterns need
//! backtracking, and [`Schema::check`] stops when an evaluation takes too many steps. Both count steps and
//! never look at a clock, so the same schema and value always have the same result.

mod budget;
mod outline;
mod pattern;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use jsonschema::{Keyword, PatternOptions, ValidationError};
use serde_json::{Map, Value};

pub use self::budget::OverBudget;

use self::budget::{Cost, STEP};

/// Bytes of one schema, written as JSON.
pub const MAX_BYTES: usize = 128 * 1024;
/// Levels of nesting of one schema.
pub const MAX_DEPTH: usize = 48;
/// Schemas within one schema, itself included.
pub const MAX_PARTS: usize = 4_000;
/// Parts that a schema has once every reference is replaced by its target.
pub const MAX_UNFOLDED: u64 = 50_000;
/// References of one schema.
pub const MAX_REFERENCES: usize = 1_000;
/// Patterns of one schema.
pub const MAX_PATTERNS: usize = 256;
/// Bytes of one pattern.
pub const MAX_PATTERN_BYTES: usize = 1_024;
/// Weight of all patterns of a schema together: about one for each letter that they match, repetitions
/// written out.
pub const MAX_PATTERN_WEIGHT: u64 = 8_192;
/// Bytes that one compiled pattern may take.
const MAX_COMPILED_PATTERN: usize = 1024 * 1024;
/// Characters of a message about a value that does not fit.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// The reason a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It has too many bytes.
    #[error("it has {0} bytes; a schema may have {MAX_BYTES}")]
    TooLarge(usize),
    /// Its objects and lists are nested too deep.
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// It consists of too many schemas.
    #[error("it consists of more than {MAX_PARTS} schemas")]
    TooManyParts,
    /// It has too many references.
    #[error("it has more than {MAX_REFERENCES} references (`$ref`)")]
    TooManyReferences,
    /// References to parts that hold references multiply what has to be checked.
    #[error(
        "with its references followed it consists of more than {MAX_UNFOLDED} schemas: name each part once"
    )]
    ReferencesMultiply,
    /// A reference leads out of the schema, or to something that is no schema.
    #[error(
        "the reference `{0}` leads to no schema within it; write what it refers to into `$defs`"
    )]
    Reference(String),
    /// It has too many patterns.
    #[error("it has more than {MAX_PATTERNS} patterns")]
    TooManyPatterns,
    /// A pattern is too long.
    #[error("the pattern `{0}…` has more than {MAX_PATTERN_BYTES} bytes")]
    LongPattern(String),
    /// Its patterns match too much together.
    #[error("its patterns are too large together; repeat less in them")]
    HeavyPatterns,
    /// A pattern needs an engine that may take for ever.
    #[error(
        "the pattern `{0}` looks around or refers back to a group, which takes too long for some texts; \
         write it without `(?=`, `(?!`, `(?<` and `\\1`"
    )]
    Backtracking(String),
    /// A keyword whose meaning depends on where it is evaluated.
    #[error("`{0}` cannot be used here")]
    Keyword(&'static str),
    /// It is no JSON Schema.
    #[error("{0}")]
    Invalid(String),
}

/// The first way in which a value does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The place in the value, as a JSON pointer; empty = the value itself.
    pub at: String,
    /// The reason, as a sentence.
    pub message: String,
    /// The name of the property that is missing, if that is the reason.
    pub missing: Option<String>,
}

/// A bound that a value breaks: a length, a number of entries, a size or a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenBound {
    /// The place in the value, as a JSON pointer; empty = the value itself.
    pub at: String,
    /// The bound, in words that follow the name of the field. The value is not repeated: it may be a secret.
    pub words: String,
}

/// A schema that is ready to be held against values.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
}

/// The meaning of the keyword `format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    /// As a remark, which is what the specification says.
    Remarks,
    /// As a condition.
    Checked,
}

impl Schema {
    /// Makes a schema ready.
    ///
    /// # Errors
    /// It is no JSON Schema, or above one of the bounds.
    pub fn compile(schema: &Value, formats: Formats) -> Result<Self, Error> {
        let counted = outline::counted(schema)?;
        let patterns = PatternOptions::regex()
            .size_limit(MAX_COMPILED_PATTERN)
            .dfa_size_limit(MAX_COMPILED_PATTERN);
        let built = jsonschema::options()
            .with_pattern_options(patterns)
            .should_validate_formats(formats == Formats::Checked)
            .with_keyword(STEP, counter)
            .build(&counted);
        let validator = built.map_err(|error| Error::Invalid(short(&error.to_string())))?;
        Ok(Self { validator })
    }

    /// Whether a value fits.
    ///
    /// # Errors
    /// The evaluation takes too many steps for a value of that size.
    pub fn is_valid(&self, value: &Value) -> Result<bool, OverBudget> {
        budget::within(value, || self.validator.is_valid(value))
    }

    /// The first way in which a value does not fit; none = it fits.
    ///
    /// # Errors
    /// The evaluation takes too many steps for a value of that size.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library has many kinds of errors, and gets new ones"
    )]
    pub fn check(&self, value: &Value) -> Result<Option<Misfit>, OverBudget> {
        if self.is_valid(value)? {
            return Ok(None);
        }
        budget::within(value, || {
            let error = self.validator.iter_errors(value).next()?;
            let missing = match error.kind() {
                ValidationErrorKind::Required { property } => property.as_str().map(str::to_owned),
                _ => None,
            };
            Some(Misfit {
                at: error.instance_path().to_string(),
                message: short(&error.to_string()),
                missing,
            })
        })
    }
}

impl Schema {
    /// The bounds that a value breaks, at most `most`. Missing fields and wrong forms are none.
    ///
    /// # Errors
    /// The evaluation takes too many steps for a value of that size.
    pub fn broken_bounds(
        &self,
        value: &Value,
        most: usize,
    ) -> Result<Vec<BrokenBound>, OverBudget> {
        if self.is_valid(value)? {
            return Ok(Vec::new());
        }
        budget::within(value, || {
            let errors = self.validator.iter_errors(value);
            errors
                .flat_map(|error| broken_bounds(&error))
                .take(most)
                .collect()
        })
    }
}

/// The bounds that an error is about. A value that may have several forms breaks those of the form that it
/// has.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library has many kinds of errors, and gets new ones"
)]
fn broken_bounds(error: &ValidationError<'_>) -> Vec<BrokenBound> {
    let words = match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            return context.iter().flatten().flat_map(broken_bounds).collect();
        }
        ValidationErrorKind::MaxLength { limit } => format!("has more than {limit} characters"),
        ValidationErrorKind::MinLength { limit: 1 } => "is empty".to_owned(),
        ValidationErrorKind::MinLength { limit } => format!("has fewer than {limit} characters"),
        ValidationErrorKind::MaxItems { limit } => format!("has more than {limit} entries"),
        ValidationErrorKind::MinItems { limit: 1 } => "has no entry".to_owned(),
        ValidationErrorKind::MinItems { limit } => format!("has fewer than {limit} entries"),
        ValidationErrorKind::Maximum { limit } => format!("is more than {limit}"),
        ValidationErrorKind::Minimum { limit } => format!("is less than {limit}"),
        ValidationErrorKind::Pattern { pattern } => match choices(pattern) {
            Some(choices) => format!("is not {choices}"),
            None => format!("does not match `{pattern}`"),
        },
        _ => return Vec::new(),
    };
    vec![BrokenBound {
        at: error.instance_path().to_string(),
        words,
    }]
}

/// The words of a pattern that stands for a closed list, such as `^(day|month)$`: "`day` or `month`".
fn choices(pattern: &str) -> Option<String> {
    let inner = pattern.strip_prefix("^(")?.strip_suffix('$')?;
    let inner = inner.strip_suffix('?').unwrap_or(inner).strip_suffix(')')?;
    let is_word = |word: &str| {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b',');
        !word.is_empty() && word.bytes().all(is_fit)
    };
    let words: Vec<&str> = inner.split('|').collect();
    let (last, first) = words.split_last()?;
    if first.is_empty() || !words.iter().all(|word| is_word(word)) {
        return None;
    }
    let first: Vec<String> = first.iter().map(|word| format!("`{word}`")).collect();
    Some(format!("{} or `{last}`", first.join(", ")))
}

/// Makes the keyword that counts.
#[expect(clippy::unnecessary_wraps, reason = "the library wants this signature")]
fn counter<'a>(
    _: &'a Map<String, Value>,
    cost: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Ok(Box::new(Cost::read(cost)))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
