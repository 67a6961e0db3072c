//! A card names the content that it would run in: a tag that is moved between card and decision runs
//! nothing, and what runs already stays what it was.

use serde_json::{Value, json};

use super::shown::{WAYS, decide};
use super::{Api, operator, wait_for_health};
use crate::support::docker::{self, docker, lines};
use crate::support::{Person, TestApp, TestSocket};

/// A tag of two contents that work the same; all of it goes with this.
struct Tag {
    name: String,
    contents: [String; 2],
    current: usize,
}

impl Tag {
    fn make() -> Self {
        let host = docker::address();
        let name = format!("sepal-test-tag:{:08x}", rand::random::<u32>());
        let contents = ["one", "two"].map(|content| {
            let made = lines(&host, &["create", "--network", "none", &docker::image()]);
            let other = format!("{name}-{content}");
            let label = format!("LABEL content={name}-{content}");
            lines(&host, &["commit", "--change", &label, &made[0], &other]);
            lines(&host, &["rm", &made[0]]);
            other
        });
        let mut tag = Self {
            name,
            contents,
            current: 1,
        };
        tag.move_on();
        tag
    }

    /// As a pull does it, or whoever builds it again.
    fn move_on(&mut self) {
        self.current = 1 - self.current;
        let content = &self.contents[self.current];
        lines(&docker::address(), &["tag", content, &self.name]);
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        for name in self.contents.iter().chain([&self.name]) {
            docker(&docker::address(), &["rmi", "--force", name]);
        }
    }
}

async fn app(tag: &Tag) -> TestApp {
    TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &docker::address()),
        ("SPL_SANDBOX_IMAGE", &tag.name),
        ("SPL_SANDBOX_POOL_SIZE", "1"),
    ])
    .await
}

/// A card for that tool, in a session that has run nothing.
async fn card(app: &TestApp, person: &Person, tool: &str) -> (TestSocket, Value) {
    app.model.forget_rest();
    app.model
        .will_call(tool, json!({ "command": "touch /workspace/ran" }))
        .then_say("Over");
    let mut socket = TestSocket::open(app.address, person, None).await;
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    (socket, card)
}

/// Approves what a session asks next; how it ended and what it said.
async fn run(
    app: &TestApp,
    socket: &mut TestSocket,
    tool: &str,
    command: &str,
) -> (String, String) {
    app.model.forget_rest();
    app.model
        .will_call(tool, json!({ "command": command }))
        .then_say("Over");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    let status = output.rest()["status"].as_str().unwrap().to_owned();
    assert_eq!(socket.wait_for_answer().await, "Over");
    (status, output.text().to_owned())
}

#[tokio::test]
async fn a_tag_that_moves_after_the_card_runs_nothing_by_any_decision() {
    let mut tag = Tag::make();
    let app = app(&tag).await;
    let person = operator(&app, "house").await;
    let api = Api::new(&app, &person);
    let mut first = TestSocket::open(app.address, &person, None).await;
    let config =
        json!({ "transport": "stdio-docker", "containerImage": tag.name, "workspace": "rw" });
    api.add("apart", config).await;
    wait_for_health(&mut first, "apart", "healthy").await;
    let mut wrong = Vec::new();
    for (tool, way) in ["execute_command", "apart__execute_command"]
        .into_iter()
        .flat_map(|tool| WAYS.map(|way| (tool, way)))
    {
        let (mut socket, card) = card(&app, &person, tool).await;
        tag.move_on();
        let code = if let Some(code) = decide(way, &card, &mut socket, &api).await {
            socket.decide(&card, false).await;
            code
        } else {
            socket.wait_for("tool:output").await.text().to_owned()
        };
        assert_eq!(socket.wait_for_answer().await, "Over");
        if !code.contains("changed") {
            wrong.push(format!("{tool} {way:?}: {code}"));
        }
        // Asked again, it is shown and run as it is now; what was refused left nothing.
        let (status, said) = run(&app, &mut socket, tool, "ls /workspace").await;
        if status != "completed" || said.contains("ran") {
            wrong.push(format!("{tool} {way:?} again: {status}, {said}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn what_runs_already_goes_on_when_its_tag_moves() {
    let mut tag = Tag::make();
    let app = app(&tag).await;
    let person = operator(&app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let tool = "execute_command";
    let (status, _) = run(&app, &mut socket, tool, "touch /tmp/here").await;
    assert_eq!(status, "completed");
    tag.move_on();
    // Somebody else's start has seen the new content by now.
    let mut other = TestSocket::open(app.address, &person, None).await;
    let (_, said) = run(&app, &mut other, tool, "true").await;
    assert!(said.contains("changed since it was approved"), "{said}");
    let (status, _) = run(&app, &mut other, tool, "true").await;
    assert_eq!(status, "completed");
    let (status, said) = run(&app, &mut socket, tool, "ls /tmp").await;
    assert_eq!(status, "completed");
    assert!(said.contains("here"), "it was started anew: {said}");
}
