//! Tests real commands against ten sets of rules (`corpus/commands.txt`).
#![expect(
    clippy::unwrap_used,
    reason = "functions that tests share are tests too"
)]

use sepal_policy::{
    Call, CommandPrefix, Conditions, Effect, Rule, Rules, Scope, ShellTool, propose,
};
use serde_json::json;

const COMMANDS: &str = include_str!("corpus/commands.txt");

/// The commands that a developer's rules allow.
const DEVELOPER: &[&str] = &[
    "ls",
    "cat",
    "grep",
    "echo",
    "wc",
    "head",
    "sort",
    "cd",
    "true",
    "test",
    "[",
    "git status",
    "git diff",
    "git log",
    "npm test",
    "cargo test",
    "find",
    "timeout",
    "xargs",
    "env",
    "sh",
    "sed",
    "awk",
    "nice",
    "bash scripts/test.sh",
];

fn commands(commands: &[&str]) -> Conditions {
    let prefixes = commands
        .iter()
        .map(|words| CommandPrefix::new(words.split(' ')));
    Conditions {
        command: Some(prefixes.collect()),
        ..Conditions::default()
    }
}

fn rule(id: &str, effect: Effect, scope: Scope, when: Conditions) -> Rule {
    Rule {
        when,
        ..Rule::new(id, effect, scope)
    }
}

/// Returns a rule about one command.
fn one(effect: Effect, scope: Scope, words: &str) -> Rule {
    rule(words, effect, scope, commands(&[words]))
}

fn binding_git() -> Rule {
    Rule {
        binding: true,
        ..one(Effect::Ask, Scope::Tenant, "git")
    }
}

fn rm_but_build() -> Rule {
    let build = CommandPrefix {
        more: false,
        ..CommandPrefix::new(["rm", "-r", "build"])
    };
    Rule {
        except: vec![Conditions {
            command: Some(vec![build]),
            ..Conditions::default()
        }],
        ..one(Effect::Deny, Scope::Tenant, "rm")
    }
}

/// Returns the ten sets, each with its name.
fn sets() -> Vec<(&'static str, Vec<Rule>)> {
    let tool = || rule("tool", Effect::Allow, Scope::Session, Conditions::default());
    let developer = || {
        rule(
            "developer",
            Effect::Allow,
            Scope::Person,
            commands(DEVELOPER),
        )
    };
    let rm = || {
        let mut rule = one(Effect::Allow, Scope::Session, "rm");
        rule.id = "allowed rm".into();
        let prefixes = rule.when.command.iter_mut().flatten();
        prefixes.for_each(|prefix| prefix.any_words = true);
        rule
    };
    let curl = || Rule {
        id: "allowed curl".into(),
        ..one(Effect::Allow, Scope::Session, "curl")
    };
    vec![
        ("no rule", vec![]),
        ("the whole tool", vec![tool()]),
        (
            "npm test",
            vec![one(Effect::Allow, Scope::Session, "npm test")],
        ),
        ("a developer", vec![developer()]),
        (
            "the tool but rm",
            vec![tool(), one(Effect::Deny, Scope::Installation, "rm")],
        ),
        (
            "a developer but git push",
            vec![developer(), one(Effect::Deny, Scope::Person, "git push")],
        ),
        (
            "a developer, cat is asked",
            vec![developer(), one(Effect::Ask, Scope::Session, "cat")],
        ),
        ("the tool, git is always asked", vec![tool(), binding_git()]),
        (
            "a developer, curl allowed and denied",
            vec![
                developer(),
                curl(),
                one(Effect::Deny, Scope::Tenant, "curl"),
            ],
        ),
        (
            "a developer, rm denied but of build",
            vec![developer(), rm(), rm_but_build()],
        ),
    ]
}

struct Line {
    expected: &'static str,
    command: String,
}

fn lines() -> Vec<Line> {
    let lines = COMMANDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (expected, command) = line.split_once(" | ").unwrap();
            let command = serde_json::from_str(command).unwrap_or_else(|_| command.to_owned());
            Line { expected, command }
        })
        .collect()
}

fn letter(effect: Effect) -> char {
    match effect {
        Effect::Allow => 'A',
        Effect::Ask => '?',
        Effect::Deny => 'D',
    }
}

fn shell() -> ShellTool {
    ShellTool {
        argument: "command".into(),
        harmless: vec![],
    }
}

#[test]
fn each_set_of_rules_decides_each_command_as_expected() {
    let sets: Vec<(&str, Rules)> = sets()
        .into_iter()
        .map(|(name, rules)| (name, Rules::compile(rules).unwrap()))
        .collect();
    let shell = shell();
    let lines = lines();
    assert!(lines.len() >= 300, "{}", lines.len());
    let mut wrong = Vec::new();
    for Line { expected, command } in &lines {
        assert_eq!(expected.chars().count(), sets.len(), "{command}");
        let arguments = json!({"command": command});
        let call = Call {
            shell: Some(&shell),
            ..Call::new("sandbox", "execute_command", &arguments)
        };
        for ((name, rules), expected) in sets.iter().zip(expected.chars()) {
            let decision = rules.decide(&call);
            if letter(decision.effect) != expected {
                wrong.push(format!(
                    "{command:?}, {name}: expected {expected}. {}",
                    decision.because
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_is_proposed_for_a_command_allows_it_and_no_more_than_its_card_says() {
    let shell = shell();
    let lines = lines();
    for Line { command, .. } in &lines {
        let arguments = json!({"command": command});
        let call = Call {
            shell: Some(&shell),
            ..Call::new("sandbox", "execute_command", &arguments)
        };
        for offer in propose(&call) {
            let rule = offer.into_rule("a", Scope::Session, None);
            let examples = rule.examples.clone().unwrap();
            let rules = Rules::compile(vec![rule]).unwrap();
            assert_eq!(rules.decide(&call).effect, Effect::Allow, "{command:?}");
            let other = examples.other.unwrap();
            let other = Call {
                shell: Some(&shell),
                ..Call::new(&other.server, &other.tool, &other.arguments)
            };
            assert_eq!(rules.decide(&other).effect, Effect::Ask, "{command:?}");
        }
    }
}
