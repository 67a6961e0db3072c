//! A change of the registry of MCP servers at one gateway, seen at the other.

use std::time::Duration;

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::Pair;
use crate::servers::{Api, asking, sampling, view_calls, views, wait_for_health};
use crate::support::TestSocket;

#[tokio::test]
async fn a_server_that_is_added_at_one_gateway_is_there_at_the_other_at_once() {
    let pair = Pair::start().await;
    let owner = pair.a.person_with("acme", Role::Owner).await;
    let stranger = pair.a.person_with("other", Role::Owner).await;
    let mut a = TestSocket::open(pair.a.address, &owner, None).await;
    let mut b = TestSocket::open(pair.b.address, &owner, None).await;
    let mut strangers = [
        TestSocket::open(pair.a.address, &stranger, None).await,
        TestSocket::open(pair.b.address, &stranger, None).await,
    ];
    let (at_a, at_b) = (Api::new(&pair.a, &owner), Api::new(&pair.b, &owner));
    // What is offered was looked up a moment ago, and would be kept for some seconds.
    let before = at_b.get("/api/mcp").await;
    assert!(!before.to_string().contains("mine"), "{before}");

    at_a.add("mine", json!({ "command": "x" })).await;
    for socket in [&mut a, &mut b] {
        let added = socket.wait_for("mcpAdded").await;
        assert_eq!(added.args[0]["name"], "mine");
    }
    let listed = at_b.get("/api/mcp").await;
    assert!(listed.to_string().contains("\"mine\""), "{listed}");
    assert_eq!(at_b.server("mine").await["enabled"], true);

    // There is no sandbox, so it cannot be well.
    at_a.ask(Method::POST, "/api/mcp/mine/test", &Value::Null)
        .await;
    for socket in [&mut a, &mut b] {
        wait_for_health(socket, "mine", "unhealthy").await;
    }
    assert_eq!(at_b.server("mine").await["status"], "unhealthy");

    let path = "/api/mcp/mine";
    let (status, _) = at_b.ask(Method::DELETE, path, &Value::Null).await;
    assert_eq!(status, 200);
    for socket in [&mut a, &mut b] {
        let removed = socket.wait_for("mcpRemoved").await;
        assert_eq!(removed.args[0]["name"], "mine");
    }
    let (status, _) = at_a.refused(Method::GET, path, &Value::Null).await;
    assert_eq!(status, 404);

    // The first that the other tenant hears is of its own server.
    let theirs = json!({ "command": "x" });
    Api::new(&pair.a, &stranger).add("theirs", theirs).await;
    for socket in &mut strangers {
        let first = socket.wait_where(|said| said.name.starts_with("mcp")).await;
        assert_eq!(first.name, "mcpAdded");
        assert_eq!(first.args[0]["name"], "theirs");
    }
}

#[tokio::test]
async fn a_changed_entry_and_a_decision_about_a_tool_hold_at_the_other_gateway() {
    let pair = Pair::start().await;
    let owner = pair.a.person_with("acme", Role::Owner).await;
    let mut b = TestSocket::open(pair.b.address, &owner, None).await;
    let (at_a, at_b) = (Api::new(&pair.a, &owner), Api::new(&pair.b, &owner));
    at_a.add("mine", json!({ "command": "x" })).await;
    b.wait_for("mcpAdded").await;
    assert_eq!(at_b.server("mine").await["enabled"], true);
    let off = json!({ "enabled": false });
    let (status, _) = at_a.ask(Method::PATCH, "/api/mcp/mine", &off).await;
    assert_eq!(status, 200);
    // Letters come in the order in which they were sent: with this one the change is there.
    at_a.add("next", json!({ "command": "x" })).await;
    b.wait_for("mcpAdded").await;
    assert_eq!(at_b.server("mine").await["enabled"], false);
}

#[tokio::test]
async fn what_new_sessions_begin_with_is_the_same_at_the_other_gateway_at_once() {
    let pair = Pair::start().await;
    let owner = pair.a.person_with("acme", Role::Owner).await;
    let (at_a, at_b) = (Api::new(&pair.a, &owner), Api::new(&pair.b, &owner));
    let path = "/api/models/default";
    let provider = at_b.get(path).await["provider"].clone();
    let chosen = json!({ "provider": provider, "model": "another", "scope": "tenant" });
    let (status, _) = at_a.ask(Method::PUT, path, &chosen).await;
    assert_eq!(status, 200);
    // Sooner than the records are read again without a letter.
    let told = async { while at_b.get(path).await["model"] != "another" {} };
    let told = tokio::time::timeout(Duration::from_secs(10), told).await;
    assert!(told.is_ok(), "nobody told the other gateway");
    let b = TestSocket::open(pair.b.address, &owner, None).await;
    assert_eq!(b.ready["model"], "another");
}

