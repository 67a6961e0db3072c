//! Servers that people have for themselves alone, and who may add which.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, offered, operator, shell, wait_for_health};
use crate::support::{Person, TestApp, TestSocket};

const ADD: &str = "/api/mcp/add";

/// The names of the servers that they see.
async fn seen(app: &TestApp, person: &Person) -> Vec<String> {
    let listed = Api::new(app, person).get("/api/mcp").await;
    let items = listed["items"].as_array().unwrap();
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}

/// Every door of a server, each with a body that would be right for its owner.
fn doors(name: &str) -> Vec<(Method, String, Value)> {
    let at = |rest: &str| format!("/api/mcp/{name}{rest}");
    vec![
        (Method::GET, at(""), Value::Null),
        (Method::GET, at("/tools"), Value::Null),
        (Method::GET, at("/logs"), Value::Null),
        (Method::GET, at("/installation"), Value::Null),
        (Method::POST, at("/test"), Value::Null),
        (Method::POST, at("/restart"), Value::Null),
        (Method::PATCH, at(""), json!({ "enabled": false })),
        (Method::GET, at("/health"), Value::Null),
        (Method::GET, at("/tools/echo/history"), Value::Null),
        (Method::PUT, at("/tools/echo"), json!({ "effect": "allow" })),
        (Method::POST, at("/installation"), Value::Null),
        (Method::DELETE, at("/installation"), Value::Null),
        (Method::POST, at("/installation/check"), Value::Null),
        (
            Method::POST,
            at("/installation/accept"),
            json!({ "content": "0".repeat(64) }),
        ),
        (Method::POST, at("/connect"), json!({})),
        (Method::DELETE, at("/connect"), Value::Null),
        (Method::POST, at("/connect/dismiss"), Value::Null),
        (Method::PUT, at("/secrets/KEY"), json!({ "value": "x" })),
        (Method::DELETE, at("/secrets/KEY"), Value::Null),
        (Method::DELETE, at(""), Value::Null),
    ]
}

