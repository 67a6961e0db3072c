//! Rules about calls in the settings.

use sepal_policy::{Effect, Rules};
use serde_json::json;

use super::{check_refused, loaded, yaml};
use sepal_core::domain::{ToolRef, named_shell, shell_tool};

fn named(rules: &str) -> String {
    format!("policy: {{rules: {{{rules}}}}}")
}

#[test]
fn rules_of_the_settings_decide_what_they_say() {
    let text = "no-push: {effect: deny, command: git push, except: git push --dry-run}, \
                notes: {effect: allow, server: files, tool: 'write_*', below: {path: notes}}, \
                dear: {effect: ask, cost_above_usd: 2.5, binding: true}";
    let loaded = loaded(&yaml(&named(text)));
    let rules = Rules::compile(loaded.settings.rules).unwrap();
    let shell = named_shell();
    let decided = |command: &str| {
        let arguments = json!({ "command": command });
        let mut call = sepal_policy::Call::new(shell.server, shell.tool, &arguments);
        let tool = ToolRef {
            server: shell.server.into(),
            tool: shell.tool.into(),
        };
        call.shell = shell_tool(&tool);
        call.cost_micros = Some(0);
        rules.decide(&call).effect
    };
    assert_eq!(decided("git push origin"), Effect::Deny);
    assert_eq!(decided("git push --dry-run"), Effect::Ask);
    let arguments = json!({ "path": "notes/a" });
    let mut call = sepal_policy::Call::new("files", "write_file", &arguments);
    call.cost_micros = Some(2_500_000);
    assert_eq!(rules.decide(&call).effect, Effect::Allow);
    call.cost_micros = Some(2_500_001);
    assert_eq!(rules.decide(&call).effect, Effect::Ask);
}

#[test]
fn the_settings_name_a_reviewer_and_open_calls_to_it() {
    let text = "agent: {reviewer: {model: b/org/small, timeout_s: 5}}\n\
                policy: {rules: {look: {effect: ask, tool: 'read_*', reviewed: true}}}";
    let settings = loaded(&yaml(text)).settings;
    let model = settings.reviewer.model.unwrap();
    assert_eq!(
        (model.provider.as_str(), model.model.as_str()),
        ("b", "org/small")
    );
    assert_eq!(settings.reviewer.time_limit.as_secs(), 5);
    let rules = Rules::compile(settings.rules).unwrap();
    let arguments = json!({});
    for (tool, is_open) in [("read_file", true), ("write_file", false)] {
        let call = sepal_policy::Call::new("files", tool, &arguments);
        assert_eq!(rules.decide(&call).reviewed, is_open, "{tool}");
    }
    assert_eq!(
        loaded(&yaml("agent: {name: x}")).settings.reviewer.model,
        None
    );
}

#[test]
fn a_rule_that_says_nothing_clear_is_refused() {
    let check = |text: &str, pieces: &[&str]| check_refused(&yaml(&named(text)), pieces);
    check("a: {tool: x}", &["policy.rules.a.effect", "missing"]);
    check("a: {effect: perhaps}", &["policy.rules.a.effect"]);
    check(
        "a: {effect: allow, binding: true}",
        &["policy.rules.a", "only ask rules"],
    );
    check(
        "a: {effect: allow, reviewed: true}",
        &["policy.rules.a", "only ask rules"],
    );
    check(
        "a: {effect: deny, below: {path: ../x}}",
        &["policy.rules.a", "without `..`"],
    );
    check(
        "a: {effect: allow, command: []}",
        &["policy.rules.a", "no words"],
    );
    check(
        "a: {effect: allow, command: ''}",
        &["policy.rules.a", "no words"],
    );
    check(
        "a: {effect: allow, command: null}",
        &["policy.rules.a.command", "empty"],
    );
    check(
        "a: {effect: allow, below: {}}",
        &["policy.rules.a.below", "empty"],
    );
    check(
        "a: {effect: allow, hosts: {}}",
        &["policy.rules.a.hosts", "empty"],
    );
    check(
        "a: {effect: allow, schema: '{}'}",
        &["policy.rules.a", "every call would fit"],
    );
    check(
        "a: {effect: allow, any_words: true}",
        &["policy.rules.a.any_words", "`command`"],
    );
    check(
        "a: {effect: deny, command: rm, any_words: true}",
        &["policy.rules.a", "any words already"],
    );
    check("a: {effect: deny, schema: '{'}", &["policy.rules.a.schema"]);
    check("'a b': {effect: deny}", &["cannot be used"]);
    check("a: {effect: deny, colour: red}", &["policy.rules.a.colour"]);
}
