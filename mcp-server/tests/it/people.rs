//! What people do with files through the gateway, whatever the model has made of the workspace.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::{CustomRequest, ServerResult};
use serde_json::{Value, json};

use crate::harness::{Harness, fifo, in_time};

/// As much room as nothing here needs.
const ROOM: u64 = 1 << 30;

impl Harness {
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let request = CustomRequest::new(method, Some(params));
        match in_time(self.client.send_request(request.into())).await {
            Ok(ServerResult::CustomResult(answer)) => answer.0,
            Ok(ServerResult::EmptyResult(_)) => json!({}),
            answer => panic!("no answer of ours: {answer:?}"),
        }
    }

    async fn list_folder(&self, path: &str, after: Option<&str>, limit: usize) -> Value {
        let asked = json!({ "path": path, "after": after, "limit": limit });
        self.ask("sepal/listFolder", asked).await
    }

    async fn read_part(
        &self,
        path: &str,
        offset: u64,
        length: u64,
        version: Option<&str>,
    ) -> Value {
        let asked = json!({ "path": path, "offset": offset, "length": length, "version": version });
        self.ask("sepal/readFile", asked).await
    }

    async fn put_part(&self, part: Value) -> Value {
        let mut whole = json!({ "id": "u", "offset": 0, "isLast": true, "room": ROOM });
        let told = part.as_object().unwrap().clone();
        whole.as_object_mut().unwrap().extend(told);
        self.ask("sepal/putFile", whole).await
    }

    /// A file in one part.
    async fn upload(&self, path: &str, content: &str, replaces: Option<&str>) -> Value {
        let data = STANDARD.encode(content);
        self.put_part(json!({ "path": path, "data": data, "replaces": replaces }))
            .await
    }

    async fn remove(&self, path: &str, is_recursive: bool) -> Value {
        let asked = json!({ "path": path, "isRecursive": is_recursive });
        self.ask("sepal/removeFile", asked).await
    }

    /// The names in the workspace that nobody asked for.
    fn unfinished(&self) -> usize {
        let entries = fs::read_dir(self.workspace()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with(".sepal"))
            .count()
    }
}

#[track_caller]
fn refused(answer: &Value) -> &str {
    let kind = answer.pointer("/refused/kind").and_then(Value::as_str);
    kind.unwrap_or_else(|| panic!("not refused: {answer}"))
}

