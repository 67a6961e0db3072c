//! One tenant's servers do not hold up another's: looks take turns, trials too, and there is a most.

use futures::future::join_all;
use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, shell, wait_for_health};
use crate::support::{TestApp, TestSocket};

/// It starts and never says a word, until the handshake is given up after half a minute.
fn tarpit(number: u32) -> Value {
    let script = format!("sleep {}", 600 + number);
    json!({ "command": "/bin/sh", "args": ["-c", script] })
}

/// The waits here end well before the first hanging handshake does.
#[tokio::test]
async fn a_tenant_whose_servers_hang_holds_up_nobody_else() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let other = app.person_with("other", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &other, None).await;
    let (owner, other) = (Api::new(&app, &owner), Api::new(&app, &other));
    for number in 0..12 {
        owner.add(&format!("tarpit-{number}"), tarpit(number)).await;
    }
    let trial = json!({ "config": tarpit(99) });
    let trials = join_all((0..8).map(|_| owner.ask(Method::POST, "/api/mcp/test", &trial)));
    let others = async {
        other.add("mine", shell("say ok")).await;
        wait_for_health(&mut socket, "mine", "healthy").await;
        let test = other.ask(Method::POST, "/api/mcp/mine/test", &Value::Null);
        let (_, tried) = test.await;
        assert_eq!(tried["ok"], true, "{tried}");
    };
    tokio::select! {
        _ = trials => panic!("the trials hang for longer"),
        () = others => {}
    }
}

#[tokio::test]
async fn a_tenant_has_fifty_servers_at_most() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let other = app.person_with("other", Role::Owner).await;
    let (owner, other) = (Api::new(&app, &owner), Api::new(&app, &other));
    let config = json!({ "command": "x", "enabled": false });
    for number in 0..50 {
        owner.add(&format!("s{number}"), config.clone()).await;
    }
    let more = json!({ "name": "more", "config": config });
    let (status, problem) = owner.refused(Method::POST, "/api/mcp/add", &more).await;
    assert_eq!(status, 409);
    assert_eq!(problem["code"], "invalid_arguments");
    let text = problem.to_string();
    assert!(
        text.contains("at most 50") && text.contains("remove one"),
        "{text}"
    );
    other.add("more", config.clone()).await;
    let (status, _) = owner.ask(Method::DELETE, "/api/mcp/s0", &Value::Null).await;
    assert_eq!(status, 200);
    owner.add("more", config).await;
}
