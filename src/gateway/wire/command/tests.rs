//! Tests of the command parser.

use serde_json::{Value, json};

use super::{COMMANDS, ParsedCommand, parse};
use crate::agent::SessionAction;
use crate::domain::{Caller, Code, Effort, Rights, Role, Tenant, TenantId, User, UserId};
use crate::providers::WantedEffort;
use crate::session::{Command, Refusal};

fn caller() -> Caller {
    let tenant = Tenant {
        id: TenantId::from_bits(1),
        name: "acme".into(),
    };
    let user = User {
        id: UserId::from_bits(1),
        tenant: tenant.id.clone(),
        name: "ana".into(),
        role: Role::Member,
        installation_admin: false,
    };
    Caller {
        user,
        tenant,
        custom_rights: Rights::NONE,
        credential: None,
        grant: None,
    }
}

/// Asserts S2.40.
#[test]
fn every_example_parses() {
    for spec in COMMANDS {
        assert!(
            parse(&caller(), spec.name, &(spec.example)()).is_ok(),
            "{}",
            spec.name
        );
    }
}

#[test]
fn a_message_is_a_text_or_an_object() {
    for args in [
        vec![json!("hi")],
        vec![json!("hi"), json!({"clientMessageId": "m"})],
        vec![json!({"text": "hi", "clientMessageId": "m"})],
        vec![json!("hi"), json!({"unknown": 1}), json!("more")],
    ] {
        let Ok(ParsedCommand::Submit(ask)) = parse(&caller(), "message", &args) else {
            panic!("{args:?}")
        };
        let SessionAction::Command(Command::Say { text, .. }) = ask.action else {
            panic!("{args:?}")
        };
        assert_eq!(text, "hi");
    }
}

#[test]
fn a_decision_beyond_one_call_is_refused_with_the_way_to_create_a_rule() {
    let decide = |extra: (&str, Value)| {
        let mut body = json!({"callId": "c", "approved": true});
        body[extra.0] = extra.1;
        parse(&caller(), "tool:approval", &[body])
    };
    assert!(decide(("scope", json!("once"))).is_ok());
    for (field, value) in [
        ("scope", json!("session")),
        ("rule", json!({"effect": "allow"})),
    ] {
        let Err(refusal) = decide((field, value)) else {
            panic!("{field} is taken")
        };
        assert_eq!(refusal.code, Code::InvalidArguments);
        assert_eq!(refusal.field, Some(field));
        assert!(refusal.message.contains("POST /api/rules"), "{refusal:?}");
    }
}

#[test]
fn the_message_of_a_fork_has_no_resources_and_no_contexts_of_views() {
    let fork = |field: &str, value: Value| {
        let mut body = json!({"fromSeq": 1, "text": "go on"});
        body[field] = value;
        parse(&caller(), "session:fork", &[body])
    };
    for (field, value) in [
        ("resources", json!([{"server": "notes", "uri": "note://1"}])),
        ("viewContexts", json!([{"callId": "call_1_0", "text": "x"}])),
    ] {
        let Err(refusal) = fork(field, value) else {
            panic!("{field} is taken")
        };
        assert_eq!(refusal.code, Code::InvalidArguments);
        assert_eq!(refusal.field, Some(field));
        assert!(fork(field, json!([])).is_ok(), "an empty list says nothing");
    }
}

/// Asserts S0.2.
#[test]
fn wrong_types_are_refused_in_words() {
    let cases: Vec<(&str, Vec<Value>, Code)> = vec![
        ("message", vec![], Code::InvalidArguments),
        ("message", vec![json!(5)], Code::InvalidArguments),
        ("message", vec![json!([1])], Code::InvalidArguments),
        (
            "message",
            vec![json!("x"), json!({"clientMessageId": 5})],
            Code::InvalidArguments,
        ),
        ("message", vec![json!("x".repeat(300_000))], Code::TooLarge),
        ("tool:approval", vec![json!("call")], Code::InvalidArguments),
        (
            "tool:approval",
            vec![json!({"callId": "c"})],
            Code::InvalidArguments,
        ),
        (
            "tool:approval",
            vec![json!({"callId": "c", "approved": "yes"})],
            Code::InvalidArguments,
        ),
        (
            "tool:approval",
            vec![json!({"callId": "c", "approved": true, "scope": "always"})],
            Code::InvalidArguments,
        ),
        (
            "tool:approval_all",
            vec![json!({"callIds": "c", "approved": true})],
            Code::InvalidArguments,
        ),
        (
            "session:resume",
            vec![json!({"lastSeq": -1})],
            Code::InvalidArguments,
        ),
        ("nonsense", vec![], Code::UnknownCommand),
        ("__proto__", vec![], Code::UnknownCommand),
    ];
    for (name, args, code) in cases {
        assert_eq!(
            parse(&caller(), name, &args).unwrap_err().code,
            code,
            "{name} {args:?}"
        );
    }
}

