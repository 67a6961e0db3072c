//! `policy.rules`: builds a rule from its fields. `agent.reviewer`: the reviewing model.

use std::collections::BTreeMap;
use std::time::Duration;

use sepal_policy::{
    Approver, Approvers, CommandPrefix, Conditions, Effect, Glob, HostIs, PathBelow, Rule, Rules,
    Scope, derive_examples,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::agent::{FallbackEntry, fallback};
use super::read;
use sepal_core::domain::{MicroUsd, known_approver, named_shell};

/// `agent.reviewer`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reviewer {
    /// The reviewing model; `None` = no calls are reviewed.
    #[serde(deserialize_with = "model")]
    pub model: Option<FallbackEntry>,
    /// The time limit of one review.
    #[serde(rename = "timeout_s", deserialize_with = "read::whole_seconds")]
    pub time_limit: Duration,
}

/// Invalid values were refused before.
fn model<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FallbackEntry>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.as_deref().and_then(fallback))
}

/// Builds the rule from its fields; the error names the wrong field and the problem.
pub(crate) fn rule(
    name: &str,
    fields: &BTreeMap<String, Value>,
) -> Result<Rule, (&'static str, String)> {
    let text = |field: &str| fields.get(field).and_then(Value::as_str);
    let effect = text("effect").and_then(Effect::parse);
    let effect = effect.ok_or_else(|| ("effect", "it is missing".to_owned()))?;
    let mut rule = Rule::new(format!("settings:{name}"), effect, Scope::Installation);
    rule.name = Some(name.to_owned());
    rule.server = text("server").map_or_else(Glob::any, Glob::from);
    rule.tool = text("tool").map_or_else(Glob::any, Glob::from);
    for field in ["below", "hosts"] {
        let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
        if fields.get(field).is_some_and(is_empty) {
            let text = "it is empty: name an argument in it, or leave it out";
            return Err((field, text.to_owned()));
        }
    }
    let schema = text("schema").map(serde_json::from_str).transpose();
    let any_words = fields.get("any_words").and_then(Value::as_bool) == Some(true);
    let command = prefix(fields, "command").map(|prefix| CommandPrefix {
        any_words,
        ..prefix
    });
    if any_words && command.is_none() {
        let text = "it is about the words behind `command`, which is missing";
        return Err(("any_words", text.to_owned()));
    }
    rule.when = Conditions {
        command: command.map(|prefix| vec![prefix]),
        paths: map(fields, "below", |argument, below| PathBelow {
            argument,
            below,
        }),
        hosts: map(fields, "hosts", |argument, host| HostIs { argument, host }),
        schema: schema.map_err(|error| ("schema", format!("it is no JSON: {error}")))?,
        cost_above: fields
            .get("cost_above_usd")
            .and_then(Value::as_f64)
            .map(|usd| MicroUsd::from_usd(usd).0),
        ..Conditions::default()
    };
    let except = prefix(fields, "except").map(|prefix| Conditions {
        command: Some(vec![prefix]),
        ..Conditions::default()
    });
    rule.except = except.into_iter().collect();
    rule.binding = fields.get("binding").and_then(Value::as_bool) == Some(true);
    rule.approvers = Approvers {
        who: approver(text("approvers"))?,
        fresh_gesture: fields.get("fresh_gesture").and_then(Value::as_bool) == Some(true),
    };
    rule.reviewed = fields.get("reviewed").and_then(Value::as_bool) == Some(true);
    rule.examples = derive_examples(&rule, named_shell());
    match Rules::compile(vec![rule.clone()]) {
        Ok(_) => Ok(rule),
        Err(problems) => {
            let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Err(("effect", words.join("; ")))
        }
    }
}

fn approver(text: Option<&str>) -> Result<Approver, (&'static str, String)> {
    let known = text.map_or(Some(Approver::Owner), known_approver);
    let text = "it is `owner`, `somebody_else`, `two`, `role:approver`, `role:member`, `role:admin` or \
                `role:owner`";
    known.ok_or_else(|| ("approvers", text.to_owned()))
}

fn prefix(fields: &BTreeMap<String, Value>, field: &str) -> Option<CommandPrefix> {
    let words = fields.get(field)?.as_array()?;
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    Some(CommandPrefix::new(words))
}

fn map<T>(fields: &BTreeMap<String, Value>, field: &str, make: fn(String, String) -> T) -> Vec<T> {
    let members = fields.get(field).and_then(Value::as_object);
    let members = members.into_iter().flatten();
    let texts =
        members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    texts.map(|(name, value)| make(name, value)).collect()
}
