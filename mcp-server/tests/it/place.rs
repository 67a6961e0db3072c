//! What the gateway puts into the workspace for people, whatever the model has made of it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::{
    model::{CustomRequest, ServerResult},
    service::ServiceError,
};
use serde_json::{Value, json};

use crate::harness::{Harness, fifo, in_time};

impl Harness {
    async fn part(&self, params: Value) -> Result<Value, String> {
        let request = CustomRequest::new("sepal/placeAttachment", Some(params));
        match in_time(self.client.send_request(request.into())).await {
            Ok(ServerResult::CustomResult(answer)) => Ok(answer.0.get("name").unwrap().clone()),
            Err(ServiceError::McpError(error)) => Err(error.message.to_string()),
            answer => panic!("neither a name nor an error: {answer:?}"),
        }
    }

    async fn place(&self, name: &str, content: &[u8]) -> Result<String, String> {
        let data = STANDARD.encode(content);
        let whole = json!({ "name": name, "bytes": content.len(), "offset": 0, "data": data });
        let name = self.part(whole).await?;
        Ok(name.as_str().unwrap().to_owned())
    }

    fn folder(&self) -> PathBuf {
        self.workspace().join("attachments")
    }
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_comes_in_parts_and_is_there_once_it_is_whole() {
    let harness = Harness::start().await;
    let content: Vec<u8> = (0..=255).cycle().take(3_000).collect();
    let part = |from: usize, to: usize| {
        let data = STANDARD.encode(&content[from..to]);
        json!({ "name": "a.bin", "bytes": 3_000, "offset": from, "data": data })
    };
    assert_eq!(harness.part(part(0, 1_000)).await, Ok(Value::Null));
    assert!(!harness.folder().join("a.bin").exists());
    assert_eq!(harness.part(part(1_000, 2_000)).await, Ok(Value::Null));
    assert_eq!(harness.part(part(2_000, 3_000)).await, Ok(json!("a.bin")));
    assert_eq!(fs::read(harness.folder().join("a.bin")).unwrap(), content);
    assert_eq!(names(&harness.folder()), ["a.bin"]);
}

#[tokio::test]
async fn the_same_content_is_there_once_and_another_never_replaces_it() {
    let harness = Harness::start().await;
    for (content, expected) in [
        ("one", "note.txt"),
        ("two", "note-2.txt"),
        ("one", "note.txt"),
        ("six", "note-3.txt"),
        ("two", "note-2.txt"),
    ] {
        let placed = harness.place("note.txt", content.as_bytes()).await;
        assert_eq!(placed.as_deref(), Ok(expected));
        let found = fs::read_to_string(harness.folder().join(expected)).unwrap();
        assert_eq!(found, content);
    }
    assert_eq!(harness.place("plain", b"").await.as_deref(), Ok("plain"));
    assert_eq!(harness.place("plain", b"x").await.as_deref(), Ok("plain-2"));
}

#[tokio::test]
async fn no_link_is_followed_and_nothing_that_is_there_is_touched() {
    let harness = Harness::start().await;
    let secret = harness.home.path().join("secret");
    fs::write(&secret, "abc").unwrap();
    fs::create_dir(harness.folder()).unwrap();
    symlink(&secret, harness.folder().join("a.txt")).unwrap();
    symlink("../../made", harness.folder().join("a-2.txt")).unwrap();
    fs::create_dir(harness.folder().join("a-3.txt")).unwrap();
    // Nobody writes to it: an open would wait for ever.
    fifo(&harness.folder().join("a-4.txt"));
    symlink(&secret, harness.folder().join(".sepal-attachment.tmp")).unwrap();
    let placed = harness.place("a.txt", b"abc").await;
    assert_eq!(placed.as_deref(), Ok("a-5.txt"));
    assert_eq!(fs::read_to_string(&secret).unwrap(), "abc");
    assert!(!harness.home.path().join("made").exists());
}

#[tokio::test]
async fn a_folder_that_is_a_link_takes_nothing() {
    for target in ["../outside", "inside"] {
        let harness = Harness::start().await;
        let outside = harness.home.path().join("outside");
        let inside = harness.workspace().join("inside");
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&inside).unwrap();
        symlink(target, harness.folder()).unwrap();
        let refused = harness.place("a.txt", b"x").await.unwrap_err();
        assert!(refused.contains("attachments/a.txt"), "{refused}");
        assert!(names(&outside).is_empty() && names(&inside).is_empty());
    }
    let harness = Harness::start().await;
    harness.put("attachments", "a file");
    harness.place("a.txt", b"x").await.unwrap_err();
    assert_eq!(harness.content("attachments"), "a file");
}

#[tokio::test]
async fn a_name_that_leads_away_or_hides_is_refused() {
    let harness = Harness::start().await;
    let long = "x".repeat(201);
    for name in [
        "", ".", "..", "a/b", "../a", "/a", "a/", ".a", "-a", "a\nb", "a\0", &long,
    ] {
        harness.place(name, b"x").await.unwrap_err();
    }
    assert!(!harness.folder().exists());
}

#[tokio::test]
async fn parts_that_do_not_fit_each_other_leave_nothing() {
    let harness = Harness::start().await;
    let part = |offset: u64, data: &str| json!({ "name": "a", "bytes": 4, "offset": offset, "data": data });
    harness.part(part(2, "YWI=")).await.unwrap_err();
    assert_eq!(harness.part(part(0, "YWI=")).await, Ok(Value::Null));
    harness.part(part(3, "YWI=")).await.unwrap_err();
    harness.part(part(2, "YWI=")).await.unwrap_err();
    assert_eq!(harness.part(part(0, "YWI=")).await, Ok(Value::Null));
    harness.part(part(2, "YWJjZGVm")).await.unwrap_err();
    harness.part(part(0, "no base64")).await.unwrap_err();
    assert!(names(&harness.folder()).is_empty());
    // One that was begun and given up is begun anew.
    assert_eq!(harness.part(part(0, "YWI=")).await, Ok(Value::Null));
    assert_eq!(harness.part(part(0, "YWI=")).await, Ok(Value::Null));
    assert_eq!(harness.part(part(2, "Y2Q=")).await, Ok(json!("a")));
    assert_eq!(harness.content("attachments/a"), "abcd");
}
