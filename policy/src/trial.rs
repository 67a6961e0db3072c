//! Rules tried on real calls, and how often each is used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::because::Decision;
use crate::call::Call;
use crate::rules::Rules;

/// How many calls a simulation looks at, the newest ones.
pub const SIMULATED_CALLS: usize = 500;

/// What rules do with one call, before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    /// The call's place among those that were given.
    pub index: usize,
    pub before: Decision,
    pub after: Decision,
}

impl Simulated {
    /// Whether the change lets the call run, asks for it or refuses it where it was not before.
    pub fn is_changed(&self) -> bool {
        self.before.effect != self.after.effect
    }
}

/// Decides the newest [`SIMULATED_CALLS`] of `calls`, oldest first, by both sets of rules.
pub fn simulate(before: &Rules, after: &Rules, calls: &[Call<'_>]) -> Vec<Simulated> {
    let left_out = calls.len().saturating_sub(SIMULATED_CALLS);
    let newest = calls.iter().enumerate().skip(left_out);
    newest
        .map(|(index, call)| Simulated {
            index,
            before: before.decide(call),
            after: after.decide(call),
        })
        .collect()
}

/// How often one rule decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// When the rule was added, in milliseconds since 1970.
    pub added_ms: u64,
    pub count: u64,
    /// When the rule last decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ms: Option<u64>,
}

/// How often each rule decided: a fold over what happens, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uses(BTreeMap<String, Use>);

impl Uses {
    /// A rule was added. Counting begins there; what was counted of the id before stays.
    pub fn add(&mut self, rule: &str, at_ms: u64) {
        let entry = self.0.entry(rule.to_owned()).or_insert(Use {
            added_ms: at_ms,
            ..Use::default()
        });
        entry.added_ms = entry.added_ms.min(at_ms);
    }

    /// A call was decided; counts every rule that decided.
    pub fn count(&mut self, decision: &Decision, at_ms: u64) {
        for rule in decision.rules() {
            self.add(rule, at_ms);
            if let Some(entry) = self.0.get_mut(rule) {
                entry.count = entry.count.saturating_add(1);
                entry.last_ms = entry.last_ms.max(Some(at_ms));
            }
        }
    }

    /// A rule was removed.
    pub fn remove(&mut self, rule: &str) {
        self.0.remove(rule);
    }

    /// What was counted of a rule.
    pub fn of(&self, rule: &str) -> Option<&Use> {
        self.0.get(rule)
    }

    /// Rules that decided nothing for `idle_ms` since they were added or last used, to be offered for
    /// removal.
    pub fn unused(&self, now_ms: u64, idle_ms: u64) -> impl Iterator<Item = &str> {
        let is_idle = move |entry: &Use| {
            let since_ms = entry.last_ms.unwrap_or(entry.added_ms);
            now_ms.saturating_sub(since_ms) >= idle_ms
        };
        let unused = self.0.iter().filter(move |(_, entry)| is_idle(entry));
        unused.map(|(rule, _)| rule.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{SIMULATED_CALLS, Uses, simulate};
    use crate::{Call, Effect, Rule, Rules, Scope};

    fn rules(effect: Effect) -> Rules {
        let mut rule = Rule::new("a", effect, Scope::Person);
        rule.tool = "read_*".into();
        Rules::compile(vec![rule]).unwrap()
    }

    #[test]
    fn a_simulation_shows_the_newest_calls_before_and_after() {
        let arguments = json!({});
        let mut calls = vec![Call::new("s", "write_file", &arguments); SIMULATED_CALLS];
        calls.push(Call::new("s", "read_file", &arguments));
        let shown = simulate(&Rules::default(), &rules(Effect::Allow), &calls);
        assert_eq!(shown.len(), SIMULATED_CALLS);
        assert_eq!(shown.first().map(|call| call.index), Some(1));
        let changed: Vec<usize> = shown
            .iter()
            .filter(|call| call.is_changed())
            .map(|call| call.index)
            .collect();
        assert_eq!(changed, [SIMULATED_CALLS]);
    }

    #[test]
    fn each_use_is_counted_and_unused_rules_are_found() {
        let arguments = json!({});
        let call = Call::new("s", "read_file", &arguments);
        let mut uses = Uses::default();
        uses.add("a", 10);
        uses.add("b", 10);
        for at_ms in [500, 100] {
            uses.count(&rules(Effect::Deny).decide(&call), at_ms);
        }
        let counted = uses.of("a").unwrap();
        assert_eq!(
            (counted.added_ms, counted.count, counted.last_ms),
            (10, 2, Some(500))
        );
        assert_eq!(uses.unused(600, 200).collect::<Vec<_>>(), ["b"]);
        assert_eq!(uses.unused(700, 200).collect::<Vec<_>>(), ["a", "b"]);
        uses.remove("b");
        assert_eq!(uses.unused(700, 200).collect::<Vec<_>>(), ["a"]);
    }
}
