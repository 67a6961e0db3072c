//! Who may not: another tenant, another person, whoever may only read.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{asked, given, stop_asking};
use crate::servers::Api;
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn nobody_else_reaches_rules_of_a_session_or_a_person() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let colleague = app.person_with("acme", Role::Owner).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let api = Api::new(&app, &ana);
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let card = asked(&app, &mut socket, "ls").await;
    let words = json!({ "command": [{ "words": ["ls"] }] });
    let session = socket.session();
    let call = card["callId"].as_str().unwrap().to_owned();
    let own = json!({ "effect": "deny", "scope": "person", "when": words });
    let own = given(&api, &own).await["rule"]["id"].clone();
    let own = own.as_str().unwrap();
    socket.wait_for_answer().await;
    let card = asked(&app, &mut socket, "date").await;
    let dates = json!({ "command": [{ "words": ["date"] }] });
    let body = stop_asking(&socket, &card, &dates, "session");
    for person in [&colleague, &stranger] {
        let api = Api::new(&app, person);
        for path in ["/api/rules", "/api/rules/preview", "/api/rules/simulate"] {
            let (status, problem) = api.refused(Method::POST, path, &body.clone()).await;
            assert_eq!(status, 404, "{path}: {problem}");
            let mut lasting = body.clone();
            lasting["scope"] = json!("person");
            if path != "/api/rules/simulate" {
                let (status, problem) = api.refused(Method::POST, path, &lasting).await;
                assert_eq!(status, 404, "{path}: {problem}");
            }
        }
        for path in [
            format!("/api/rules?session={session}"),
            format!("/api/sessions/{session}/calls/{call}/rules"),
        ] {
            let (status, problem) = api.refused(Method::GET, &path, &Value::Null).await;
            assert_eq!(status, 404, "{path}: {problem}");
        }
        let listed = api.get("/api/rules").await.to_string();
        assert!(!listed.contains(own), "{listed}");
        for path in [
            format!("/api/rules/{own}"),
            format!("/api/rules/{own}?session={session}"),
        ] {
            let (status, problem) = api.refused(Method::DELETE, &path, &Value::Null).await;
            assert_eq!(status, 404, "{path}: {problem}");
        }
    }
    let listed = api.get("/api/rules").await;
    assert_eq!(listed["rules"][0]["id"], own, "it is still there");
    socket.approve(&card).await;
    socket.wait_for_answer().await;
}

#[tokio::test]
async fn only_admins_give_and_take_back_the_tenants_rules_and_viewers_none() {
    let app = TestApp::start().await;
    let admin = app.person_with("acme", Role::Admin).await;
    let member = app.person("acme").await;
    let viewer = app.person_with("acme", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let rule = |scope: &str| json!({ "effect": "ask", "scope": scope, "tool": "x" });
    let refused = async |person, scope: &str| {
        let api = Api::new(&app, person);
        api.refused(Method::POST, "/api/rules", &rule(scope)).await
    };
    let (status, problem) = refused(&member, "tenant").await;
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (403, &json!("scope")),
        "{problem}"
    );
    for scope in ["person", "tenant"] {
        let (status, _) = refused(&viewer, scope).await;
        assert_eq!(status, 403);
    }
    let answer = given(&Api::new(&app, &admin), &rule("tenant")).await;
    let path = format!("/api/rules/{}", answer["rule"]["id"].as_str().unwrap());
    for (person, expected) in [(&member, 403), (&viewer, 403), (&stranger, 404)] {
        let api = Api::new(&app, person);
        let (status, problem) = api.refused(Method::DELETE, &path, &Value::Null).await;
        assert_eq!(status, expected, "{problem}");
    }
    let listed = Api::new(&app, &member).get("/api/rules").await;
    let item = &listed["rules"][0];
    assert_eq!(
        (&item["scope"], &item["mayRemove"]),
        (&json!("tenant"), &json!(false))
    );
    let listed = Api::new(&app, &stranger).get("/api/rules").await;
    assert_eq!(listed["rules"], json!([]));
    let api = Api::new(&app, &admin);
    let (status, _) = api.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(status, 204);
}

