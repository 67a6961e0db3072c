//! Deleted sessions leave no word behind: not in the database, its log or its index, nor in a backup.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use reqwest::Method;
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
