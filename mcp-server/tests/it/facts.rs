//! What the gateway is told of a file before people decide about a write.

use std::os::unix::{
    fs::{PermissionsExt, symlink},
    net::UnixListener,
};

use rmcp::{
    model::{CustomRequest, ServerResult},
    service::ServiceError,
};
use serde_json::{Value, json};

use crate::harness::{Harness, fifo, in_time};

const MEBIBYTE: usize = 1024 * 1024;

impl Harness {
    async fn ask_facts(&self, params: Option<Value>) -> Result<Value, String> {
        let request = CustomRequest::new("sepal/fileFacts", params);
        match in_time(self.client.send_request(request.into())).await {
            Ok(ServerResult::CustomResult(facts)) => Ok(facts.0),
            Err(ServiceError::McpError(error)) => Err(error.message.to_string()),
            answer => panic!("neither facts nor an error: {answer:?}"),
        }
    }

    async fn facts(&self, path: &str) -> Result<Value, String> {
        self.ask_facts(Some(json!({ "path": path }))).await
    }

    async fn check(&self, path: &str, expected: Value) {
        assert_eq!(self.facts(path).await, Ok(expected), "{path}");
    }
}

fn text(lines: u64, bytes: usize) -> Value {
    json!({ "exists": true, "lines": lines, "bytes": bytes, "isText": true })
}

fn uncounted(bytes: usize, is_text: bool) -> Value {
    json!({ "exists": true, "bytes": bytes, "isText": is_text })
}

fn new() -> Value {
    json!({ "exists": false, "bytes": 0, "isText": false })
}

#[tokio::test]
async fn text_is_counted_as_people_do() {
    let harness = Harness::start().await;
    harness.put("120.md", "a line\n".repeat(120));
    harness.put("open", "one\ntwo");
    harness.put("empty", "");
    harness.put("latin", b"caf\xe9\n");
    harness.check("120.md", text(120, 840)).await;
    harness.check("open", text(2, 7)).await;
    harness.check("empty", text(0, 0)).await;
    harness.check("latin", text(1, 5)).await;
}

#[tokio::test]
async fn a_file_that_is_not_there_is_new_and_nothing_is_made() {
    let harness = Harness::start().await;
    harness.check("a.txt", new()).await;
    harness.check("deep/down/a.txt", new()).await;
    let left: Vec<_> = std::fs::read_dir(harness.workspace()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn what_is_no_text_or_too_long_has_only_a_size() {
    let harness = Harness::start().await;
    let most = 4 * MEBIBYTE;
    harness.put("picture", b"\x89PNG\r\n\x1a\n....");
    harness.put("zeros", b"a\0b\n");
    harness.put("most", "x\n".repeat(most / 2));
    harness.put("long", "x\n".repeat(5 * MEBIBYTE / 2));
    harness.check("picture", uncounted(12, false)).await;
    harness.check("zeros", uncounted(4, false)).await;
    let lines = u64::try_from(most / 2).unwrap();
    harness.check("most", text(lines, most)).await;
    harness.check("long", uncounted(5 * MEBIBYTE, true)).await;
}

#[tokio::test]
async fn what_may_not_be_read_has_only_a_size() {
    let harness = Harness::start().await;
    harness.put("closed", "one\n");
    let path = harness.workspace().join("closed");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let expected = match std::fs::read(&path) {
        // Nothing is closed to the superuser.
        Ok(_) => text(1, 4),
        Err(_) => uncounted(4, false),
    };
    harness.check("closed", expected).await;
}

#[tokio::test]
async fn links_lead_where_a_write_would_go() {
    let harness = Harness::start().await;
    harness.put("real", "one\ntwo\n");
    let workspace = harness.workspace();
    symlink("real", workspace.join("link")).unwrap();
    symlink(workspace.join("real"), workspace.join("absolute")).unwrap();
    symlink("nothing", workspace.join("dangling")).unwrap();
    harness.check("link", text(2, 8)).await;
    harness.check("absolute", text(2, 8)).await;
    let told = harness.facts("dangling").await.unwrap_err();
    assert!(told.contains("a symbolic link to nothing"), "{told}");
    let below = workspace.join("real").display().to_string();
    harness.check(&below, text(2, 8)).await;
}

#[tokio::test]
async fn what_a_write_would_refuse_has_no_facts() {
    let harness = Harness::start().await;
    let workspace = harness.workspace();
    std::fs::create_dir(workspace.join("folder")).unwrap();
    harness.put("file", "x");
    fifo(&workspace.join("pipe"));
    let _socket = UnixListener::bind(workspace.join("socket")).unwrap();
    symlink("pipe", workspace.join("to_pipe")).unwrap();
    symlink("/etc/passwd", workspace.join("out")).unwrap();
    symlink("/etc", workspace.join("out_folder")).unwrap();
    for (path, expected) in [
        ("folder", "is a folder"),
        ("folder/", "names a folder"),
        (".", "names a folder"),
        ("", "is empty"),
        ("file/below", "is a file, not a folder"),
        // Nobody writes to it: an open would wait for ever.
        ("pipe", "is a pipe"),
        ("to_pipe", "is a pipe"),
        ("socket", "is a pipe, socket"),
        ("out", "leads out"),
        ("out_folder/passwd", "leads out"),
        ("../secret", "leads out"),
        ("/etc/passwd", "leads out"),
    ] {
        let told = harness.facts(path).await.unwrap_err();
        assert!(told.contains(expected), "{path}: {told}");
        let write = json!({ "path": path, "content": "x" });
        harness.refuses("write_file", write).await;
    }
}

#[tokio::test]
async fn wrong_parameters_are_a_fault_of_the_protocol() {
    let harness = Harness::start().await;
    for params in [None, Some(json!({})), Some(json!({ "path": 7 }))] {
        let told = harness.ask_facts(params).await.unwrap_err();
        assert!(!told.is_empty());
    }
}
