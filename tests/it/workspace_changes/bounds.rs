//! How much of a history is kept, and what is said of what is not.

use serde_json::json;

use super::{Ana, marked};
use crate::support::TestApp;

#[tokio::test]
async fn a_content_that_is_not_kept_is_not_brought_back_and_that_is_said() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.runs(&app, "head -c 2000000 /dev/zero > large; echo 1 > small")
        .await;
    ana.runs(&app, "echo x >> large; echo 2 > small").await;
    let number = ana.history().await[0]["number"].clone();
    assert_eq!(ana.changed(&number).await, ["~large", "~small"]);
    let plan = ana.plan(&number).await;
    let files = plan["files"].as_array().unwrap();
    let possible: Vec<_> = files
        .iter()
        .map(|file| file["isPossible"] == true)
        .collect();
    assert_eq!(possible, [false, true]);
    assert_eq!(files[0]["after"]["hasContent"], false);
    let undone = ana.undo(&number, &plan["digest"]).await.ok(200);
    assert_eq!(undone["restored"], 1);
    assert_eq!(undone["unrestored"][0]["path"], "large");
    let now = ana.runs(&app, "cat small; wc -c < large").await;
    assert!(now.contains("1\n2000002"), "{now}");
}

#[tokio::test]
async fn the_oldest_steps_go_first() {
    let extra = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_SANDBOX_CHECKPOINTS", "10"),
    ];
    let app = TestApp::start_with(&extra).await;
    let ana = Ana::open(&app, "acme").await;
    for number in 0..12 {
        ana.put("a?overwrite=true", number.to_string()).await;
    }
    let history = ana.history().await;
    assert!((9..=10).contains(&history.len()), "{}", history.len());
    let path = ana.at("changes/1/undo");
    let gone = ana.client.get(&path).await.problem(404, "not_found");
    assert!(
        gone["detail"].as_str().unwrap().contains("newest"),
        "{gone}"
    );
    let oldest = history.last().unwrap()["number"].clone();
    let [before, _] = ana.texts(&oldest, "a").await;
    ana.undoes(&oldest).await;
    let now = ana.runs(&app, "cat a").await;
    assert!(now.contains(before.as_str().unwrap()), "{now} {before}");
}

#[tokio::test]
async fn contents_are_kept_within_their_limit() {
    let extra = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_SANDBOX_CHECKPOINTS_MB", "2"),
    ];
    let app = TestApp::start_with(&extra).await;
    let ana = Ana::open(&app, "acme").await;
    // Each is a content of its own.
    for number in 0..6 {
        let line = format!("yes {number} | head -c 600000 > a");
        ana.runs(&app, &line).await;
    }
    let history = ana.history().await;
    assert!(
        history.len() < 6 && !history.is_empty(),
        "{}",
        history.len()
    );
    for step in &history {
        ana.undoes(&step["number"]).await;
    }
    // Of what does not fit beside the files that there are, no content is kept.
    ana.runs(
        &app,
        "for n in 1 2 3; do yes $n$n | head -c 900000 > big$n; done",
    )
    .await;
    let step = ana.history().await[0]["number"].clone();
    let path = ana.at(&format!("changes/{step}"));
    let step = ana.client.get(&path).await.ok(200);
    let kept = step["files"].as_array().unwrap().iter();
    let kept = kept
        .filter(|file| file["after"]["hasContent"] == true)
        .count();
    assert!(kept < 3, "{step}");
}

#[tokio::test]
async fn without_checkpoints_nothing_is_kept() {
    let extra = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_SANDBOX_CHECKPOINTS", "0"),
    ];
    let app = TestApp::start_with(&extra).await;
    let ana = Ana::open(&app, "acme").await;
    ana.put("a", "1").await.ok(201);
    ana.runs(&app, "echo 2 > a").await;
    assert!(ana.history().await.is_empty());
    let refused = ana.client.get(&ana.at("changes/1/undo")).await;
    let told = refused.problem(403, "not_allowed");
    assert!(
        told["detail"]
            .as_str()
            .unwrap()
            .contains("sandbox.checkpoints"),
        "{told}"
    );
}

#[tokio::test]
async fn a_workspace_that_is_too_large_to_be_looked_at_runs_its_calls_all_the_same() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.runs(&app, "echo 1 > a").await;
    let deep = "p=.; for n in $(seq 70); do p=$p/d; done; mkdir -p $p; echo 2 > a";
    ana.runs(&app, deep).await;
    let said = ana.runs(&app, "cat a").await;
    assert!(said.contains('2'), "{said}");
    let plan = ana.client.get(&ana.at("changes/1/undo")).await;
    let told = plan.problem(413, "too_large");
    assert!(
        told["detail"].as_str().unwrap().contains("64 levels"),
        "{told}"
    );
    ana.runs(&app, "rm -r d").await;
    let history = ana.history().await;
    assert_eq!(
        (&history[0]["isLate"], &history[0]["modified"]),
        (&json!(true), &json!(1))
    );
    let plan = ana.plan(&history[0]["number"]).await;
    assert_eq!(marked(&plan["files"]), ["~a"]);
}
