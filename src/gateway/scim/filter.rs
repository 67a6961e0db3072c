//! Parses and evaluates filters (RFC 7644, section 3.4.2.2) and the paths of patches (section 3.5.2).
//!
//! What a client can make the parser do is bounded: by the length of a filter and the depth of its parentheses.

use std::fmt;

use serde_json::{Map, Value};

/// The longest filter or path, in bytes.
const MAX_BYTES: usize = 1_000;

/// The deepest nesting of parentheses and brackets.
const MAX_DEPTH: usize = 10;

/// The reason a filter or path cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FilterError {
    #[error("it is longer than 1000 bytes")]
    TooLong,
    #[error("it is nested more than 10 deep")]
    TooDeep,
    #[error("an attribute is missing or not valid at byte {0}")]
    Attribute(usize),
    #[error(
        "an operator is missing or unknown at byte {0}; there are eq ne co sw ew gt ge lt le pr"
    )]
    Operator(usize),
    #[error("a value is missing or not valid at byte {0}; texts stand in double quotes")]
    Literal(usize),
    #[error("a bracket is not closed at byte {0}")]
    Open(usize),
    #[error("there is more than a filter at byte {0}")]
    Rest(usize),
}

/// The name of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AttributePath {
    /// The schema that is named before the attribute.
    pub(super) schema: Option<String>,
    pub(super) name: String,
    pub(super) part: Option<String>,
}

/// How an attribute is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Contains,
    StartsWith,
    EndsWith,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// A filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filter {
    /// All of them, two at least.
    And(Vec<Self>),
    /// One of them, two at least.
    Or(Vec<Self>),
    Not(Box<Self>),
    Present(AttributePath),
    /// Compares with a text, whole number, boolean or null.
    Compare(AttributePath, Comparison, Value),
    /// One value of an attribute fits a filter.
    Within(AttributePath, Box<Self>),
}

/// The path of a patch: an attribute, perhaps the values of it that fit a filter, perhaps a part of these.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PatchPath {
    pub(super) attribute: AttributePath,
    pub(super) filter: Option<Filter>,
}

const OPERATORS: [(&str, Comparison); 9] = [
    ("eq", Comparison::Equal),
    ("ne", Comparison::NotEqual),
    ("co", Comparison::Contains),
    ("sw", Comparison::StartsWith),
    ("ew", Comparison::EndsWith),
    ("gt", Comparison::Greater),
    ("ge", Comparison::GreaterOrEqual),
    ("lt", Comparison::Less),
    ("le", Comparison::LessOrEqual),
];

impl Filter {
    /// Parses a filter.
    pub(super) fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser::new(text)?;
        let filter = parser.either(0)?;
        parser.end()?;
        Ok(filter)
    }

    /// Returns true if a resource fits. Texts are compared without regard to case, except for ids.
    pub(super) fn fits(&self, resource: &Map<String, Value>) -> bool {
        match self {
            Self::And(all) => all.iter().all(|filter| filter.fits(resource)),
            Self::Or(all) => all.iter().any(|filter| filter.fits(resource)),
            Self::Not(filter) => !filter.fits(resource),
            Self::Present(path) => values(resource, path).iter().any(|value| is_present(value)),
            Self::Compare(path, Comparison::NotEqual, wanted) => {
                !equals_any(&values(resource, path), path, wanted)
            }
            Self::Compare(path, Comparison::Equal, wanted) => {
                equals_any(&values(resource, path), path, wanted)
            }
            Self::Compare(path, comparison, wanted) => {
                let mut found = values(resource, path).into_iter();
                found.any(|value| compares(value, *comparison, wanted))
            }
            Self::Within(path, filter) => {
                let found = values(resource, path);
                let mut parts = found.into_iter().filter_map(Value::as_object);
                parts.any(|part| filter.fits(part))
            }
        }
    }

    /// The text that an attribute has to equal for the filter to fit, if the filter says so.
    pub(super) fn exact(&self, name: &str) -> Option<&str> {
        match self {
            Self::And(all) => all.iter().find_map(|filter| filter.exact(name)),
            Self::Compare(path, Comparison::Equal, Value::String(text))
                if path.part.is_none() && path.name.eq_ignore_ascii_case(name) =>
            {
                Some(text)
            }
            Self::Compare(..)
            | Self::Or(_)
            | Self::Not(_)
            | Self::Present(_)
            | Self::Within(..) => None,
        }
    }

    /// Returns true if the filter asks about an attribute.
    pub(super) fn asks(&self, name: &str) -> bool {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().any(|filter| filter.asks(name)),
            Self::Not(filter) => filter.asks(name),
            Self::Present(path) | Self::Compare(path, ..) | Self::Within(path, _) => {
                path.name.eq_ignore_ascii_case(name)
            }
        }
    }
}

