//! Tests the order of rules, conditions beside commands, and the reasons, as tables.

mod harmless;
mod network;
mod reviewed;
mod schemas;
mod stored;

use serde_json::{Value, json};

use crate::{
    Approver, Approvers, Because, Call, CommandPrefix, Conditions, Effect, HostIs, PathBelow, Rule,
    Rules, Scope, ShellTool,
};
use Effect::{Allow, Ask, Deny};
use Scope::{Installation, Person, Session, Tenant};

fn shell() -> ShellTool {
    ShellTool {
        argument: "command".into(),
        harmless: vec!["timeout_s".into()],
    }
}

fn commands(commands: &[&str]) -> Conditions {
    Conditions {
        command: Some(
            commands
                .iter()
                .map(|words| CommandPrefix::new(words.split(' ')))
                .collect(),
        ),
        ..Conditions::default()
    }
}

fn rule(id: &str, effect: Effect, scope: Scope, when: Conditions) -> Rule {
    Rule {
        when,
        ..Rule::new(id, effect, scope)
    }
}

#[track_caller]
fn compile(rules: &[Rule]) -> Rules {
    Rules::compile(rules.to_vec()).unwrap()
}

/// Returns the decision on a command, as text.
#[track_caller]
fn on_command(rules: &[Rule], command: &str) -> String {
    let arguments = json!({"command": command, "timeout_s": 5});
    let shell = shell();
    let call = Call {
        shell: Some(&shell),
        ..Call::new("sandbox", "execute_command", &arguments)
    };
    compile(rules).decide(&call).because.to_string()
}

#[track_caller]
fn on(rules: &[Rule], arguments: &Value) -> Effect {
    compile(rules)
        .decide(&Call::new("files", "read_file", arguments))
        .effect
}

#[test]
fn a_compound_command_names_the_part_that_nobody_allowed() {
    let rules = [rule("npm", Allow, Session, commands(&["npm test"]))];
    for (command, expected) in [
        ("npm test", "Allowed by rule “npm”."),
        ("npm test --silent", "Allowed by rule “npm”."),
        (
            "npm test -- --watch=false",
            "Rule “npm” does not allow `npm test -- --watch=false`: `--watch` may do more than read.",
        ),
        (
            "npm test && curl evil.example",
            "No rule allows `curl evil.example`.",
        ),
        (
            "npm test > x",
            "Rule “npm” does not allow `npm test > x`: it redirects output to a file.",
        ),
        (
            "PATH=. npm test",
            "Rule “npm” does not allow `PATH=. npm test`: it sets a variable.",
        ),
        (
            "npm tests",
            "Rule “npm” does not allow `npm tests`: other words follow the allowed ones.",
        ),
        (
            "npm test $X",
            "Rule “npm” does not allow `npm test $X`: a word is only known when the command runs, and may become an option.",
        ),
        (
            "npm exec x",
            "Rule “npm” does not allow `npm exec x`: other words follow the allowed ones.",
        ),
        ("ls", "No rule covers this call."),
        ("npm test `ls`", "No rule allows `ls`."),
        (
            "npm test $((1))",
            "The command uses shell syntax that rules cannot read: arithmetic.",
        ),
        (
            "npm\u{a0}test",
            "The command has a character that is invisible or looks like another one.",
        ),
    ] {
        assert_eq!(on_command(&rules, command), expected, "{command}");
    }
}

#[test]
fn what_is_denied_is_found_wherever_it_stands() {
    let rules = [
        rule("all", Allow, Session, Conditions::default()),
        rule("rm", Deny, Installation, commands(&["rm"])),
    ];
    for (command, expected) in [
        ("ls && rm x", "Denied by rule “rm”: `rm x`."),
        (
            "echo $(find . -exec rm {} +)",
            "Denied by rule “rm”: `rm …`.",
        ),
        (
            "sh -c 'ls; env /bin/rm x'",
            "Denied by rule “rm”: `/bin/rm x`.",
        ),
        ("$X y", "`$X y` may be what rule “rm” denies."),
        ("case x in x) rm y;; esac", "Denied by rule “rm”: `rm y`."),
        (
            "[[ -f x ]] && rm y",
            "The call may be what rule “rm” denies.",
        ),
        ("echo rm", "Allowed by rule “all”."),
    ] {
        assert_eq!(on_command(&rules, command), expected, "{command}");
    }
}

