//! What a rule would have changed of calls that were made.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::json;

use super::asked;
use crate::servers::Api;
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn a_simulation_names_the_calls_that_would_be_decided_otherwise_and_keeps_nothing() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let admin = app.person_with("acme", Role::Admin).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    for command in ["ls -l", "date"] {
        let card = asked(&app, &mut socket, command).await;
        socket.approve(&card).await;
        socket.wait_for_answer().await;
    }
    let rule = |scope: &str| {
        let when = json!({ "command": [{ "words": ["ls"] }] });
        json!({ "effect": "allow", "scope": scope, "when": when })
    };
    let simulated = async |person, scope: &str| {
        let api = Api::new(&app, person);
        let (status, answer) = api
            .ask(Method::POST, "/api/rules/simulate", &rule(scope))
            .await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(api.get("/api/rules").await["rules"], json!([]));
        answer
    };
    let own = simulated(&ana, "person").await;
    assert_eq!(own["calls"], 2, "{own}");
    let changed = own["changed"].as_array().unwrap();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0]["arguments"], json!({ "command": "ls -l" }));
    assert_eq!(
        (&changed[0]["before"], &changed[0]["after"]),
        (&json!("ask"), &json!("allow"))
    );
    // Of the calls of others an admin learns how many there are of the tool, and nothing that depends on
    // their arguments: neither a text, nor a count that another condition would change.
    let all = simulated(&admin, "tenant").await;
    let concerned = json!({
        "calls": 0, "changed": [], "others": { "calls": 2, "concerned": 2 },
    });
    assert_eq!(all, concerned);
    let api = Api::new(&app, &admin);
    for (pattern, fitting) in [("^ls -l$", "ls -l"), ("^m", "make"), (".", "x")] {
        let command = json!({ "type": "string", "pattern": pattern });
        let schema = json!({ "properties": { "command": command } });
        let mut rule = rule("tenant");
        rule["when"] = json!({ "schema": schema });
        let example = |command: &str| json!({ "server": "sandbox", "tool": "execute_command", "arguments": { "command": command } });
        rule["examples"] = json!({ "matching": example(fitting), "other": example("") });
        for effect in ["ask", "deny", "allow"] {
            rule["effect"] = json!(effect);
            let answer = api.ask(Method::POST, "/api/rules/simulate", &rule).await;
            assert_eq!(answer, (200, concerned.clone()), "{rule}");
        }
    }
    assert_eq!(simulated(&admin, "person").await["calls"], 0);
    assert_eq!(simulated(&stranger, "tenant").await["calls"], 0);
}
