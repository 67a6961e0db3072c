//! `read_file`, `write_file` and `list_files` in good days.

use std::{
    ffi::OsStr,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
};

use serde_json::json;

use crate::harness::{Harness, fifo};

/// Asserts S2.47, S2.48.
#[tokio::test]
async fn what_is_written_is_read_back() {
    let harness = Harness::start().await;
    let told = harness
        .does(
            "write_file",
            json!({ "path": "a/b/c.txt", "content": "żółw\n" }),
        )
        .await;
    assert_eq!(told, "Wrote 8 bytes to `a/b/c.txt`.");
    assert_eq!(harness.content("a/b/c.txt"), "żółw\n");
    for path in ["a/b/c.txt", "./a/b/../b/c.txt"] {
        assert_eq!(
            harness.does("read_file", json!({ "path": path })).await,
            "żółw\n"
        );
    }
    let absolute = harness.workspace().join("a/b/c.txt");
    assert_eq!(
        harness.does("read_file", json!({ "path": absolute })).await,
        "żółw\n"
    );
    harness
        .does("write_file", json!({ "path": "a/b/c.txt", "content": "" }))
        .await;
    let told = harness
        .does("read_file", json!({ "path": "a/b/c.txt" }))
        .await;
    assert_eq!(told, "\n[`a/b/c.txt` is empty.]");
}

#[tokio::test]
async fn a_file_that_is_not_utf_8_is_read_and_said_to_be() {
    let harness = Harness::start().await;
    let utf16: Vec<u8> = "\u{feff}Größe\nzwei\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (name, content, text, encoding) in [
        (
            "latin.txt",
            b"Gr\xf6\xdfe\nzwei\n".to_vec(),
            "Größe\nzwei\n",
            "Latin-1",
        ),
        ("wide.txt", utf16, "Größe\nzwei\n", "UTF-16 (little-endian)"),
        (
            "odd.txt",
            b"\xc3\xb6\xff\n".to_vec(),
            "ö\u{fffd}\n",
            "bytes that are not UTF-8",
        ),
    ] {
        harness.put(name, content);
        let told = harness.does("read_file", json!({ "path": name })).await;
        assert!(told.starts_with(text) && told.contains(encoding), "{told}");
    }
    let second = json!({ "path": "wide.txt", "offset": 2, "limit": 1 });
    let told = harness.does("read_file", second).await;
    assert!(
        told.starts_with("zwei\n\n[`wide.txt` is not UTF-8"),
        "{told}"
    );
}

#[tokio::test]
async fn a_long_file_is_read_in_parts() {
    let harness = Harness::start().await;
    harness.put("long.txt", "line\n".repeat(2500));
    let told = harness
        .does("read_file", json!({ "path": "long.txt" }))
        .await;
    assert!(
        told.ends_with("[Lines 1 to 2000 of `long.txt`. It goes on: read it with offset 2001.]")
    );
    let rest = json!({ "path": "long.txt", "offset": 2001 });
    assert_eq!(harness.does("read_file", rest).await, "line\n".repeat(500));
    let past = json!({ "path": "long.txt", "offset": 2600 });
    let told = harness.refuses("read_file", past).await;
    assert!(told.contains("it has 2500 lines"), "{told}");
}

#[tokio::test]
async fn a_write_replaces_the_file_whole_and_keeps_its_permissions() {
    let harness = Harness::start().await;
    harness.put("run.sh", "old");
    let path = harness.workspace().join("run.sh");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let mut reader = std::fs::File::open(&path).unwrap();
    harness
        .does("write_file", json!({ "path": "run.sh", "content": "new" }))
        .await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let mut seen = String::new();
    std::io::Read::read_to_string(&mut reader, &mut seen).unwrap();
    assert_eq!(
        (seen.as_str(), harness.content("run.sh").as_str()),
        ("old", "new")
    );
    let names: Vec<_> = std::fs::read_dir(harness.workspace()).unwrap().collect();
    assert_eq!(names.len(), 1, "a temporary file was left behind");
}