impl PatchPath {
    /// Parses a path.
    pub(super) fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser::new(text)?;
        let mut attribute = parser.attribute()?;
        let mut filter = None;
        if parser.take("[") {
            filter = Some(parser.either(1)?);
            parser.close("]")?;
            if parser.take(".") {
                let at = parser.at;
                let part = parser.attribute()?;
                if attribute.part.is_some() || part.part.is_some() || part.schema.is_some() {
                    return Err(FilterError::Attribute(at));
                }
                attribute.part = Some(part.name);
            }
        }
        parser.end()?;
        Ok(Self { attribute, filter })
    }
}

impl AttributePath {
    /// Returns true if the attribute is one of a schema, or of none in particular.
    pub(super) fn is_of(&self, schema: &str) -> bool {
        let named = self.schema.as_deref();
        named.is_none_or(|named| named.eq_ignore_ascii_case(schema))
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Result<Self, FilterError> {
        if text.len() > MAX_BYTES {
            return Err(FilterError::TooLong);
        }
        let mut parser = Self { text, at: 0 };
        parser.skip();
        Ok(parser)
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    /// Takes a sign, and the space after it.
    fn take(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        if is_next {
            self.at += sign.len();
            self.skip();
        }
        is_next
    }

    /// Takes a word in upper or lower case, and the space after it.
    fn take_word(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let Some((start, after)) = rest.split_at_checked(word.len()) else {
            return false;
        };
        let ends = !after.starts_with(is_name_char);
        let is_next = ends && start.eq_ignore_ascii_case(word);
        if is_next {
            self.at += word.len();
            self.skip();
        }
        is_next
    }

    fn close(&mut self, sign: &str) -> Result<(), FilterError> {
        if self.take(sign) {
            return Ok(());
        }
        Err(FilterError::Open(self.at))
    }

    fn end(&self) -> Result<(), FilterError> {
        if self.rest().is_empty() {
            return Ok(());
        }
        Err(FilterError::Rest(self.at))
    }

    fn either(&mut self, depth: usize) -> Result<Filter, FilterError> {
        if depth > MAX_DEPTH {
            return Err(FilterError::TooDeep);
        }
        let first = self.both(depth)?;
        let mut all = vec![first];
        while self.take_word("or") {
            all.push(self.both(depth)?);
        }
        Ok(joined(all, Filter::Or))
    }

    fn both(&mut self, depth: usize) -> Result<Filter, FilterError> {
        let first = self.term(depth)?;
        let mut all = vec![first];
        while self.take_word("and") {
            all.push(self.term(depth)?);
        }
        Ok(joined(all, Filter::And))
    }

    fn term(&mut self, depth: usize) -> Result<Filter, FilterError> {
        if self.take("(") {
            let filter = self.either(depth + 1)?;
            self.close(")")?;
            return Ok(filter);
        }
        let before = self.at;
        if self.take_word("not") {
            if self.take("(") {
                let filter = self.either(depth + 1)?;
                self.close(")")?;
                return Ok(Filter::Not(Box::new(filter)));
            }
            self.at = before;
        }
        let path = self.attribute()?;
        if self.take("[") {
            let filter = self.either(depth + 1)?;
            self.close("]")?;
            return Ok(Filter::Within(path, Box::new(filter)));
        }
        self.skip();
        if self.take_word("pr") {
            return Ok(Filter::Present(path));
        }
        let operator = OPERATORS.iter().find(|(word, _)| self.take_word(word));
        let (_, comparison) = operator.ok_or(FilterError::Operator(self.at))?;
        Ok(Filter::Compare(path, *comparison, self.literal()?))
    }

    /// An attribute, with no space after it.
    fn attribute(&mut self) -> Result<AttributePath, FilterError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_path_char(c)).unwrap_or(rest.len());
        let whole = rest.get(..end).unwrap_or_default();
        let wrong = FilterError::Attribute(self.at);
        let is_urn = |text: &str| {
            let start = text.get(..4).unwrap_or_default();
            start.eq_ignore_ascii_case("urn:")
        };
        let (schema, name) = match whole.rsplit_once(':') {
            Some((schema, name)) if is_urn(whole) => (Some(schema.to_owned()), name),
            Some(_) => return Err(wrong),
            None => (None, whole),
        };
        let (name, part) = match name.split_once('.') {
            Some((name, part)) => (name, Some(part)),
            None => (name, None),
        };
        let is_name = |text: &str| {
            let first = text.chars().next();
            first.is_some_and(|c| c.is_ascii_alphabetic() || c == '$')
                && text.chars().all(is_name_char)
        };
        if !is_name(name) || !part.is_none_or(is_name) {
            return Err(wrong);
        }
        self.at += end;
        Ok(AttributePath {
            schema,
            name: name.to_owned(),
            part: part.map(str::to_owned),
        })
    }

