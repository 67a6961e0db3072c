//! The sessions of somebody whose access has ended are copied, with their files, for whoever goes on with them.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{acts, give, id_of, patch, role, text};
use crate::replicas::Pair;
use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket};

/// Somebody who leaves, with a session in which a file was written.
async fn leaver(app: &TestApp) -> (Client, Person, String) {
    let person = app.person_with("acme", Role::Member).await;
    app.model
        .will_call(
            "write_file",
            json!({ "path": "notes.txt", "content": "mine" }),
        )
        .then_say("written");
    let mut socket = TestSocket::open(app.address, &person, None).await;
    socket.say("take notes").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for_answer().await;
    let client = Client::with_key(app, &person.key);
    (client, person, socket.session())
}

/// An owner who may read the sessions of others too.
async fn owner(app: &TestApp, tenant: &str) -> Client {
    let person = app.person_with(tenant, Role::Owner).await;
    let client = Client::with_key(app, &person.key);
    let reads = role(&client, "Reader", &["sessions.read_content"]).await;
    give(&client, &id_of(&client).await, &[&reads]).await;
    client
}

async fn sessions(client: &Client) -> Vec<Value> {
    let listed = client.get("/api/sessions").await.ok(200);
    listed["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn sessions_of_who_left_are_handed_over_once_with_their_files() {
    let app = TestApp::with_sandbox().await;
    let owner = owner(&app, "acme").await;
    let (ana, _, session) = leaver(&app).await;
    let heir = app.person_with("acme", Role::Member).await;
    let ben = Client::with_key(&app, &heir.key);
    let [from, to] = [id_of(&ana).await, id_of(&ben).await];
    let path = format!("/api/people/{from}/hand-over");
    let body = json!({ "to": to });
    let refused = owner.post(&path, body.clone()).await;
    let problem = refused.problem(403, "not_allowed");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("end their access first"), "{problem}");

    let disabled = json!({ "disabled": true });
    patch(&owner, &format!("/api/people/{from}"), disabled)
        .await
        .ok(200);
    let done = owner.post(&path, body.clone()).await.ok(200);
    assert_eq!(done, json!({ "copied": 1, "failed": [], "next": null }));
    // What was copied is not copied again, also not for a gateway that starts anew.
    let again = owner.post(&path, body).await.ok(200);
    assert_eq!(again, json!({ "copied": 0, "failed": [], "next": null }));
    let copies = sessions(&ben).await;
    let [copy] = &copies[..] else {
        panic!("{copies:?}")
    };
    let copy = text(&copy["id"]);
    assert_ne!(copy, session);
    let transcript = ben.get(&format!("/api/sessions/{copy}/events")).await;
    assert!(
        transcript.text.contains("take notes"),
        "{}",
        transcript.text
    );
    let acts = acts(&owner, "session.handed_over").await;
    let [act] = &acts[..] else { panic!("{acts:?}") };
    assert_eq!(act["on"]["id"], session.as_str());
    let expected = json!({ "owner": from, "recipient": to, "copy": copy });
    assert_eq!(act["details"], expected);

    // The copy stays when the person is deleted, with its file, and whoever has it goes on.
    let people = owner.get("/api/people").await.ok(200);
    let mut people = people["items"].as_array().unwrap().iter();
    let name = people.find(|it| it["id"] == from).unwrap()["name"].clone();
    let path = format!("/api/people/{from}");
    let gone = owner
        .send(Method::DELETE, &path, Some(json!({ "name": name })))
        .await;
    assert_eq!(gone.status, 202, "{}", gone.text);
    app.model
        .will_call("read_file", json!({ "path": "notes.txt" }))
        .then_say("read");
    let mut socket = TestSocket::open(app.address, &heir, Some(&copy)).await;
    socket.say("what did they note?").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("mine"), "{output:?}");
    socket.wait_for_answer().await;
    app.stop().await;
}

/// Asserts that two gateways that are asked at once copy each session once.
#[tokio::test]
async fn two_gateways_copy_each_session_once() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = owner(&pair.a, "acme").await;
    let person = pair.a.person_with("acme", Role::Member).await;
    for _ in 0..3 {
        pair.a.model.will_say("noted");
        let mut socket = TestSocket::open(pair.a.address, &person, None).await;
        socket.say("hello").await;
        socket.wait_for_answer().await;
    }
    let heir = pair.a.person_with("acme", Role::Member).await;
    let from = id_of(&Client::with_key(&pair.a, &person.key)).await;
    let ben = Client::with_key(&pair.b, &heir.key);
    let body = json!({ "to": id_of(&ben).await });
    let disabled = json!({ "disabled": true });
    patch(&owner, &format!("/api/people/{from}"), disabled)
        .await
        .ok(200);
    let other = pair.a.person_with("acme", Role::Owner).await;
    let at_b = Client::with_key(&pair.b, &other.key);
    let reads = role(&at_b, "Another reader", &["sessions.read_content"]).await;
    give(&at_b, &id_of(&at_b).await, &[&reads]).await;
    let path = format!("/api/people/{from}/hand-over");
    let (at_a, at_b) = tokio::join!(owner.post(&path, body.clone()), at_b.post(&path, body));
    let copied = |answer: &crate::rest::Answer| answer.ok(200)["copied"].as_u64().unwrap();
    assert_eq!(copied(&at_a) + copied(&at_b), 3);
    for answer in [&at_a, &at_b] {
        assert_eq!(answer.json()["failed"], json!([]), "{}", answer.text);
    }
    assert_eq!(sessions(&ben).await.len(), 3);
}

#[tokio::test]
async fn nobody_without_both_rights_hands_sessions_over() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = owner(&app, "acme").await;
    let ana = app.person_with("acme", Role::Member).await;
    let from = id_of(&Client::with_key(&app, &ana.key)).await;
    let disabled = json!({ "disabled": true });
    patch(&owner, &format!("/api/people/{from}"), disabled)
        .await
        .ok(200);
    let to = id_of(&owner).await;
    let path = format!("/api/people/{from}/hand-over");
    let body = json!({ "to": to });
    for role in [Role::Viewer, Role::Member, Role::Admin, Role::Owner] {
        let person = app.person_with("acme", role).await;
        let refused = Client::with_key(&app, &person.key)
            .post(&path, body.clone())
            .await;
        refused.problem(403, "not_allowed");
    }
    let strange = self::owner(&app, "other").await;
    strange.post(&path, body).await.problem(404, "not_found");
    // Nor to anybody who has no sessions, of another tenant or not here.
    let viewer = app.person_with("acme", Role::Viewer).await;
    let viewer = id_of(&Client::with_key(&app, &viewer.key)).await;
    for to in [viewer, id_of(&strange).await, from, "nobody".to_owned()] {
        let refused = owner.post(&path, json!({ "to": to })).await;
        refused.problem(400, "invalid_arguments");
    }
    let wrong = json!({ "to": to, "after": "x" });
    owner
        .post(&path, wrong)
        .await
        .problem(400, "invalid_arguments");
}
