//! The archive of a person: everything that they made in one file, which can be imported again.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use sepal::domain::{KeyScope, Role};
use serde_json::{Value, json};
use zip::ZipArchive;

use super::{acts, give, id_of, patch, role};
use crate::key_scopes::{key_with, scoped};
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

/// The files of an archive by their names, as they are.
fn raw_files(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let all = 0..archive.len();
    all.map(|at| {
        let mut file = archive.by_index(at).unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        (file.name().unwrap().into_owned(), content)
    })
    .collect()
}

/// The JSON files of an archive by their names.
async fn archive(client: &Client, person: &str) -> Vec<(String, Value)> {
    let path = format!("/api/people/{person}/archive");
    let request = client.request(reqwest::Method::GET, &path);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/zip");
    let bytes = answer.bytes().await.unwrap();
    files(&bytes)
}

fn files(bytes: &[u8]) -> Vec<(String, Value)> {
    let all = raw_files(bytes).into_iter();
    all.map(|(name, content)| (name, serde_json::from_slice(&content).unwrap()))
        .collect()
}

#[tokio::test]
async fn everybody_takes_their_own_sessions_and_brings_them_back() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = app.person_with("acme", Role::Member).await;
    let client = Client::with_key(&app, &ana.key);
    let id = id_of(&client).await;
    // Nobody has nothing: the archive of somebody new says who they are.
    let empty = archive(&client, &id).await;
    let [(person, facts), (rules, none)] = &empty[..] else {
        panic!("{empty:?}");
    };
    assert_eq!((person.as_str(), &facts["id"]), ("person.json", &json!(id)));
    assert_eq!((rules.as_str(), none), ("rules.json", &json!([])));
    for text in ["the first one", "the second one"] {
        app.model.will_say("noted");
        let mut socket = TestSocket::open(app.address, &ana, None).await;
        socket.say(text).await;
        socket.wait_for_answer().await;
    }
    let path = format!("/api/people/{id}/archive");
    let answer = client.request(reqwest::Method::GET, &path).send().await;
    let bytes = answer.unwrap().bytes().await.unwrap();
    let found = files(&bytes);
    assert_eq!(found.len(), 4);
    let texts: String = found.iter().map(|(_, it)| it.to_string()).collect();
    for text in ["the first one", "the second one"] {
        assert!(texts.contains(text), "{texts}");
    }
    let boss = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &boss.key);
    assert_eq!(acts(&owner, "user.archived").await.len(), 2);

    // Somebody else imports the file as it is.
    let ben = app.person_with("acme", Role::Member).await;
    let ben = Client::with_key(&app, &ben.key);
    let request = ben.request(reqwest::Method::POST, "/api/sessions/import");
    let answer = request.body(bytes).send().await.unwrap();
    let imported: Value = answer.json().await.unwrap();
    assert_eq!(
        imported["imported"].as_array().unwrap().len(),
        2,
        "{imported}"
    );
    let listed = ben.get("/api/sessions").await.ok(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_sessions_of_others_are_for_both_rights_and_only_once_they_have_left() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let boss = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &boss.key);
    let ana = app.person_with("acme", Role::Member).await;
    app.model.will_say("noted");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("a secret").await;
    socket.wait_for_answer().await;
    let id = id_of(&Client::with_key(&app, &ana.key)).await;
    let path = format!("/api/people/{id}/archive");
    for role in [Role::Viewer, Role::Member, Role::Admin, Role::Owner] {
        let person = app.person_with("acme", role).await;
        let refused = Client::with_key(&app, &person.key).get(&path).await;
        refused.problem(403, "not_allowed");
    }
    let stranger = app.person_with("other", Role::Owner).await;
    let strange = Client::with_key(&app, &stranger.key);
    strange.get(&path).await.problem(404, "not_found");
    let reads = role(&owner, "Reader", &["sessions.read_content"]).await;
    give(&owner, &id_of(&owner).await, &[&reads]).await;
    let refused = owner.get(&path).await.problem(403, "not_allowed");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("end their access first"), "{refused}");
    let person = format!("/api/people/{id}");
    patch(&owner, &person, json!({ "disabled": true }))
        .await
        .ok(200);
    // A key that only sees is not enough, whatever its person may.
    for (scopes, status) in [(vec![KeyScope::Read], 403), (KeyScope::ALL.to_vec(), 200)] {
        let key = key_with(&app, &boss, scoped(&scopes)).await;
        let asking = Client::with_key(&app, &key.key).request(reqwest::Method::GET, &path);
        assert_eq!(asking.send().await.unwrap().status(), status, "{scopes:?}");
    }
    let found = archive(&owner, &id).await;
    assert_eq!(found.len(), 3);
    assert!(found[2].1.to_string().contains("a secret"));
}

#[tokio::test]
async fn rules_assistants_and_skills_of_ones_own_go_along_and_nobody_elses() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let boss = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &boss.key);
    let ana = app.person_with("acme", Role::Member).await;
    let client = Client::with_key(&app, &ana.key);
    let writer = json!({ "name": "Writer", "instructions": "Speak like a pirate." });
    let skill = json!({ "name": "greet", "description": "Greets people.", "body": "Say hello." });
    let rule = json!({ "effect": "deny", "scope": "person", "tool": "write_file" });
    client
        .post("/api/assistants?scope=person", writer.clone())
        .await
        .ok(201);
    client.post("/api/skills?scope=person", skill).await.ok(201);
    client.post("/api/rules", rule).await.ok(201);
    // What is the team's is no part of anybody's archive.
    owner
        .post("/api/assistants?scope=team", writer.clone())
        .await
        .ok(201);
    let rule = json!({ "effect": "deny", "scope": "tenant", "tool": "execute_command" });
    owner.post("/api/rules", rule).await.ok(201);

    let path = format!("/api/people/{}/archive", id_of(&client).await);
    let answer = client.request(reqwest::Method::GET, &path).send().await;
    let found = raw_files(&answer.unwrap().bytes().await.unwrap());
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    let [assistant, "person.json", "rules.json", "skills/greet.zip"] = names[..] else {
        panic!("{names:?}");
    };
    assert!(assistant.starts_with("assistants/"), "{assistant}");
    let rules: Value = serde_json::from_slice(&found["rules.json"]).unwrap();
    assert_eq!(rules.as_array().unwrap().len(), 1, "{rules}");
    assert_eq!(rules[0]["tool"], "write_file");

    // Somebody else adds the files as they are.
    let ben = app.person_with("acme", Role::Member).await;
    let ben = Client::with_key(&app, &ben.key);
    let exported: Value = serde_json::from_slice(&found[assistant]).unwrap();
    let added = ben
        .post("/api/assistants?scope=person", exported)
        .await
        .ok(201);
    assert_eq!(added["name"], writer["name"]);
    let request = ben.request(reqwest::Method::POST, "/api/skills?scope=person");
    let request = request.header("content-type", "application/octet-stream");
    let answer = request.body(found["skills/greet.zip"].clone()).send().await;
    assert_eq!(answer.unwrap().status(), 201);
}
