//! What a person is asked before a server of the registry can be added, and what they answered.

use std::collections::BTreeMap;

use super::clip;
use super::format::Input;
use crate::mcp::config::EntryProblem;

/// Letters of one answer.
const MOST_LETTERS: usize = 8192;
/// Letters that are shown of a name or an example.
const LABEL: usize = 200;
/// Letters that are shown of what a value is for.
const DESCRIPTION: usize = 1000;

/// One value that a person is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Names the answer, for example `env.API_KEY`; unique among the questions of one way.
    pub key: String,
    /// The variable, header or argument.
    pub label: String,
    pub description: Option<String>,
    pub is_required: bool,
    /// The value is kept sealed, unless it is a word of the command line.
    pub is_secret: bool,
    /// `string`, `number`, `boolean` or `filepath`.
    pub format: &'static str,
    pub default: Option<String>,
    pub placeholder: Option<String>,
    /// The values that are possible; empty = any.
    pub choices: Vec<String>,
    /// Each line of the answer is a value of its own.
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

/// A value of the registry: given with its variables, or asked for as it is.
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

/// What a person answered, by key, and what is wrong with it.
pub(super) struct Answers<'a> {
    given: &'a BTreeMap<String, String>,
    pub(super) problems: Vec<EntryProblem>,
}

/// A value, and whether it is to be kept from those who read the entry.
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

    /// The value for an input; `None` where it is left out, or wrong.
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

    /// What was answered, else the default.
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

/// What is wrong with an answer.
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