#[tokio::test]
async fn what_leaves_the_contexts_of_a_tenant_is_the_same_at_the_other_gateway_at_once() {
    let pair = Pair::start().await;
    let owner = pair.a.person_with("acme", Role::Owner).await;
    let (at_a, at_b) = (Api::new(&pair.a, &owner), Api::new(&pair.b, &owner));
    let path = "/api/models/compaction";
    let chosen = json!({ "strategies": ["delete-old"] });
    let (status, _) = at_a.ask(Method::PUT, path, &chosen).await;
    assert_eq!(status, 200);
    // Sooner than the records are read again without a letter.
    let told = async { while at_b.get(path).await["tenant"] != chosen["strategies"] {} };
    let told = tokio::time::timeout(Duration::from_secs(10), told).await;
    assert!(told.is_ok(), "nobody told the other gateway");
}

/// Asserts S0.52.
#[tokio::test]
async fn what_a_server_asks_at_one_gateway_is_answered_at_the_other() {
    let (url, _asking) = asking::start().await;
    let pair = Pair::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCPS_0_ID", "post"),
        ("SPL_MCPS_0_URL", &url),
    ])
    .await;
    let (person, mut a, mut b) = pair.sockets("asking").await;
    asking::is_listed(pair.a.address, &person).await;
    pair.a.model.will_call("ask", json!({})).then_say("Done");
    a.say("go").await;
    let card = a.wait_for_approval().await;
    a.approve(&card).await;
    let asked = b.wait_for("elicitation:required").await.args[0].clone();
    assert_eq!(asked["server"], "post", "{asked}");
    let answer = |zip: &str| {
        let content = json!({ "zip": zip });
        json!({ "elicitationId": asked["elicitationId"], "action": "accept", "content": content })
    };
    let wrong = b.ask("elicitation:answer", &[answer("123456")]).await;
    assert_eq!(wrong["ok"], false, "{wrong}");
    let told = b.ask("elicitation:answer", &[answer("12345")]).await;
    assert_eq!(told["ok"], true, "{told}");
    for socket in [&mut a, &mut b] {
        let resolved = socket.wait_for("elicitation:resolved").await;
        assert_eq!(resolved.args[0]["action"], "accept");
        let output = socket.wait_for("tool:output").await;
        assert_eq!(output.text(), "Accept 1");
    }
}

/// Asserts S0.52: who runs the call asks the model, wherever its person says yes.
#[tokio::test]
async fn what_a_server_has_a_model_asked_is_allowed_at_the_other_gateway() {
    let (url, _sampling) = sampling::start().await;
    let pair = Pair::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCPS_0_ID", "post"),
        ("SPL_MCPS_0_URL", &url),
        ("SPL_MCPS_0_SAMPLING", "true"),
    ])
    .await;
    let (person, mut a, mut b) = pair.sockets("sampling").await;
    asking::is_listed(pair.a.address, &person).await;
    pair.a.model.will_call("sample", json!({}));
    pair.a.model.then_say("4").then_say("Done");
    a.say("go").await;
    let card = a.wait_for_approval().await;
    a.approve(&card).await;
    let asked = sampling::asked(&mut b).await;
    let told = sampling::says(&mut b, sampling::accept(&asked, &asked["digest"])).await;
    assert_eq!(told["ok"], true, "{told}");
    let answered = sampling::moved(&mut b, "answered").await;
    let told = sampling::says(&mut b, sampling::accept(&asked, &answered["digest"])).await;
    assert_eq!(told["ok"], true, "{told}");
    for socket in [&mut a, &mut b] {
        let output = socket.wait_for("tool:output").await;
        assert_eq!(output.text(), "4 (endTurn)");
    }
    assert_eq!(a.wait_for_answer().await, "Done");
    assert_eq!(
        pair.a.model.requests().len() + pair.b.model.requests().len(),
        3
    );
}

