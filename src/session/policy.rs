//! Which calls run, ask or are refused: an ordered list of rules, the last one asks.

use serde::{Deserialize, Serialize};

use crate::domain::ToolRef;

/// What a rule does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyEffect {
    /// Runs without asking.
    Allow,
    /// Waits for a person.
    Ask,
    /// Is refused.
    Deny,
}

impl PolicyEffect {
    /// The name in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Reads the name back.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "allow" => Some(Self::Allow),
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

/// One rule. `*` in a pattern stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What people read: "Asked by rule *name*".
    pub name: String,
    /// Pattern of server names.
    pub server: String,
    /// Pattern of tool names.
    pub tool: String,
    pub effect: PolicyEffect,
}

/// Everything that `decide` goes by beside the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The rules, first match wins; without a match a call asks.
    pub policy: Vec<Rule>,
    /// Model requests a turn may make (D7).
    pub max_iterations: u32,
    /// How often in a row a turn may make the same calls while they give the same; `None` = no limit.
    pub max_same_calls: Option<u32>,
    /// Approvals older than this are asked again when another process takes over.
    pub approval_stale_after_ms: u64,
    /// Messages that may wait for the running turn.
    pub max_waiting_messages: usize,
    /// Calls that one answer may ask for; more are answered with an error.
    pub max_calls_per_answer: usize,
    /// Whether a model gives sessions their titles.
    pub has_titles_made: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            policy: Vec::new(),
            max_iterations: 25,
            max_same_calls: Some(5),
            approval_stale_after_ms: 15 * 60 * 1000,
            max_waiting_messages: 20,
            max_calls_per_answer: 64,
            has_titles_made: false,
        }
    }
}

/// The rule that asks when no other one matches.
pub(super) const ASK_EVERYTHING: &str = "ask everything";

impl Rules {
    /// The effect for a call of `tool`, and the name of the rule.
    pub(super) fn effect_for(&self, tool: &ToolRef) -> (PolicyEffect, &str) {
        self.policy
            .iter()
            .find(|rule| matches(&rule.server, &tool.server) && matches(&rule.tool, &tool.tool))
            .map_or((PolicyEffect::Ask, ASK_EVERYTHING), |rule| {
                (rule.effect, rule.name.as_str())
            })
    }
}

/// Whether `text` fits `pattern`, in linear passes (no backtracking over more than one star).
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{PolicyEffect, Rule, Rules, matches};
    use crate::domain::ToolRef;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("*", "x", true),
            ("a*", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("a*b*c", "a-b-b-c", true),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("*_file", "read_file", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn the_first_matching_rule_wins_and_the_last_one_asks() {
        let rule = |name: &str, tool: &str, effect| Rule {
            name: name.into(),
            server: "*".into(),
            tool: tool.into(),
            effect,
        };
        let rules = Rules {
            policy: vec![
                rule("no shell", "execute_*", PolicyEffect::Deny),
                rule("reads", "*", PolicyEffect::Allow),
            ],
            ..Rules::default()
        };
        let tool = |tool: &str| ToolRef {
            server: "s".into(),
            tool: tool.into(),
        };
        assert_eq!(
            rules.effect_for(&tool("execute_command")),
            (PolicyEffect::Deny, "no shell")
        );
        assert_eq!(
            rules.effect_for(&tool("read_file")),
            (PolicyEffect::Allow, "reads")
        );
        assert_eq!(Rules::default().effect_for(&tool("x")).0, PolicyEffect::Ask);
    }
}
