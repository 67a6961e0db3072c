//! Defines the conditions on a call: commands, exact arguments, paths, hosts, a JSON Schema, cost.

mod host;
mod path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, argument};

/// The conditions on a call, all of which must hold. Unknown names are refused, because an ignored condition
/// would widen its rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conditions {
    /// The command begins with one of these prefixes. Applies only to tools that run command lines, part by
    /// part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<CommandPrefix>>,
    /// The arguments are exactly these; harmless arguments of a tool that runs commands do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exactly: Option<Value>,
    /// Each of these arguments is a path below its folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathBelow>,
    /// Each of these arguments is an address at its host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostIs>,
    /// A JSON Schema for which the arguments are valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The call's session has cost more than this so far, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_above: Option<u64>,
    /// The call's session has cost less than this so far, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_below: Option<u64>,
}

/// The words with which a command begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandPrefix {
    /// Whole words, as the program gets them.
    pub words: Vec<String>,
    /// True if more words may follow.
    #[serde(default = "yes")]
    pub more: bool,
    /// True if these may be any words. Without it, an allow rule takes only words that are known to be
    /// harmless; so do rules that were stored before this field existed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_words: bool,
}

fn yes() -> bool {
    true
}

impl CommandPrefix {
    /// Creates a prefix that further words may follow; for an allow rule only words that are known to be
    /// harmless.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            words: words.into_iter().map(str::to_owned).collect(),
            more: true,
            any_words: false,
        }
    }
}

/// An argument that is a path in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathBelow {
    /// The argument's name, or a JSON pointer.
    pub argument: String,
    /// A folder of the workspace, relative and without `..`; empty = the workspace itself.
    pub below: String,
}

/// An argument that is an `http` or `https` address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostIs {
    /// The argument's name, or a JSON pointer.
    pub argument: String,
    /// A host, or `*.` and a domain for all hosts below it.
    pub host: String,
}

pub(crate) use host::{host_of, is_host_pattern};
pub(crate) use path::{folder_of, is_folder};

/// The certainty with which a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    /// It may hold: allow rules treat it as no, ask and deny rules as a reason to ask.
    Unsure,
    Yes,
}

impl From<bool> for Fit {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl Conditions {
    /// Returns true if there are no conditions, so that every call fits.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns a session cost at which a call may fit, if there is a condition on the cost.
    pub fn fitting_cost(&self) -> Option<u64> {
        let above = self.cost_above.map(|least| least.saturating_add(1));
        above.or(self.cost_below.map(|most| most.saturating_sub(1)))
    }

    /// Returns how surely all conditions but command and schema hold.
    pub(crate) fn fit(&self, call: &Call<'_>) -> Fit {
        let exactly = self.exactly.iter().map(|wanted| is_exactly(wanted, call));
        let paths = self.paths.iter().map(|path| {
            let below = |text: &str| path::fit(text, &path.below, call.workspace);
            every_text(argument(call.arguments, &path.argument), below)
        });
        let hosts = self.hosts.iter().map(|host| {
            let at = |text: &str| host::fit(text, &host.host);
            every_text(argument(call.arguments, &host.argument), at)
        });
        let cost = |limit: Option<u64>, holds: fn(u64, u64) -> bool| match (limit, call.cost_micros)
        {
            (None, _) => Fit::Yes,
            (Some(_), None) => Fit::Unsure,
            (Some(limit), Some(cost)) => holds(cost, limit).into(),
        };
        let costs = [
            cost(self.cost_above, |cost, limit| cost > limit),
            cost(self.cost_below, |cost, limit| cost < limit),
        ];
        let all = exactly.chain(paths).chain(hosts).chain(costs);
        all.min().unwrap_or(Fit::Yes)
    }
}

/// Returns whether the arguments equal `wanted`, ignoring harmless ones.
fn is_exactly(wanted: &Value, call: &Call<'_>) -> Fit {
    let (Some(shell), Value::Object(wanted), Value::Object(have)) =
        (call.shell, wanted, call.arguments)
    else {
        return (wanted == call.arguments).into();
    };
    let counts = |name: &&String| !shell.harmless.contains(*name);
    let names = |map: &serde_json::Map<String, Value>| map.keys().filter(counts).count();
    let is_same = have
        .iter()
        .filter(|(name, _)| counts(name))
        .all(|(name, value)| wanted.get(name) == Some(value));
    (is_same && names(wanted) == names(have)).into()
}

/// Returns how surely every text of an argument fits: a single text, or a list of them.
fn every_text(value: Option<&Value>, fit: impl Fn(&str) -> Fit) -> Fit {
    let fits: Vec<Fit> = match value {
        None | Some(Value::Null) => return Fit::No,
        Some(Value::String(text)) => vec![fit(text)],
        Some(Value::Array(items)) if !items.is_empty() => items
            .iter()
            .map(|item| item.as_str().map_or(Fit::Unsure, &fit))
            .collect(),
        Some(_) => return Fit::Unsure,
    };
    let (least, most) = (fits.iter().min(), fits.iter().max());
    match (least, most) {
        (Some(least), Some(most)) if least == most => *least,
        // Only some of the list fit.
        _ => Fit::Unsure,
    }
}
