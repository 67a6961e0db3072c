//! A rule that is given or taken back at one gateway decides at the other.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use crate::replicas::Pair;
use crate::servers::Api;
use crate::support::TestSocket;

#[tokio::test]
async fn a_rule_given_at_one_gateway_decides_at_the_other_at_once() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (person, mut a, mut b) = pair.sockets("rules").await;
    let admin = pair.b.person_with("acme", Role::Admin).await;
    let model = &pair.a.model;
    let ask = |command: &str| {
        let command = json!({ "command": command });
        model.will_call("execute_command", command).then_say("Done");
    };
    ask("ls");
    a.say("go").await;
    let card = b.wait_for_approval().await;
    let at_b = Api::new(&pair.b, &person);
    let rule = json!({
        "effect": "allow", "scope": "person", "session": b.session(), "callId": card["callId"],
        "digest": card["digest"], "when": { "command": [{ "words": ["ls"] }] },
    });
    let (status, given) = at_b.ask(Method::POST, "/api/rules", &rule).await;
    assert_eq!(status, 201, "{given}");
    for socket in [&mut a, &mut b] {
        let decided = socket.wait_for("tool:decided").await.args[0].clone();
        assert_eq!(decided["approved"], true, "{decided}");
        socket.wait_for_answer().await;
    }
    // In another session, at the gateway that was not told.
    let mut other = TestSocket::open(pair.a.address, &person, None).await;
    ask("ls -l");
    other.say("go").await;
    let decided = other.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["ruleId"], given["rule"]["id"], "{decided}");
    other.wait_for_answer().await;
    // What a tenant denies at one gateway ends what waits at the other.
    ask("date");
    other.say("go").await;
    other.wait_for_approval().await;
    let deny = json!({
        "effect": "deny", "scope": "tenant", "when": { "command": [{ "words": ["date"] }] },
    });
    let api = Api::new(&pair.b, &admin);
    let (status, _) = api.ask(Method::POST, "/api/rules", &deny).await;
    assert_eq!(status, 201);
    let decided = other.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["approved"], false, "{decided}");
    other.wait_for_answer().await;
    // Taken back here, it asks there.
    let path = format!("/api/rules/{}", given["rule"]["id"].as_str().unwrap());
    let (status, _) = at_b.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(status, 204);
    ask("ls -a");
    other.say("go").await;
    other.wait_for_approval().await;
}
