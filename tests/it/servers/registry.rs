//! Who may change the registry, what is refused, and the file of the installation.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, operator, shell, wait_for_health};
use crate::support::{DEADLINE, TestApp, TestSocket};

/// Asserts S2.57, S2.58, S2.59, O5.
#[tokio::test]
async fn only_admins_add_for_everybody_and_every_problem_is_named() {
    let app = TestApp::start().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let member = app.person_with("acme", Role::Member).await;
    let api = Api::new(&app, &owner);
    let add = |name: &str, config: Value| json!({ "name": name, "config": config });
    let good = json!({ "command": "x" });
    let path = "/api/mcp/add";

    let viewer = app.person_with("acme", Role::Viewer).await;
    for (person, scope) in [
        (&member, "tenant"),
        (&member, "installation"),
        (&viewer, "person"),
        (&owner, "installation"),
    ] {
        let mut body = add("a", good.clone());
        body["scope"] = json!(scope);
        let (status, said) = Api::new(&app, person)
            .refused(Method::POST, path, &body)
            .await;
        assert_eq!(status, 403, "{scope}: {said}");
    }
    let body = add("a", good.clone());
    let (status, _) = Api::new(&app, &viewer)
        .refused(Method::POST, path, &body)
        .await;
    assert_eq!(status, 403);
    let bad = json!({ "transport": "http", "timeout": 0, "headers": { "X": "${DATABASE_URL}" } });
    let (status, problem) = api.refused(Method::POST, path, &add("a b", bad)).await;
    assert_eq!(status, 400);
    let fields: Vec<&str> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert_eq!(
        fields,
        ["name", "config.url", "config.timeout", "config.headers.X"]
    );
    let typo = add("a", json!({ "comand": "x" }));
    let (status, problem) = api.refused(Method::POST, path, &typo).await;
    assert_eq!(status, 400);
    assert!(
        problem["errors"][0]["field"]
            .as_str()
            .unwrap()
            .starts_with("config")
    );
    let private = add("a", json!({ "url": "http://127.0.0.1:1/mcp" }));
    let (status, problem) = api.refused(Method::POST, path, &private).await;
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (400, &json!("config.url"))
    );
}

/// Asserts S2.58.
#[tokio::test]
async fn what_would_install_a_package_is_refused_at_once_where_nothing_is_installed() {
    let off = [("SPL_SANDBOX", "bubblewrap"), ("SPL_PACKAGES", "false")];
    let app = TestApp::start_with(&off).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let began = std::time::Instant::now();
    for (command, args, word) in [
        ("npx", json!(["-y", "some"]), "sandbox.packages.enabled"),
        ("uvx", json!(["some"]), "sandbox.packages.enabled"),
        ("deno", json!(["run", "npm:some"]), "no network"),
    ] {
        let config = json!({ "command": command, "args": args });
        for path in ["/api/mcp/test", "/api/mcp/add"] {
            let body = json!({ "name": "some", "config": config });
            let (status, problem) = api.refused(Method::POST, path, &body).await;
            assert_eq!(status, 400, "{path}: {problem}");
            let error = &problem["errors"][0];
            assert_eq!(error["field"], "config.command", "{problem}");
            let words = error["message"].as_str().unwrap();
            assert!(words.contains(word), "{words}");
        }
    }
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    // An entry that is off may wait for the day; it is not switched on.
    let mut off = json!({ "command": "npx", "args": ["-y", "some"], "enabled": false });
    api.add("some", off.clone()).await;
    off["enabled"] = json!(true);
    let (status, problem) = api.refused(Method::PATCH, "/api/mcp/some", &off).await;
    assert_eq!(status, 400, "{problem}");
    let offline = json!({ "args": ["--offline", "some"], "enabled": true });
    let (status, changed) = api.ask(Method::PATCH, "/api/mcp/some", &offline).await;
    assert_eq!(status, 200, "{changed}");
}

