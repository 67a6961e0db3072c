//! The archive of a person: all of their sessions in one file, which can be imported again.

use std::io::{Cursor, Read as _};

use sepal::domain::Role;
use serde_json::{Value, json};
use zip::ZipArchive;

use super::{acts, give, id_of, patch, role};
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

/// The files of an archive by their names.
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
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let all = 0..archive.len();
    all.map(|at| {
        let mut file = archive.by_index(at).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        let name = file.name().unwrap().into_owned();
        (name, serde_json::from_str(&text).unwrap())
    })
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
    assert_eq!(empty.len(), 1);
    assert_eq!(empty[0].0, "person.json");
    assert_eq!(empty[0].1["id"], id);
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
    assert_eq!(found.len(), 3);
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
    let found = archive(&owner, &id).await;
    assert_eq!(found.len(), 2);
    assert!(found[1].1.to_string().contains("a secret"));
}