#[tokio::test]
async fn a_write_goes_through_a_link_inside_the_workspace() {
    let harness = Harness::start().await;
    harness.put("real.txt", "old");
    let link = harness.workspace().join("link.txt");
    std::os::unix::fs::symlink("real.txt", &link).unwrap();
    harness
        .does(
            "write_file",
            json!({ "path": "link.txt", "content": "new" }),
        )
        .await;
    assert_eq!(harness.content("real.txt"), "new");
    assert!(link.is_symlink());
}

/// Asserts O10.
#[tokio::test]
async fn an_absolute_link_that_stays_inside_the_workspace_works() {
    let harness = Harness::start().await;
    let workspace = harness.workspace();
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(workspace.join(to), workspace.join(name)).unwrap();
    };
    std::fs::create_dir_all(workspace.join("real/deep")).unwrap();
    harness.put("real/a.txt", "old");
    link("real", "folder");
    link("folder/deep", "chain");
    link("real/a.txt", "file");
    std::os::unix::fs::symlink("../folder/a.txt", workspace.join("real/up")).unwrap();
    for path in [
        "folder/a.txt",
        "chain/../a.txt",
        "file",
        "real/up",
        "chain/../up",
    ] {
        let read = harness.does("read_file", json!({ "path": path })).await;
        assert_eq!(read, "old", "{path}");
    }
    let listed = harness
        .does("list_files", json!({ "path": "folder" }))
        .await;
    assert!(listed.contains("folder/a.txt (3 bytes)"), "{listed}");
    for (path, at) in [
        ("folder/a.txt", "real/a.txt"),
        ("file", "real/a.txt"),
        ("chain/new/b.txt", "real/deep/new/b.txt"),
    ] {
        let write = json!({ "path": path, "content": path });
        harness.does("write_file", write).await;
        assert_eq!(harness.content(at), path);
    }
    assert!(workspace.join("file").is_symlink() && workspace.join("folder").is_symlink());
    link("real/none", "dangling");
    let write = json!({ "path": "dangling", "content": "x" });
    let told = harness.refuses("write_file", write).await;
    assert!(told.contains("link to nothing"), "{told}");
    link("../outside", "dots");
    link("turning", "turning");
    for path in ["dots", "turning"] {
        harness.refuses("read_file", json!({ "path": path })).await;
    }
}

