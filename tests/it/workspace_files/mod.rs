//! The files of a session's workspace over REST: listed, read, uploaded, deleted, and as an archive.

mod doors;
mod hostile;

use std::io::Read as _;

use flate2::read::GzDecoder;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::attachments::with_session;
use crate::rest::{Answer, Client};
use crate::support::{Person, TestApp, TestSocket};

/// Somebody with a session whose files are asked for.
pub(crate) struct Ana {
    pub(crate) person: Person,
    pub(crate) client: Client,
    pub(crate) session: String,
}

/// What came back, byte for byte.
struct Content {
    status: u16,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

impl Content {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

impl Ana {
    pub(crate) async fn open(app: &TestApp, tenant: &str) -> Self {
        let (person, client, session) = with_session(app, tenant).await;
        Self {
            person,
            client,
            session,
        }
    }

    pub(crate) fn at(&self, rest: &str) -> String {
        format!("/api/sessions/{}/{rest}", self.session)
    }

    pub(crate) async fn list(&self, query: &str) -> Value {
        self.client
            .get(&self.at(&format!("files{query}")))
            .await
            .ok(200)
    }

    pub(crate) async fn put(&self, path: &str, content: impl Into<Vec<u8>>) -> Answer {
        let request = self
            .client
            .request(Method::PUT, &self.at(&format!("files/{path}")));
        let answer = request.body(content.into()).send().await.unwrap();
        Answer::of(answer).await
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Content {
        let request = self.client.request(Method::GET, &self.at(path));
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap().to_vec();
        Content {
            status,
            headers,
            bytes,
        }
    }

    /// What a command of the model prints in the sandbox.
    pub(crate) async fn runs(&self, app: &TestApp, command: &str) -> String {
        let mut socket = TestSocket::open(app.address, &self.person, Some(&self.session)).await;
        app.model
            .will_call("execute_command", json!({ "command": command }))
            .then_say("Ran");
        socket.say("run").await;
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        let output = socket.wait_for("tool:output").await;
        assert_eq!(socket.wait_for_answer().await, "Ran");
        output.text().to_owned()
    }
}

fn names(listing: &Value) -> Vec<&str> {
    let items = listing["items"].as_array().unwrap().iter();
    items.map(|item| item["name"].as_str().unwrap()).collect()
}

/// The files of an archive, by their names in it.
fn unpacked(archive: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path_bytes().into_owned(), content)
    });
    entries.collect()
}

async fn files_go_in_and_out(app: TestApp) {
    let ana = Ana::open(&app, "acme").await;
    // Nothing has run: there is nothing, and nothing is started to say so.
    let empty = ana.list("").await;
    assert_eq!((&empty["items"], &empty["total"]), (&json!([]), &json!(0)));
    let missing = ana.client.get(&ana.at("files/a.txt")).await;
    missing.problem(404, "not_found");

    // A file that is larger than a part, on its way in and out.
    let large: Vec<u8> = (0..=255).cycle().take(1_300_000).collect();
    let put = ana.put("data/large.bin", large.clone()).await.ok(201);
    assert_eq!(
        (&put["path"], &put["bytes"]),
        (&json!("data/large.bin"), &json!(1_300_000))
    );
    assert_eq!(ana.put("a.txt", "hello\n").await.ok(201)["bytes"], 6);
    let shown = ana
        .runs(
            &app,
            "cat a.txt; wc -c < data/large.bin; echo more >> a.txt",
        )
        .await;
    assert!(shown.contains("hello\n1300000"), "{shown}");
    let root = ana.list("").await;
    assert_eq!(names(&root), ["data", "a.txt"]);
    assert_eq!(root["items"][1]["bytes"], 11);
    let data = ana.list("?path=data").await;
    assert_eq!(data["items"][0]["path"], "data/large.bin");
    is_read(&ana, &large, &put).await;
    replaces_what_was_seen(&ana).await;
    is_packed(&ana, &large).await;

    let full = ana.client.delete(&ana.at("files/data")).await;
    full.problem(409, "file_exists");
    let gone = ana
        .client
        .delete(&ana.at("files/data?recursive=true"))
        .await;
    assert_eq!(gone.status, 204, "{}", gone.text);
    assert_eq!(names(&ana.list("").await), ["a.txt"]);
}

/// The whole of a file, and ranges.
async fn is_read(ana: &Ana, large: &[u8], put: &Value) {
    let whole = ana.get("files/data/large.bin", &[]).await;
    assert!(whole.status == 200 && whole.bytes == large);
    assert_eq!(whole.header("content-length"), "1300000");
    assert_eq!(whole.header("etag"), format!("{}", put["version"]));
    let range = ana
        .get("files/data/large.bin", &[("range", "bytes=600000-600009")])
        .await;
    assert_eq!(
        (range.status, &range.bytes[..]),
        (206, &large[600_000..600_010])
    );
    assert_eq!(range.header("content-range"), "bytes 600000-600009/1300000");
    let nowhere = ana.get("files/a.txt", &[("range", "bytes=99-")]).await;
    assert_eq!(
        (nowhere.status, nowhere.header("content-range")),
        (416, "bytes */11")
    );
}

