//! Reading the session of another person: by a right of its own, for a reason, for an hour, and told to its
//! owner.

use sepal::domain::{Role, Timestamp};
use sepal::store::records::Reading;
use serde_json::{Value, json};

use super::{acts, both, caller, give, id_of, role, text};
use crate::replicas::Pair;
use crate::rest::Client;
use crate::support::{DEADLINE, Person, TestApp, TestSocket};

const HOUR_MS: i64 = 60 * 60_000;

/// A member with a session in which they said a secret.
async fn session(app: &TestApp) -> (Person, String) {
    let ana = app.person_with("acme", Role::Member).await;
    app.model.will_say("noted");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("the secret word").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    (ana, session)
}

/// Somebody whose custom role lets them read sessions.
async fn reader(app: &TestApp, owner: &Client) -> Person {
    let person = app.person_with("acme", Role::Viewer).await;
    let id = id_of(&Client::with_key(app, &person.key)).await;
    let rights = role(owner, "Reviewer", &["sessions.read_content"]).await;
    give(owner, &id, &[&rights]).await;
    person
}

async fn begin(client: &Client, session: &str) -> Value {
    let path = format!("/api/sessions/{session}/readings");
    let begun = client.post(&path, json!({ "reason": "case 7" })).await;
    begun.ok(201)
}

#[tokio::test]
async fn whoever_has_the_right_reads_one_session_for_a_reason_and_does_not_act() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let (ana, session) = session(&app).await;
        let ana = Client::with_key(&app, &ana.key);
        let person = reader(&app, &owner).await;
        let client = Client::with_key(&app, &person.key);
        let path = format!("/api/sessions/{session}/readings");
        for reason in [json!({}), json!({ "reason": "  " })] {
            let refused = client.post(&path, reason).await;
            refused.problem(400, "invalid_arguments");
        }
        let begun = begin(&client, &session).await;
        assert_eq!(begun["mine"], true);
        assert_eq!(begun["open"], true);
        let id = text(&begun["id"]);
        let content = format!("/api/readings/{id}/session?format=json");
        let read = client.get(&content).await;
        assert_eq!(read.status, 200);
        assert!(read.json().to_string().contains("the secret word"));

        // Nothing else of the session opens, and nothing in it can be done.
        let at = format!("/api/sessions/{session}");
        for rest in ["", "/events", "/export"] {
            let refused = client.get(&format!("{at}{rest}")).await;
            refused.problem(404, "session_not_found");
        }
        let messages = format!("{at}/messages");
        let said = client.post(&messages, json!({ "text": "x" })).await;
        assert!(matches!(said.status, 403 | 404));
        let auth = json!({ "token": person.key, "sessionId": session });
        let socket = TestSocket::try_open(app.address, auth).await;
        assert!(socket.is_err_and(|error| error.starts_with("session_not_found")));

        // The owner of the session is told, until they have seen it.
        let told = ana.get("/api/readings").await.ok(200)["items"][0].clone();
        assert_eq!(told["reason"], "case 7");
        assert_eq!(told["mine"], false);
        assert_eq!(told["session"], session.as_str());
        assert_eq!(told["seenAt"], Value::Null);
        client
            .post(&format!("/api/readings/{id}/seen"), json!({}))
            .await
            .problem(404, "not_found");
        ana.post(&format!("/api/readings/{id}/seen"), json!({}))
            .await
            .done();
        let told = ana.get("/api/readings").await.ok(200);
        assert!(told["items"][0]["seenAt"].is_string());
        let record = acts(&owner, "session.reading_begun").await.remove(0);
        assert_eq!(record["on"]["id"], session.as_str());
        assert_eq!(record["by"]["id"], begun["reader"]["id"]);
        assert_eq!(record["details"]["owner"], begun["owner"]["id"]);
        assert_eq!(record["details"]["reason"], "case 7");

        // Only the reader opens it, and only while it lasts.
        ana.get(&content).await.problem(404, "not_found");
        owner.get(&content).await.problem(404, "not_found");
        client.delete(&format!("/api/readings/{id}")).await.done();
        client.get(&content).await.problem(404, "not_found");
        assert_eq!(acts(&owner, "session.reading_ended").await.len(), 1);
    }
}

