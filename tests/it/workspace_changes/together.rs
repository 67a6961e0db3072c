//! Calls that run side by side, and people who change files meanwhile: nobody guesses whose change it was.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::Ana;
use crate::dry_runs::{asked, socket_of};
use crate::model_stub::Reply;
use crate::servers::{Api, shell, wait_for_health};
use crate::support::{TestApp, TestSocket};

#[tokio::test]
async fn what_changed_while_calls_ran_belongs_to_all_of_them() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    let mut socket = TestSocket::open(app.address, &ana.person, Some(&ana.session)).await;
    let waits = "echo 1 > one; until [ -e go ]; do sleep 0.05; done; rm go";
    let calls = [
        ("execute_command", json!({ "command": waits })),
        ("execute_command", json!({ "command": "echo 2 > two" })),
    ];
    app.model.will(Reply::answer("", &calls)).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let second = socket.wait_for_approval().await;
    socket.approve(&second).await;
    let ended = socket.wait_for("tool:output").await;
    assert_eq!(ended.rest()["callId"], second["callId"], "{ended:?}");
    // The first runs on: what changed is not told yet, and nothing is undone now.
    assert!(ana.history().await.is_empty());
    let plan = ana.client.get(&ana.at("changes/1/undo")).await;
    let told = plan.problem(409, "nothing_to_do");
    assert!(
        told["detail"].as_str().unwrap().contains("calls run"),
        "{told}"
    );
    ana.put("go", "").await.ok(201);
    assert_eq!(socket.wait_for_answer().await, "Done");
    let history = ana.history().await;
    assert_eq!(history.len(), 1, "{history:?}");
    let both = json!([card["callId"], second["callId"]]);
    assert_eq!(history[0]["calls"], both);
    assert_eq!(history[0]["people"], json!([ana.id().await]));
    assert_eq!(ana.changed(&history[0]["number"]).await, ["+one", "+two"]);
}

#[tokio::test]
async fn a_call_that_ends_its_sandbox_has_its_changes_told_at_the_next_look() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.runs(&app, "echo one > a").await;
    // The server in the sandbox is a process of the same user.
    ana.runs(&app, "echo two > a; kill -9 $PPID; kill -9 1; sleep 30")
        .await;
    let before = ana.history().await;
    ana.runs(&app, "cat a").await;
    let history = ana.history().await;
    let late = history.iter().find(|step| step["isLate"] == true);
    let late = late.unwrap_or_else(|| panic!("{before:?} {history:?}"));
    assert_eq!(late["calls"].as_array().unwrap().len(), 1);
    assert_eq!(ana.texts(&late["number"], "a").await, ["one\n", "two\n"]);
}

#[tokio::test]
async fn calls_that_only_read_are_no_steps() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    let mut socket = TestSocket::open(app.address, &ana.person, Some(&ana.session)).await;
    app.model
        .will_call("list_files", json!({}))
        .then_say("Listed");
    socket.say("list").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for_answer().await, "Listed");
    assert!(ana.history().await.is_empty());
    let args = json!({ "path": "a", "content": "1" });
    app.model.will_call("write_file", args).then_say("Written");
    socket.say("write").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for_answer().await, "Written");
    let history = ana.history().await;
    assert_eq!(history[0]["calls"], json!([card["callId"]]));
}

/// What a server of one's own changes is in the history like what commands change.
#[tokio::test]
async fn what_another_server_changes_is_told_and_undone() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.put("a", "x\n").await.ok(201);
    let before = ana.tree(&app).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut config = shell("echo written >/workspace/by-it; rm -f /workspace/a; say written");
    config["workspace"] = json!("rw");
    Api::new(&app, &owner).add("aux", config).await;
    let mut socket = socket_of(&app, &ana).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    let card = asked(&app, &mut socket, "echo", json!({})).await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for("tool:output").await.text(), "written");
    assert_eq!(socket.wait_for_answer().await, "Done");
    drop(socket);

    let history = ana.history().await;
    let its = |step: &&Value| step["calls"] == json!([card["callId"]]);
    let step = history.iter().find(its).unwrap();
    assert_eq!(ana.changed(&step["number"]).await, ["-a", "+by-it"]);
    ana.undoes(&step["number"]).await;
    assert_eq!(ana.tree(&app).await, before);
}