    fn literal(&mut self) -> Result<Value, FilterError> {
        let wrong = FilterError::Literal(self.at);
        let rest = self.rest();
        let end = if rest.starts_with('"') {
            let mut is_escaped = false;
            let closing = rest.char_indices().skip(1).find(|(_, c)| {
                let closes = *c == '"' && !is_escaped;
                is_escaped = *c == '\\' && !is_escaped;
                closes
            });
            closing.ok_or(wrong)?.0 + 1
        } else {
            let is_end = |c: char| c.is_whitespace() || matches!(c, ')' | ']');
            rest.find(is_end).unwrap_or(rest.len())
        };
        let word = rest.get(..end).unwrap_or_default();
        let value = match word.to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => serde_json::from_str(word).map_err(|_| wrong)?,
        };
        // No attribute has fractions.
        if !matches!(value, Value::Object(_) | Value::Array(_)) && !value.is_f64() {
            self.at += end;
            self.skip();
            return Ok(value);
        }
        Err(wrong)
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$')
}

fn is_path_char(c: char) -> bool {
    is_name_char(c) || matches!(c, ':' | '.')
}

fn joined(mut all: Vec<Filter>, join: fn(Vec<Filter>) -> Filter) -> Filter {
    match (all.len(), all.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            all.extend(last);
            join(all)
        }
    }
}

/// The member of this name, in upper or lower case.
fn member<'v>(members: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    let found = members
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}

/// The values of an attribute; one for each of an attribute with many.
fn values<'v>(resource: &'v Map<String, Value>, path: &AttributePath) -> Vec<&'v Value> {
    let found = member(resource, &path.name);
    let all: Vec<&Value> = match found {
        None => Vec::new(),
        Some(Value::Array(values)) => values.iter().collect(),
        Some(value) => vec![value],
    };
    match &path.part {
        None => all,
        Some(part) => {
            let parts = all.into_iter().filter_map(Value::as_object);
            parts.filter_map(|it| member(it, part)).collect()
        }
    }
}

/// The value by which an object is compared.
fn plain(value: &Value) -> &Value {
    match value {
        Value::Object(members) => member(members, "value").unwrap_or(&Value::Null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value
        }
    }
}

fn is_present(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => true,
    }
}

fn equals_any(found: &[&Value], path: &AttributePath, wanted: &Value) -> bool {
    if wanted.is_null() {
        return !found.iter().any(|value| is_present(value));
    }
    let name = path.name.as_str();
    let is_exact = ["id", "externalId"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(name));
    found.iter().any(|value| match (plain(value), wanted) {
        (Value::String(value), Value::String(wanted)) if is_exact => value == wanted,
        (Value::String(value), Value::String(wanted)) => {
            value.to_lowercase() == wanted.to_lowercase()
        }
        (Value::Bool(value), Value::String(wanted)) => {
            wanted.eq_ignore_ascii_case(if *value { "true" } else { "false" })
        }
        (value, wanted) => value == wanted,
    })
}

