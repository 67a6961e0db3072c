//! States of a workspace as the gateway asks for them, whatever the model has made of it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::harness::{Harness, fifo};

impl Harness {
    async fn scan(&self, base: Option<&str>) -> Value {
        self.ask("sepal/scanWorkspace", json!({ "base": base }))
            .await
    }

    async fn contents(&self, files: Value) -> Vec<Value> {
        let answer = self
            .ask("sepal/readContents", json!({ "files": files }))
            .await;
        let contents = answer.get("contents").and_then(Value::as_array);
        contents.unwrap().clone()
    }

    /// Once the clock has gone on far enough for a change to be told from the one before.
    async fn settled(&self) -> Value {
        let until = std::time::Instant::now() + Duration::from_secs(10);
        loop {
            let scan = self.scan(None).await;
            if entries(&scan)
                .iter()
                .all(|entry| entry["isFresh"].is_null())
            {
                return scan;
            }
            assert!(std::time::Instant::now() < until, "still fresh: {scan}");
            tokio::task::yield_now().await;
        }
    }
}

fn entries(scan: &Value) -> &Vec<Value> {
    scan["entries"].as_array().unwrap()
}

fn paths(scan: &Value) -> Vec<&str> {
    let paths = entries(scan).iter();
    paths.map(|entry| entry["path"].as_str().unwrap()).collect()
}

fn version_of(scan: &Value, path: &str) -> Value {
    let found = entries(scan).iter().find(|entry| entry["path"] == path);
    found.unwrap()["version"].clone()
}

