//! Compiles and evaluates untrusted JSON Schemas within bounds.
//!
//! Tenants, members and MCP servers send schemas, and models and servers send the values to validate. This
//! crate is the only one that depends on `jsonschema`, so these bounds apply to every schema:
//! [`Schema::compile`] refuses a schema that is too large, too deep, or whose patterns need backtracking,
//! and [`Schema::check`] stops when an evaluation takes too many steps. Both count steps and never use a
//! clock, so the same schema and value always give the same result.

mod budget;
mod outline;
mod pattern;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use jsonschema::{Keyword, PatternOptions, ValidationError};
use serde_json::{Map, Value};

pub use self::budget::OverBudget;

use self::budget::{Cost, STEP};

/// The maximum number of bytes of a schema, written as JSON.
pub const MAX_BYTES: usize = 128 * 1024;
/// The maximum nesting depth of a schema.
pub const MAX_DEPTH: usize = 48;
/// The maximum number of schemas within one schema, including itself.
pub const MAX_PARTS: usize = 4_000;
/// The maximum number of parts of a schema after replacing every reference by its target.
pub const MAX_UNFOLDED: u64 = 50_000;
/// The maximum number of references in a schema.
pub const MAX_REFERENCES: usize = 1_000;
/// The maximum number of patterns in a schema.
pub const MAX_PATTERNS: usize = 256;
/// The maximum number of bytes of one pattern.
pub const MAX_PATTERN_BYTES: usize = 1_024;
/// The maximum weight of all patterns of a schema together: about one for each character that they match,
/// with repetitions expanded.
pub const MAX_PATTERN_WEIGHT: u64 = 8_192;
/// The maximum number of bytes of one compiled pattern.
const MAX_COMPILED_PATTERN: usize = 1024 * 1024;
/// The maximum number of characters of a message about an invalid value.
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
    /// References to parts that contain references multiply the schemas to check.
    #[error(
        "with its references followed it consists of more than {MAX_UNFOLDED} schemas: name each part once"
    )]
    ReferencesMultiply,
    /// A reference leads out of the schema, or to a value that is not a schema.
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
    /// A pattern needs a backtracking engine, which may take exponential time.
    #[error(
        "the pattern `{0}` looks around or refers back to a group, which takes too long for some texts; \
         write it without `(?=`, `(?!`, `(?<` and `\\1`"
    )]
    Backtracking(String),
    /// A keyword whose meaning depends on the place of its evaluation.
    #[error("`{0}` cannot be used here")]
    Keyword(&'static str),
    /// It is not a valid JSON Schema.
    #[error("{0}")]
    Invalid(String),
}

/// The first reason a value does not match its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The place in the value, as a JSON pointer; empty for the value itself.
    pub at: String,
    /// The reason, as a sentence.
    pub message: String,
    /// The name of the property that is missing, if that is the reason.
    pub missing: Option<String>,
}

/// A bound that a value breaks: a length, a number of entries, a numeric limit or a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenBound {
    /// The place in the value, as a JSON pointer; empty for the value itself.
    pub at: String,
    /// The broken bound, in words that follow the name of the field. The value is not included, because it
    /// may be a secret.
    pub words: String,
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
}

/// The meaning of the keyword `format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    /// `format` is an annotation, which is the default of the specification.
    Remarks,
    /// `format` is a condition.
    Checked,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The schema is not a valid JSON Schema, or exceeds one of the bounds.
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

    /// Returns true if a value matches.
    ///
    /// # Errors
    /// The evaluation takes too many steps for a value of that size.
    pub fn is_valid(&self, value: &Value) -> Result<bool, OverBudget> {
        budget::within(value, || self.validator.is_valid(value))
    }

    /// Returns the first reason a value does not match, or `None` if it matches.
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
    /// Returns the bounds that a value breaks, at most `most`. Missing fields and wrong types are not
    /// bounds.
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

/// Returns the bounds that an error is about. For alternatives (`anyOf`, `oneOf`), it returns the broken
/// bounds of each of them.
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

/// Describes a pattern that is a closed list, such as `^(day|month)$`: "`day` or `month`".
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

/// Creates the keyword that counts steps.
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