#[tokio::test]
async fn what_cannot_be_read_or_written_is_said_in_words() {
    let harness = Harness::start().await;
    harness.put("image.png", b"\x89PNG\r\n\x1a\n\0\0");
    harness.put("blob", b"ab\0cd");
    harness.put("plain", "x");
    std::fs::create_dir(harness.workspace().join("folder")).unwrap();
    fifo(&harness.workspace().join("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(harness.workspace().join("socket"));
    let table = [
        ("read_file", "image.png", "PNG image, 10 bytes"),
        ("read_file", "blob", "binary data, 5 bytes"),
        ("read_file", "folder", "is a folder"),
        ("read_file", "pipe", "is a pipe, socket or device"),
        ("read_file", "socket", "is a pipe, socket or device"),
        ("read_file", "missing", "does not exist. Use list_files"),
        ("read_file", "plain/x", "A part of `plain/x` is a file"),
        ("read_file", "", "The path is empty"),
        ("list_files", "plain", "is not a folder"),
        ("list_files", "missing", "does not exist"),
        ("write_file", "folder", "is a folder"),
        ("write_file", ".", "names a folder"),
        ("write_file", "new/", "names a folder"),
        ("write_file", "pipe", "is a pipe, socket, device or link"),
        ("write_file", "plain/x", "a file, not a folder"),
    ];
    for (tool, path, expected) in table {
        let arguments = match tool {
            "write_file" => json!({ "path": path, "content": "x" }),
            _ => json!({ "path": path }),
        };
        let told = harness.refuses(tool, arguments).await;
        assert!(told.contains(expected), "{tool} `{path}`: {told}");
    }
}

/// Asserts S2.49.
#[tokio::test]
async fn a_listing_is_sorted_and_shows_what_things_are() {
    let harness = Harness::start().await;
    std::fs::create_dir_all(harness.workspace().join("src/deep/deeper")).unwrap();
    harness.put("src/main.rs", "fn main() {}");
    harness.put("src/deep/x", "");
    harness.put(".hidden", "1");
    std::os::unix::fs::symlink("/etc", harness.workspace().join("link")).unwrap();
    fifo(&harness.workspace().join("pipe"));
    let told = harness.does("list_files", json!({})).await;
    assert_eq!(
        told,
        ".hidden (1 bytes)\nlink -> /etc\npipe (special file)\nsrc/\nsrc/deep/\nsrc/main.rs (12 bytes)"
    );
    let told = harness
        .does("list_files", json!({ "path": "./src/", "depth": 1 }))
        .await;
    assert_eq!(told, "src/deep/\nsrc/main.rs (12 bytes)");
    let told = harness
        .does("list_files", json!({ "path": "src/deep/deeper" }))
        .await;
    assert_eq!(told, "\n[`src/deep/deeper` is empty.]");
}

#[tokio::test]
async fn a_listing_is_bounded() {
    let harness = Harness::start().await;
    for number in 0..1200 {
        harness.put(&format!("{number:04}"), "");
    }
    let told = harness.does("list_files", json!({})).await;
    assert_eq!(told.lines().count(), 1001);
    assert!(told.ends_with(
        "[200 more entries were left out. List a folder of it, or use a smaller depth.]"
    ));
}

/// Few entries can be long: each byte that is no text takes four, and who reads answers drops a line
/// that is too long.
#[tokio::test]
async fn a_listing_of_long_paths_is_bounded_too() {
    let harness = Harness::start().await;
    let name = OsStr::from_bytes(&[0xe9; 250]);
    let folder = (0..12).fold(harness.workspace(), |folder, _| folder.join(name));
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..500 {
        std::fs::write(folder.join(number.to_string()), "").unwrap();
    }
    let told = harness.does("list_files", json!({ "depth": 16 })).await;
    assert!(told.len() < 201 * 1024, "{}", told.len());
    let shown = told.lines().count() - 1;
    assert!(shown > 12, "{shown}");
    let note = format!(
        "[{} more entries were left out. List a folder of it, or use a smaller depth.]",
        512 - shown
    );
    assert!(told.ends_with(&note), "{shown}");
}

#[tokio::test]
async fn a_path_that_no_file_can_have_is_not_repeated() {
    let harness = Harness::start().await;
    let path = "a/".repeat(11_000);
    for tool in ["read_file", "list_files"] {
        let told = harness.refuses(tool, json!({ "path": path })).await;
        assert!(told.contains("longer than 20480 bytes"), "{tool}");
        assert!(told.len() < 200, "{tool}");
    }
}

#[tokio::test]
async fn names_that_are_not_text_can_be_listed_read_and_written() {
    let harness = Harness::start().await;
    let name = OsStr::from_bytes(b"caf\xe9");
    std::fs::write(harness.workspace().join(name), "old").unwrap();
    assert_eq!(
        harness.does("list_files", json!({})).await,
        r"$'caf\xe9' (3 bytes)"
    );
    let path = r"$'caf\xe9'";
    assert_eq!(
        harness.does("read_file", json!({ "path": path })).await,
        "old"
    );
    harness
        .does("write_file", json!({ "path": path, "content": "new" }))
        .await;
    assert_eq!(
        std::fs::read_to_string(harness.workspace().join(name)).unwrap(),
        "new"
    );
    let told = harness
        .does(
            "execute_command",
            json!({ "command": format!("cat {path}") }),
        )
        .await;
    assert!(told.ends_with("new"), "{told}");
}