/// Asserts S0.52: a call's view is told at the other gateway too, and can be seen there.
#[tokio::test]
async fn the_view_of_a_call_is_seen_at_the_other_gateway() {
    let (url, _charts) = views::start().await;
    let pair = Pair::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCPS_0_ID", "charts"),
        ("SPL_MCPS_0_URL", &url),
    ])
    .await;
    let (person, mut a, mut b) = pair.sockets("viewing").await;
    let at_a = Api::new(&pair.a, &person);
    let listed = async { while at_a.server("charts").await["toolCount"] != 3 {} };
    let listed = tokio::time::timeout(Duration::from_secs(20), listed).await;
    assert!(listed.is_ok(), "nobody listed the server");
    views::run_chart(&pair.a, &mut a).await;
    let started = b.wait_for("tool:started").await;
    assert_eq!(started.args[0]["view"], views::URI, "{started:?}");
    b.wait_for_answer().await;
    let at_b = Api::new(&pair.b, &person);
    let path = format!("/api/sessions/{}", b.session());
    let events = at_b.get(&format!("{path}/events")).await;
    assert!(events.to_string().contains(views::URI), "{events}");
    let which = json!({ "server": "charts", "uri": views::URI });
    let (status, view) = at_b
        .ask(Method::POST, &format!("{path}/views"), &which)
        .await;
    assert_eq!(status, 200, "{view}");
    assert_eq!(view["html"], "<h1>Chart</h1>");
}

/// Nobody but its owner hears of a person's own server, at whichever gateway.
#[tokio::test]
async fn a_servers_only_person_hears_of_it_at_the_other_gateway_and_nobody_else() {
    let pair = Pair::start().await;
    let ana = pair.a.person_with("acme", Role::Member).await;
    let admin = pair.a.person_with("acme", Role::Owner).await;
    let mut hers = TestSocket::open(pair.b.address, &ana, None).await;
    let mut others = [
        TestSocket::open(pair.a.address, &admin, None).await,
        TestSocket::open(pair.b.address, &admin, None).await,
    ];
    let (at_a, at_b) = (Api::new(&pair.a, &ana), Api::new(&pair.b, &ana));
    let before = at_b.get("/api/mcp").await;
    assert!(!before.to_string().contains("own"), "{before}");
    at_a.add("own", json!({ "command": "x" })).await;
    assert_eq!(hers.wait_for("mcpAdded").await.args[0]["name"], "own");
    assert_eq!(at_b.server("own").await["source"], "person");
    // There is no sandbox, so it cannot be well.
    at_a.ask(Method::POST, "/api/mcp/own/test", &Value::Null)
        .await;
    wait_for_health(&mut hers, "own", "unhealthy").await;
    let gone = at_b.ask(Method::DELETE, "/api/mcp/own", &Value::Null).await;
    assert_eq!(gone.0, 200, "{}", gone.1);
    hers.wait_for("mcpRemoved").await;

    // The first that the admin hears is of everybody's server that took its name.
    Api::new(&pair.a, &admin)
        .add("own", json!({ "command": "x" }))
        .await;
    for socket in &mut others {
        let added = socket.wait_for("mcpAdded").await;
        assert_eq!(added.args[0]["name"], "own");
        assert_eq!(socket.about("own"), ["mcpAdded"]);
    }
    hers.wait_for("mcpAdded").await;
}

/// Asserts S0.52: what a view asks for at one gateway is decided at the other, runs once, and both know it.
#[tokio::test]
async fn what_a_view_asks_for_is_decided_at_the_other_gateway_and_runs_once() {
    let (url, charts) = views::start().await;
    let pair = Pair::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCPS_0_ID", "charts"),
        ("SPL_MCPS_0_URL", &url),
    ])
    .await;
    let (person, mut a, mut b) = pair.sockets("viewing").await;
    let at_a = Api::new(&pair.a, &person);
    let listed = async { while at_a.server("charts").await["toolCount"] != 3 {} };
    let listed = tokio::time::timeout(Duration::from_secs(20), listed).await;
    assert!(listed.is_ok(), "nobody listed the server");
    views::run_chart(&pair.a, &mut a).await;
    b.wait_for_answer().await;
    let call = view_calls::viewed(&a);
    let request = view_calls::asks(&call, "r1", "refresh", &json!({}));
    let asked = b.ask("view:call", std::slice::from_ref(&request)).await;
    assert_eq!(asked["ok"], true, "{asked}");
    let repeated = a.ask("view:call", &[request]).await;
    assert_eq!(repeated["ok"], true, "{repeated}");
    let card = a.wait_for_approval().await;
    assert_eq!(b.wait_for_approval().await["callId"], card["callId"]);
    // The model answers somewhere while the call runs somewhere.
    pair.a.model.will_say("Fine");
    a.say("go on").await;
    a.approve(&card).await;
    for socket in [&mut a, &mut b] {
        let output = socket
            .wait_where(|said| {
                said.name == "tool:output" && said.rest()["callId"] == card["callId"]
            })
            .await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
    }
    assert_eq!(charts.asked("tools/call").len(), 2);
}
