//! Versions of records: an `ETag` for what is read, and `If-Match` for what is changed.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Answer, Client};
use crate::replicas::Pair;
use crate::support::{DEADLINE, TestApp};

/// A record: where it is read and changed, and two changes of it.
struct Record {
    read: String,
    change: String,
    method: reqwest::Method,
    first: Value,
    second: Value,
}

fn record(at: &str, method: &str, first: Value, second: Value) -> Record {
    Record {
        read: at.to_owned(),
        change: at.to_owned(),
        method: method.parse().unwrap(),
        first,
        second,
    }
}

/// Everything that is changed as a whole.
async fn records(client: &Client) -> Vec<Record> {
    let session = client.post("/api/sessions", json!({})).await.ok(201);
    let session = session["id"].as_str().unwrap().to_owned();
    let skill = json!({ "name": "one", "description": "Helps", "body": "Help." });
    let skill = client.post("/api/skills?scope=person", skill).await.ok(201);
    let skill = skill["id"].as_str().unwrap().to_owned();
    let assistant = json!({ "name": "one" });
    let assistant = client
        .post("/api/assistants?scope=person", assistant)
        .await
        .ok(201);
    let assistant = assistant["id"].as_str().unwrap().to_owned();
    let server =
        json!({ "name": "post", "scope": "tenant", "config": { "command": "true", "timeout": 9 } });
    client.post("/api/mcp/add", server).await.ok(201);
    let budget =
        |usd| json!({ "level": "tenant", "period": "day", "limitUsd": usd, "isHard": false });
    let provider = |model| json!({ "kind": "scripted", "scope": "tenant", "models": [model] });
    // A second one, to choose between.
    let other = client.put("/api/providers/other", provider("scripted"));
    other.await.ok(201);
    let skill_text = |text| json!({ "name": "one", "description": "Helps more", "body": text });
    vec![
        record(
            &format!("/api/assistants/{assistant}"),
            "PUT",
            json!({ "name": "two" }),
            json!({ "name": "three" }),
        ),
        record(
            &format!("/api/assistants/{assistant}/access"),
            "PUT",
            json!({ "entries": [{ "level": "use" }] }),
            json!({ "entries": [] }),
        ),
        record("/api/budgets", "PUT", budget(5), budget(6)),
        record(
            "/api/mcp/post",
            "PATCH",
            json!({ "timeout": 10 }),
            json!({ "timeout": 11 }),
        ),
        record(
            "/api/models/compaction",
            "PUT",
            json!({ "strategies": ["delete-old"] }),
            json!({ "strategies": ["delete-middle"] }),
        ),
        record(
            "/api/models/default",
            "PUT",
            json!({ "provider": "other", "scope": "own" }),
            json!({ "provider": "other", "model": "scripted", "scope": "own" }),
        ),
        record(
            "/api/notifications/mail",
            "PUT",
            json!({ "address": "ana@example.org", "isOn": false }),
            json!({ "address": "ana@example.com", "isOn": false }),
        ),
        record("/api/providers/mine", "PUT", provider("a"), provider("b")),
        record(
            &format!("/api/sessions/{session}"),
            "PATCH",
            json!({ "isPinned": true }),
            json!({ "tags": ["x"] }),
        ),
        record(
            "/api/sharing",
            "PUT",
            json!({ "linksAllowed": true }),
            json!({ "linksAllowed": false }),
        ),
        record(
            &format!("/api/skills/{skill}"),
            "PUT",
            skill_text("Help again."),
            skill_text("Help once more."),
        ),
    ]
}

async fn change(client: &Client, record: &Record, body: &Value, tag: &str) -> Answer {
    let request = client.request(record.method.clone(), &record.change);
    let request = request.header("if-match", tag).json(body);
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_change_of_an_older_version_is_refused_for_every_record() {
    let app = TestApp::start().await;
    let ana = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ana.key);
    let records = records(&client).await;
    // So that there is something to read.
    let provider = json!({ "kind": "scripted", "scope": "tenant", "models": ["scripted"] });
    client.put("/api/providers/mine", provider).await.ok(201);
    for record in records {
        let at = &record.change;
        let before = client.get(&record.read).await;
        let seen = before.header("etag").to_owned();
        assert!(seen.starts_with('"'), "{at} has no version: {seen}");
        let first = change(&client, &record, &record.first, &seen).await;
        assert!(first.status < 300, "{at}: {}", first.text);
        let changed = client.get(&record.read).await;
        assert_ne!(changed.header("etag"), seen, "{at}");
        let refused = change(&client, &record, &record.second, &seen).await;
        refused.problem(412, "changed_since_shown");
        let after = client.get(&record.read).await;
        assert_eq!(after.header("etag"), changed.header("etag"), "{at}");
        let newest = change(&client, &record, &record.second, changed.header("etag")).await;
        assert!(newest.status < 300, "{at}: {}", newest.text);
        let any = change(&client, &record, &record.first, "*").await;
        assert!(any.status < 300, "{at}: {}", any.text);
        let foreign = change(&client, &record, &record.second, "\"x\"").await;
        foreign.problem(412, "changed_since_shown");
        let unreadable = change(&client, &record, &record.second, "3").await;
        unreadable.problem(400, "invalid_arguments");
    }
}

