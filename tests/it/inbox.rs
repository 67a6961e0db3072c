//! What waits for a person over all their sessions: listed, counted, and decided from there.

use sepal::domain::Role;
use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket, until};

/// A session of that person in which so many calls wait, and the cards of its queue.
async fn waiting(app: &TestApp, person: &Person, calls: usize) -> (TestSocket, Value) {
    let calls: Vec<_> = (0..calls)
        .map(|at| ("list_files", json!({ "path": format!("{at}") })))
        .collect();
    app.model.will(Reply::answer("I look", &calls));
    let mut socket = TestSocket::open(app.address, person, None).await;
    socket.say(&format!("look at {}", calls.len())).await;
    socket.wait_for_approval().await;
    let queue = socket.wait_where(|said| said.name == "tool:queue").await;
    (socket, queue.args[0].clone())
}

/// The sessions of a page, in its order.
fn sessions(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| item["sessionId"].as_str().unwrap().to_owned())
        .collect()
}

async fn count(client: &Client) -> (u64, u64) {
    let counted = client.get("/api/approvals/count").await.ok(200);
    let number = |name: &str| counted[name].as_u64().unwrap();
    (number("calls"), number("sessions"))
}

/// Decides a call from its card, over REST.
async fn decide(client: &Client, session: &str, card: &Value, approved: bool) -> u16 {
    let decision = json!({
        "callId": card["callId"], "approved": approved, "digest": card["digest"],
    });
    let path = format!("/api/sessions/{session}/approvals");
    client.post(&path, decision).await.status
}

#[tokio::test]
async fn what_waits_is_listed_oldest_first_as_its_session_shows_it() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let client = Client::with_key(&app, &ana.key);
    assert_eq!(
        client.get("/api/approvals").await.ok(200),
        json!({ "items": [], "nextCursor": null })
    );
    let counted = client.get("/api/approvals/count").await.ok(200);
    assert_eq!(counted["lastDecidedAt"], Value::Null);

    let (mut first, two) = waiting(&app, &ana, 2).await;
    let (second, one) = waiting(&app, &ana, 1).await;
    let (third, _) = waiting(&app, &ana, 1).await;
    let all = [first.session(), second.session(), third.session()];
    // What is said to the oldest one makes it the newest on the list, and it has waited no less.
    first.say("and hurry").await;
    let page = client.get("/api/approvals").await.ok(200);
    assert_eq!(sessions(&page), all);
    assert_eq!(page["items"][1]["queue"], one);
    assert_eq!(page["items"][0]["queue"]["calls"], two["calls"]);
    assert_eq!(page["items"][0]["title"], "look at 2");
    let since = &page["items"][0]["waitingSince"];
    assert_eq!(since, &two["calls"][0]["since"]);
    for card in two["calls"].as_array().unwrap() {
        assert!(
            card["digest"].is_string() && card["totalInQueue"] == 2,
            "{card}"
        );
    }
    assert_eq!(count(&client).await, (4, 3));

    // Page by page, and one alone.
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/approvals?limit=1&cursor={cursor}");
        let page = client.get(&path).await.ok(200);
        seen.extend(sessions(&page));
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        next.clone_into(&mut cursor);
    }
    assert_eq!(seen, all);
    let path = format!("/api/approvals?session={}", all[1]);
    let alone = client.get(&path).await.ok(200);
    assert_eq!(sessions(&alone), all[1..2]);
    for wrong in ["cursor=x", "limit=0", "limit=51", "session=mine"] {
        let answer = client.get(&format!("/api/approvals?{wrong}")).await;
        answer.problem(400, "invalid_arguments");
    }

    // One of two: the batch still waits, and says what was decided of it.
    assert_eq!(decide(&client, &all[0], &two["calls"][0], false).await, 202);
    let page = client.get("/api/approvals").await.ok(200);
    assert_eq!(sessions(&page), all);
    assert_eq!(page["items"][0]["queue"]["calls"][0]["status"], "rejected");
    assert_eq!(count(&client).await, (3, 3));
    app.model.will_say("Then not");
    assert_eq!(decide(&client, &all[0], &two["calls"][1], false).await, 202);
    first.wait_for_answer().await;
    let page = client.get("/api/approvals").await.ok(200);
    assert_eq!(sessions(&page), all[1..]);
    let counted = client.get("/api/approvals/count").await.ok(200);
    assert!(counted["lastDecidedAt"].is_string(), "{counted}");
}