#[tokio::test]
async fn a_scan_tells_entries_and_then_differences() {
    let harness = Harness::start().await;
    let root = harness.workspace();
    fs::create_dir_all(root.join("a/b")).unwrap();
    harness.put("a/b/one", "1");
    harness.put("two", "22");
    fs::set_permissions(root.join("two"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("/etc", root.join("out")).unwrap();
    fifo(&root.join("pipe"));
    let whole = harness.settled().await;
    assert_eq!(whole["isWhole"], true);
    assert_eq!(paths(&whole), ["a", "a/b", "a/b/one", "out", "two"]);
    let two = &entries(&whole)[4];
    assert_eq!(
        (&two["kind"], &two["mode"], &two["bytes"]),
        (&json!("file"), &json!(0o751), &json!(2))
    );
    assert_eq!(entries(&whole)[3]["target"], "/etc");

    harness.put("a/b/one", "1!");
    fs::remove_file(root.join("two")).unwrap();
    let next = harness.scan(whole["id"].as_str()).await;
    assert_eq!(next["isWhole"], false);
    assert_eq!(paths(&next), ["a/b/one"]);
    assert_eq!(next["removed"], json!(["two"]));
    // It may change again within the same tick, so it is told again.
    let same = harness.scan(next["id"].as_str()).await;
    assert!(paths(&same).is_empty() || paths(&same) == ["a/b/one"]);
    // A scan that is not known here is no base.
    assert_eq!(harness.scan(whole["id"].as_str()).await["isWhole"], true);
}

#[tokio::test]
async fn many_entries_come_in_pages_and_too_many_are_refused() {
    let harness = Harness::start().await;
    let root = harness.workspace();
    for number in 0..9_000 {
        fs::write(root.join(format!("{number:0>100}")), "").unwrap();
    }
    let first = harness.scan(None).await;
    let (mut told, mut next) = (paths(&first).len(), first["next"].clone());
    assert!(next.is_u64(), "one page");
    while next.is_u64() {
        let asked = json!({ "base": first["id"], "from": next });
        let page = harness.ask("sepal/scanWorkspace", asked).await;
        told += paths(&page).len();
        next = page["next"].clone();
    }
    assert_eq!(told, 9_000);
    let stale = json!({ "base": "1", "from": 5 });
    let stale = harness.ask("sepal/scanWorkspace", stale).await;
    assert_eq!(stale["refused"]["kind"], "changed");
    let mut deep = root.clone();
    for _ in 0..70 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let refused = harness.scan(None).await;
    assert_eq!(refused["refused"]["kind"], "full", "{refused}");
}

#[tokio::test]
async fn only_the_version_that_was_seen_is_read_and_no_link_is_followed() {
    let harness = Harness::start().await;
    let root = harness.workspace();
    fs::write(harness.home.path().join("secret"), "secret").unwrap();
    harness.put("kept", "kept");
    harness.put("swapped", "before");
    harness.put("large", vec![b'x'; (1 << 20) + 1]);
    fs::create_dir(root.join("folder")).unwrap();
    harness.put("folder/inner", "inner");
    let scan = harness.settled().await;
    // Between the look and the reading.
    fs::remove_file(root.join("swapped")).unwrap();
    symlink(harness.home.path().join("secret"), root.join("swapped")).unwrap();
    fs::rename(root.join("folder"), root.join("moved")).unwrap();
    symlink("moved", root.join("folder")).unwrap();
    let names = ["kept", "swapped", "folder/inner", "large", "../secret"];
    let asked = names.map(|path| {
        let version = if path.starts_with("..") {
            json!("1-1-1")
        } else {
            version_of(&scan, path)
        };
        json!({ "path": path, "version": version })
    });
    let contents = harness.contents(json!(asked)).await;
    assert_eq!(contents[0], STANDARD.encode("kept"));
    assert_eq!(
        contents[1..],
        [Value::Null, Value::Null, Value::Null, Value::Null]
    );
}

#[tokio::test]
async fn contents_come_as_many_as_fit() {
    let harness = Harness::start().await;
    for name in ["a", "b", "c"] {
        harness.put(name, vec![b'x'; 700 * 1024]);
    }
    let scan = harness.settled().await;
    let asked =
        ["a", "b", "c"].map(|path| json!({ "path": path, "version": version_of(&scan, path) }));
    assert_eq!(harness.contents(json!(asked)).await.len(), 2);
}

#[tokio::test]
async fn steps_are_taken_inside_the_workspace_alone_and_failures_are_told() {
    let harness = Harness::start().await;
    let root = harness.workspace();
    let outside = harness.home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "precious").unwrap();
    symlink(&outside, root.join("out")).unwrap();
    harness.put("old", "old");
    fs::create_dir(root.join("full")).unwrap();
    harness.put("full/file", "x");
    let data = STANDARD.encode("new");
    let steps = json!([
        { "do": "remove", "path": "gone" },
        { "do": "remove", "path": "out/precious" },
        { "do": "file", "path": "out/new", "mode": 0o644, "data": data },
        { "do": "mode", "path": "out", "mode": 0o777 },
        { "do": "remove", "path": "full" },
        { "do": "file", "path": "../up", "mode": 0o644, "data": data },
        { "do": "folder", "path": "made" },
        { "do": "file", "path": "made/file", "mode": 0o640, "data": data },
        { "do": "file", "path": "old", "mode": 0o755, "data": data },
        { "do": "link", "path": "made/link", "target": "/etc/passwd" },
        { "do": "mode", "path": "made", "mode": 0o750 },
    ]);
    let answer = harness
        .ask("sepal/restoreFiles", json!({ "steps": steps }))
        .await;
    let failed = answer["failed"].as_array().unwrap();
    let failed: Vec<_> = failed
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["out/precious", "out/new", "out", "full", "../up"]);
    assert_eq!(
        fs::read_to_string(outside.join("precious")).unwrap(),
        "precious"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(harness.content("made/file"), "new");
    assert_eq!(harness.content("old"), "new");
    assert_eq!(
        [mode("made/file"), mode("old"), mode("made")],
        [0o640, 0o755, 0o750]
    );
    assert_eq!(
        fs::read_link(root.join("made/link")).unwrap(),
        Path::new("/etc/passwd")
    );
    assert!(!root.join(".sepal-undo.tmp").exists() && !root.join("made/.sepal-undo.tmp").exists());
}
