//! Servers over stdio, each in a place of its own.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, offered, shell, tool, wait_for_health};
use crate::model_stub::Reply;
use crate::support::{Person, Said, TestApp, TestSocket};

/// A tenant's owner with a server `aux` that is listed already, and their socket.
async fn with_server(app: &TestApp, config: Value) -> (Person, TestSocket) {
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    Api::new(app, &owner).add("aux", config).await;
    let added = socket.wait_for("mcpAdded").await;
    assert_eq!(added.args[0]["name"], "aux");
    wait_for_health(&mut socket, "aux", "healthy").await;
    (owner, socket)
}

#[tokio::test]
async fn news_of_it_reach_its_tenant_only() {
    let app = TestApp::with_sandbox().await;
    let stranger = app.person_with("other", Role::Owner).await;
    let mut theirs = TestSocket::open(app.address, &stranger, None).await;
    with_server(&app, shell("say ok")).await;
    // News and answers go out in the order in which they came.
    theirs.take_in().await;
    let is_news = |said: &&Said| said.name.starts_with("mcp");
    assert_eq!(theirs.log.iter().find(is_news).map(|said| &said.args), None);
}

#[tokio::test]
async fn its_tools_are_offered_at_once_and_a_call_runs_in_its_own_place() {
    let app = TestApp::with_sandbox().await;
    let (owner, mut socket) = with_server(&app, shell(r#"say "I am $(id -u)""#)).await;
    app.model.will_call("echo", json!({})).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    assert_eq!(card["server"], "aux");
    assert_eq!(card["runsIn"], json!({ "kind": "container", "hosts": [] }));
    assert!(
        offered(&app).contains(&"echo".to_owned()),
        "the first request has it: {:?}",
        offered(&app)
    );
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert!(output.text().starts_with("I am "), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    let server = Api::new(&app, &owner).server("aux").await;
    assert_eq!(server["source"], "tenant");
    assert_eq!(server["status"], "healthy");
    assert_eq!(server["toolCount"], 1);
    assert!(server["definitionTokens"].as_u64().unwrap() > 0);
}

/// Asserts S0.52, S0.61, S1.9.
#[tokio::test]
async fn a_server_that_dies_during_a_call_says_why_and_the_next_call_starts_it_again() {
    let app = TestApp::with_sandbox().await;
    let call = r#"case "$line" in *die*) echo "out of luck" >&2; exit 3 ;; *) say fine ;; esac"#;
    let (owner, mut socket) = with_server(&app, shell(call)).await;
    app.model
        .will_call("echo", json!({ "how": "die" }))
        .then_call("echo", json!({ "how": "live" }))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "unknown");
    let text = output.text();
    assert!(text.contains("exit code 3"), "{text}");
    assert!(text.contains("out of luck"), "{text}");
    let card = socket.wait_for_approval().await;
    let health = Api::new(&app, &owner).get("/api/mcp/health").await;
    assert_eq!(health["summary"]["disconnected"], 1, "{health}");
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "fine", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_its_own_server_only() {
    let app = TestApp::with_sandbox().await;
    let mut config = shell("sleep 600");
    config["timeout"] = json!(1);
    let (_, mut socket) = with_server(&app, config).await;
    app.model
        .will(Reply::answer(
            "Both",
            &[
                ("echo", json!({})),
                ("write_file", json!({"path": "a.txt", "content": "A"})),
            ],
        ))
        .then_call("read_file", json!({"path": "a.txt"}))
        .then_say("Done");
    socket.say("go").await;
    for _ in 0..2 {
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
    }
    let late = socket
        .wait_where(|said| said.name == "tool:output" && said.rest()["server"] == "aux")
        .await;
    assert_eq!(late.rest()["status"], "unknown");
    assert!(late.text().contains("no answer within 1 s"), "{late:?}");
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let read = socket
        .wait_where(|said| said.name == "tool:output" && said.rest()["name"] == "read_file")
        .await;
    assert!(read.text().contains('A'), "{read:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn a_flood_on_stderr_is_bounded_and_without_secrets() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let member = app.person_with("acme", Role::Member).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let call =
        r#"n=0; while [ $n -lt 20000 ]; do echo "flood $KEY" >&2; n=$((n+1)); done; say "$n""#;
    let mut config = shell(call);
    config["env"]["KEY"] = json!("${secret:KEY}");
    let api = Api::new(&app, &owner);
    api.add_with(json!({
        "name": "aux", "config": config, "secrets": { "KEY": "swordfish-1" },
    }))
    .await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    app.model.will_call("echo", json!({})).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "20000", "{output:?}");
    let logs = api.get("/api/mcp/aux/logs").await;
    let lines = logs["lines"].as_array().unwrap();
    assert!(!lines.is_empty() && lines.len() <= 500, "{}", lines.len());
    assert!(!logs.to_string().contains("swordfish"));
    assert!(logs.to_string().contains("••••"), "{}", lines[0]);
    let shown = api.server("aux").await.to_string();
    assert!(!shown.contains("swordfish"), "{shown}");
    assert!(shown.contains("${secret:KEY}"), "{shown}");
    for (person, expected) in [(member, 403), (stranger, 404)] {
        let (status, _) = Api::new(&app, &person)
            .refused(reqwest::Method::GET, "/api/mcp/aux/logs", &Value::Null)
            .await;
        assert_eq!(status, expected);
    }
}

/// Asserts S1.23, S1.27.
#[tokio::test]
async fn three_hundred_tools_are_offered_and_lists_and_switches_narrow_them() {
    let settings = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_LLM_DEFER_TOOLS_PERCENT", "0"),
    ];
    let app = TestApp::start_with(&settings).await;
    let mut config = shell("say ok");
    let script = config["args"][1].as_str().unwrap().replace(
        r#"list() { answer "{\"tools\":[$TOOLS]}"; }"#,
        r#"list() { n=0; all=; while [ $n -lt 300 ]; do all="$all,{\"name\":\"t$n\",\"description\":\"d\",\"inputSchema\":{\"type\":\"object\"}}"; n=$((n+1)); done; answer "{\"tools\":[${all#,}]}"; }"#,
    );
    config["args"][1] = json!(script);
    let (owner, mut socket) = with_server(&app, config).await;
    let api = Api::new(&app, &owner);
    app.model.will_say("one");
    socket.say("go").await;
    socket.wait_for_answer().await;
    assert_eq!(offered(&app).len(), 304);
    // An open session sees a change at its next request.
    let narrowed = json!({ "includeTools": ["t1", "t2", "t3"], "excludeTools": ["t2"] });
    let (status, changed) = api
        .ask(reqwest::Method::PATCH, "/api/mcp/aux", &narrowed)
        .await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(
        (&changed["toolCount"], &changed["enabledTools"]),
        (&json!(300), &json!(2))
    );
    let off = json!({ "enabled": false });
    let (status, tool) = api
        .ask(reqwest::Method::PUT, "/api/mcp/aux/tools/t3", &off)
        .await;
    assert_eq!((status, &tool["enabled"]), (200, &json!(false)), "{tool}");
    app.model.will_say("two");
    socket.say("again").await;
    socket.wait_for_answer().await;
    let names = offered(&app);
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(names.contains(&"t1".to_owned()));
}

/// Asserts S0.61.
#[tokio::test]
async fn the_same_tool_name_of_two_servers_leads_to_each_of_them() {
    let app = TestApp::with_sandbox().await;
    let (owner, mut socket) = with_server(&app, shell("say from-aux")).await;
    let mut second = shell("say from-beta");
    second["env"]["TOOLS"] = json!(format!("{},{}", tool("echo", "x"), tool("read_file", "x")));
    Api::new(&app, &owner).add("beta", second).await;
    wait_for_health(&mut socket, "beta", "healthy").await;
    app.model
        .will_call("beta__echo", json!({}))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    assert_eq!(card["server"], "beta");
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.text(), "from-beta");
    socket.wait_for_answer().await;
    let names = offered(&app);
    for name in ["echo", "beta__echo", "read_file", "beta__read_file"] {
        assert!(names.contains(&name.to_owned()), "{name} of {names:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_gives_its_last_words_and_a_reason() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let config = json!({
        "command": "/bin/sh", "args": ["-c", "echo 'GITHUB_TOKEN is not set' >&2; exit 1"],
    });
    let body = json!({ "config": config });
    let (status, tried) = api.ask(reqwest::Method::POST, "/api/mcp/test", &body).await;
    assert_eq!(status, 200, "{tried}");
    assert_eq!(tried["ok"], false);
    let phases: Vec<(&str, bool)> = tried["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| {
            (
                phase["name"].as_str().unwrap(),
                phase["ok"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(phases, [("start", true), ("handshake", false)]);
    assert_eq!(tried["stderr"], json!(["GITHUB_TOKEN is not set"]));
    assert!(
        tried["error"].as_str().unwrap().contains("exit code 1"),
        "{tried}"
    );
    assert!(
        tried["reason"].as_str().unwrap().contains("`env`"),
        "{tried}"
    );
    let nothing = api.get("/api/mcp").await;
    assert_eq!(
        nothing["items"].as_array().unwrap().len(),
        1,
        "only the sandbox: {nothing}"
    );
}

#[tokio::test]
async fn a_trial_leaves_nothing_in_the_log_of_the_server_whose_name_it_has() {
    let app = TestApp::with_sandbox().await;
    let (owner, _socket) = with_server(&app, shell("say ok")).await;
    let api = Api::new(&app, &owner);
    let trial = json!({ "name": "aux", "config": shell("say ok") });
    let (status, tried) = api
        .ask(reqwest::Method::POST, "/api/mcp/test", &trial)
        .await;
    assert_eq!((status, &tried["ok"]), (200, &json!(true)), "{tried}");
    let logs = api.get("/api/mcp/aux/logs").await;
    let starts = logs["lines"].as_array().unwrap().len();
    assert_eq!(starts, 1, "only the stored server's first listing: {logs}");
}

/// Asserts S2.56, O12.
#[tokio::test]
async fn asking_for_health_starts_nothing() {
    let app = TestApp::with_sandbox().await;
    let (owner, _socket) = with_server(&app, shell("say ok")).await;
    let api = Api::new(&app, &owner);
    for _ in 0..3 {
        let health = api.get("/api/mcp/health").await;
        assert_eq!(health["summary"]["healthy"], 2, "{health}");
        assert_eq!(health["mcps"][1]["toolCount"], 1);
    }
    let logs = api.get("/api/mcp/aux/logs").await;
    let starts = logs["lines"].as_array().unwrap().len();
    assert_eq!(starts, 1, "only the first listing: {logs}");
}

#[tokio::test]
async fn an_image_without_an_engine_is_refused_in_clear_words() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let config = json!({ "command": "docker", "args": ["run", "-i", "--rm", "mcp/time"] });
    let body = json!({ "config": config });
    let (_, tried) = api.ask(reqwest::Method::POST, "/api/mcp/test", &body).await;
    assert!(
        tried["error"].as_str().unwrap().contains("Docker"),
        "{tried}"
    );
}

/// A server hears which folder it may work in, if there is one.
#[tokio::test]
async fn a_server_that_sees_the_workspace_is_told_where_it_is() {
    let app = TestApp::with_sandbox().await;
    let ask = r#"printf '{"jsonrpc":"2.0","id":"r1","method":"roots/list"}\n'
        IFS= read -r told; say "$(printf %s "$told" | tr -d '"')""#;
    let mut config = shell(ask);
    config["workspace"] = json!("ro");
    let (_, mut socket) = with_server(&app, config).await;
    app.model.will_call("echo", json!({})).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    let text = output.text();
    assert!(text.contains("roots:[{uri:file:///workspace}]"), "{text}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}