/// All of it, and one folder.
async fn is_packed(ana: &Ana, large: &[u8]) {
    let archive = ana.get("files-archive", &[]).await;
    assert_eq!(archive.header("content-type"), "application/gzip");
    let files = unpacked(&archive.bytes);
    let find = |name: &[u8]| {
        files
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, it)| it)
    };
    assert_eq!(find(b"workspace/data/large.bin").unwrap(), large);
    assert_eq!(find(b"workspace/a.txt").unwrap(), b"third");
    let folder = unpacked(&ana.get("files-archive?path=data", &[]).await.bytes);
    assert_eq!(folder[1].0, b"data/large.bin");
}

/// An upload replaces what its sender has seen, or what they said, and nothing else.
async fn replaces_what_was_seen(ana: &Ana) {
    let seen = ana.list("").await["items"][1]["version"]
        .as_str()
        .unwrap()
        .to_owned();
    ana.put("a.txt", "x").await.problem(409, "file_exists");
    let matching = |version: &str| {
        let request = ana.client.request(Method::PUT, &ana.at("files/a.txt"));
        request
            .header("if-match", format!("\"{version}\""))
            .body("second")
    };
    let put = Answer::of(matching(&seen).send().await.unwrap()).await;
    let put = put.ok(200);
    let late = Answer::of(matching(&seen).send().await.unwrap()).await;
    late.problem(409, "changed_since_shown");
    assert_ne!(put["version"], seen);
    ana.put("a.txt?overwrite=true", "third").await.ok(200);
    let wrong = ana.client.request(Method::PUT, &ana.at("files/a.txt"));
    let wrong = wrong
        .header("if-match", "W/\"1\"")
        .body("x")
        .send()
        .await
        .unwrap();
    Answer::of(wrong).await.problem(400, "invalid_arguments");
    assert_eq!(ana.get("files/a.txt", &[]).await.bytes, b"third");
}

#[tokio::test]
async fn files_go_in_and_out_in_bubblewrap() {
    files_go_in_and_out(TestApp::with_sandbox().await).await;
}

#[tokio::test]
async fn files_go_in_and_out_in_docker() {
    files_go_in_and_out(TestApp::with_docker().await).await;
}

#[tokio::test]
async fn files_are_there_after_a_restart_and_go_with_the_session() {
    let app = TestApp::with_sandbox().await;
    let mut ana = Ana::open(&app, "acme").await;
    ana.put("kept.txt", "kept").await.ok(201);
    let app = app.restart().await;
    ana.client = Client::with_key(&app, &ana.person.key);
    assert_eq!(names(&ana.list("").await), ["kept.txt"]);
    assert_eq!(ana.get("files/kept.txt", &[]).await.bytes, b"kept");
    let deleted = ana
        .client
        .delete(&format!("/api/sessions/{}", ana.session))
        .await;
    assert_eq!(deleted.status, 204);
    let gone = ana.client.get(&ana.at("files")).await;
    gone.problem(404, "session_not_found");
    let workspaces = app.folder.path().join("data/workspaces");
    let left = std::fs::read_dir(workspaces).unwrap();
    let left = left.filter(|entry| entry.as_ref().unwrap().path().join("kept.txt").exists());
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_by_what_it_says_and_by_what_comes() {
    let extra = [("SPL_SANDBOX", "bubblewrap"), ("SPL_LIMIT_UPLOAD_MB", "1")];
    let app = TestApp::start_with(&extra).await;
    let ana = Ana::open(&app, "acme").await;
    let told = ana
        .put("a", vec![0; 1_100_000])
        .await
        .problem(413, "too_large");
    assert!(
        told["detail"].as_str().unwrap().contains("upload_mb"),
        "{told}"
    );
    // Without a length: the body comes in pieces.
    let pieces =
        futures::stream::iter((0..11).map(|_| Ok::<_, std::io::Error>(vec![0_u8; 100_000])));
    let request = ana.client.request(Method::PUT, &ana.at("files/b"));
    let body = reqwest::Body::wrap_stream(pieces);
    let answer = Answer::of(request.body(body).send().await.unwrap()).await;
    answer.problem(413, "too_large");
    assert_eq!(
        ana.put("c", vec![7; 1 << 20]).await.ok(201)["bytes"],
        1 << 20
    );
    let left = ana.list("").await;
    let names = names(&left);
    assert!(
        names
            .iter()
            .all(|name| *name == "c" || name.starts_with(".sepal-upload")),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_full_workspace_takes_nothing_more_and_says_so() {
    let extra = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_SANDBOX_WORKSPACE_MB", "4"),
    ];
    let app = TestApp::start_with(&extra).await;
    let ana = Ana::open(&app, "acme").await;
    ana.put("a", vec![1; 3 << 20]).await.ok(201);
    let told = ana
        .put("b", vec![1; 3 << 20])
        .await
        .problem(413, "too_large");
    assert!(told["detail"].as_str().unwrap().contains("4 MiB"), "{told}");
    assert_eq!(names(&ana.list("").await), ["a"]);
}

#[tokio::test]
async fn without_a_sandbox_there_are_no_files() {
    let app = TestApp::start().await;
    let ana = Ana::open(&app, "acme").await;
    let refused = ana.client.get(&ana.at("files")).await;
    let told = refused.problem(503, "sandbox_unavailable");
    assert!(
        told["detail"].as_str().unwrap().contains("no files"),
        "{told}"
    );
    ana.put("a", "x").await.problem(503, "sandbox_unavailable");
}
