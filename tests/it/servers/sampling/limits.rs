//! What ends a request for a completion, and who may let a server ask at all.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::json;

use super::{accept, asked, calling, moved, on, says, start};
use crate::model_stub::Reply;
use crate::servers::asking::read;
use crate::servers::{Api, operator, wait_for_health};
use crate::support::{DEADLINE, TestApp, TestSocket};

#[tokio::test]
async fn a_failure_of_the_model_is_told_to_the_owner_and_to_the_server_by_its_code() {
    let app = TestApp::start().await;
    let (mut socket, _, _server) = calling(&app, "sample", on()).await;
    let asked = asked(&mut socket).await;
    app.model.will_fail(400, &[], "no such thing in house");
    app.model.then_say("Done");
    says(&mut socket, accept(&asked, &asked["digest"])).await;
    let failed = moved(&mut socket, "failed").await;
    assert_eq!(failed["problem"]["code"], "provider_rejected", "{failed}");
    let resolved = socket.wait_for("elicitation:resolved").await.args[0].clone();
    assert_eq!(resolved["reason"], "failed", "{resolved}");
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("provider_rejected"), "{output:?}");
    assert!(!output.text().contains("in house"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn what_a_model_is_asked_ends_with_the_turn_and_counts() {
    let app = TestApp::start().await;
    let (mut socket, owner, _server) = calling(&app, "sample", on()).await;
    let asked = asked(&mut socket).await;
    app.model.will(Reply::say("It is four, I think.")).stall();
    says(&mut socket, accept(&asked, &asked["digest"])).await;
    app.model.stalled().await;
    socket.ask("agent:cancel", &[json!({})]).await;
    let resolved = socket.wait_for("elicitation:resolved").await.args[0].clone();
    assert_eq!(
        (&resolved["action"], &resolved["reason"]),
        (&json!("cancel"), &json!("stopped"))
    );
    socket.wait_for("agent:cancelled").await;
    app.model.idle().await;
    let counted = async {
        loop {
            let used = read(&app, &owner.key, "/api/usage?by=purpose&sort=name").await;
            if used["items"][0]["purpose"] == "sampling" {
                break;
            }
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, counted).await;
    assert!(in_time.is_ok(), "what was asked is not counted");
}

/// Asserts S0.52.
#[tokio::test]
async fn a_completion_takes_no_time_of_its_call() {
    let app = TestApp::start().await;
    let (post, _post) = start().await;
    let (idle, _idle) = start().await;
    let person = operator(&app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    for (name, url, only) in [("post", post, "sample"), ("idle", idle, "hang")] {
        let config = json!({ "url": url, "timeout": 1, "sampling": true, "includeTools": [only] });
        Api::new(&app, &person).add(name, config).await;
        wait_for_health(&mut socket, name, "healthy").await;
    }
    let calls = [("sample", json!({})), ("hang", json!({}))];
    app.model.will(Reply::answer("", &calls));
    app.model.then(Reply::say("4")).stall_at_once();
    app.model.then_say("Done");
    socket.say("go").await;
    for _ in &calls {
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
    }
    let asked = asked(&mut socket).await;
    says(&mut socket, accept(&asked, &asked["digest"])).await;
    app.model.stalled().await;
    // As long as the one that asks may take, too.
    let ended = socket.wait_for("tool:output").await;
    assert!(ended.text().contains("no answer within 1 s"), "{ended:?}");
    app.model.release();
    let answered = moved(&mut socket, "answered").await;
    says(&mut socket, accept(&asked, &answered["digest"])).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "4 (endTurn)");
}

#[tokio::test]
async fn without_an_administrators_word_nobody_is_asked() {
    let app = TestApp::start().await;
    let (mut socket, owner, _server) = calling(&app, "sample", json!({})).await;
    app.model.then_say("Done");
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().starts_with("error"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    let is_asked = |name: &str| name == "elicitation:required";
    assert!(!socket.log.iter().any(|said| is_asked(&said.name)));
    let api = Api::new(&app, &owner);
    let about = async |told: &str| {
        let tools = api.get("/api/mcp/post/tools").await;
        let is_told = tools.to_string().contains(told);
        assert!(is_told, "{tools}");
    };
    about("has no model").await;
    let patch = json!({ "sampling": true });
    let (status, changed) = api.ask(Method::PATCH, "/api/mcp/post", &patch).await;
    assert_eq!(status, 200, "{changed}");
    // Another client is another server: its tools are listed again.
    let listed = async {
        while !api
            .get("/api/mcp/post/tools")
            .await
            .to_string()
            .contains("has a model")
        {}
    };
    let in_time = tokio::time::timeout(DEADLINE, listed).await;
    assert!(in_time.is_ok(), "nobody listed the server again");
}

#[tokio::test]
async fn what_cannot_be_passed_on_is_refused_and_the_server_learns_why() {
    for (tool, expected) in [
        ("sample_tools", "sampling.tools"),
        ("sample_picture", "text"),
    ] {
        let app = TestApp::start().await;
        let (mut socket, _, _server) = calling(&app, tool, on()).await;
        app.model.then_say("Done");
        let output = socket.wait_for("tool:output").await;
        assert!(output.text().contains(expected), "{output:?}");
        let is_asked = |name: &str| name == "elicitation:required";
        assert!(!socket.log.iter().any(|said| is_asked(&said.name)));
        socket.wait_for_answer().await;
    }
}

/// Asserts S2.57.
#[tokio::test]
async fn members_let_no_server_of_theirs_ask_models() {
    let app = TestApp::start().await;
    let (url, _server) = start().await;
    let member = app.person_with("acme", Role::Member).await;
    let api = Api::new(&app, &member);
    let config = json!({ "url": url, "sampling": true });
    let body = json!({ "name": "mine", "config": config, "scope": "person" });
    for path in ["/api/mcp/add", "/api/mcp/test"] {
        let (status, refused) = api.refused(Method::POST, path, &body).await;
        assert_eq!(status, 403, "{path}: {refused}");
        assert!(
            refused.to_string().contains("let servers ask models"),
            "{path}: {refused}"
        );
    }
    let admin = Api::new(&app, &app.person_with("acme", Role::Admin).await);
    admin.add_with(json!({ "name": "ours", "config": { "url": "https://a.example/mcp", "sampling": true }, "scope": "tenant" })).await;
    let patch = json!({ "sampling": false });
    let (status, refused) = api.refused(Method::PATCH, "/api/mcp/ours", &patch).await;
    assert_eq!(status, 403, "{refused}");
}
