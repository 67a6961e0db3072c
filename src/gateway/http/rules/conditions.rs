//! The wire form of the conditions of a rule.

use sepal_policy::{CommandPrefix, Conditions, HostIs, PathBelow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::Code;
use crate::gateway::error::ApiError;

/// The most conditions of one kind.
pub(super) const MAX_CONDITIONS: usize = 50;

/// The conditions on a call, all of which must hold.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::gateway::http) struct ConditionsBody {
    /// Each part of the command begins with one of these prefixes. Only for tools that run commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    command: Option<Vec<CommandBody>>,
    /// The arguments are exactly these.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    exactly: Option<Value>,
    /// Each of these arguments is a path below its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    paths: Option<Vec<PathBody>>,
    /// Each of these arguments is an address at its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    hosts: Option<Vec<HostBody>>,
    /// The arguments are valid for this JSON Schema.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
    /// The session has cost more than this, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    cost_above_usd: Option<f64>,
    /// The session has cost less than this, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    cost_below_usd: Option<f64>,
}

/// The words with which a command begins.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CommandBody {
    /// Whole words, as the program gets them.
    words: Vec<String>,
    /// True if more words may follow; true if absent. A rule that allows accepts only further words that are
    /// known to neither write nor run anything beside the command.
    #[serde(default = "yes")]
    more: bool,
    /// True if a rule that allows accepts any further words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    any_words: bool,
}

fn yes() -> bool {
    true
}

/// An argument that is a path in the workspace.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PathBody {
    /// The argument's name, or a JSON pointer.
    argument: String,
    /// A folder of the workspace; empty for the workspace itself.
    below: String,
}

/// An argument that is an `http` or `https` address.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HostBody {
    /// The argument's name, or a JSON pointer.
    argument: String,
    /// A host, or `*.` and a domain for all hosts below it.
    host: String,
}

impl ConditionsBody {
    pub(in crate::gateway::http) fn of(conditions: &Conditions) -> Self {
        let command = conditions.command.as_ref().map(|prefixes| {
            let prefixes = prefixes.iter().map(|prefix| CommandBody {
                words: prefix.words.clone(),
                more: prefix.more,
                any_words: prefix.any_words,
            });
            prefixes.collect()
        });
        let paths = conditions.paths.iter().map(|path| PathBody {
            argument: path.argument.clone(),
            below: path.below.clone(),
        });
        let hosts = conditions.hosts.iter().map(|host| HostBody {
            argument: host.argument.clone(),
            host: host.host.clone(),
        });
        Self {
            command,
            exactly: conditions.exactly.clone(),
            paths: (!conditions.paths.is_empty()).then(|| paths.collect()),
            hosts: (!conditions.hosts.is_empty()).then(|| hosts.collect()),
            schema: conditions.schema.clone(),
            cost_above_usd: conditions.cost_above.map(usd),
            cost_below_usd: conditions.cost_below.map(usd),
        }
    }

    pub(in crate::gateway::http) fn conditions(
        self,
        field: &'static str,
    ) -> Result<Conditions, ApiError> {
        // An empty list would be no condition, and the rule would be wider than it looks.
        for (name, is_empty) in [
            ("command", self.command.as_ref().is_some_and(Vec::is_empty)),
            ("paths", self.paths.as_ref().is_some_and(Vec::is_empty)),
            ("hosts", self.hosts.as_ref().is_some_and(Vec::is_empty)),
        ] {
            if is_empty {
                let text =
                    format!("`{field}.{name}` is empty: name something in it, or leave it out");
                return Err(ApiError::of_field(Code::InvalidArguments, field, text));
            }
        }
        let (paths, hosts) = (
            self.paths.unwrap_or_default(),
            self.hosts.unwrap_or_default(),
        );
        let command = self.command.map(|prefixes| {
            let prefixes = prefixes.into_iter().map(|prefix| CommandPrefix {
                words: prefix.words,
                more: prefix.more,
                any_words: prefix.any_words,
            });
            prefixes.collect::<Vec<_>>()
        });
        let most = [
            command.as_ref().map_or(0, Vec::len),
            paths.len(),
            hosts.len(),
        ];
        if most.into_iter().any(|count| count > MAX_CONDITIONS) {
            let text = format!("`{field}` may have {MAX_CONDITIONS} conditions of one kind");
            return Err(ApiError::of_field(Code::TooLarge, field, text));
        }
        let paths = paths.into_iter().map(|path| PathBelow {
            argument: path.argument,
            below: path.below,
        });
        let hosts = hosts.into_iter().map(|host| HostIs {
            argument: host.argument,
            host: host.host,
        });
        Ok(Conditions {
            command,
            exactly: self.exactly,
            paths: paths.collect(),
            hosts: hosts.collect(),
            schema: self.schema,
            cost_above: micros(field, self.cost_above_usd)?,
            cost_below: micros(field, self.cost_below_usd)?,
        })
    }
}

fn usd(micros: u64) -> f64 {
    crate::domain::MicroUsd(micros).as_usd()
}

fn micros(field: &'static str, usd: Option<f64>) -> Result<Option<u64>, ApiError> {
    match usd {
        None => Ok(None),
        Some(usd) if (0.0..=1e6).contains(&usd) => {
            Ok(Some(crate::domain::MicroUsd::from_usd(usd).0))
        }
        Some(_) => {
            let text = "a cost is 0 to 1000000 dollars";
            Err(ApiError::of_field(Code::InvalidArguments, field, text))
        }
    }
}