#[tokio::test]
async fn no_admin_owner_or_other_tenant_reads_a_session() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let (ana, session) = session(&app).await;
    let path = format!("/api/sessions/{session}/readings");
    let reason = json!({ "reason": "curious" });
    let owner = app.person_with("acme", Role::Owner).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let theirs = Client::with_key(&app, &stranger.key);
    let rights = role(&theirs, "Reviewer", &["sessions.read_content"]).await;
    give(&theirs, &id_of(&theirs).await, &[&rights]).await;
    for person in [
        &owner,
        &app.person_with("acme", Role::Admin).await,
        &app.installation_admin("acme").await,
        &stranger,
    ] {
        let client = Client::with_key(&app, &person.key);
        let refused = client.post(&path, reason.clone()).await;
        refused.problem(404, "session_not_found");
        let refused = client.get(&format!("/api/sessions/{session}/export")).await;
        refused.problem(404, "session_not_found");
    }
    // One's own session needs no permission.
    let owner = Client::with_key(&app, &owner.key);
    let rights = role(&owner, "Reviewer", &["sessions.read_content"]).await;
    let own = Client::with_key(&app, &ana.key);
    give(&owner, &id_of(&own).await, &[&rights]).await;
    own.post(&path, reason)
        .await
        .problem(400, "invalid_arguments");
}

#[tokio::test]
async fn a_reading_ends_after_an_hour_and_with_the_right_or_the_session() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let (ana, session) = session(&app).await;
        let person = reader(&app, &owner).await;
        let client = Client::with_key(&app, &person.key);
        let id = text(&begin(&client, &session).await["id"]);
        let who = caller(&app, &person).await;
        let readings = app.sessions.readings();
        let later = |ms: i64| Timestamp(app.tenancy.now().0 + ms);
        let minute = 60_000;
        readings
            .open(&id, &who, later(HOUR_MS - minute))
            .await
            .unwrap();
        let ended = readings.open(&id, &who, later(HOUR_MS + minute)).await;
        assert!(ended.is_err());

        let content = format!("/api/readings/{id}/session");
        assert_eq!(client.get(&content).await.status, 200);
        give(&owner, who.user.id.as_str(), &[]).await;
        client.get(&content).await.problem(404, "not_found");
        let roles = owner.get("/api/roles").await.ok(200);
        let role = text(&roles["items"][0]["id"]);
        give(&owner, who.user.id.as_str(), &[&role]).await;
        assert_eq!(client.get(&content).await.status, 200);
        let ana = Client::with_key(&app, &ana.key);
        assert_eq!(
            ana.delete(&format!("/api/sessions/{session}")).await.status,
            204
        );
        client.get(&content).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn the_other_gateway_ends_reading_with_the_right() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "none")]).await;
    let boss = pair.a.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&pair.a, &boss.key);
    let (_, session) = session(&pair.a).await;
    let person = reader(&pair.a, &owner).await;
    let here = Client::with_key(&pair.a, &person.key);
    let there = Client::with_key(&pair.b, &person.key);
    let content = format!(
        "/api/readings/{}/session",
        text(&begin(&here, &session).await["id"])
    );
    let becomes = async |status: u16| {
        let heard = async { while there.get(&content).await.status != status {} };
        tokio::time::timeout(DEADLINE, heard).await.unwrap();
    };
    becomes(200).await;
    give(&owner, &id_of(&here).await, &[]).await;
    becomes(404).await;
}

#[tokio::test]
async fn one_person_reads_twenty_sessions_at_a_time() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let boss = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &boss.key);
    let (_, session) = session(&app).await;
    let person = reader(&app, &owner).await;
    let client = Client::with_key(&app, &person.key);
    let who = caller(&app, &person).await;
    for _ in 0..20 {
        begin(&client, &session).await;
    }
    let path = format!("/api/sessions/{session}/readings");
    let more = client.post(&path, json!({ "reason": "one more" })).await;
    more.problem(429, "too_many_requests");
    let listed = app.sessions.readings().list(&who).await.unwrap();
    let first: Vec<Reading> = listed.into_iter().map(|it| it.reading).collect();
    client
        .delete(&format!("/api/readings/{}", first[0].id))
        .await
        .done();
    begin(&client, &session).await;
}
