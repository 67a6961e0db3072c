//! What a server was given as a secret is in nothing that it says.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, shell, wait_for_health};
use crate::support::{TestApp, TestSocket};

/// With what has to be written differently in JSON.
const SECRET: &str = r#"sword"fish\ß"#;

/// A server that tells its secret in every way that there is.
fn talkative() -> Value {
    let call = r#"
        token=${line#*\"progressToken\":}; token=${token%%[,\}]*}
        case "$line" in
          *refuse*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no: %s"}}\n' "$id" "$KEY" ;;
          *) printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"with %s"}}\n' "$token" "$KEY"
            sleep 0.2 # An answer at once may pass it.
            answer "{\"content\":[{\"type\":\"text\",\"text\":\"key $KEY, pin $PIN\"}],\"structuredContent\":{\"$KEY\":[\"is $KEY\",12345678]}}" ;;
        esac"#;
    let mut config = shell(call);
    let quoted = SECRET.replace('\\', r"\\").replace('"', "\\\"");
    config["env"] = json!({
        // As a server writes it into its messages.
        "KEY": "${secret:QUOTED}", "REAL_KEY": "${secret:KEY}", "PIN": "${secret:PIN}",
        "ROOT": "/workspace/a-folder-of-its-own",
        "TOOLS": format!(
            r#"{{"name":"echo","description":"knows {quoted}","inputSchema":{{"type":"object","properties":{{"how":{{"type":"string","default":"{quoted}"}}}}}}}}"#
        ),
    });
    json!({
        "name": "aux", "config": config,
        "secrets": { "QUOTED": quoted, "KEY": SECRET, "PIN": "12345678" },
    })
}

fn check(what: &str, text: &str) {
    for part in ["sword", "fish", "12345678"] {
        assert!(!text.contains(part), "{what} tells `{part}`: {text}");
    }
    assert!(text.contains("••••"), "{what}: {text}");
}

#[tokio::test]
async fn results_progress_refusals_and_definitions_are_without_the_servers_secrets() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let (_, tried) = api.ask(Method::POST, "/api/mcp/test", &talkative()).await;
    assert_eq!(tried["ok"], true, "{tried}");
    check("a trial", &tried["tools"].to_string());
    api.add_with(talkative()).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    check(
        "a definition",
        &api.get("/api/mcp/aux/tools").await.to_string(),
    );
    app.model
        .will_call("echo", json!({ "how": "tell" }))
        .then_call("echo", json!({ "how": "refuse" }))
        .then_say("I see");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    check("a card", &card.to_string());
    socket.approve(&card).await;
    let progress = socket.wait_for("tool:progress").await;
    assert_eq!(progress.args[0]["message"], "with ••••");
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(output.text(), "key ••••, pin ••••");
    let structured = json!({ "••••": ["is ••••", "••••"] });
    assert_eq!(output.rest()["structured"], structured);
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    assert!(output.text().contains("no: ••••"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "I see");
    check("the log of the socket", &format!("{:?}", socket.log));
    let requests = app.model.requests();
    let read: Vec<String> = requests.iter().map(|it| it.body.to_string()).collect();
    check("the model", &read.concat());
    let path = format!("/api/sessions/{}/events", socket.session());
    check("the journal", &api.get(&path).await.to_string());
}
