//! What was used: the sums are what sessions count and what providers reported, to the unit, whatever
//! happened in between; and who may see them.

use std::path::Path;

use sepal::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model_stub::{ModelStub, Reply};
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{DEADLINE, Person, Server, TestApp, TestSocket, person};

/// A server that asks once more after a fault, and knows what its model costs.
const PRICED: [(&str, &str); 6] = [
    ("SPL_SANDBOX", "none"),
    ("LLM_PROVIDER", "openai"),
    ("OPENAI_API_KEY", "sk"),
    ("SPL_LLM_MODEL", "gpt-4o"),
    ("SPL_LLM_RETRY_MAX_RETRIES", "1"),
    ("SPL_LLM_RETRY_INITIAL_BACKOFF", "0.01"),
];

const PARTS: [&str; 8] = [
    "system",
    "tools",
    "history",
    "results",
    "message",
    "attachments",
    "reasoning",
    "unknown",
];

/// Dollars as millionths, so that they can be compared to the unit.
#[expect(clippy::cast_possible_truncation, reason = "small amounts")]
fn micro(usd: &Value) -> i64 {
    (usd.as_f64().unwrap() * 1e6).round() as i64
}

fn sum_of(item: &Value, names: &[&str]) -> u64 {
    let counts = names.iter().map(|name| item[*name].as_u64().unwrap());
    counts.sum()
}

/// What the session says it used, in a view that is made anew.
async fn session_usage(address: std::net::SocketAddr, person: &Person, id: &str) -> Value {
    let socket = TestSocket::open(address, person, Some(id)).await;
    socket.ready["state"]["usage"].clone()
}

/// Holds the report against a session's own totals; gives the report.
async fn compare(client: &Client, usage: &Value, filter: &str) -> Value {
    let report = client
        .get(&format!("/api/usage?by=session{filter}"))
        .await
        .ok(200);
    for sums in [&report["totals"], &report["items"][0]["requests"]] {
        assert_eq!(sums["totalTokens"], usage["totalTokens"], "{report}");
        if sums["costUsd"].is_null() {
            assert_eq!(sums["unpricedRequests"], sums["requests"], "{report}");
            assert_eq!(usage["totalCost"], 0.0, "{usage}");
        } else {
            assert_eq!(micro(&sums["costUsd"]), micro(&usage["totalCost"]));
        }
        assert_eq!(sums["unpricedRequests"], usage["unpricedRequests"]);
        assert_eq!(
            sum_of(&sums["parts"], &PARTS),
            sums["inputTokens"].as_u64().unwrap(),
            "{report}"
        );
    }
    report
}

/// A turn that is answered at its second attempt, one with a call, and one that is stopped.
async fn three_turns(app: &TestApp, socket: &mut TestSocket) {
    app.model
        .will(Reply::say("half an answer"))
        .will_cut_after(3)
        .then_say("whole");
    socket.say("first").await;
    socket.wait_for_answer().await;
    app.model
        .will_call("no_such_tool", json!({}))
        .then_say("Done");
    socket.say("second").await;
    socket.wait_for_answer().await;
    app.model.will_say("never to its end").stall();
    socket.say("third").await;
    socket.wait_for("agent:delta").await;
    socket.emit("agent:cancel", &[json!({})]).await;
    socket.wait_for("agent:cancelled").await;
    app.model.release();
}

async fn sums_are_exact(extra: &[(&str, &str)]) {
    let env = [&PRICED, extra].concat();
    let app = TestApp::start_with(&env).await;
    let ana = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    three_turns(&app, &mut socket).await;
    let session = socket.session();
    let usage = session_usage(app.address, &ana, &session).await;
    let client = Client::with_key(&app, &ana.key);
    let report = compare(&client, &usage, "").await;
    check_three_turns(&report["totals"]);
    let models = client.get("/api/usage?by=model").await.ok(200);
    assert_eq!(models["items"][0]["model"], "gpt-4o");
    assert_eq!(models["items"][0]["provider"], "openai");

    let app = app.restart().await;
    let client = Client::with_key(&app, &ana.key);
    let mut socket = TestSocket::open(app.address, &ana, Some(&session)).await;
    app.model.will_say("Still here");
    socket.say("fourth").await;
    socket.wait_for_answer().await;
    let usage = session_usage(app.address, &ana, &session).await;
    let after = compare(&client, &usage, "").await;
    assert_eq!(after["totals"]["requests"], 6, "{after}");

    // It was paid for, whatever becomes of the session.
    let deleted = client.delete(&format!("/api/sessions/{session}")).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    let left = client.get("/api/usage?by=session").await.ok(200);
    assert_eq!(left["totals"], after["totals"]);
    assert!(left["items"][0].get("title").is_none(), "{left}");
    assert_eq!(after["items"][0]["title"], "first", "{after}");
}