/// Asserts S2.57, S2.58, S2.59.
#[tokio::test]
async fn names_are_taken_once_and_each_entry_has_its_keepers() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCPS_0_ID", "fixed"),
        ("SPL_MCPS_0_COMMAND", "time-server"),
    ])
    .await;
    let owner = app.person_with("acme", Role::Owner).await;
    let member = app.person_with("acme", Role::Member).await;
    let api = Api::new(&app, &owner);
    let add = |name: &str, config: Value| json!({ "name": name, "config": config });
    let good = json!({ "command": "x" });
    let path = "/api/mcp/add";
    api.add("a", good.clone()).await;
    for taken in ["a", "fixed", "sandbox"] {
        let (status, _) = api
            .refused(Method::POST, path, &add(taken, good.clone()))
            .await;
        assert_eq!(status, 409, "{taken}");
    }
    // Another tenant has names of its own.
    let other = app.person_with("other", Role::Admin).await;
    Api::new(&app, &other).add("a", good.clone()).await;
    let change = json!({ "enabled": false });
    let (status, problem) = api.refused(Method::PATCH, "/api/mcp/fixed", &change).await;
    assert_eq!((status, &problem["code"]), (409, &json!("read_only")));
    let (status, _) = Api::new(&app, &member)
        .refused(Method::DELETE, "/api/mcp/a", &Value::Null)
        .await;
    assert_eq!(status, 403);
    let seen = Api::new(&app, &member).get("/api/mcp/a").await;
    assert_eq!(seen.get("config"), None, "members see no configuration");
    let fixed = api.server("fixed").await;
    assert_eq!(
        (&fixed["source"], fixed.get("config")),
        (&json!("settings"), None)
    );
    let removed = api.ask(Method::DELETE, "/api/mcp/a", &Value::Null).await;
    assert_eq!(removed, (200, json!({ "ok": true, "name": "a" })));
    let (status, _) = api.refused(Method::GET, "/api/mcp/a", &Value::Null).await;
    assert_eq!(status, 404);
}

/// Asserts S2.12, S2.60.
#[tokio::test]
async fn the_operators_file_serves_every_tenant_and_edits_by_hand_load_while_running() {
    let app = TestApp::with_sandbox().await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let stranger = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &stranger, None).await;
    // Each tenant connects to the servers by itself.
    let mut own = TestSocket::open(app.address, &person, None).await;
    api.add("shared", shell("say ok")).await;
    assert_eq!(socket.wait_for("mcpAdded").await.args[0]["name"], "shared");
    wait_for_health(&mut socket, "shared", "healthy").await;
    let path = app.folder.path().join("data/mcp-config.json");
    let read =
        || -> Value { serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap() };
    assert_eq!(read()["mcpServers"]["shared"]["command"], "/bin/sh");
    let seen = Api::new(&app, &stranger).server("shared").await;
    assert_eq!(seen["source"], "installation");
    assert_eq!(seen.get("config"), None, "the operator's entry is theirs");
    let (status, _) = Api::new(&app, &stranger)
        .refused(Method::DELETE, "/api/mcp/shared", &Value::Null)
        .await;
    assert_eq!(status, 403);

    let mut edited = read();
    edited["mcpServers"]["by-hand"] = shell("say ok");
    edited["mcpServers"]["by-hand"]["env"]["P"] = json!("${PATH}");
    std::fs::write(&path, edited.to_string()).unwrap();
    wait_for_health(&mut socket, "by-hand", "healthy").await;
    wait_for_health(&mut own, "by-hand", "healthy").await;
    assert_eq!(api.server("by-hand").await["toolCount"], 1);
    let removed = api
        .ask(Method::DELETE, "/api/mcp/by-hand", &Value::Null)
        .await;
    assert_eq!(removed, (200, json!({ "ok": true, "name": "by-hand" })));
    assert_eq!(
        socket.wait_for("mcpRemoved").await.args[0]["name"],
        "by-hand"
    );
    assert_eq!(read()["mcpServers"].get("by-hand"), None);
}

/// S2.59: the last of its four answers.
#[tokio::test]
async fn an_entry_that_cannot_be_written_is_an_error_of_ours_and_is_not_there() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    // No file can be written where a folder is.
    std::fs::create_dir(app.folder.path().join("data/mcp-config.json")).unwrap();
    let body = json!({ "name": "a", "config": { "command": "x" } });
    let (status, problem) = api.refused(Method::POST, "/api/mcp/add", &body).await;
    assert_eq!(status, 500, "{problem}");
    assert_eq!(problem["code"], "internal", "{problem}");
    assert_eq!(problem["detail"], "internal error", "{problem}");
    let (status, _) = api.refused(Method::GET, "/api/mcp/a", &Value::Null).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_tenants_servers_are_nobody_elses() {
    let app = TestApp::start().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let stranger = app.person_with("other", Role::Owner).await;
    Api::new(&app, &owner)
        .add("mine", json!({ "command": "x" }))
        .await;
    let api = Api::new(&app, &stranger);
    let list = api.get("/api/mcp").await;
    assert!(!list.to_string().contains("mine"), "{list}");
    for (method, path, body) in [
        (Method::GET, "/api/mcp/mine", Value::Null),
        (Method::PATCH, "/api/mcp/mine", json!({ "enabled": false })),
        (Method::DELETE, "/api/mcp/mine", Value::Null),
        (Method::POST, "/api/mcp/mine/test", Value::Null),
        (Method::GET, "/api/mcp/mine/tools", Value::Null),
        (
            Method::PUT,
            "/api/mcp/mine/tools/x",
            json!({ "effect": "allow" }),
        ),
        (Method::GET, "/api/mcp/mine/logs", Value::Null),
        (Method::GET, "/api/mcp/mine/health", Value::Null),
        (Method::POST, "/api/mcp/mine/restart", Value::Null),
        (
            Method::PUT,
            "/api/mcp/mine/secrets/A",
            json!({ "value": "x" }),
        ),
        (Method::DELETE, "/api/mcp/mine/secrets/A", Value::Null),
    ] {
        let (status, _) = api.refused(method.clone(), path, &body).await;
        assert_eq!(status, 404, "{method} {path}");
    }
}