fn names(page: &Value) -> Vec<&str> {
    let entries = page["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_folder_is_listed_in_pages_with_what_each_entry_is() {
    let harness = Harness::start().await;
    let root = harness.workspace();
    fs::create_dir(root.join("z")).unwrap();
    harness.put("a.txt", "abc");
    harness.put("two\nlines", "");
    fs::write(root.join(OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
    symlink("/etc/passwd", root.join("link")).unwrap();
    fifo(&root.join("pipe"));
    let page = harness.list_folder("", None, 100).await;
    let expected = [
        "z",
        "a.txt",
        r"$'caf\xe9'",
        "link",
        "pipe",
        r"$'two\x0alines'",
    ];
    assert_eq!(names(&page), expected);
    assert_eq!(page["total"], 6);
    let kinds: Vec<&Value> = (0..6).map(|at| &page["entries"][at]["kind"]).collect();
    assert_eq!(kinds, ["folder", "file", "file", "link", "special", "file"]);
    assert_eq!(page["entries"][1]["bytes"], 3);
    assert_eq!(page["entries"][3]["target"], "/etc/passwd");
    assert_eq!(page["entries"][3]["version"], Value::Null);
    // The same in pages of two.
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = harness.list_folder("", after.as_deref(), 2).await;
        assert!(names(&page).len() <= 2);
        seen.extend(names(&page).into_iter().map(ToOwned::to_owned));
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen, expected);
    assert_eq!(
        refused(&harness.list_folder("", Some("x"), 2).await),
        "invalid"
    );
    assert_eq!(
        refused(&harness.list_folder("no", None, 2).await),
        "missing"
    );
    assert_eq!(
        refused(&harness.list_folder("a.txt", None, 2).await),
        "not_folder"
    );
}

#[tokio::test]
async fn a_hundred_thousand_entries_come_a_page_at_a_time() {
    let harness = Harness::start().await;
    let folder = harness.workspace().join("many");
    fs::create_dir(&folder).unwrap();
    for number in 0..100_000 {
        fs::File::create(folder.join(format!("{number:06}"))).unwrap();
    }
    let page = harness.list_folder("many", None, 1000).await;
    assert_eq!(page["total"], 100_000);
    assert_eq!(names(&page).len(), 1000);
    assert_eq!(names(&page)[999], "000999");
    let last = harness.list_folder("many", Some("f099998"), 1000).await;
    assert_eq!(names(&last), ["099999"]);
    assert_eq!(last["next"], Value::Null);
}

#[tokio::test]
async fn a_file_is_read_in_parts_of_one_version() {
    let harness = Harness::start().await;
    harness.put("a.bin", b"0123456789");
    let first = harness.read_part("a.bin", 0, 4, None).await;
    assert_eq!(first["data"], STANDARD.encode("0123"));
    assert_eq!(first["bytes"], 10);
    let version = first["version"].as_str().unwrap();
    let rest = harness.read_part("a.bin", 4, 100, Some(version)).await;
    assert_eq!(rest["data"], STANDARD.encode("456789"));
    let none = harness.read_part("a.bin", 0, 0, None).await;
    assert_eq!(
        (&none["data"], &none["version"]),
        (&json!(""), &json!(version))
    );
    harness.put("a.bin", b"0123456780");
    let changed = harness.read_part("a.bin", 4, 100, Some(version)).await;
    assert_eq!(refused(&changed), "changed");
    // However much is asked for, a part is bounded.
    harness.put("large", vec![b'x'; 2 << 20]);
    let part = harness.read_part("large", 0, u64::MAX, None).await;
    assert_eq!(part["data"].as_str().unwrap().len(), 699_052);
}

/// Asserts O10.
#[tokio::test]
async fn nothing_that_leads_out_or_is_no_file_is_read() {
    let harness = Harness::start().await;
    let root = harness.workspace();
    fs::write(harness.home.path().join("secret"), "secret").unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink("/etc/passwd", root.join("passwd")).unwrap();
    symlink("..", root.join("up")).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    harness.put("folder/in", "in");
    symlink("folder", root.join("inside")).unwrap();
    fifo(&root.join("pipe"));
    for (path, kind) in [
        ("out", "not_file"),
        ("passwd", "not_file"),
        ("folder", "not_file"),
        ("pipe", "not_file"),
        ("up/secret", "not_folder"),
        ("inside/in", "not_folder"),
        ("../secret", "invalid"),
        ("folder/../../secret", "invalid"),
        (r"$'..\x2fsecret'", "invalid"),
        (r"$'\x2fetc\x2fpasswd'", "invalid"),
        ("/etc/passwd", "invalid"),
        ("", "invalid"),
        ("no", "missing"),
        ("folder/in/x", "not_folder"),
    ] {
        let answer = harness.read_part(path, 0, 100, None).await;
        assert_eq!(refused(&answer), kind, "{path}: {answer}");
    }
}

#[tokio::test]
async fn an_upload_is_there_once_it_is_whole_and_replaces_only_what_was_seen() {
    let harness = Harness::start().await;
    let part = |from: usize, is_last: bool| {
        let data = STANDARD.encode(&"abcdef"[from..from + 3]);
        json!({ "path": "new/a.txt", "offset": from, "data": data, "isLast": is_last, "bytes": 6 })
    };
    assert_eq!(harness.put_part(part(0, false)).await, json!({}));
    assert!(!harness.workspace().join("new/a.txt").exists());
    let done = harness.put_part(part(3, true)).await;
    assert_eq!(
        (&done["bytes"], &done["created"]),
        (&json!(6), &json!(true))
    );
    assert_eq!(harness.content("new/a.txt"), "abcdef");
    let there = harness.upload("new/a.txt", "x", None).await;
    assert_eq!(refused(&there), "exists");
    let seen = done["version"].as_str().unwrap();
    let found = harness.read_part("new/a.txt", 0, 0, None).await;
    assert_eq!(found["version"], seen, "the version that the upload told");
    let replaced = harness.upload("new/a.txt", "second", Some(seen)).await;
    assert_eq!(replaced["created"], false);
    let late = harness.upload("new/a.txt", "third", Some(seen)).await;
    assert_eq!(refused(&late), "changed");
    assert_eq!(harness.content("new/a.txt"), "second");
    let whatever = harness.upload("new/a.txt", "fourth", Some("*")).await;
    assert_eq!(whatever["bytes"], 6);
    let gone = harness.upload("b.txt", "x", Some(seen)).await;
    assert_eq!(refused(&gone), "changed");
    assert_eq!(harness.upload("empty", "", None).await["bytes"], 0);
    let left = fs::read_dir(harness.workspace().join("new"))
        .unwrap()
        .count();
    assert_eq!((left, harness.unfinished()), (1, 0));
}

/// Asserts O10.
#[tokio::test]
async fn an_upload_follows_no_link_and_replaces_nothing_but_files() {
    let harness = Harness::start().await;
    let root = harness.workspace();
    let secret = harness.home.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, root.join("link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    fifo(&root.join("pipe"));
    for (path, replaces, kind) in [
        ("link", None, "exists"),
        ("link", Some("*"), "not_file"),
        ("folder", Some("*"), "not_file"),
        ("pipe", Some("*"), "not_file"),
        ("up/new", None, "not_folder"),
        ("../new", None, "invalid"),
        ("", None, "invalid"),
    ] {
        let answer = harness.upload(path, "mine", replaces).await;
        assert_eq!(refused(&answer), kind, "{path}: {answer}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert!(!harness.home.path().join("new").exists());
    assert_eq!(harness.unfinished(), 0);
    // What has its place at the end is the link's own name, also where it came meanwhile.
    let begun = json!({ "path": "late", "data": STANDARD.encode("a"), "isLast": false });
    harness.put_part(begun).await;
    symlink(&secret, root.join("late")).unwrap();
    let end = json!({ "path": "late", "offset": 1, "data": STANDARD.encode("b") });
    assert_eq!(refused(&harness.put_part(end).await), "exists");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
}

#[tokio::test]
async fn an_upload_that_the_workspace_has_no_room_for_is_refused() {
    let harness = Harness::start().await;
    harness.put("held", vec![b'x'; 600_000]);
    let part = |path: &str, bytes: u64| {
        let data = STANDARD.encode(vec![b'y'; 1000]);
        json!({ "path": path, "data": data, "bytes": bytes, "room": 1_000_000 })
    };
    assert_eq!(harness.put_part(part("a", 1000)).await["bytes"], 1000);
    assert_eq!(refused(&harness.put_part(part("b", 500_000)).await), "full");
    assert!(!harness.workspace().join("b").exists());
}

#[tokio::test]
async fn uploads_that_nobody_ends_take_no_more_than_their_places() {
    let harness = Harness::start().await;
    for number in 0..8 {
        let part = json!({
            "id": format!("u{number}"), "path": format!("f{number}"), "data": "", "isLast": false,
        });
        assert_eq!(harness.put_part(part).await, json!({}));
    }
    let ninth = json!({ "id": "u8", "path": "f8", "data": "" });
    assert_eq!(refused(&harness.put_part(ninth).await), "busy");
    let wrong = json!({ "id": "u1", "path": "f1", "offset": 7, "data": "" });
    assert_eq!(refused(&harness.put_part(wrong).await), "invalid");
    let ninth = json!({ "id": "u8", "path": "f8", "data": "" });
    assert_eq!(harness.put_part(ninth).await["bytes"], 0);
    let strange = json!({ "id": "nobody", "path": "f9", "offset": 3, "data": "" });
    assert_eq!(refused(&harness.put_part(strange).await), "invalid");
}

#[tokio::test]
async fn what_is_deleted_is_what_was_named() {
    let harness = Harness::start().await;
    let root = harness.workspace();
    let outside = harness.home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    symlink(&outside, root.join("link")).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    symlink(&outside, root.join("folder/link")).unwrap();
    harness.put("a.txt", "a");
    assert_eq!(refused(&harness.remove("folder", false).await), "exists");
    assert_eq!(
        refused(&harness.remove("link/kept", false).await),
        "not_folder"
    );
    assert_eq!(
        refused(&harness.remove("../outside", true).await),
        "invalid"
    );
    assert_eq!(refused(&harness.remove("", true).await), "invalid");
    assert_eq!(refused(&harness.remove("no", false).await), "missing");
    let old = json!({ "path": "a.txt", "version": "1-2-3" });
    assert_eq!(
        refused(&harness.ask("sepal/removeFile", old).await),
        "changed"
    );
    for (path, kind) in [("link", "link"), ("folder", "folder"), ("a.txt", "file")] {
        assert_eq!(harness.remove(path, true).await, json!({ "kind": kind }));
    }
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
}