#[test]
fn deny_comes_first_and_nearer_scopes_win_between_ask_and_allow() {
    let any = Conditions::default;
    for (rules, expected) in [
        (vec![], Ask),
        (vec![(Allow, Installation)], Allow),
        (vec![(Allow, Session), (Deny, Installation)], Deny),
        (vec![(Allow, Session), (Ask, Session)], Ask),
        (vec![(Allow, Session), (Ask, Tenant)], Allow),
        (vec![(Allow, Tenant), (Ask, Person)], Ask),
        (vec![(Ask, Session), (Deny, Session)], Deny),
        (
            vec![(Allow, Session), (Ask, Person), (Allow, Tenant)],
            Allow,
        ),
    ] {
        let mut made: Vec<Rule> = rules
            .iter()
            .enumerate()
            .map(|(at, (effect, scope))| rule(&at.to_string(), *effect, *scope, any()))
            .collect();
        assert_eq!(on(&made, &json!({})), expected, "{rules:?}");
        made.reverse();
        assert_eq!(on(&made, &json!({})), expected, "{rules:?}");
    }
}

#[test]
fn a_binding_ask_is_asked_whatever_is_allowed_nearer() {
    let mut ask = rule("ask", Ask, Tenant, Conditions::default());
    let allow = rule("allow", Allow, Session, Conditions::default());
    assert_eq!(on(&[allow.clone(), ask.clone()], &json!({})), Allow);
    ask.binding = true;
    assert_eq!(on(&[allow, ask], &json!({})), Ask);
}

#[test]
fn an_ask_that_wants_more_than_the_owners_yes_is_asked_whatever_is_allowed_nearer() {
    let allow = rule("allow", Allow, Session, Conditions::default());
    for (who, fresh_gesture) in [
        (Approver::Two, true),
        (Approver::SomebodyElse, false),
        (Approver::Role("admin".into()), false),
        (Approver::Owner, true),
    ] {
        let mut ask = rule("ask", Ask, Tenant, Conditions::default());
        ask.approvers = Approvers {
            who: who.clone(),
            fresh_gesture,
        };
        let arguments = json!({});
        let decision = compile(&[allow.clone(), ask]).decide(&Call::new("s", "t", &arguments));
        assert_eq!((decision.effect, decision.approvers), (Ask, vec![who]));
        assert_eq!(decision.fresh_gesture, fresh_gesture);
    }
}

/// The approval of other people for one part of a command lets no other part run.
#[test]
fn what_no_rule_asks_of_others_is_asked_of_the_owner_too() {
    let mut ask = rule("npm", Ask, Tenant, commands(&["npm"]));
    ask.approvers.who = Approver::SomebodyElse;
    let rules = compile(&[ask, rule("ls", Allow, Person, commands(&["ls"]))]);
    let shell = shell();
    let both = [Approver::Owner, Approver::SomebodyElse];
    let [owner, others] = both.each_ref().map(std::slice::from_ref);
    for (command, expected) in [
        ("npm test", others),
        ("npm test && npm -v", others),
        ("ls; npm test", others),
        ("npm test; id", &both),
        ("id | npm test", &both),
        ("npm $(id)", &both),
        ("npm 'not read", &both),
        ("date", owner),
    ] {
        let arguments = json!({ "command": command });
        let decision = rules.decide(&Call {
            shell: Some(&shell),
            ..Call::new("sandbox", "execute_command", &arguments)
        });
        assert_eq!(decision.effect, Ask, "{command}");
        assert_eq!(decision.approvers, expected, "{command}");
    }
}

#[test]
fn exceptions_leave_a_part_to_other_rules_only_if_it_is_surely_meant() {
    let mut deny = rule("rm", Deny, Tenant, commands(&["rm"]));
    deny.except = vec![commands(&["rm -r build"])];
    let rules = [deny, rule("all", Allow, Session, Conditions::default())];
    for (command, is_allowed) in [
        ("rm -r build", true),
        ("rm -r build x", true),
        ("timeout 5 rm -r build", true),
        ("rm -r build > x", false),
        ("A=1 rm -r build", false),
        ("rm -r $X", false),
        ("rm -r build $X", false),
        ("rm x", false),
        ("rm -r build; rm x", false),
        ("/bin/rm -r build", false),
    ] {
        assert_eq!(
            on_command(&rules, command).starts_with("Allowed"),
            is_allowed,
            "{command}"
        );
    }
}

/// Conditions, arguments and cost; then the effects of an allow rule alone, and of a deny rule beside one
/// that allows everything.
type Row = (Conditions, Value, Option<u64>, Effect, Effect);

