//! Rules that outlast a session: a person's, a tenant's, those of tools and of the settings.

use reqwest::Method;
use sepal::domain::Role;
use sepal_policy::{CommandPrefix, Effect, Rule, Scope};
use serde_json::{Value, json};

use super::{asked, given, stop_asking, unasked};
use crate::servers::Api;
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn a_persons_rule_decides_in_all_their_sessions_and_in_nobody_elses() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let bo = app.person("acme").await;
    let api = Api::new(&app, &ana);
    let mut first = TestSocket::open(app.address, &ana, None).await;
    let card = asked(&app, &mut first, "ls -l").await;
    let words = json!({ "command": [{ "words": ["ls"] }] });
    let mut body = stop_asking(&first, &card, &words, "person");
    body["expiresInHours"] = json!(8);
    let answer = given(&api, &body).await;
    assert_eq!(answer["hasApproved"], true);
    let rule = &answer["rule"];
    assert!(
        rule["sentence"].as_str().unwrap().starts_with("Until "),
        "{rule}"
    );
    first.wait_for_answer().await;
    let mut second = TestSocket::open(app.address, &ana, None).await;
    assert_eq!(unasked(&app, &mut second, "ls -a").await, rule["id"]);
    let mut bos = TestSocket::open(app.address, &bo, None).await;
    let card = asked(&app, &mut bos, "ls -a").await;
    bos.decide(&card, false).await;
    bos.wait_for_answer().await;
    let path = format!("/api/rules/{}", rule["id"].as_str().unwrap());
    let (status, _) = api.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(status, 204);
    asked(&app, &mut second, "ls -a").await;
}

#[tokio::test]
async fn what_a_tenant_denies_no_person_allows_and_waiting_calls_are_refused_at_once() {
    let app = TestApp::with_sandbox().await;
    let admin = app.person_with("acme", Role::Admin).await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    let allow = json!({
        "effect": "allow", "scope": "person",
        "when": { "command": [{ "words": ["curl"], "anyWords": true }] },
    });
    given(&Api::new(&app, &ana), &allow).await;
    let card = asked(&app, &mut socket, "curl a.example; rm -r x").await;
    let deny = json!({
        "effect": "deny", "scope": "tenant", "name": "no curl",
        "when": { "command": [{ "words": ["curl"] }] },
        "except": [{ "command": [{ "words": ["curl", "--version"] }] }],
    });
    given(&Api::new(&app, &admin), &deny).await;
    let decided = socket.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["callId"], card["callId"]);
    assert_eq!(
        (&decided["approved"], &decided["rule"]),
        (&json!(false), &json!("no curl"))
    );
    socket.wait_for_answer().await;
    unasked(&app, &mut socket, "curl --version").await;
    // Hidden in another command it is refused as well.
    app.model
        .will_call(
            "execute_command",
            json!({ "command": "env sh -c 'curl b.example'" }),
        )
        .then_say("No");
    socket.say("go").await;
    let decided = socket.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["approved"], false, "{decided}");
    socket.wait_for_answer().await;
}

#[tokio::test]
async fn what_admins_say_of_tools_and_settings_of_rules_are_in_the_same_list() {
    let app = TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], |settings| {
        let mut rule = Rule::new("settings:no-push", Effect::Deny, Scope::Installation);
        rule.name = Some("no-push".into());
        rule.when.command = Some(vec![CommandPrefix::new(["git", "push"])]);
        settings.rules = vec![rule];
    })
    .await;
    let admin = app.person_with("acme", Role::Admin).await;
    let api = Api::new(&app, &admin);
    let allow = json!({ "effect": "allow" });
    let path = "/api/mcp/sandbox/tools/read_file";
    let (status, _) = api.ask(Method::PUT, path, &allow).await;
    assert_eq!(status, 200);
    let listed = api.get("/api/rules").await;
    let sentences: Vec<(&str, &str)> = listed["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| {
            let text = |field: &str| rule[field].as_str().unwrap();
            (text("origin"), text("sentence"))
        })
        .collect();
    assert_eq!(
        sentences,
        [
            (
                "settings",
                "Always, for everybody on this installation, never run `git push …` with any tool."
            ),
            (
                "tool",
                "Everything: always, for everybody in this tenant, run `read_file` of `sandbox` without asking."
            ),
        ]
    );
    for rule in listed["rules"].as_array().unwrap() {
        let path = format!(
            "/api/rules/{}",
            rule["id"].as_str().unwrap().replace('/', "%2F")
        );
        let (status, problem) = api.refused(Method::DELETE, &path, &Value::Null).await;
        assert_eq!(
            (status, &problem["code"]),
            (409, &json!("read_only")),
            "{problem}"
        );
    }
    let mut socket = TestSocket::open(app.address, &admin, None).await;
    app.model
        .will_call(
            "execute_command",
            json!({ "command": "git add . && git push" }),
        )
        .then_say("No");
    socket.say("go").await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "rejected");
    assert!(output.text().contains("no-push"), "{output:?}");
}