/// Returns the number of view contexts of a parsed message, or the refusal.
fn added_by_views(text: &str, views: &Value) -> Result<usize, String> {
    let body = json!({ "text": text, "viewContexts": views });
    let parsed = parse(&caller(), "message", &[body]);
    let parsed = parsed.map_err(|refusal| format!("{:?}: {}", refusal.code, refusal.message))?;
    let ParsedCommand::Submit(ask) = parsed else {
        panic!("a message is told");
    };
    Ok(ask.options.views.len())
}

/// Asserts S0.52.
#[test]
fn what_views_add_goes_with_a_message_and_is_bounded() {
    let view = |call: &str, text: &str| json!({ "callId": call, "text": text });
    let two = json!([view("a", "a"), view("b", &"b".repeat(16 * 1024))]);
    assert_eq!(added_by_views("hi", &two), Ok(2));
    let five = json!(["a", "b", "c", "d", "e"].map(|call| view(call, "a")));
    let long = "é".repeat(8 * 1024 + 1);
    for (text, views, word) in [
        ("  ", json!([view("a", "a")]), "goes with a message"),
        ("hi", json!([view("a", &long)]), "TooLarge"),
        ("hi", json!([view("a", " \n")]), "is a text"),
        ("hi", json!([view("a", "a\u{0}b")]), "is a text"),
        ("hi", json!([view("a", "a"), view("a", "b")]), "twice"),
        ("hi", five, "4 views"),
        ("hi", json!([{ "text": "a" }]), "callId"),
    ] {
        let refusal = added_by_views(text, &views).unwrap_err();
        assert!(refusal.contains(word), "{word}: {refusal}");
    }
}

#[test]
fn an_effort_is_a_level_or_tokens_and_null_takes_it_back() {
    let chosen = |body: Value| {
        let parsed = parse(&caller(), "session:model", &[body]);
        let ParsedCommand::Submit(request) = parsed.map_err(|refusal| refusal.code)? else {
            panic!("a choice is told");
        };
        let SessionAction::Choose(wanted) = request.action else {
            panic!("a model is chosen");
        };
        Ok(wanted.effort)
    };
    let this = WantedEffort::This;
    assert_eq!(chosen(json!({ "model": "m" })), Ok(WantedEffort::Same));
    assert_eq!(chosen(json!({ "effort": "high" })), Ok(this(Effort::High)));
    assert_eq!(
        chosen(json!({ "effort": "9000" })),
        Ok(this(Effort::Budget(9_000)))
    );
    assert_eq!(
        chosen(json!({ "effort": null, "model": "m" })),
        Ok(WantedEffort::Usual)
    );
    for wrong in [
        json!({ "effort": "much" }),
        json!({ "effort": 3 }),
        json!({}),
    ] {
        assert_eq!(chosen(wrong), Err(Code::InvalidArguments));
    }
    let said = |effort: &str| {
        let body = json!({ "text": "go", "effort": effort });
        parse(&caller(), "message", &[body])
            .map(|_| ())
            .map_err(|refusal| refusal.code)
    };
    assert_eq!(said("off"), Ok(()));
    assert_eq!(said("much"), Err(Code::InvalidArguments));
}

#[test]
fn changed_arguments_may_come_as_text_with_numbers_that_browsers_round() {
    let decided = |more: Value| -> Result<_, Refusal> {
        let mut body = json!({ "callId": "c", "approved": true });
        let (Some(body_fields), Some(more)) = (body.as_object_mut(), more.as_object()) else {
            panic!("both are objects");
        };
        body_fields.extend(more.clone());
        let ParsedCommand::Submit(ask) = parse(&caller(), "tool:approval", &[body])? else {
            panic!("a decision is told");
        };
        let SessionAction::Decide { args, decision } = ask.action else {
            panic!("an approval is a decision");
        };
        Ok((args, decision.take_back))
    };
    let text = r#"{"id":9007199254740993}"#;
    let (args, _) = decided(json!({ "argsText": text })).unwrap();
    assert_eq!(args.unwrap().to_string(), text);
    for wrong in [
        json!({ "argsText": "{" }),
        json!({ "argsText": "[1]" }),
        json!({ "argsText": text, "args": {} }),
    ] {
        let refusal = decided(wrong).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidArguments);
    }
    let take_back = json!({ "approved": false, "takeBack": true });
    assert!(decided(take_back).unwrap().1);
    let approval = json!({ "takeBack": true });
    assert!(
        !decided(approval).unwrap().1,
        "an approval takes nothing back"
    );
}