/// Two attempts, a call with its answer, and what was stopped.
fn check_three_turns(sums: &Value) {
    assert_eq!(sums["requests"], 5, "{sums}");
    assert_eq!(sums["estimatedRequests"], 2, "{sums}");
    assert!(micro(&sums["costUsd"]) > 0, "{sums}");
    for part in ["system", "message", "history"] {
        assert!(sums["parts"][part].as_u64() > Some(0), "{part}: {sums}");
    }
    assert_eq!(sums["parts"]["unknown"], 0, "{sums}");
    // The stand-in reports 11 tokens in and 7 out with each of three whole answers.
    assert_eq!(
        sum_of(sums, &["totalTokens"]),
        sum_of(sums, &["estimatedTokens"]) + 3 * 18,
        "{sums}"
    );
}

/// Asserts S1.4.
#[tokio::test]
async fn sums_are_what_the_session_counts_to_the_unit_after_faults_stop_restart_and_deletion() {
    sums_are_exact(&[]).await;
}

#[tokio::test]
async fn sums_are_exact_in_postgres_too() {
    let database = new_database().await;
    sums_are_exact(&[("DATABASE_URL", &database)]).await;
}

/// Asks until the report says so; rows that a killed gateway left behind are made in the background.
pub(crate) async fn report_where(
    client: &Client,
    path: &str,
    fits: impl Fn(&Value) -> bool,
) -> Value {
    let asking = async {
        loop {
            let report = client.get(path).await.ok(200);
            if fits(&report) {
                return report;
            }
        }
    };
    tokio::time::timeout(DEADLINE, asking).await.unwrap()
}

/// Asserts S1.4: the rows of a process that is killed are made from its journal, each once.
#[tokio::test]
async fn what_a_killed_gateway_asked_is_in_the_sums_once() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let env = [("SPL_SANDBOX", "none")];
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &[]);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    model.will_say("Hello");
    socket.say("one").await;
    socket.wait_for_answer().await;
    model.will_say("never to its end").stall();
    socket.say("two").await;
    socket.wait_for("agent:delta").await;
    let session = socket.session();
    server.kill();
    model.release();
    forget_rows(&data).await;

    model.will_say("Here again");
    let server = Server::start_with(&data, &model, &env);
    let client = Client::at(server.address, &ana.key);
    // One answer, the estimate of what the killed gateway asked, and the answer to the same request.
    let report = report_where(&client, "/api/usage", |report| {
        report["totals"]["requests"] == 3
    });
    let report = report.await;
    let usage = session_usage(server.address, &ana, &session).await;
    compare(&client, &usage, &format!("&session={session}")).await;
    assert_eq!(report["totals"]["estimatedRequests"], 1, "{report}");
}

/// As if the gateway had ended before it wrote any of them.
async fn forget_rows(data: &Path) {
    use sqlx::{ConnectOptions as _, Connection as _};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(data.join("sepal.db"));
    let mut database = options.connect().await.unwrap();
    for sql in [
        "DELETE FROM model_requests",
        "UPDATE sessions SET usage_version = 0",
    ] {
        sqlx::query(sql).execute(&mut database).await.unwrap();
    }
    database.close().await.unwrap();
}

#[tokio::test]
async fn the_model_that_answered_is_the_one_that_is_paid_and_calls_are_counted_by_server() {
    let app = TestApp::with_sandbox().await;
    let admin = app.person_with("acme", Role::Admin).await;
    let client = Client::with_key(&app, &admin.key);
    app.model
        .will_call("list_files", json!({}))
        .then_say("Nothing there");
    let mut socket = TestSocket::open(app.address, &admin, None).await;
    socket.say("list").await;
    let card = socket.wait_for_approval().await;
    let usage = session_usage(app.address, &admin, &socket.session()).await;
    // The price of the stand-in's model is unknown, which is not free.
    let next = &usage["goingOn"];
    assert_eq!(next["cost"], Value::Null, "{usage}");
    assert_eq!(next["tokens"], usage["totalTokens"], "{usage}");
    let parts = &usage["context"]["request"]["parts"];
    assert!(parts["tools"]["sandbox"].as_u64() > Some(0), "{usage}");
    socket.approve(&card).await;
    socket.wait_for_answer().await;

    let servers = client.get("/api/usage?by=server").await.ok(200);
    let [server] = servers["items"].as_array().unwrap().as_slice() else {
        panic!("{servers}");
    };
    assert_eq!(
        (&server["server"], &server["calls"]["calls"]),
        (&json!("sandbox"), &json!(1))
    );
    assert_eq!(
        server["calls"]["definitionTokens"],
        servers["totals"]["parts"]["tools"]
    );
    assert_eq!(servers["totals"]["costUsd"], Value::Null, "{servers}");
    let tools = client.get("/api/usage?by=tool").await.ok(200);
    let tool = &tools["items"][0];
    assert_eq!(
        (&tool["tool"], &tool["calls"]["calls"]),
        (&json!("list_files"), &json!(1))
    );
    assert_eq!(tool["calls"]["failed"], 0, "{tools}");
}

