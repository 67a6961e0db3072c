//! Writes the engine's requests from a few values of the client's request, and from nothing else.

mod compare;
mod container;
mod volume;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::{container::container, volume::volume};
use crate::{refusal::Refusal, settings::Label};

/// The label with the sandbox.
const SANDBOX: &str = "sepal.sandbox";
/// The prefix of the labels that Sepal may set.
const PREFIX: &str = "sepal.";
const MAX_LABELS: usize = 16;
const MAX_LABEL_BYTES: usize = 512;

type Labels = BTreeMap<String, String>;

/// Parses a request as a whole, and the values of it that are used.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<(Value, T), Refusal> {
    let wrong = |text: String| Refusal::Malformed(format!("the body is not as expected: {text}"));
    let whole = serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))?;
    let mut reader = serde_json::Deserializer::from_slice(body);
    let used = serde_path_to_error::deserialize(&mut reader);
    Ok((whole, used.map_err(|error| wrong(error.to_string()))?))
}

/// Returns Sepal's own labels of a sandbox's object, with ours added.
fn labels(mut asked: Labels, sandbox: &str, label: &Label) -> Result<Labels, Refusal> {
    let is_short = |it: &String| it.len() <= MAX_LABEL_BYTES;
    let is_known = |(name, value): (&String, &String)| {
        name.starts_with(PREFIX) && is_short(name) && is_short(value)
    };
    if asked.len() > MAX_LABELS {
        return Err(Refusal::field("Labels", "there are too many"));
    }
    if let Some((name, _)) = asked.iter().find(|it| !is_known(*it)) {
        let remedy = format!("labels begin with `{PREFIX}` and are short");
        return Err(Refusal::field(format!("Labels.{name}"), remedy));
    }
    if asked.get(SANDBOX).is_none_or(|it| it != sandbox) {
        let remedy = format!("it has to be `{sandbox}`, as the name says");
        return Err(Refusal::field(format!("Labels.{SANDBOX}"), remedy));
    }
    asked.insert(label.name.clone(), label.value.clone());
    Ok(asked)
}
