//! What only an overlay of the workspace can do, and what only an overlay can do wrong.
#![expect(
    clippy::print_stderr,
    reason = "one figure is what its test is run for"
)]

use std::path::PathBuf;

use serde_json::json;

use super::{asked, by_copying, result, socket_of, tried};
use crate::support::{TestApp, until};
use crate::workspace_files::Ana;

/// Files of the workspace that is measured.
const FILES: usize = 10_000;

/// What copy and start may take.
const LIMIT_MS: u64 = 300;
/// How much slower a machine may be that builds and tests at the same time.
const MARGIN: u64 = 4;
/// How often it is tried: what else this machine does may hold up one of them.
const TRIES: usize = 5;

/// Where no overlay can be had, a copy makes every file anew, and how long that takes is the file system's:
/// there the time is printed and not judged (docs/sandbox.md).
#[tokio::test]
async fn ten_thousand_small_files_are_tried_soon() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    let make = format!(
        "mkdir $(seq -f d%g 0 99); for n in $(seq {FILES}); do echo $n > d$((n % 100))/$n; done"
    );
    ana.runs(&app, &make).await;
    let mut socket = socket_of(&app, &ana).await;
    let args = json!({ "command": "echo changed >d1/1" });
    let card = asked(&app, &mut socket, "execute_command", args).await;
    let mut prepared_ms = u64::MAX;
    for _ in 0..TRIES {
        let report = tried(&mut socket, &card).await;
        assert_eq!(report["counts"]["modified"], 1, "{report}");
        assert_eq!(report["counts"]["created"], 0, "{report}");
        prepared_ms = prepared_ms.min(report["preparedMs"].as_u64().unwrap());
        if prepared_ms < LIMIT_MS * MARGIN {
            break;
        }
    }
    let has_overlays = has_overlays(&app);
    eprintln!("ready with {FILES} files: {prepared_ms} ms, overlays: {has_overlays}");
    assert!(
        !has_overlays || prepared_ms < LIMIT_MS * MARGIN,
        "{prepared_ms} ms"
    );
}

/// An overlay is no snapshot: what others write meanwhile would show as the call's own doing.
#[tokio::test]
async fn what_is_changed_meanwhile_is_not_shown_as_the_calls_own() {
    let app = TestApp::with_sandbox().await;
    let has_overlays = has_overlays(&app);
    changed_meanwhile(&app, has_overlays).await;
}

#[tokio::test]
async fn what_is_changed_meanwhile_is_not_in_a_whole_copy() {
    let app = by_copying().await;
    changed_meanwhile(&app, false).await;
}

/// The server tells only what is not as it was last seen: what came after that belongs to the workspace.
#[tokio::test]
async fn what_was_changed_since_the_last_look_is_not_shown_as_the_calls_own() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.runs(&app, "echo a >kept; echo b >gone; mkdir folder")
        .await;
    let mut folders = workspaces(&app)().into_iter();
    let live = folders.find(|it| it.join("kept").exists()).unwrap();
    let mut socket = socket_of(&app, &ana).await;
    let command = "echo x >own; cat kept folder/new";
    let args = json!({ "command": command });
    let card = asked(&app, &mut socket, "execute_command", args).await;
    std::fs::remove_file(live.join("gone")).unwrap();
    for round in ["first", "second"] {
        std::fs::write(live.join("kept"), format!("{round} kept\n")).unwrap();
        std::fs::write(live.join("folder/new"), format!("{round} new\n")).unwrap();
        let report = tried(&mut socket, &card).await;
        let counts = json!({ "created": 1, "modified": 0, "deleted": 0, "folders": 0 });
        assert_eq!(report["counts"], counts, "{report}");
        let text = report["text"].as_str().unwrap();
        let said = format!("{round} kept\n{round} new\n");
        assert!(text.contains(&said), "{text}");
    }
}

/// The folders in which a gateway keeps workspaces and copies of them.
fn workspaces(app: &TestApp) -> impl Fn() -> Vec<PathBuf> + Clone + use<> {
    let workspaces = app.folder.path().join("data/workspaces");
    move || {
        let entries = std::fs::read_dir(&workspaces).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

async fn changed_meanwhile(app: &TestApp, has_overlays: bool) {
    let ana = Ana::open(app, "acme").await;
    ana.runs(app, "echo wait >signal").await;
    let folders = workspaces(app);
    let live = folders().into_iter().find(|it| it.join("signal").exists());
    let live = live.unwrap();
    let mut socket = socket_of(app, &ana).await;
    let wait = "echo x >begun; until grep -q go signal || test -e end; do sleep 0.05; done";
    let card = asked(
        app,
        &mut socket,
        "execute_command",
        json!({ "command": wait }),
    )
    .await;
    let ask = json!({ "callId": card["callId"] });
    socket.ask("tool:dry_run", &[ask]).await;
    let layer = if has_overlays { "upper" } else { "." };
    let of_copies = folders.clone();
    let has_begun = move || {
        of_copies()
            .iter()
            .any(|it| it.join(layer).join("begun").exists())
    };
    until("the call runs in the copy", has_begun).await;
    std::fs::write(live.join("signal"), "go\n").unwrap();
    if !has_overlays {
        let copy = folders().into_iter().find(|it| it.join("begun").exists());
        std::fs::write(copy.unwrap().join("end"), "").unwrap();
    }
    let report = result(&mut socket).await;
    assert_eq!(report["status"], "completed", "{report}");
    if !has_overlays {
        assert_eq!(report["unseen"], json!([]), "{report}");
        assert_eq!(
            report["counts"],
            json!({ "created": 2, "modified": 0, "deleted": 0, "folders": 0 })
        );
        return;
    }
    assert_eq!(report["unseen"], json!(["files"]), "{report}");
    assert_eq!(report["files"], json!([]), "{report}");
    assert_eq!(report["noResult"], "changing", "{report}");
}

/// Whether dry runs have overlays on this machine, where that server keeps workspaces.
fn has_overlays(app: &TestApp) -> bool {
    let folder = app.folder.path().join("overlays");
    for name in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let is_root = rustix::process::geteuid().is_root();
    let (user, marks): (&[&str], _) = if is_root {
        (&[], "xino=off")
    } else {
        (&["--user", "--map-root-user"], "userxattr")
    };
    let options = format!("{marks},volatile,lowerdir=lower,upperdir=upper,workdir=work");
    let mounted = std::process::Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .args(user)
        .args([
            "mount", "-t", "overlay", "overlay", "-o", &options, "merged",
        ])
        .current_dir(folder)
        .output();
    mounted.is_ok_and(|mounted| mounted.status.success())
}
