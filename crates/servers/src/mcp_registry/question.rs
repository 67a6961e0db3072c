//! Makes the questions about a server of the registry that a person answers before it can be added, and
//! checks the answers.

use std::collections::BTreeMap;

use super::clip;
use super::format::Input;
use sepal_mcp::config::EntryProblem;

/// The most characters of an answer.
const MOST_LETTERS: usize = 8192;
/// The most characters that are shown of a name or an example.
const LABEL: usize = 200;
/// The most characters that are shown of a description.
const DESCRIPTION: usize = 1000;

/// A value that a person is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The key of the answer, for example `env.API_KEY`; unique among the questions of one way.
    pub key: String,
    /// The name of the variable, header or argument.
    pub label: String,
    pub description: Option<String>,
    pub is_required: bool,
    /// True if the value is secret. It is stored sealed, unless it is an argument of the command line.
    pub is_secret: bool,
    /// `string`, `number`, `boolean` or `filepath`.
    pub format: &'static str,
    pub default: Option<String>,
    pub placeholder: Option<String>,
    /// The allowed values; empty if any value is allowed.
    pub choices: Vec<String>,
    /// True if each line of the answer is a separate value.
    pub is_repeated: bool,
}

impl Question {
    pub(super) fn new(key: String, label: &str, input: &Input) -> Self {
        Self {
            key,
            label: clip(label, LABEL),
            description: input
                .description
                .as_deref()
                .map(|text| clip(text, DESCRIPTION)),
            is_required: input.is_required,
            is_secret: input.is_secret,
            format: match input.format.as_deref() {
                Some("number") => "number",
                Some("boolean") => "boolean",
                Some("filepath") => "filepath",
                Some(_) | None => "string",
            },
            default: input.default.clone(),
            placeholder: input.placeholder.as_deref().map(|text| clip(text, LABEL)),
            choices: input.choices.clone(),
            is_repeated: false,
        }
    }
}

/// Returns the questions about an input: its variables if the registry gives a value, else the value itself.
pub(super) fn questions(key: &str, label: &str, input: &Input) -> Vec<Question> {
    if input.value.is_none() {
        return vec![Question::new(key.to_owned(), label, input)];
    }
    let asked = input.variables.iter().filter(|(name, variable)| {
        variable.value.is_none()
            && input
                .value
                .as_ref()
                .is_some_and(|v| v.contains(&braced(name)))
    });
    asked
        .map(|(name, variable)| Question::new(format!("{key}.{name}"), name, variable))
        .collect()
}

pub(super) fn braced(name: &str) -> String {
    format!("{{{name}}}")
}

/// A person's answers by key, and the problems found in them.
pub(super) struct Answers<'a> {
    given: &'a BTreeMap<String, String>,
    pub(super) problems: Vec<EntryProblem>,
}

/// A value, and whether it is hidden from readers of the entry.
pub(super) struct Value {
    pub(super) text: String,
    pub(super) is_secret: bool,
}

impl<'a> Answers<'a> {
    pub(super) fn new(given: &'a BTreeMap<String, String>) -> Self {
        Self {
            given,
            problems: Vec::new(),
        }
    }

    /// Returns the value of an input; `None` if it is left out or invalid.
    pub(super) fn value(&mut self, key: &str, input: &Input) -> Option<Value> {
        let Some(template) = &input.value else {
            let text = self.answer(key, input)?;
            return Some(Value {
                text,
                is_secret: input.is_secret,
            });
        };
        let mut text = template.clone();
        let mut is_secret = input.is_secret;
        for (name, variable) in &input.variables {
            if !template.contains(&braced(name)) {
                continue;
            }
            let value = match &variable.value {
                Some(value) => value.clone(),
                None => self.answer(&format!("{key}.{name}"), variable)?,
            };
            text = text.replace(&braced(name), &value);
            is_secret |= variable.is_secret;
        }
        Some(Value { text, is_secret })
    }

    /// Returns the answer, or else the default; `None` if there is neither, or if it is invalid.
    pub(super) fn answer(&mut self, key: &str, input: &Input) -> Option<String> {
        let given = self.given.get(key).filter(|text| !text.is_empty());
        let Some(text) = given.or(input.default.as_ref()) else {
            if input.is_required {
                self.refuse(key, "the server needs this value");
            }
            return None;
        };
        if let Some(words) = problem(text, input) {
            self.refuse(key, &words);
            return None;
        }
        Some(text.clone())
    }

    fn refuse(&mut self, key: &str, message: &str) {
        self.problems.push(EntryProblem {
            field: format!("values.{key}"),
            message: message.to_owned(),
        });
    }
}

/// Returns the problem of an answer, if any.
fn problem(text: &str, input: &Input) -> Option<String> {
    if text.chars().count() > MOST_LETTERS {
        return Some(format!("a value has at most {MOST_LETTERS} letters"));
    }
    if text.contains('\0') {
        return Some("a value has no NUL character".to_owned());
    }
    if !input.choices.is_empty() && !input.choices.iter().any(|choice| choice == text) {
        return Some(format!("possible are: {}", input.choices.join(", ")));
    }
    match input.format.as_deref() {
        Some("number") if text.trim().parse::<f64>().is_err() => {
            Some(format!("`{}` is not a number", clip(text, LABEL)))
        }
        Some("boolean") if text != "true" && text != "false" => {
            Some("possible are: true, false".to_owned())
        }
        Some(_) | None => None,
    }
}
