//! Deleted sessions and people leave no word behind: not in the database, its log or its index, nor in a backup.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use reqwest::Method;
use sepal::domain::Role;
use serde_json::json;

use crate::rest::Client;
use crate::support::{DEADLINE, Person, TestApp, TestSocket, sepal, until};

/// In a message, an answer, a title, a command, its output, a file and an attachment; no other text has
/// it, and it is a word of the search.
const CANARY: &str = "zqcanary7f3";

/// Files below the folder that hold the canary.
fn holding(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path));
        } else if let Ok(content) = fs::read(&path)
            && content
                .windows(CANARY.len())
                .any(|part| part == CANARY.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Counts the sessions that are found as soon as the index has all of the person's sessions.
async fn hits(client: &Client, word: &str) -> usize {
    let looking = async {
        loop {
            let page = client.get(&format!("/api/search?q={word}")).await.ok(200);
            if page["isIndexing"] == false {
                return page["items"].as_array().unwrap().len();
            }
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap()
}

/// A session with that word everywhere.
async fn told(app: &TestApp, key: &Person, word: &str) -> String {
    let mut socket = TestSocket::open(app.address, key, None).await;
    let command = format!("echo {word} | tee {word}.txt");
    app.model
        .will_call("execute_command", json!({ "command": command }))
        .then_say(&format!("Wrote {word}"));
    socket.say(&format!("write {word}")).await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for_answer().await, format!("Wrote {word}"));
    socket.session()
}

#[tokio::test]
async fn no_word_of_a_deleted_session_is_left_in_the_data_folder_or_a_backup() {
    let app = TestApp::with_sandbox().await;
    let data = app.folder.path().join("data");
    let ana = app.person("acme").await;
    let client = Client::at(app.address, &ana.key);
    let kept = told(&app, &ana, "keptword").await;
    let deleted = told(&app, &ana, CANARY).await;
    let path = format!("/api/sessions/{deleted}");
    let title = json!({ "title": format!("About {CANARY}") });
    client.send(Method::PATCH, &path, Some(title)).await.ok(200);
    let attached = TestApp::http()
        .post(app.url(&format!("{path}/attachments?name={CANARY}.txt")))
        .bearer_auth(&ana.key)
        .body(format!("see {CANARY}"));
    assert_eq!(attached.send().await.unwrap().status(), 201);
    assert_eq!(hits(&client, CANARY).await, 1);
    assert_eq!(hits(&client, "keptword").await, 1);
    assert!(!holding(&data).is_empty());

    assert_eq!(client.delete(&path).await.status, 204);
    let folder = data.clone();
    until("every file is without the word", move || {
        holding(&folder).is_empty()
    })
    .await;
    assert_eq!(hits(&client, CANARY).await, 0);
    assert_eq!(hits(&client, "keptword").await, 1);
    client.get(&format!("/api/sessions/{kept}")).await.ok(200);

    let archive = app.folder.path().join("backup.tar.gz");
    let made = sepal(&data).arg("backup").arg(&archive).output().unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut content = Vec::new();
    let file = fs::File::open(&archive).unwrap();
    GzDecoder::new(file).read_to_end(&mut content).unwrap();
    let has = |word: &str| {
        content
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    assert!(has("keptword"));
    assert!(!has(CANARY));
}

/// A deleted person is gone with everything of theirs, and what is the team's stays.
#[tokio::test]
async fn nothing_of_a_deleted_person_is_left_but_what_they_used() {
    let app = TestApp::with_sandbox().await;
    let data = app.folder.path().join("data");
    let client = |key: &str| Client::at(app.address, key);
    let owner = app.person_with("acme", Role::Owner).await;
    let admin = app.person_with("acme", Role::Admin).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let bea = app.person("acme").await;
    let me = client(&bea.key).get("/api/auth/me").await.ok(200);
    let (id, name) = (me["user"]["id"].as_str().unwrap(), &me["user"]["name"]);
    let kept = told(&app, &owner, "keptword").await;
    told(&app, &bea, CANARY).await;
    let server = |scope: &str| {
        let url = format!("https://9.9.9.9/{CANARY}");
        json!({ "name": "own", "scope": scope, "config": { "url": url, "enabled": false } })
    };
    let of_bea = client(&bea.key);
    of_bea.post("/api/mcp/add", server("person")).await.ok(201);
    let rule = json!({ "effect": "deny", "scope": "person", "server": "own" });
    of_bea.post("/api/rules", rule).await.ok(201);
    let skill =
        json!({ "name": "helper", "description": "Helps", "body": format!("See {CANARY}.") });
    of_bea.post("/api/skills?scope=person", skill).await.ok(201);
    assert!(!holding(&data).is_empty());

    let path = format!("/api/people/{id}");
    let delete = async |key: &str, name: &serde_json::Value| {
        let by = client(key);
        let body = json!({ "name": name });
        by.send(Method::DELETE, &path, Some(body)).await
    };
    delete(&bea.key, name).await.problem(403, "not_allowed");
    delete(&stranger.key, name).await.problem(404, "not_found");
    delete(&admin.key, &json!("somebody"))
        .await
        .problem(400, "invalid_arguments");
    of_bea.get("/api/auth/me").await.ok(200);
    let owners = client(&owner.key).get("/api/auth/me").await.ok(200);
    let own = format!("/api/people/{}", owners["user"]["id"].as_str().unwrap());
    let body = json!({ "name": owners["user"]["name"] });
    let of_owner = client(&owner.key);
    let refused = of_owner.send(Method::DELETE, &own, Some(body));
    refused.await.problem(403, "not_allowed");

    assert_eq!(delete(&admin.key, name).await.status, 202);
    of_bea
        .get("/api/auth/me")
        .await
        .problem(401, "unauthorized");
    let deleted = async {
        while of_owner.get("/api/audit?act=user.deleted").await.ok(200)["items"] == json!([]) {}
    };
    tokio::time::timeout(DEADLINE, deleted).await.unwrap();
    let folder = data.clone();
    until("every file is without the word", move || {
        holding(&folder).is_empty()
    })
    .await;
    let people = of_owner.get("/api/people").await.ok(200);
    assert!(!people.to_string().contains(id), "{people}");
    // Their names are free.
    let newcomer = json!({ "name": name });
    of_owner.post("/api/people", newcomer).await.ok(201);
    of_owner
        .post("/api/mcp/add", server("tenant"))
        .await
        .ok(201);
    of_owner.get(&format!("/api/sessions/{kept}")).await.ok(200);
    let used = of_owner.get("/api/usage?by=person").await;
    assert!(used.json().to_string().contains(id), "{:?}", used.json());
}