/// Asserts S2.57.
#[tokio::test]
async fn what_a_member_adds_is_theirs_alone() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person_with("acme", Role::Member).await;
    let ben = app.person_with("acme", Role::Member).await;
    let admin = app.person_with("acme", Role::Owner).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let boss = operator(&app, "house").await;
    let mut hers = TestSocket::open(app.address, &ana, None).await;
    let mut his = TestSocket::open(app.address, &ben, None).await;
    let api = Api::new(&app, &ana);
    let mut body =
        json!({ "name": "mine", "config": shell("say $KEY"), "secrets": { "KEY": "hush" } });
    body["config"]["env"]["KEY"] = json!("${secret:KEY}");
    api.add_with(body).await;
    assert_eq!(hers.wait_for("mcpAdded").await.args[0]["name"], "mine");
    wait_for_health(&mut hers, "mine", "healthy").await;
    let own = api.server("mine").await;
    assert_eq!(own["source"], "person", "{own}");
    assert_eq!(own["lookedAfter"], true, "{own}");
    assert_eq!(own["secrets"], json!(["KEY"]), "{own}");
    assert_eq!(own["config"]["command"], "/bin/sh", "{own}");

    // Nobody else sees it, hears of it, or reaches it, whatever their role.
    for other in [&ben, &admin, &stranger, &boss] {
        let names = seen(&app, other).await;
        assert!(!names.contains(&"mine".to_owned()), "{names:?}");
        for (method, path, body) in doors("mine") {
            let (status, problem) = Api::new(&app, other)
                .refused(method.clone(), &path, &body)
                .await;
            assert_eq!(status, 404, "{method} {path}: {problem}");
        }
    }
    assert_eq!(api.server("mine").await["enabled"], true);

    // Their models are not told of it, and hers is.
    app.model.will_say("No tools here");
    his.say("echo?").await;
    assert_eq!(his.wait_for_answer().await, "No tools here");
    let told = offered(&app);
    assert!(!told.iter().any(|name| name.contains("echo")), "{told:?}");
    app.model.will_call("echo", json!({})).then_say("Done");
    hers.say("echo!").await;
    let card = hers.wait_for_approval().await;
    assert_eq!(card["server"], "mine", "{card}");
    hers.approve(&card).await;
    assert_eq!(hers.wait_for("tool:output").await.text(), "hush");
    assert_eq!(hers.wait_for_answer().await, "Done");

    // She decides about its tools, starts it afresh, and reads its log.
    let never = json!({ "enabled": false });
    let (status, tool) = api
        .ask(Method::PUT, "/api/mcp/mine/tools/echo", &never)
        .await;
    assert_eq!((status, &tool["enabled"]), (200, &json!(false)), "{tool}");
    let (status, again) = api
        .ask(Method::POST, "/api/mcp/mine/restart", &Value::Null)
        .await;
    assert_eq!((status, &again["ok"]), (200, &json!(true)), "{again}");
    let logs = api.get("/api/mcp/mine/logs").await;
    assert!(logs.to_string().contains("started"), "{logs}");

    let gone = api.ask(Method::DELETE, "/api/mcp/mine", &Value::Null).await;
    assert_eq!(gone.0, 200, "{}", gone.1);
    assert_eq!(hers.wait_for("mcpRemoved").await.args[0]["name"], "mine");
    his.take_in().await;
    assert_eq!(his.about("mine"), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_is_one_servers_also_where_only_its_owner_sees_it() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = app.person_with("acme", Role::Member).await;
    let ben = app.person_with("acme", Role::Member).await;
    let admin = app.person_with("acme", Role::Owner).await;
    let other = app.person_with("other", Role::Member).await;
    let off = |name: &str| json!({ "name": name, "config": { "command": "x", "enabled": false } });
    Api::new(&app, &ana).add_with(off("github")).await;
    for person in [&ana, &ben, &admin] {
        let (status, problem) = Api::new(&app, person)
            .refused(Method::POST, ADD, &off("github"))
            .await;
        assert_eq!(status, 409, "{problem}");
        assert!(problem.to_string().contains("another name"), "{problem}");
    }
    // Another tenant has names of its own.
    Api::new(&app, &other).add_with(off("github")).await;
    Api::new(&app, &admin).add_with(off("shared")).await;
    assert_eq!(seen(&app, &ben).await, ["shared"]);
    assert_eq!(seen(&app, &ana).await, ["github", "shared"]);

    // What was one person's is everybody's, once an admin took the name that they gave up.
    let gone = Api::new(&app, &ana)
        .ask(Method::DELETE, "/api/mcp/github", &Value::Null)
        .await;
    assert_eq!(gone.0, 200, "{}", gone.1);
    let mut his = TestSocket::open(app.address, &ben, None).await;
    Api::new(&app, &admin).add_with(off("github")).await;
    assert_eq!(his.wait_for("mcpAdded").await.args[0]["name"], "github");
    for n in 0..20 {
        Api::new(&app, &ana).add_with(off(&format!("own{n}"))).await;
    }
    let (status, problem) = Api::new(&app, &ana)
        .refused(Method::POST, ADD, &off("own20"))
        .await;
    assert_eq!(status, 409, "{problem}");
    assert!(problem.to_string().contains("at most 20"), "{problem}");
    Api::new(&app, &ben).add_with(off("own20")).await;
}

/// An entry of that transport, which is off.
fn entry(transport: &str) -> Value {
    match transport {
        "stdio" => json!({ "command": "x", "enabled": false }),
        "stdio-docker" => {
            json!({ "transport": transport, "containerImage": "busybox", "enabled": false })
        }
        "docker run" => {
            json!({ "command": "docker", "args": ["run", "-i", "busybox"], "enabled": false })
        }
        _ => json!({ "transport": transport, "url": "https://example.com/mcp", "enabled": false }),
    }
}