/// `settings.healthCheckInterval` of `mcp-config.json`.
#[tokio::test]
async fn the_file_says_how_often_remote_servers_are_looked_at() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let path = app.folder.path().join("data/mcp-config.json");
    // Nobody answers there; that it was looked at is known all the same.
    let far = json!({ "url": "http://127.0.0.1:9/mcp" });
    let file = json!({ "mcpServers": { "far": far }, "settings": { "healthCheckInterval": 1000 } });
    std::fs::write(&path, file.to_string()).unwrap();
    let looked = async || {
        let listed = api.get("/api/mcp/health").await;
        let servers = listed["mcps"].as_array().unwrap().clone();
        let far = servers.iter().find(|it| it["name"] == "far");
        far.and_then(|far| far["lastCheck"].as_str().map(str::to_owned))
    };
    let mut seen = std::collections::BTreeSet::new();
    let often = async {
        while seen.len() < 3 {
            seen.extend(looked().await);
        }
    };
    // Without the setting, the third look comes after two minutes.
    tokio::time::timeout(DEADLINE, often)
        .await
        .expect("three looks");
}

#[tokio::test]
async fn an_added_server_inherits_no_decision_about_a_namesake_that_was_removed_by_hand() {
    let app = TestApp::with_sandbox().await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let path = app.folder.path().join("data/mcp-config.json");
    let file = json!({ "mcpServers": { "own": shell("say hi") } });
    std::fs::write(&path, file.to_string()).unwrap();
    wait_for_health(&mut socket, "own", "healthy").await;
    let allow = json!({ "effect": "allow" });
    let (status, allowed) = api
        .ask(Method::PUT, "/api/mcp/own/tools/echo", &allow)
        .await;
    assert_eq!((status, &allowed["effect"]), (200, &json!("allow")));
    std::fs::write(&path, json!({ "mcpServers": {} }).to_string()).unwrap();
    socket.wait_for("mcpRemoved").await;
    // The same program, so that its tools are known at once.
    api.add("own", shell("say hi")).await;
    let tools = api.get("/api/mcp/own/tools").await;
    let echo = &tools["items"][0];
    assert_eq!(
        (&echo["name"], &echo["effect"]),
        (&json!("echo"), &json!("ask")),
        "{tools}"
    );
}

/// `settings.autoConnect` of `mcp-config.json`.
#[tokio::test]
async fn the_file_says_whether_servers_are_connected_before_they_are_called() {
    let app = TestApp::with_sandbox().await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let path = app.folder.path().join("data/mcp-config.json");
    let file = json!({ "mcpServers": { "own": shell("say hi") } });
    std::fs::write(&path, file.to_string()).unwrap();
    wait_for_health(&mut socket, "own", "healthy").await;
    // Each start of it says so; the first was the look that lists it.
    let starts = async || {
        let logs = api.get("/api/mcp/own/logs").await.to_string();
        logs.matches("started").count()
    };
    let before = starts().await;
    app.model.will_say("One.");
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "One.");
    assert_eq!(starts().await, before, "nobody called it");
    let file = json!({
        "mcpServers": { "own": shell("say hi") }, "settings": { "autoConnect": true },
    });
    std::fs::write(&path, file.to_string()).unwrap();
    let connected = async {
        while starts().await == before {
            app.model.will_say("Again.");
            socket.say("hello").await;
            assert_eq!(socket.wait_for_answer().await, "Again.");
        }
    };
    let connected = tokio::time::timeout(DEADLINE, connected).await;
    connected.expect("a turn without a call connects");
}