fn compares(value: &Value, comparison: Comparison, wanted: &Value) -> bool {
    let (Value::String(value), Value::String(wanted)) = (plain(value), wanted) else {
        return false;
    };
    let (value, wanted) = (value.to_lowercase(), wanted.to_lowercase());
    match comparison {
        Comparison::Equal => value == wanted,
        Comparison::NotEqual => value != wanted,
        Comparison::Contains => value.contains(&wanted),
        Comparison::StartsWith => value.starts_with(&wanted),
        Comparison::EndsWith => value.ends_with(&wanted),
        Comparison::Greater => value > wanted,
        Comparison::GreaterOrEqual => value >= wanted,
        Comparison::Less => value < wanted,
        Comparison::LessOrEqual => value <= wanted,
    }
}

impl fmt::Display for AttributePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}:")?;
        }
        f.write_str(&self.name)?;
        match &self.part {
            Some(part) => write!(f, ".{part}"),
            None => Ok(()),
        }
    }
}

/// Writes a filter that parses to the same.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, all: &[Self], word: &str| {
            for (place, filter) in all.iter().enumerate() {
                if place > 0 {
                    write!(f, " {word} ")?;
                }
                match filter {
                    Self::And(_) | Self::Or(_) => write!(f, "({filter})")?,
                    Self::Not(_) | Self::Present(_) | Self::Compare(..) | Self::Within(..) => {
                        write!(f, "{filter}")?;
                    }
                }
            }
            Ok(())
        };
        match self {
            Self::And(all) => list(f, all, "and"),
            Self::Or(all) => list(f, all, "or"),
            Self::Not(filter) => write!(f, "not ({filter})"),
            Self::Present(path) => write!(f, "{path} pr"),
            Self::Within(path, filter) => write!(f, "{path}[{filter}]"),
            Self::Compare(path, comparison, wanted) => {
                let word = OPERATORS.iter().find(|(_, it)| it == comparison);
                write!(f, "{path} {} {wanted}", word.map_or("eq", |(word, _)| word))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{AttributePath, Filter, FilterError, OPERATORS, PatchPath};

    fn ann() -> Value {
        json!({
            "id": "usr_1", "externalId": "Seven", "userName": "Ann@acme.com", "active": true,
            "displayName": "Ann \"the\" Other", "name": { "familyName": "Lee" },
            "emails": [
                { "value": "ann@acme.com", "type": "work", "primary": true },
                { "value": "ann@home.test", "type": "home" },
            ],
            "meta": { "lastModified": "2026-01-02T00:00:00Z" },
        })
    }

    #[test]
    fn filters_mean_what_the_standard_says() {
        for (text, fits) in [
            (r#"userName eq "ann@ACME.com""#, true),
            (r#"USERNAME EQ "ann@acme.com""#, true),
            (
                r#"urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ann@acme.com""#,
                true,
            ),
            (r#"userName eq "ben""#, false),
            (r#"userName ne "ben""#, true),
            (
                r#"userName sw "ann" and userName ew ".com" and userName co "@""#,
                true,
            ),
            (r#"externalId eq "Seven""#, true),
            (r#"externalId eq "seven""#, false),
            (
                r#"id eq "usr_1" or (userName eq "x" and active eq false)"#,
                true,
            ),
            ("active eq true", true),
            (r#"active eq "True""#, true),
            ("active eq false", false),
            ("not (active eq true)", false),
            ("not(title pr) and emails pr", true),
            (r#"emails eq "ann@home.test""#, true),
            (r#"emails.value eq "ANN@home.test""#, true),
            (r#"emails[type eq "work" and value co "home"]"#, false),
            (r#"emails[type eq "home" and value co "home"]"#, true),
            (r#"name.familyName eq "lee""#, true),
            (r#"displayName eq "ann \"the\" other""#, true),
            (r#"meta.lastModified gt "2026-01-01T00:00:00Z""#, true),
            (r#"meta.lastModified lt "2026-01-01T00:00:00Z""#, false),
            (r#"title eq "x""#, false),
            ("title eq null", true),
            (r#"not eq "x""#, false),
        ] {
            let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(filter.fits(ann().as_object().unwrap()), fits, "{text}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        let deep = |n: usize| format!("{}a pr{}", "(".repeat(n), ")".repeat(n));
        for (text, error) in [
            ("", FilterError::Attribute(0)),
            ("userName", FilterError::Operator(8)),
            ("userName eq", FilterError::Literal(11)),
            ("userName eq ann", FilterError::Literal(12)),
            (r#"userName eq "ann"#, FilterError::Literal(12)),
            (r#"userName is "ann""#, FilterError::Operator(9)),
            (r#"userName eq "a" or"#, FilterError::Attribute(18)),
            ("(userName pr", FilterError::Open(12)),
            ("userName pr)", FilterError::Rest(11)),
            ("user name pr", FilterError::Operator(5)),
            ("a eq {}", FilterError::Literal(5)),
            ("a eq 1.5", FilterError::Literal(5)),
            ("x:y pr", FilterError::Attribute(0)),
            (deep(11).as_str(), FilterError::TooDeep),
            ("a".repeat(1_001).as_str(), FilterError::TooLong),
        ] {
            assert_eq!(Filter::parse(text), Err(error), "{text}");
        }
        assert!(Filter::parse(&deep(10)).is_ok());
    }

    #[test]
    fn the_paths_of_patches_are_read() {
        for (text, name, part, has_filter) in [
            ("members", "members", None, false),
            ("name.familyName", "name", Some("familyName"), false),
            (r#"members[value eq "usr_1"]"#, "members", None, true),
            (
                r#"emails[type eq "work"].value"#,
                "emails",
                Some("value"),
                true,
            ),
            (
                "urn:ietf:params:scim:schemas:core:2.0:User:name.givenName",
                "name",
                Some("givenName"),
                false,
            ),
        ] {
            let path = PatchPath::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(path.attribute.name, name);
            assert_eq!(path.attribute.part.as_deref(), part);
            assert_eq!(path.filter.is_some(), has_filter);
        }
        for text in [
            "",
            "members[",
            "a.b[c pr].d",
            "a b",
            "members[value eq]",
            "[a pr]",
        ] {
            assert!(PatchPath::parse(text).is_err(), "{text}");
        }
    }

    fn filters() -> impl Strategy<Value = Filter> {
        let path = ("[a-z][a-zA-Z0-9]{0,6}", proptest::option::of("[a-z]{1,5}")).prop_map(
            |(name, part)| AttributePath {
                schema: None,
                // The words of filters are no names here.
                name: format!("x{name}"),
                part,
            },
        );
        let value = prop_oneof![
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        let comparison = (0..OPERATORS.len()).prop_map(|place| OPERATORS[place].1);
        let leaf = prop_oneof![
            path.clone().prop_map(Filter::Present),
            (path.clone(), comparison, value)
                .prop_map(|(path, comparison, value)| Filter::Compare(path, comparison, value)),
        ];
        leaf.prop_recursive(3, 12, 3, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 2..4).prop_map(Filter::And),
                proptest::collection::vec(inner.clone(), 2..4).prop_map(Filter::Or),
                inner.clone().prop_map(|it| Filter::Not(Box::new(it))),
                (path.clone(), inner).prop_map(|(path, it)| Filter::Within(path, Box::new(it))),
            ]
        })
    }

    proptest! {
        /// Every filter that is short enough is read back as it was written.
        #[test]
        fn a_written_filter_is_read_back(filter in filters()) {
            let text = filter.to_string();
            match Filter::parse(&text) {
                Ok(read) => prop_assert_eq!(read, filter),
                Err(error) => prop_assert_eq!(error, FilterError::TooLong),
            }
        }

        /// `not` turns the answer of every filter around.
        #[test]
        fn a_negation_is_the_opposite(filter in filters()) {
            let resource = ann();
            let resource = resource.as_object().unwrap();
            let fits = filter.fits(resource);
            prop_assert_ne!(Filter::Not(Box::new(filter)).fits(resource), fits);
        }
    }

    #[test]
    fn an_exact_text_narrows_the_list() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                Filter::parse(text).unwrap().exact("userName"),
                expected,
                "{text}"
            );
        };
        check(r#"username eq "ann""#, Some("ann"));
        check(r#"active eq true and userName eq "ann""#, Some("ann"));
        check(r#"active eq true or userName eq "ann""#, None);
        check(r#"not (userName eq "ann")"#, None);
        check(r#"userName sw "ann""#, None);
    }
}