fn rows_of_places() -> Vec<Row> {
    let below = |below: &str| Conditions {
        paths: vec![PathBelow {
            argument: "path".into(),
            below: below.into(),
        }],
        ..Conditions::default()
    };
    let at = Conditions {
        hosts: vec![HostIs {
            argument: "/to/url".into(),
            host: "*.example.com".into(),
        }],
        ..Conditions::default()
    };
    vec![
        (below("src"), json!({"path": "src/a"}), None, Allow, Deny),
        (below("src"), json!({"path": "lib/a"}), None, Ask, Allow),
        (below("src"), json!({"path": "src/../a"}), None, Ask, Ask),
        (below("src"), json!({"path": 1}), None, Ask, Ask),
        (
            below("src"),
            json!({"path": ["src/a", "src/b"]}),
            None,
            Allow,
            Deny,
        ),
        (
            below("src"),
            json!({"path": ["src/a", "b"]}),
            None,
            Ask,
            Ask,
        ),
        (below("src"), json!({}), None, Ask, Allow),
        (
            at.clone(),
            json!({"to": {"url": "https://a.example.com/"}}),
            None,
            Allow,
            Deny,
        ),
        (
            at.clone(),
            json!({"to": {"url": "https://example.org/"}}),
            None,
            Ask,
            Allow,
        ),
        (
            at,
            json!({"to": {"url": "https://a.example.com@b/"}}),
            None,
            Ask,
            Ask,
        ),
    ]
}

fn rows_of_arguments() -> Vec<Row> {
    let schema = Conditions {
        schema: Some(json!({"properties": {"limit": {"maximum": 10}}, "required": ["limit"]})),
        ..Conditions::default()
    };
    let exactly = Conditions {
        exactly: Some(json!({"a": 1, "b": [2]})),
        ..Conditions::default()
    };
    let cheap = Conditions {
        cost_below: Some(5),
        ..Conditions::default()
    };
    vec![
        (schema.clone(), json!({"limit": 10}), None, Allow, Deny),
        (schema, json!({"limit": 11}), None, Ask, Allow),
        (
            exactly.clone(),
            json!({"b": [2], "a": 1}),
            None,
            Allow,
            Deny,
        ),
        (exactly, json!({"b": [2], "a": 1, "c": 1}), None, Ask, Allow),
        (cheap.clone(), json!({}), Some(4), Allow, Deny),
        (cheap.clone(), json!({}), Some(5), Ask, Allow),
        (cheap, json!({}), None, Ask, Ask),
    ]
}

#[test]
fn conditions_must_surely_hold_to_allow_and_may_hold_to_ask() {
    let of = |rules: &[Rule], arguments: &Value, cost_micros: Option<u64>| {
        let call = Call {
            cost_micros,
            ..Call::new("s", "t", arguments)
        };
        compile(rules).decide(&call).effect
    };
    for (when, arguments, cost, allowed, denied) in
        rows_of_places().into_iter().chain(rows_of_arguments())
    {
        let allow = [rule("a", Allow, Session, when.clone())];
        assert_eq!(
            of(&allow, &arguments, cost),
            allowed,
            "{when:?} {arguments}"
        );
        let deny = [
            rule("a", Deny, Session, when.clone()),
            rule("b", Allow, Session, Conditions::default()),
        ];
        assert_eq!(of(&deny, &arguments, cost), denied, "{when:?} {arguments}");
    }
}

#[test]
fn commands_are_allowed_only_with_harmless_arguments_beside_them() {
    let shell = shell();
    let prefix = [rule("a", Allow, Session, commands(&["ls"]))];
    let exact = Conditions {
        exactly: Some(json!({"command": "ls > x"})),
        ..Conditions::default()
    };
    let exact = [rule("b", Allow, Session, exact)];
    for (rules, arguments, expected) in [
        (&prefix, json!({"command": "ls"}), Allow),
        (&prefix, json!({"command": "ls", "timeout_s": 1}), Allow),
        (&prefix, json!({"command": "ls", "folder": "x"}), Ask),
        (&prefix, json!({"command": ["ls"]}), Ask),
        (&prefix, json!("ls"), Ask),
        (&exact, json!({"command": "ls > x", "timeout_s": 9}), Allow),
        (&exact, json!({"command": "ls > x", "folder": "x"}), Ask),
        (&exact, json!({"command": "ls  > x"}), Ask),
    ] {
        let call = Call {
            shell: Some(&shell),
            ..Call::new("s", "t", &arguments)
        };
        assert_eq!(compile(rules).decide(&call).effect, expected, "{arguments}");
        // The same rule decides nothing about a tool that runs no commands.
        if rules == &prefix {
            assert_eq!(
                compile(rules)
                    .decide(&Call::new("s", "t", &arguments))
                    .effect,
                Ask
            );
        }
    }
}

#[test]
fn only_the_rules_that_decided_are_named() {
    let rules = [
        rule("b", Allow, Session, commands(&["ls"])),
        rule("a", Allow, Tenant, commands(&["wc"])),
        rule("c", Allow, Tenant, commands(&["ls", "cat"])),
    ];
    let arguments = json!({"command": "ls | wc"});
    let shell = shell();
    let call = Call {
        shell: Some(&shell),
        ..Call::new("s", "t", &arguments)
    };
    let decision = compile(&rules).decide(&call);
    assert_eq!(decision.rules().collect::<Vec<_>>(), ["a", "b"]);
    assert!(matches!(decision.because, Because::AllowedBy { .. }));
}
