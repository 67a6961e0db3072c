//! No path leads out of the workspace (O10): the table of tricks, and races.

use std::{
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::harness::{Harness, text};

/// A workspace with every kind of way out, and a secret beside it.
async fn tempted() -> Harness {
    let harness = Harness::start().await;
    let (home, workspace) = (harness.home.path().to_owned(), harness.workspace());
    std::fs::create_dir(home.join("outside")).unwrap();
    std::fs::write(home.join("outside/secret"), "SECRET").unwrap();
    std::fs::create_dir_all(workspace.join("a/b")).unwrap();
    symlink(home.join("outside"), workspace.join("out")).unwrap();
    symlink("../outside", workspace.join("out_relative")).unwrap();
    symlink(home.join("outside/secret"), workspace.join("file_out")).unwrap();
    symlink("/", workspace.join("slash")).unwrap();
    symlink("a/../../outside", workspace.join("dots")).unwrap();
    symlink("loop", workspace.join("loop")).unwrap();
    symlink("/proc/self/cwd", workspace.join("magic")).unwrap();
    symlink(home.join("outside/new"), workspace.join("dangling_out")).unwrap();
    harness
}

const WAYS_OUT: [&str; 20] = [
    "../outside",
    "../outside/secret",
    "../../etc/passwd",
    "../../../../../../../../etc/passwd",
    "/etc/passwd",
    "/etc",
    "/",
    "..",
    "a/../../outside/secret",
    "a/b/../../../outside/secret",
    "./../outside/secret",
    "out/secret",
    "out_relative/secret",
    "file_out",
    "slash/etc/passwd",
    "dots/secret",
    "loop",
    "magic/secret",
    "dangling_out",
    "out/made/here",
];

#[tokio::test]
async fn no_path_leads_out() {
    let harness = tempted().await;
    let outside = harness.home.path().join("outside");
    let below = format!("{}/../outside/secret", harness.workspace().display());
    let quoted = r"$'..\x2foutside\x2fsecret'";
    for path in WAYS_OUT.into_iter().chain([below.as_str(), quoted]) {
        for tool in ["read_file", "list_files", "write_file"] {
            let arguments = match tool {
                "write_file" => json!({ "path": path, "content": "PWNED" }),
                _ => json!({ "path": path }),
            };
            let told = harness.refuses(tool, arguments).await;
            assert!(
                !told.contains("SECRET") && !told.contains("root:"),
                "{path}: {told}"
            );
        }
        let left: Vec<_> = std::fs::read_dir(&outside).unwrap().collect();
        assert_eq!(left.len(), 1, "`{path}` made something outside");
        assert_eq!(
            std::fs::read_to_string(outside.join("secret")).unwrap(),
            "SECRET"
        );
    }
}

#[tokio::test]
async fn the_model_is_told_that_a_path_leads_out() {
    let harness = tempted().await;
    for path in ["../outside/secret", "/etc/passwd", "out/secret", "file_out"] {
        let told = harness.refuses("read_file", json!({ "path": path })).await;
        assert!(told.contains("leads out of the workspace"), "{told}");
    }
}

#[tokio::test]
async fn a_hard_link_or_a_plain_file_named_like_a_trick_is_just_a_file() {
    let harness = Harness::start().await;
    for path in ["..a", "...", "a..", "~", "$HOME", "-rf", "a\\b", "C:\\x"] {
        harness
            .does("write_file", json!({ "path": path, "content": path }))
            .await;
        assert_eq!(
            harness.does("read_file", json!({ "path": path })).await,
            path
        );
    }
}

/// Exchanges what leads inside and a link to the outside until told to stop.
fn swap(workspace: &Path, stop: &AtomicBool) {
    let (folder, link) = (workspace.join("d"), workspace.join("link"));
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
    }
}

#[tokio::test]
async fn a_folder_that_becomes_a_link_in_the_same_moment_leads_nowhere() {
    let harness = tempted().await;
    std::fs::create_dir(harness.workspace().join("d")).unwrap();
    race(harness).await;
}

/// Asserts O10.
#[tokio::test]
async fn a_link_inside_that_becomes_one_to_the_outside_in_the_same_moment_leads_nowhere() {
    let harness = tempted().await;
    let workspace = harness.workspace();
    std::fs::create_dir(workspace.join("real")).unwrap();
    symlink(workspace.join("real"), workspace.join("d")).unwrap();
    race(harness).await;
}

/// Uses the folder `d` while it is exchanged for a link to the outside, again and again.
async fn race(harness: Harness) {
    let (workspace, outside) = (harness.workspace(), harness.home.path().join("outside"));
    harness.put("d/secret", "harmless");
    symlink(&outside, workspace.join("link")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || swap(&workspace, &stop))
    };
    let mut worked = 0;
    for round in 0..400 {
        let read = harness
            .call("read_file", json!({ "path": "d/secret" }))
            .await;
        assert!(!text(&read).contains("SECRET"));
        worked += usize::from(read.is_error != Some(true));
        let write = json!({ "path": format!("d/new{round}"), "content": "x" });
        harness.call("write_file", write).await;
        let listed = harness.call("list_files", json!({ "path": "d" })).await;
        assert!(!text(&listed).contains("d/secret (6 bytes)"));
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(worked > 0, "the race was never won by the honest side");
    let left: Vec<_> = std::fs::read_dir(&outside).unwrap().collect();
    assert_eq!(left.len(), 1, "a write went outside");
}