/// Asserts that usage is of one tenant, of others for admins only, and that titles are their owner's.
#[tokio::test]
async fn members_see_their_own_usage_admins_their_tenants_and_nobody_anothers() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let ben = app.person("acme").await;
    let boss = app.person_with("acme", Role::Admin).await;
    let stranger = app.person_with("globex", Role::Owner).await;
    for person in [&ana, &ben, &ben] {
        app.model.will_say("Hello");
        let mut socket = TestSocket::open(app.address, person, None).await;
        socket.say("secret plans").await;
        socket.wait_for_answer().await;
    }
    let asks = async |person: &Person, query: &str| {
        let client = Client::with_key(&app, &person.key);
        client.get(&format!("/api/usage{query}")).await
    };
    let count = |report: &Value| report["totals"]["requests"].as_u64().unwrap();
    assert_eq!(count(&asks(&ana, "").await.ok(200)), 1);
    assert_eq!(count(&asks(&ben, "").await.ok(200)), 2);
    let all = asks(&boss, "?by=person&sort=count").await.ok(200);
    assert_eq!(count(&all), 3);
    let people = all["items"].as_array().unwrap();
    let counts: Vec<_> = people
        .iter()
        .map(|item| &item["requests"]["requests"])
        .collect();
    assert_eq!(counts, [2, 1], "{all}");
    let bens = people[0]["person"]["id"].as_str().unwrap();
    assert!(people[0]["person"]["name"].is_string(), "{all}");

    let one = asks(&boss, &format!("?by=session&person={bens}")).await;
    assert!(!one.text.contains("secret plans"), "{}", one.text);
    assert_eq!(count(&one.ok(200)), 2);
    let own = asks(&ben, &format!("?by=session&person={bens}"))
        .await
        .ok(200);
    assert_eq!(own["items"][0]["title"], "secret plans");
    let refused = asks(&ana, &format!("?person={bens}")).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (403, "not_allowed")
    );

    let session = own["items"][0]["session"].as_str().unwrap();
    for query in [
        String::new(),
        format!("?person={bens}"),
        format!("?session={session}"),
        "?by=server".to_owned(),
    ] {
        let nothing = asks(&stranger, &query).await.ok(200);
        assert_eq!(count(&nothing), 0, "{query}: {nothing}");
        assert_eq!(nothing["items"], json!([]), "{query}");
    }
}

#[tokio::test]
async fn pages_and_tables_of_usage_are_sorted_and_what_is_wrong_is_named() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    for text in ["short", "a much longer message than the other one"] {
        app.model.will_say("Hello");
        let mut socket = TestSocket::open(app.address, &ana, None).await;
        socket.say(text).await;
        socket.wait_for_answer().await;
    }
    let first = client
        .get("/api/usage?by=session&sort=name&order=desc&limit=1")
        .await
        .ok(200);
    assert_eq!(first["items"][0]["title"], "short", "{first}");
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = client
        .get(&format!(
            "/api/usage?by=session&sort=name&order=desc&limit=1&cursor={cursor}"
        ))
        .await
        .ok(200);
    assert_eq!(second["nextCursor"], Value::Null, "{second}");
    assert_ne!(first["items"][0]["title"], second["items"][0]["title"]);

    let days = client.get("/api/usage?by=day,model").await.ok(200);
    assert_eq!(days["items"][0]["model"], "stub", "{days}");
    assert_eq!(days["items"][0]["day"], days["to"], "{days}");
    let table = client.get("/api/usage?by=session&format=csv").await;
    assert_eq!(table.status, 200);
    assert!(table.header("content-disposition").contains(".csv"));
    let asked = Client::with_key(&app, &ana.key).and("accept", "text/csv");
    assert_eq!(asked.get("/api/usage?by=session").await.text, table.text);
    let lines: Vec<&str> = table.text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", table.text);
    assert!(lines[0].starts_with("day,person_id,person,provider,model,session,title"));
    assert!(lines[1].contains("unknown"), "{}", table.text);

    for (query, field) in [
        ("by=week", "by"),
        ("from=yesterday", "from"),
        ("from=2026-02-02&to=2026-02-01", "from"),
        ("to=2026-13-01", "to"),
        ("person=ana", "person"),
        ("session=x", "session"),
        ("sort=size", "sort"),
        ("by=tool&sort=cost", "sort"),
        ("by=tool&model=m", "model"),
        ("order=up", "order"),
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
        ("format=xml", "format"),
    ] {
        let refused = client.get(&format!("/api/usage?{query}")).await;
        assert_eq!(refused.status, 400, "{query}: {}", refused.text);
        assert_eq!(refused.json()["errors"][0]["field"], field, "{query}");
    }
}