#[tokio::test]
async fn a_rule_that_means_nothing_is_refused_by_the_name_of_its_field() {
    let app = TestApp::start().await;
    let person = app.person("acme").await;
    let api = Api::new(&app, &person);
    let whole = json!({ "effect": "allow", "scope": "person", "tool": "x" });
    for (field, value, named) in [
        ("effect", json!("perhaps"), "effect"),
        ("scope", json!("everybody"), "scope"),
        ("scope", json!("session"), "session"),
        ("expiresInHours", json!(0), "expiresInHours"),
        ("server", json!(""), "server"),
        ("name", json!("x".repeat(201)), "name"),
        ("binding", json!(true), "when"),
        (
            "except",
            json!([{ "command": [{ "words": ["a"] }] }]),
            "when",
        ),
        ("when", json!({ "command": [] }), "when"),
        ("when", json!({ "command": [{ "words": [] }] }), "when"),
        ("when", json!({ "command": [{ "words": [""] }] }), "when"),
        ("when", json!({ "paths": [] }), "when"),
        ("when", json!({ "hosts": [] }), "when"),
        ("when", json!({ "schema": {} }), "when"),
        (
            "when",
            json!({ "paths": [{ "argument": " ", "below": "x" }] }),
            "when",
        ),
        (
            "when",
            json!({ "command": [{ "words": ["a"], "more": false, "anyWords": true }] }),
            "when",
        ),
        ("when", json!({}), "confirm"),
        ("confirm", json!("y"), "confirm"),
        (
            "when",
            json!({ "paths": [{ "argument": "p", "below": "../x" }] }),
            "when",
        ),
        ("when", json!({ "schema": { "type": 7 } }), "when"),
        (
            "when",
            json!({ "schema": { "required": ["a"] } }),
            "examples",
        ),
        ("when", json!({ "costAboveUsd": -1 }), "when"),
    ] {
        let mut body = whole.clone();
        body[field] = value;
        let (status, problem) = api.refused(Method::POST, "/api/rules", &body).await;
        let is_bad = status == 400 || status == 413;
        assert!(
            is_bad
                && problem["errors"][0]["field"]
                    .as_str()
                    .unwrap()
                    .starts_with(named),
            "{field}: {problem}"
        );
    }
    assert_eq!(api.get("/api/rules").await["rules"], json!([]));
}

/// A rule without a condition is given only by somebody who repeats whose calls it lets run, unless its tool
/// only reads.
#[tokio::test]
async fn a_rule_about_every_call_is_confirmed_by_the_name_of_its_tool() {
    let app = TestApp::with_sandbox().await;
    let person = app.person("acme").await;
    let api = Api::new(&app, &person);
    for (server, tool, name) in [
        ("sandbox", "execute_command", "execute_command"),
        ("*", "execute_command", "execute_command"),
        ("sandbox", "write_*", "write_*"),
        ("sandbox", "*", "sandbox"),
        ("*", "*", "everything"),
    ] {
        let mut body =
            json!({ "effect": "allow", "scope": "person", "server": server, "tool": tool });
        let preview = api.ask(Method::POST, "/api/rules/preview", &body).await.1;
        assert_eq!(preview["confirm"], name, "{preview}");
        let sentence = preview["sentence"].as_str().unwrap();
        assert!(
            sentence.starts_with("Everything: always, for you, run "),
            "{sentence}"
        );
        for wrong in [json!(null), json!(""), json!("yes")] {
            body["confirm"] = wrong;
            let (status, answer) = api.ask(Method::POST, "/api/rules", &body).await;
            assert_eq!(status, 400, "{answer}");
        }
        body["confirm"] = json!(name);
        super::given(&api, &body).await;
    }
    // One that only reads, one with a condition, and ones that let nothing run are given as they are.
    for body in [
        json!({ "effect": "allow", "server": "sandbox", "tool": "read_file" }),
        json!({ "effect": "allow", "when": { "command": [{ "words": ["ls"] }] } }),
        json!({ "effect": "ask" }),
        json!({ "effect": "deny" }),
    ] {
        let mut body = body;
        body["scope"] = json!("person");
        let preview = api.ask(Method::POST, "/api/rules/preview", &body).await.1;
        assert_eq!(preview["confirm"], json!(null), "{preview}");
        super::given(&api, &body).await;
    }
}

/// A rule about arguments and about what its session has cost brings examples of such a session.
#[tokio::test]
async fn a_rule_with_a_schema_and_a_cost_is_made_with_typed_examples() {
    let app = TestApp::start().await;
    let admin = app.person_with("acme", Role::Admin).await;
    let api = Api::new(&app, &admin);
    let example =
        |town: &str| json!({ "server": "weather", "tool": "look", "arguments": { "town": town } });
    for effect in ["deny", "allow", "ask"] {
        let body = json!({
            "effect": effect, "scope": "tenant", "server": "weather", "tool": "look",
            "when": {
                "schema": { "properties": { "town": { "const": "Oslo" } } }, "costAboveUsd": 2.5,
            },
            "examples": { "matching": example("Oslo"), "other": example("Rome") },
        });
        let (status, answer) = api.ask(Method::POST, "/api/rules", &body).await;
        assert_eq!(status, 201, "{effect}: {answer}");
        let sentence = answer["rule"]["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("once the session has cost more than $2.50"),
            "{sentence}"
        );
    }
}
