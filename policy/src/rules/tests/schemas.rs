//! Tests rules with schemas whose evaluation takes too long, or never ends, for some arguments.

use serde_json::{Value, json};

use super::rule;
use crate::{Call, Conditions, Effect, Rule, Rules, Scope};

fn with(effect: Effect, schema: Value) -> Rule {
    let when = Conditions {
        schema: Some(schema),
        ..Conditions::default()
    };
    rule("a", effect, Scope::Session, when)
}

#[test]
fn a_schema_above_a_bound_is_refused_with_the_reason() {
    for (schema, expected) in [
        (json!({ "pattern": "^(?=a)b" }), "looks around"),
        (
            json!({ "anyOf": vec![json!({ "pattern": "^(a+)+$" }); 300] }),
            "256 patterns",
        ),
        (json!({ "title": "x".repeat(200_000) }), "bytes"),
    ] {
        let problems = Rules::compile(vec![with(Effect::Allow, schema)]).unwrap_err();
        assert!(problems[0].to_string().contains(expected), "{problems:?}");
    }
}

/// The fit is unsure, so an allow rule does not allow and a deny rule asks.
#[test]
fn arguments_that_take_too_many_steps_are_asked_about() {
    let schema = json!({ "properties": { "a": { "pattern": "^(a?){1000}a{1000}b$" } } });
    let decide = |effect, letters: usize| {
        let arguments = json!({ "a": "a".repeat(letters) });
        let rules = Rules::compile(vec![with(effect, schema.clone())]).unwrap();
        rules.decide(&Call::new("s", "t", &arguments)).effect
    };
    assert_eq!(decide(Effect::Allow, 200_000), Effect::Ask);
    assert_eq!(decide(Effect::Deny, 200_000), Effect::Ask);
    let short = json!({ "a": format!("{}b", "a".repeat(1_000)) });
    let schema = json!({ "properties": { "a": { "pattern": "^a+b$" } } });
    let rules = Rules::compile(vec![with(Effect::Allow, schema)]).unwrap();
    assert_eq!(
        rules.decide(&Call::new("s", "t", &short)).effect,
        Effect::Allow
    );
}