#[tokio::test]
async fn others_see_nothing_of_what_waits_and_decide_nothing() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let (mut socket, queue) = waiting(&app, &ana, 1).await;
    let (session, card) = (socket.session(), &queue["calls"][0]);
    let others = [
        app.person("acme").await,
        app.person_with("acme", Role::Admin).await,
        app.person_with("acme", Role::Viewer).await,
        app.installation_admin("acme").await,
        app.person("other").await,
        app.person_with("other", Role::Owner).await,
    ];
    for other in &others {
        let client = Client::with_key(&app, &other.key);
        for path in [
            "/api/approvals".to_owned(),
            format!("/api/approvals?session={session}"),
            "/api/approvals?cursor=0.ses_00000000000000000000000000000000".to_owned(),
        ] {
            let page = client.get(&path).await.ok(200);
            assert_eq!(page, json!({ "items": [], "nextCursor": null }), "{path}");
        }
        assert_eq!(count(&client).await, (0, 0));
        let status = decide(&client, &session, card, true).await;
        assert!(matches!(status, 403 | 404), "{status}");
        let all = json!({ "callIds": [card["callId"]], "approved": true });
        let path = format!("/api/sessions/{session}/approvals");
        let status = client.post(&path, all).await.status;
        assert!(matches!(status, 403 | 404), "{status}");
    }
    Client::nobody(&app)
        .get("/api/approvals")
        .await
        .problem(401, "unauthorized");
    let nobody = Client::nobody(&app);
    nobody
        .get("/api/approvals/count")
        .await
        .problem(401, "unauthorized");

    let owner = Client::with_key(&app, &ana.key);
    assert_eq!(count(&owner).await, (1, 1));
    app.model.will_say("Done");
    assert_eq!(decide(&owner, &session, card, true).await, 202);
    assert_eq!(socket.wait_for_answer().await, "Done");
    let started = socket.log.iter().filter(|said| said.name == "tool:decided");
    let by: Vec<_> = started.map(|said| said.rest()["by"].clone()).collect();
    assert_eq!(by.len(), 1, "{by:?}");
}

/// Asserts O1.
#[tokio::test]
async fn a_session_that_is_not_in_memory_is_read_where_it_lies() {
    let limits = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_LIMIT_SESSIONS_PER_USER", "1"),
    ];
    let app = TestApp::start_with(&limits).await;
    let ana = app.person("acme").await;
    let (socket, queue) = waiting(&app, &ana, 2).await;
    let session = socket.session();
    socket.vanish();
    let client = Client::with_key(&app, &ana.key);
    let page = client.get("/api/approvals").await.ok(200);
    assert_eq!(sessions(&page), [session.as_str()]);
    // A person asks for it as it is; what is shown does not change by who has it in memory.
    let shown = |page: &Value| {
        let calls = page["items"][0]["queue"]["calls"]
            .as_array()
            .unwrap()
            .clone();
        let ids = calls.iter().map(|call| call["callId"].clone());
        ids.collect::<Vec<_>>()
    };
    let ids: Vec<_> = queue["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["callId"].clone())
        .collect();
    assert_eq!(shown(&page), ids);
    assert_eq!(app.sessions.live_count(), 1);
    // Another session takes its room, and leaves soon, as nobody told it anything.
    let other = TestSocket::open(app.address, &ana, None).await;
    other.vanish();
    let held = app.sessions.clone();
    until("nothing is in memory", move || held.live_count() == 0).await;
    let page = client.get("/api/approvals").await.ok(200);
    assert_eq!(shown(&page), ids);
    assert_eq!(app.sessions.live_count(), 0, "reading it opens nothing");
    let card = &page["items"][0]["queue"]["calls"][1];
    assert_eq!(decide(&client, &session, card, false).await, 202);
    assert_eq!(count(&client).await, (1, 1));

    // Given up, it waits for nobody.
    let bulk = json!({ "ids": [session], "action": "delete" });
    client.post("/api/sessions/bulk", bulk).await.ok(200);
    let page = client.get("/api/approvals").await.ok(200);
    assert_eq!(page["items"], json!([]));
    assert_eq!(count(&client).await, (0, 0));
    assert_eq!(decide(&client, &session, card, true).await, 404);
}
