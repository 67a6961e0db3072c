//! Tests stored rules: checking, writing, reading and expiry.

use serde_json::json;

use super::{commands, compile, rule, shell};
use crate::{
    Approver, Call, CommandPrefix, Conditions, Effect, Example, Examples, PathBelow, Problem, Rule,
    Rules, Scope,
};
use Effect::{Allow, Ask, Deny};
use Scope::{Session, Tenant};

#[test]
fn a_rule_is_checked_with_its_examples_before_it_decides() {
    let example = |command: &str| Example {
        server: "sandbox".into(),
        tool: "execute_command".into(),
        arguments: json!({"command": command}),
        shell: Some(shell()),
        workspace: None,
        cost_micros: None,
    };
    let with = |effect, matching: &str, other: Option<&str>| {
        let mut made = rule("a", effect, Session, commands(&["npm test"]));
        made.examples = Some(Examples {
            matching: example(matching),
            other: other.map(example),
        });
        Rules::compile(vec![made]).map(|_| ()).map_err(|problems| {
            problems
                .iter()
                .map(Problem::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        })
    };
    assert_eq!(with(Allow, "npm test x", Some("npm run x")), Ok(()));
    assert_eq!(with(Deny, "ls; npm test", Some("npm run x")), Ok(()));
    assert_eq!(
        with(Allow, "npm tests", Some("ls")),
        Err("rule `a`: the example that it should match is not decided by it".into())
    );
    assert_eq!(
        with(Ask, "npm test", Some("npm test x")),
        Err("rule `a`: the example that it should leave alone is decided by it".into())
    );
    assert_eq!(
        with(Allow, "npm test", None),
        Err("rule `a`: the example that it leaves alone is missing".into())
    );
}

#[test]
fn a_rule_that_cannot_mean_what_it_says_is_refused() {
    let wrong = |change: fn(&mut Rule)| {
        let mut made = rule("a", Allow, Session, Conditions::default());
        change(&mut made);
        Rules::compile(vec![made]).is_err()
    };
    assert!(!wrong(|_| {}));
    assert!(wrong(|rule| rule.id = String::new()));
    assert!(wrong(|rule| rule.binding = true));
    assert!(wrong(|rule| rule.except = vec![commands(&["ls"])]));
    assert!(wrong(|rule| {
        rule.effect = Deny;
        rule.except = vec![Conditions::default()];
    }));
    assert!(wrong(|rule| rule.when.command = Some(vec![])));
    assert!(wrong(
        |rule| rule.when.command = Some(vec![CommandPrefix::new([])])
    ));
    assert!(wrong(|rule| rule.when = commands(&["ls "])));
    assert!(wrong(
        |rule| rule.when.schema = Some(json!({"type": "nothing"}))
    ));
    assert!(wrong(
        |rule| rule.when.schema = Some(json!({"$ref": "https://example.com/schema"}))
    ));
    for below in ["/etc", "a/../b", "~"] {
        let path = PathBelow {
            argument: "path".into(),
            below: below.into(),
        };
        let made = rule(
            "a",
            Allow,
            Session,
            Conditions {
                paths: vec![path],
                ..Conditions::default()
            },
        );
        assert!(Rules::compile(vec![made]).is_err(), "{below}");
    }
    let same = rule("a", Allow, Session, Conditions::default());
    let problems = Rules::compile(vec![same.clone(), same]).unwrap_err();
    assert_eq!(problems, [Problem::SameId { rule: "a".into() }]);
}

#[test]
fn a_rule_is_written_and_read_again_and_unknown_conditions_are_refused() {
    let mut made = rule("a", Ask, Tenant, commands(&["git push"]));
    made.approvers.who = Approver::Role("admin".into());
    let text = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), made);
    let least: Rule =
        serde_json::from_value(json!({"id": "a", "effect": "deny", "scope": "tenant"})).unwrap();
    assert_eq!(least, Rule::new("a", Deny, Tenant));
    let unknown = json!({"id": "a", "effect": "allow", "scope": "tenant", "when": {"comand": []}});
    assert!(serde_json::from_value::<Rule>(unknown).is_err());
    let misspelt = json!({"id": "a", "effect": "allow", "scope": "tenant", "untill_ms": 5});
    assert!(serde_json::from_value::<Rule>(misspelt).is_err());
}

#[test]
fn an_allow_rule_ends_with_its_time_and_with_the_definition() {
    let mut allow = rule("a", Allow, Session, Conditions::default());
    allow.until_ms = Some(100);
    allow.definition = Some("v1".into());
    let arguments = json!({});
    let decide = |rules: &[Rule], now_ms, definition| {
        let call = Call {
            definition,
            now_ms,
            ..Call::new("s", "t", &arguments)
        };
        compile(rules).decide(&call)
    };
    let rules = [allow.clone()];
    assert_eq!(decide(&rules, 99, Some("v1")).effect, Allow);
    for (now_ms, definition, expected) in [
        (100, Some("v1"), "Rule “a” has expired."),
        (
            99,
            Some("v2"),
            "Rule “a” allowed an earlier definition of this tool.",
        ),
        (
            99,
            None,
            "Rule “a” allowed an earlier definition of this tool.",
        ),
        (100, Some("v2"), "Rule “a” has expired."),
    ] {
        let decision = decide(&rules, now_ms, definition);
        assert_eq!(
            (decision.effect, decision.because.to_string().as_str()),
            (Ask, expected)
        );
    }
    // A server cannot end a deny rule by changing its tool's description.
    let deny = Rule {
        effect: Deny,
        until_ms: None,
        ..allow.clone()
    };
    assert_eq!(decide(&[deny], 99, Some("v2")).effect, Deny);
    let other = Rule {
        id: "b".into(),
        definition: None,
        until_ms: None,
        ..allow
    };
    assert_eq!(
        decide(&[rules[0].clone(), other], 100, Some("v2")).effect,
        Allow
    );
}