async fn with_roles() -> TestApp {
    TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_MCP_PERSON_HTTP", "nobody"),
        ("SPL_MCP_TENANT_SSE", "owner"),
        ("SPL_MCP_TENANT_STDIO_DOCKER", "nobody"),
    ])
    .await
}

/// Asserts S2.57.
#[tokio::test]
async fn a_role_says_who_adds_which_transport_for_whom() {
    let app = with_roles().await;
    let nothing = json!([]);
    let own = json!(["stdio", "stdio-docker", "sse"]);
    let every = json!(["stdio", "stdio-docker", "http", "sse"]);
    // Each person with what they may add for all tenants, for everybody in theirs, and for themselves.
    let everybody = [
        (Role::Viewer, &nothing, nothing.clone(), nothing.clone()),
        (
            Role::Member,
            &nothing,
            nothing.clone(),
            json!(["stdio", "sse"]),
        ),
        (Role::Admin, &nothing, json!(["stdio", "http"]), own.clone()),
        (
            Role::Owner,
            &nothing,
            json!(["stdio", "http", "sse"]),
            own.clone(),
        ),
    ];
    let mut people = Vec::new();
    for (role, all, tenant, own) in everybody {
        people.push((app.person_with("acme", role).await, all, tenant, own));
    }
    let boss = operator(&app, "house").await;
    people.push((boss, &every, json!(["stdio", "http", "sse"]), own));
    let mut count = 0;
    for (person, all, tenant, own) in people {
        let api = Api::new(&app, &person);
        let may = api.get("/api/mcp").await["mayAdd"].clone();
        let expected = json!({ "installation": all, "tenant": tenant, "person": own });
        assert_eq!(may, expected);
        for (scope, may) in [("tenant", &tenant), ("person", &own)] {
            for transport in ["stdio", "stdio-docker", "docker run", "http", "sse"] {
                count += 1;
                let body = json!({
                    "name": format!("s{count}"), "config": entry(transport), "scope": scope,
                });
                let (status, said) = api.ask(Method::POST, ADD, &body).await;
                let kind = transport.replace("docker run", "stdio-docker");
                let is_allowed = may.as_array().unwrap().contains(&json!(kind));
                let expected = if is_allowed { 201 } else { 403 };
                assert_eq!(status, expected, "{scope} {transport}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn a_refused_transport_names_its_setting_also_where_an_entry_would_become_one() {
    let app = with_roles().await;
    let member = app.person_with("acme", Role::Member).await;
    let api = Api::new(&app, &member);
    let body = json!({ "name": "web", "config": entry("http") });
    let (_, problem) = api.refused(Method::POST, ADD, &body).await;
    let words = problem.to_string();
    assert!(words.contains("agent.mcp_roles.person.http"), "{words}");
    let (status, _) = api.refused(Method::POST, "/api/mcp/test", &body).await;
    assert_eq!(status, 403);
    api.add_with(json!({ "name": "tool", "config": entry("stdio") }))
        .await;
    let patch = json!({
        "transport": "http", "command": null, "url": "https://example.com/mcp",
    });
    let (status, problem) = api.refused(Method::PATCH, "/api/mcp/tool", &patch).await;
    assert_eq!(status, 403, "{problem}");
    let viewer = app.person_with("acme", Role::Viewer).await;
    let (status, _) = Api::new(&app, &viewer)
        .refused(Method::GET, "/api/mcp-registry/servers", &Value::Null)
        .await;
    assert_eq!(status, 403);
}

/// Hosts of a server of one's own follow the right by which people open hosts for their sessions.
#[tokio::test]
async fn a_server_of_ones_own_reaches_what_its_person_may_open() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_SANDBOX_NETWORK_ON_REQUEST", "pypi.org, *.example.com"),
    ])
    .await;
    let ana = app.person_with("acme", Role::Member).await;
    let boss = app.person_with("acme", Role::Admin).await;
    let body = |name: &str, hosts: &[&str]| {
        let mut config = shell("say ok");
        config["network"] = json!(hosts);
        config["workspace"] = json!("rw");
        config["enabled"] = json!(false);
        json!({ "name": name, "config": config, "scope": "person" })
    };
    let api = Api::new(&app, &ana);
    let evil = "evil.example.net";
    let doors = [
        (Method::POST, ADD, body("out", &["pypi.org", evil])),
        (Method::POST, "/api/mcp/test", body("out", &[evil])),
    ];
    for (method, path, body) in doors {
        let (status, problem) = api.refused(method, path, &body).await;
        assert_eq!((status, &problem["code"]), (403, &json!("not_allowed")));
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(
            detail.contains(evil) && !detail.contains("`pypi.org`,"),
            "{problem}"
        );
    }
    let open = ["pypi.org", "api.example.com"];
    api.add_with(body("mine", &open)).await;
    let mut more = json!({ "network": ["pypi.org", evil] });
    // Other hosts want the hidden values again.
    more["env"] = shell("say ok")["env"].clone();
    let (status, problem) = api.refused(Method::PATCH, "/api/mcp/mine", &more).await;
    assert_eq!(status, 403, "{problem}");
    assert_eq!(api.server("mine").await["runsIn"]["hosts"], json!(open));

    // What an administrator may open is withheld once they are none.
    let theirs = Api::new(&app, &boss);
    theirs.add_with(body("wide", &[evil, "pypi.org"])).await;
    let wide = theirs.server("wide").await;
    assert_eq!(wide["runsIn"]["hosts"], json!([evil, "pypi.org"]), "{wide}");
    let people = app.tenancy.administration().users(&boss.tenant).await;
    let mut people = people.unwrap().into_iter();
    let id = people
        .find(|it| it.user.role == Role::Admin)
        .unwrap()
        .user
        .id;
    let administration = app.tenancy.administration();
    let demoted = administration.set_role(&boss.tenant, &id, Role::Member);
    demoted.await.unwrap();
    let words = json!({ "description": "wide" });
    let (status, answer) = theirs.ask(Method::PATCH, "/api/mcp/wide", &words).await;
    assert_eq!(status, 200, "{answer}");
    let wide = theirs.server("wide").await;
    assert_eq!(wide["runsIn"]["hosts"], json!(["pypi.org"]), "{wide}");
    assert!(wide["problems"].to_string().contains(evil), "{wide}");
}

/// One reader for the page, REST and the file of servers; nothing is stored.
#[tokio::test]
async fn what_somebody_pastes_is_read_before_it_is_added() {
    let app = TestApp::start().await;
    let ana = app.person_with("acme", Role::Member).await;
    let before = seen(&app, &ana).await;
    let api = Api::new(&app, &ana);
    let read = async |text: &str| {
        let body = json!({ "text": text });
        let (status, read) = api.ask(Method::POST, "/api/mcp/read", &body).await;
        assert_eq!(status, 200, "{read}");
        read
    };
    let found = read("// mine\n{“mcpServers”: {\"a b\": {\"command\": \"npx\", \"args\": [\"x\",],}, \"odd\": {}}}").await;
    assert_eq!(
        (&found["kind"], &found["servers"][0]["name"]),
        (&json!("json"), &json!("a-b"))
    );
    assert_eq!(found["servers"][0]["config"]["args"], json!(["x"]));
    assert!(
        found["problems"][0].as_str().unwrap().contains("`odd`"),
        "{found}"
    );
    let found = read("$ KEY=1 npx -y some-server").await;
    assert_eq!(
        (&found["kind"], &found["servers"][0]["config"]["env"]["KEY"]),
        (&json!("command"), &json!("1"))
    );
    assert_eq!(read("").await["kind"], "nothing");
    assert_eq!(seen(&app, &ana).await, before);
    for body in [
        json!({}),
        json!({ "text": 5 }),
        json!({ "text": "x".repeat(300_000) }),
    ] {
        let (status, _) = api.ask(Method::POST, "/api/mcp/read", &body).await;
        assert!((400..=413).contains(&status), "{status}");
    }
}
