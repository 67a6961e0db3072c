//! What a card says of the file that its call would write.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use sepal::domain::Role;
use serde_json::{Value, json};

use crate::model_stub::Reply;
use crate::servers::{Api, offered, shell, tool, wait_for_health};
use crate::support::{TestApp, TestSocket};

fn write(path: &str, lines: usize) -> Value {
    json!({ "path": path, "content": "a line\n".repeat(lines) })
}

fn new() -> Value {
    json!({ "exists": false, "bytes": 0, "isText": false })
}

fn text(lines: usize) -> Value {
    json!({ "exists": true, "lines": lines, "bytes": lines * 7, "isText": true })
}

/// The card of a call that the model asks for now.
async fn asked(app: &TestApp, socket: &mut TestSocket, tool: &str, args: Value) -> Value {
    app.model.will_call(tool, args);
    socket.say("go").await;
    socket.wait_for_approval().await
}

/// Runs what is asked for, and the turn to its end.
async fn runs(app: &TestApp, socket: &mut TestSocket, card: &Value) {
    app.model.will_say("Done");
    socket.approve(card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

/// All calls of the turn, as they were told last.
async fn queue(socket: &mut TestSocket) -> Value {
    socket.take_in().await;
    let last = socket.log.iter().rfind(|said| said.name == "tool:queue");
    last.unwrap().args[0]["calls"].clone()
}

async fn called(app: &TestApp, socket: &mut TestSocket, tool: &str, args: Value) {
    let card = asked(app, socket, tool, args).await;
    runs(app, socket, &card).await;
}

/// Refuses what is asked for, and the turn to its end.
async fn refuses(app: &TestApp, socket: &mut TestSocket, card: &Value) {
    app.model.will_say("Done");
    socket.decide(card, false).await;
    assert_eq!(socket.wait_for_answer().await, "Done");
}

/// Asserts S2.28.
#[tokio::test]
async fn a_first_write_makes_a_file_and_a_second_replaces_its_lines() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let card = asked(&app, &mut socket, "write_file", write("a.txt", 120)).await;
    assert_eq!(card["file"], new(), "nothing ran in this session: {card}");
    runs(&app, &mut socket, &card).await;
    let card = asked(&app, &mut socket, "write_file", write("./a.txt", 2)).await;
    assert_eq!(card["file"], text(120), "{card}");
    assert_eq!(queue(&mut socket).await[0]["file"], text(120));
    let path = format!("/api/sessions/{}/events", socket.session());
    let told = Api::new(&app, &owner).get(&path).await.to_string();
    assert!(told.contains(&text(120).to_string()), "{told}");
    refuses(&app, &mut socket, &card).await;
    let card = asked(&app, &mut socket, "write_file", write("b.txt", 1)).await;
    assert_eq!(card["file"], new(), "{card}");
    refuses(&app, &mut socket, &card).await;
    let card = asked(&app, &mut socket, "read_file", json!({ "path": "a.txt" })).await;
    assert_eq!(card["file"], Value::Null, "only writes are looked at");
}

#[tokio::test]
async fn another_path_has_other_facts_and_other_content_has_the_same() {
    let app = TestApp::with_sandbox().await;
    let mut socket = app.socket("acme").await;
    called(&app, &mut socket, "write_file", write("a.txt", 120)).await;
    for (args, expected) in [
        (write("a.txt", 3), text(120)),
        (write("b.txt", 3), Value::Null),
    ] {
        let card = asked(&app, &mut socket, "write_file", write("a.txt", 2)).await;
        assert_eq!(card["file"], text(120), "{card}");
        app.model.will_say("Done");
        let edited = json!({ "callId": card["callId"], "approved": true, "args": args });
        assert_eq!(socket.ask("tool:approval", &[edited]).await["ok"], true);
        let ran = socket.wait_where(|said| {
            said.name == "tool:queue" && said.args[0]["calls"][0]["status"] == "executing"
        });
        let ran = ran.await.args[0]["calls"][0].clone();
        assert_eq!(ran["file"], expected, "{ran}");
        assert_eq!(socket.wait_for_answer().await, "Done");
        called(&app, &mut socket, "write_file", write("a.txt", 120)).await;
    }
}

#[tokio::test]
async fn two_writes_of_one_file_in_one_answer_say_nothing_of_it() {
    let app = TestApp::with_sandbox().await;
    let mut socket = app.socket("acme").await;
    let calls = [
        ("write_file", write("a.txt", 1)),
        ("write_file", write("./a.txt", 2)),
        ("write_file", write("b.txt", 3)),
    ];
    app.model.will(Reply::answer("", &calls));
    socket.say("go").await;
    socket.wait_for_approval().await;
    let queue = queue(&mut socket).await;
    let files: Vec<&Value> = (0..3).map(|index| &queue[index]["file"]).collect();
    assert_eq!(files, [&Value::Null, &Value::Null, &new()]);
}

#[tokio::test]
async fn what_is_not_known_is_not_said() {
    // A turn that reads instructions or skills of the workspace would start the sandbox again.
    let bare = ("SPL_CONTEXT_WORKSPACE_INSTRUCTIONS", "false");
    let bare_skills = ("SPL_SKILLS_WORKSPACE", "false");
    let app = TestApp::start_with(&[("SPL_SANDBOX", "bubblewrap"), bare, bare_skills]).await;
    let person = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    for path in ["../a.txt", "/etc/a.txt", "folder/", "."] {
        let card = asked(&app, &mut socket, "write_file", write(path, 1)).await;
        assert_eq!(card["file"], Value::Null, "{path}: {card}");
        refuses(&app, &mut socket, &card).await;
    }
    called(&app, &mut socket, "write_file", write("a.txt", 120)).await;
    // The sandbox of before has ended, and its files are still there.
    let session = socket.session();
    drop(socket);
    let app = app.restart().await;
    let mut socket = TestSocket::open(app.address, &person, Some(&session)).await;
    let card = asked(&app, &mut socket, "write_file", write("a.txt", 2)).await;
    assert_eq!(card["file"], Value::Null, "{card}");
    refuses(&app, &mut socket, &card).await;
    called(&app, &mut socket, "list_files", json!({})).await;
    let card = asked(&app, &mut socket, "write_file", write("a.txt", 2)).await;
    assert_eq!(card["file"], text(120), "{card}");
}

/// An engine copies what such an image has in the workspace into each new one.
#[tokio::test]
async fn an_image_of_the_operators_own_may_bring_files() {
    let app = TestApp::with_docker().await;
    let mut socket = app.socket("acme").await;
    let card = asked(&app, &mut socket, "write_file", write("a.txt", 120)).await;
    assert_eq!(card["file"], Value::Null, "{card}");
    runs(&app, &mut socket, &card).await;
    let card = asked(&app, &mut socket, "write_file", write("a.txt", 2)).await;
    assert_eq!(card["file"], text(120), "{card}");
}

#[tokio::test]
async fn a_foreign_server_is_never_asked() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let mut config = shell("say fine");
    let script = config["args"][1].as_str().unwrap();
    let heard = r#"*fileFacts*) echo "was asked" >&2; answer '{"exists":true,"bytes":7,"isText":false}' ;;
    *'"method":"tools/list"'*"#;
    let script = script.replace(r#"*'"method":"tools/list"'*"#, heard);
    assert!(script.contains("was asked"));
    config["args"][1] = json!(script);
    config["env"]["TOOLS"] = json!(tool("write_file", "Writes elsewhere"));
    let api = Api::new(&app, &owner);
    api.add("sandbox2", config).await;
    wait_for_health(&mut socket, "sandbox2", "healthy").await;
    called(&app, &mut socket, "write_file", write("a.txt", 120)).await;
    let names = offered(&app);
    let is_theirs = |name: &&String| name.contains("write_file") && *name != "write_file";
    let theirs = names.iter().find(is_theirs).unwrap();
    // The second time its connection is open.
    for _ in 0..2 {
        let card = asked(&app, &mut socket, theirs, write("a.txt", 2)).await;
        assert_eq!(card["server"], "sandbox2");
        assert_eq!(card["file"], Value::Null, "{card}");
        runs(&app, &mut socket, &card).await;
    }
    let logs = api.get("/api/mcp/sandbox2/logs").await.to_string();
    assert!(
        logs.contains("started") && !logs.contains("was asked"),
        "{logs}"
    );
}

#[tokio::test]
async fn another_tenant_learns_nothing_of_it() {
    let app = TestApp::with_sandbox().await;
    let stranger = app.person_with("other", Role::Owner).await;
    let mut theirs = TestSocket::open(app.address, &stranger, None).await;
    let mut socket = app.socket("acme").await;
    called(&app, &mut socket, "write_file", write("a.txt", 120)).await;
    let card = asked(&app, &mut socket, "write_file", write("a.txt", 2)).await;
    assert_eq!(card["file"], text(120), "{card}");
    theirs.take_in().await;
    let is_card = |name: &str| name.starts_with("tool:");
    assert!(theirs.log.iter().all(|said| !is_card(&said.name)));
    let path = format!("/api/sessions/{}/events", socket.session());
    let api = Api::new(&app, &stranger);
    let (status, _) = api.refused(reqwest::Method::GET, &path, &Value::Null).await;
    assert_eq!(status, 404);
    refuses(&app, &mut socket, &card).await;
    let card = asked(&app, &mut theirs, "write_file", write("a.txt", 2)).await;
    assert_eq!(card["file"], new(), "{card}");
}

/// The processes of the sandboxes' own server in this installation.
fn servers_of(app: &TestApp) -> Vec<Pid> {
    let folder = app.folder.path().file_name().unwrap();
    let folder = folder.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|process| {
        let read = |name: &str| fs::read_to_string(process.path().join(name)).ok();
        let is_server = read("comm")?.contains("mcp-serve");
        let is_ours = is_server && read("mountinfo")?.contains(folder);
        let id = process.file_name().to_str()?.parse().ok()?;
        is_ours.then(|| Pid::from_raw(id)).flatten()
    });
    found.collect()
}

#[tokio::test]
async fn a_server_that_hangs_costs_a_moment_and_the_card_says_what_it_said_before() {
    let app = TestApp::with_sandbox().await;
    let mut socket = app.socket("acme").await;
    called(&app, &mut socket, "write_file", write("a.txt", 120)).await;
    let servers = servers_of(&app);
    assert!(!servers.is_empty());
    let signal = |signal| {
        for pid in &servers {
            kill_process(*pid, signal).unwrap();
        }
    };
    signal(Signal::STOP);
    // Looked at one after the other, they would take longer than any wait of a test.
    let calls: Vec<_> = (0..60)
        .map(|index| ("write_file", write(&format!("{index}.txt"), 1)))
        .collect();
    app.model.will(Reply::answer("", &calls));
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    assert_eq!(card["file"], Value::Null, "{card}");
    signal(Signal::CONT);
    let session = json!({ "callIds": null, "approved": false });
    app.model.will_say("Done");
    socket.ask("tool:approval_all", &[session]).await;
    assert_eq!(socket.wait_for_answer().await, "Done");
    let card = asked(&app, &mut socket, "write_file", write("a.txt", 2)).await;
    assert_eq!(card["file"], text(120), "it answers again: {card}");
}