/// A removal is held to a version as well.
#[tokio::test]
async fn a_removal_of_an_older_version_is_refused() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ana.key);
    let removable = [
        "/api/mcp/",
        "/api/models/",
        "/api/providers/",
        "/api/skills/",
    ];
    for record in records(&client).await {
        let at = &record.change;
        if !removable.iter().any(|start| at.starts_with(start)) {
            continue;
        }
        let first = change(&client, &record, &record.first, "*").await;
        assert!(first.status < 300, "{at}: {}", first.text);
        let seen = client.get(&record.read).await.header("etag").to_owned();
        let second = change(&client, &record, &record.second, &seen).await;
        assert!(second.status < 300, "{at}: {}", second.text);
        let from = if at == "/api/models/default" {
            "?scope=own"
        } else {
            ""
        };
        let remove = async |tag: &str| {
            let request = client.request(reqwest::Method::DELETE, &format!("{at}{from}"));
            Answer::of(request.header("if-match", tag).send().await.unwrap()).await
        };
        remove(&seen).await.problem(412, "changed_since_shown");
        let newest = client.get(&record.read).await.header("etag").to_owned();
        let removed = remove(&newest).await;
        assert!(removed.status < 300, "{at}: {}", removed.text);
    }
}

/// The body that comes with a version is never older than the version: what was read could be written back
/// over the change of another gateway.
#[tokio::test]
async fn what_is_read_is_as_new_as_its_version_at_every_gateway() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = pair.a.person_with("acme", Role::Owner).await;
    let clients = [&pair.a, &pair.b].map(|app| Client::with_key(app, &ana.key));
    let records = records(&clients[0]).await;
    for record in &records {
        for body in [&record.first, &record.second] {
            let changed = change(&clients[0], record, body, "*").await;
            assert!(changed.status < 300, "{}: {}", record.change, changed.text);
            let here = clients[0].get(&record.read).await;
            let there = clients[1].get(&record.read).await;
            assert_eq!(here.header("etag"), there.header("etag"), "{}", record.read);
            assert_eq!(here.json(), there.json(), "{}", record.read);
        }
    }
}

/// A decision about a tool has its address, and the version of all tools of its server.
#[tokio::test]
async fn a_decision_about_a_tool_is_held_to_the_version_of_its_list() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ana.key);
    let tools = client.get("/api/mcp/sandbox/tools").await;
    let seen = tools.header("etag").to_owned();
    let tool = tools.json()["items"][0].clone();
    let at = format!("/api/mcp/sandbox/tools/{}", tool["name"].as_str().unwrap());
    let decide = async |enabled: bool, tag: &str| {
        let body = json!({ "enabled": enabled, "hash": tool["hash"] });
        let request = client.request(reqwest::Method::PUT, &at).json(&body);
        Answer::of(request.header("if-match", tag).send().await.unwrap()).await
    };
    decide(false, &seen).await.ok(200);
    decide(true, &seen)
        .await
        .problem(412, "changed_since_shown");
    let now = client.get("/api/mcp/sandbox/tools").await;
    decide(true, now.header("etag")).await.ok(200);
}

/// Of those who read the same version, one wins, at whichever gateway.
#[tokio::test]
async fn of_two_changes_at_once_one_is_refused_and_nothing_is_lost() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = pair.a.person_with("acme", Role::Owner).await;
    let clients = [&pair.a, &pair.b].map(|app| Client::with_key(app, &ana.key));
    let records = records(&clients[0]).await;
    for record in records.iter().filter(|it| it.read != "/api/providers/mine") {
        let tag = clients[0].get(&record.read).await.header("etag").to_owned();
        let (one, two) = tokio::join!(
            change(&clients[0], record, &record.first, &tag),
            change(&clients[1], record, &record.second, &tag)
        );
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert!(
            statuses[0] < 300 && statuses[1] == 412,
            "{}: {statuses:?} {} {}",
            record.read,
            one.text,
            two.text
        );
    }
}

/// Without `If-Match`, a merge patch still loses nothing of another one.
#[tokio::test]
async fn two_patches_of_a_server_at_two_gateways_are_both_kept() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = pair.a.person_with("acme", Role::Owner).await;
    let clients = [&pair.a, &pair.b].map(|app| Client::with_key(app, &ana.key));
    let server = json!({ "name": "post", "scope": "tenant", "config": { "command": "true" } });
    clients[0].post("/api/mcp/add", server).await.ok(201);
    let patch = async |client: &Client, body| {
        let request = client.request(reqwest::Method::PATCH, "/api/mcp/post");
        Answer::of(request.json(&body).send().await.unwrap()).await
    };
    for round in 1..=5 {
        let (one, two) = tokio::join!(
            patch(&clients[0], json!({ "timeout": round })),
            patch(&clients[1], json!({ "description": format!("{round}") }))
        );
        one.ok(200);
        two.ok(200);
        // What another gateway offers may be some seconds old.
        let kept = async {
            loop {
                let config = &clients[0].get("/api/mcp/post").await.ok(200)["config"];
                if config["timeout"] == round && config["description"] == format!("{round}") {
                    return;
                }
            }
        };
        let kept = tokio::time::timeout(DEADLINE, kept).await;
        assert!(kept.is_ok(), "one of the changes {round} was lost");
    }
}
