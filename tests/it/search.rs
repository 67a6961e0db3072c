//! What people find in their sessions, over REST.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use crate::support::{DEADLINE, Person, TestApp, TestSocket};

/// What the person is answered.
async fn ask(app: &TestApp, person: &Person, path: &str) -> (u16, Value) {
    let asked = TestApp::http().get(app.url(path)).bearer_auth(&person.key);
    let answer = asked.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// What is found as soon as the index has all of this person's sessions.
async fn search(app: &TestApp, person: &Person, query: &str) -> Vec<Value> {
    let advancing = async {
        loop {
            let (status, page) = ask(app, person, &format!("/api/search?q={query}")).await;
            assert_eq!(status, 200, "{page}");
            if page["isIndexing"] == false {
                return page["items"].as_array().unwrap().clone();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap()
}

/// The snippet with what was looked for in brackets.
fn shown(hit: &Value) -> String {
    let pieces = hit["snippet"].as_array().unwrap().iter();
    let piece = |piece: &Value| {
        let text = piece["text"].as_str().unwrap();
        if piece["isMatch"] == true {
            format!("[{text}]")
        } else {
            text.to_owned()
        }
    };
    pieces.map(piece).collect()
}

#[tokio::test]
async fn messages_answers_calls_and_outputs_are_found_and_lead_to_their_event() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    app.model
        .will_call(
            "write_file",
            json!({ "path": "walrus.txt", "content": "tusk" }),
        )
        .then_say("It is **done**, said the pelican.");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("Please describe a zebra").await;
    let card = socket.wait_for_approval().await;
    socket.decide(&card, true).await;
    socket.wait_for_answer().await;
    let session = socket.session();
    for (query, kind, text) in [
        ("pelican", "answer", "It is **done**, said the [pelican]."),
        (
            "walrus",
            "call",
            "write_file content: tusk path: [walrus].txt",
        ),
        (
            "DESCRIBE%20a%20zeb",
            "message",
            "Please [describe] [a] [zebra]",
        ),
    ] {
        let found = search(&app, &ana, query).await;
        assert_eq!(found.len(), 1, "{query}: {found:?}");
        assert_eq!(found[0]["sessionId"], session);
        let hits = found[0]["hits"].as_array().unwrap();
        let hit = hits.iter().find(|hit| hit["kind"] == kind).unwrap();
        assert_eq!(shown(hit), text);
        let seq = hit["seq"].as_u64().unwrap();
        let page = format!("/api/sessions/{session}/events?after={}&limit=1", seq - 1);
        let (_, events) = ask(&app, &ana, &page).await;
        let name = match kind {
            "message" => "user:message",
            _ => "agent:",
        };
        let event = events["items"][0]["event"].as_str().unwrap();
        assert!(event.starts_with(name), "{query}: {event}");
        let inside = format!("/api/sessions/{session}/search?q={query}");
        let (_, inside) = ask(&app, &ana, &inside).await;
        assert!(inside["items"].as_array().unwrap().contains(&json!(seq)));
    }
    // The first words of the session are its title as well.
    let titles = search(&app, &ana, "zebra").await;
    let kinds: Vec<_> = titles[0]["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| &hit["kind"])
        .collect();
    assert!(kinds.contains(&&json!("title")), "{kinds:?}");
    // What a tool gave.
    let found = search(&app, &ana, "write_file").await;
    let mut hits = found[0]["hits"].as_array().unwrap().iter();
    assert!(hits.any(|hit| hit["kind"] == "output"), "{found:?}");
}

#[tokio::test]
async fn nobody_finds_what_others_said() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    app.model.will_say("a kingfisher");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("name a bird").await;
    socket.wait_for_answer().await;
    assert_eq!(search(&app, &ana, "kingfisher").await.len(), 1);
    for stranger in [app.person("acme").await, app.person("other").await] {
        assert_eq!(
            search(&app, &stranger, "kingfisher").await,
            [json!(null); 0]
        );
        let inside = format!("/api/sessions/{}/search?q=kingfisher", socket.session());
        let (status, _) = ask(&app, &stranger, &inside).await;
        assert_eq!(status, 404);
    }
}

#[tokio::test]
async fn a_query_without_a_word_is_refused_by_name() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let long = "x".repeat(257);
    for query in ["", "?q=", "?q=--", &format!("?q={long}")] {
        let (status, problem) = ask(&app, &ana, &format!("/api/search{query}")).await;
        assert_eq!(
            (status, &problem["errors"][0]["field"]),
            (400, &json!("q")),
            "{problem}"
        );
    }
    let (status, problem) = ask(&app, &ana, "/api/search?q=x&cursor=x").await;
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (400, &json!("cursor")),
        "{problem}"
    );
}

#[tokio::test]
async fn a_deleted_session_is_found_no_more() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    app.model.will_say("a heron");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("name a bird").await;
    socket.wait_for_answer().await;
    assert_eq!(search(&app, &ana, "heron").await.len(), 1);
    let url = app.url(&format!("/api/sessions/{}", socket.session()));
    let deleted = TestApp::http().delete(url).bearer_auth(&ana.key).send();
    assert_eq!(deleted.await.unwrap().status(), 204);
    assert_eq!(search(&app, &ana, "heron").await, [json!(null); 0]);
}

#[tokio::test]
async fn an_installation_from_before_the_search_is_taken_up_at_its_next_start() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    app.model.will_say("a lapwing");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("name a bird").await;
    socket.wait_for_answer().await;
    assert_eq!(search(&app, &ana, "lapwing").await.len(), 1);
    drop(socket);
    // As the earlier release leaves it, or a gateway that ended before it came to that.
    let app = app
        .restart_after(async |folder| {
            let mut db = database(folder).await;
            for sql in [
                "DELETE FROM texts",
                "UPDATE sessions SET indexed = 0, updated_at = updated_at - 60000",
            ] {
                sqlx::query(sql).execute(&mut db).await.unwrap();
            }
            db.close().await.unwrap();
        })
        .await;
    // Nobody searches meanwhile.
    let mut db = database(&app.folder.path().join("data")).await;
    let taking_up = async {
        loop {
            let sql = "SELECT COUNT(*) FROM sessions WHERE indexed < version";
            let (behind,): (i64,) = sqlx::query_as(sql).fetch_one(&mut db).await.unwrap();
            if behind == 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, taking_up).await.unwrap();
    assert_eq!(search(&app, &ana, "lapwing").await.len(), 1);
}

async fn database(folder: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(folder.join("sepal.db"));
    SqliteConnection::connect_with(&options).await.unwrap()
}
