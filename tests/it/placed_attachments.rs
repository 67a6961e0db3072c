//! What a model cannot read is put into the workspace, where its tools can.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use crate::attachments::{png, upload, with_session};
use crate::model_stub::{ModelStub, Vendor};
use crate::rest::Client;
use crate::support::{Person, Said, Server, TestApp, TestSocket, person};

const PAPER: &[u8] = b"%PDF-1.4 a paper";
/// The name that people gave it, and what stands in its place.
const NAME: &str = "Q3%20report.pdf";
const WORDS: &str = "[PDF \"Q3 report.pdf\", 1 kB: this model cannot read PDF by itself; the file is \
                     at `/workspace/attachments/Q3_report.pdf`]";

/// Somebody with a session and a socket in it.
struct Ana {
    person: Person,
    client: Client,
    session: String,
    socket: TestSocket,
}

impl Ana {
    async fn open(app: &TestApp, tenant: &str) -> Self {
        let (person, client, session) = with_session(app, tenant).await;
        let socket = TestSocket::open(app.address, &person, Some(&session)).await;
        Self {
            person,
            client,
            session,
            socket,
        }
    }

    /// Attaches a file to a message.
    async fn attach(&mut self, name: &str, content: &[u8]) {
        let bytes = content.to_vec();
        let item = upload(&self.client, &self.session, name, bytes).await;
        let message = json!({ "text": "read it", "attachments": [item.ok(201)["id"]] });
        let said = self.socket.ask("message", &[message]).await;
        assert_eq!(said["ok"], true, "{said}");
    }

    /// The same, and the turn to its end.
    async fn shows(&mut self, app: &TestApp, name: &str, content: &[u8]) {
        app.model.will_say("Read");
        self.attach(name, content).await;
        assert_eq!(self.socket.wait_for_answer().await, "Read");
    }

    async fn says(&mut self, app: &TestApp) {
        app.model.will_say("Yes");
        self.socket.say("sure?").await;
        assert_eq!(self.socket.wait_for_answer().await, "Yes");
    }

    /// What a command prints in the sandbox.
    async fn runs(&mut self, app: &TestApp, command: &str) -> String {
        app.model
            .will_call("execute_command", json!({ "command": command }))
            .then_say("Ran");
        self.socket.say("run").await;
        let card = self.socket.wait_for_approval().await;
        self.socket.approve(&card).await;
        let output = self.socket.wait_for("tool:output").await;
        assert_eq!(self.socket.wait_for_answer().await, "Ran");
        output.text().to_owned()
    }

    /// The transcript says where files were put: their paths, in order.
    async fn placed(&self) -> Vec<Value> {
        let path = format!("/api/sessions/{}/events", self.session);
        let told = self.client.get(&path).await.ok(200);
        let events = told["items"].as_array().unwrap().iter();
        let placed = events.filter_map(|event| event.pointer("/args/0/placed/path"));
        placed.cloned().collect()
    }
}

/// What the model was asked last.
fn asked(app: &TestApp) -> Value {
    app.model.requests().pop().unwrap().body
}

/// A text as it stands in JSON.
fn escaped(text: &str) -> String {
    let text = json!(text).to_string();
    text.trim_matches('"').to_owned()
}

async fn a_paper_is_where_tools_can_read_it(app: TestApp) {
    let mut ana = Ana::open(&app, "acme").await;
    ana.shows(&app, NAME, PAPER).await;
    let first = asked(&app);
    let text = first.to_string();
    assert!(text.contains(&escaped(WORDS)), "{text}");
    assert!(!text.contains(&STANDARD.encode(PAPER)), "{text}");
    let path = json!("/workspace/attachments/Q3_report.pdf");
    assert_eq!(ana.placed().await, std::slice::from_ref(&path));
    let read = "cat attachments/Q3_report.pdf; ls -A attachments | wc -l";
    let read = ana.runs(&app, read).await;
    assert!(read.contains("%PDF-1.4 a paper1\n"), "{read}");

    // The same paper again, and a gateway that has forgotten all but the journal.
    ana.shows(&app, NAME, PAPER).await;
    let app = app.restart().await;
    ana.client = Client::with_key(&app, &ana.person.key);
    ana.socket = TestSocket::open(app.address, &ana.person, Some(&ana.session)).await;
    ana.says(&app).await;
    let later = asked(&app);
    let before = first["messages"].as_array().unwrap();
    let messages = later["messages"].as_array().unwrap();
    assert_eq!(&messages[..before.len()], before, "the prefix is the same");
    assert_eq!(later.to_string().matches(&escaped(WORDS)).count(), 2);
    assert_eq!(ana.placed().await, [path]);
    assert_eq!(
        ana.runs(&app, "ls -A attachments")
            .await
            .matches("pdf")
            .count(),
        1
    );
}

/// Asserts S3.19.
#[tokio::test]
async fn a_paper_is_where_tools_can_read_it_in_bubblewrap() {
    a_paper_is_where_tools_can_read_it(TestApp::with_sandbox().await).await;
}

/// Asserts S3.19.
#[tokio::test]
async fn a_paper_is_where_tools_can_read_it_in_docker() {
    a_paper_is_where_tools_can_read_it(TestApp::with_docker().await).await;
}

async fn links_of_a_model_lead_nowhere(app: TestApp) {
    let mut ana = Ana::open(&app, "acme").await;
    let link = "mkdir inside; ln -s inside attachments; ls -A inside | wc -l";
    ana.runs(&app, link).await;
    ana.shows(&app, NAME, PAPER).await;
    let text = asked(&app).to_string();
    let words = escaped("[PDF \"Q3 report.pdf\", 1 kB: this model cannot read PDF; models of");
    assert!(text.contains(&words), "{text}");
    assert!(ana.placed().await.is_empty());
    let named = "ls -A inside; rm attachments; mkdir attachments; ln -s /etc/passwd \
                 attachments/Q3_report.pdf; echo mine > attachments/Q3_report-2.pdf";
    let left = ana.runs(&app, named).await;
    assert!(!left.contains("pdf"), "{left}");
    // What could not be put there is tried again in the next turn.
    ana.says(&app).await;
    let path = json!("/workspace/attachments/Q3_report-3.pdf");
    assert_eq!(ana.placed().await, [path]);
    let read = "cat attachments/Q3_report-[23].pdf; readlink attachments/Q3_report.pdf";
    let read = ana.runs(&app, read).await;
    assert!(read.contains("mine\n%PDF-1.4 a paper/etc/passwd"), "{read}");
}

/// Asserts S3.19: a workspace is the model's own, and nothing that it made there is followed or
/// replaced.
#[tokio::test]
async fn links_of_a_model_lead_nowhere_in_bubblewrap() {
    links_of_a_model_lead_nowhere(TestApp::with_sandbox().await).await;
}

/// Asserts S3.19.
#[tokio::test]
async fn links_of_a_model_lead_nowhere_in_docker() {
    links_of_a_model_lead_nowhere(TestApp::with_docker().await).await;
}

/// All files below a folder.
fn files(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// Asserts S3.19: what is put into a workspace is in that of its session alone.
#[tokio::test]
async fn nobody_elses_workspace_gets_it() {
    let app = TestApp::with_sandbox().await;
    let mut ana = Ana::open(&app, "acme").await;
    let mut eve = Ana::open(&app, "other").await;
    eve.runs(&app, "mkdir attachments").await;
    ana.shows(&app, NAME, PAPER).await;
    let workspaces = app.folder.path().join("data/workspaces");
    assert_eq!(files(workspaces.clone()).len(), 1);
    let seen = eve
        .runs(
            &app,
            "find / -name 'Q3_report*' 2>/dev/null; ls -A attachments",
        )
        .await;
    assert!(!seen.contains("Q3"), "{seen}");
    assert!(eve.placed().await.is_empty());
    let path = format!("/api/sessions/{}/events", ana.session);
    let refused = eve.client.get(&path).await;
    refused.problem(404, "session_not_found");
    // The same content is a file of its own in each session.
    eve.shows(&app, NAME, PAPER).await;
    assert_eq!(files(workspaces).len(), 2);
}

/// Asserts S3.19: in every dialect the words stand in the place of what cannot be read, also in later
/// turns, and a text that fits goes in as text.
#[tokio::test]
async fn a_text_that_is_too_long_is_named_in_every_dialect() {
    for vendor in Vendor::ALL {
        let extra = [
            ("SPL_SANDBOX", "bubblewrap"),
            ("SPL_LLM_CONTEXT_WINDOW", "16384"),
        ];
        let app = TestApp::start_as(vendor, &extra).await;
        let mut ana = Ana::open(&app, "acme").await;
        ana.shows(&app, "short.txt", b"brief news").await;
        ana.shows(&app, "long.txt", "long news ".repeat(10_000).as_bytes())
            .await;
        let words = escaped(
            "read it\n\n[text file \"long.txt\", 100 kB: it is too long for this model to read at \
             once; the file is at `/workspace/attachments/long.txt`]",
        );
        for _ in 0..2 {
            let text = asked(&app).to_string();
            assert!(text.contains(&words), "{vendor:?} {text}");
            assert!(text.contains("brief news"), "{vendor:?} {text}");
            assert!(!text.contains("long news"), "{vendor:?} {text}");
            ana.says(&app).await;
        }
        let read = ana.runs(&app, "head -c 9 attachments/long.txt").await;
        assert!(read.contains("long news"), "{read}");
    }
}

/// Asserts S3.19: a model of OpenAI that is known to see nothing finds picture and paper in the
/// workspace; one that sees is sent them, whatever was put there before.
#[tokio::test]
async fn pictures_are_words_for_a_model_that_cannot_see_and_come_back() {
    let extra = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_LLM_MODEL", "gpt-4-1106-preview"),
    ];
    let app = TestApp::start_as(Vendor::Responses, &extra).await;
    let mut ana = Ana::open(&app, "acme").await;
    ana.shows(&app, "cat.png", &png(6, 4, [1, 2, 3])).await;
    ana.shows(&app, NAME, PAPER).await;
    let cat = escaped(
        "[image \"cat.png\", 6×4: this model cannot see images; the file is at \
         `/workspace/attachments/cat.png`]",
    );
    let blind = |asked: Value| {
        let text = asked.to_string();
        assert!(
            text.contains(&cat) && text.contains(&escaped(WORDS)),
            "{text}"
        );
        assert!(!text.contains("data:"), "{text}");
        asked["input"].as_array().unwrap()[..3].to_vec()
    };
    let before = blind(asked(&app));
    for (model, sees) in [("gpt-5.1", true), ("gpt-4-1106-preview", false)] {
        let chosen = ana
            .socket
            .ask("session:model", &[json!({ "model": model })])
            .await;
        assert_eq!(chosen["ok"], true, "{chosen}");
        ana.says(&app).await;
        if sees {
            let text = asked(&app).to_string();
            assert!(text.contains("data:image/png;base64,"), "{text}");
            assert!(text.contains(&STANDARD.encode(PAPER)), "{text}");
            assert!(!text.contains("/workspace/attachments"), "{text}");
        } else {
            assert_eq!(blind(asked(&app)), before, "the same words as before");
        }
    }
    assert_eq!(ana.placed().await.len(), 2);
}

/// Asserts S3.19: without a sandbox the words only say what the model cannot do.
#[tokio::test]
async fn without_a_sandbox_nothing_is_put_anywhere_and_pictures_come_back() {
    let extra = [
        ("SPL_SANDBOX", "none"),
        ("SPL_LLM_MODEL", "gpt-4-1106-preview"),
    ];
    let app = TestApp::start_as(Vendor::Responses, &extra).await;
    let mut ana = Ana::open(&app, "acme").await;
    ana.shows(&app, "cat.png", &png(6, 4, [1, 2, 3])).await;
    let words = escaped("[image \"cat.png\", 6×4: this model cannot see images]");
    let text = asked(&app).to_string();
    assert!(text.contains(&words), "{text}");
    let chosen = ana
        .socket
        .ask("session:model", &[json!({ "model": "gpt-5.1" })])
        .await;
    assert_eq!(chosen["ok"], true, "{chosen}");
    ana.says(&app).await;
    let text = asked(&app).to_string();
    assert!(
        text.contains("data:image/png;base64,") && !text.contains(&words),
        "{text}"
    );
    assert!(ana.placed().await.is_empty());
}

/// Takes the copy's event from the journal, as if the server had been killed right before it.
async fn lose_event(data: &Path) {
    let options = SqliteConnectOptions::new().filename(data.join("sepal.db"));
    let mut journal = options.connect().await.unwrap();
    let lost = "DELETE FROM journal WHERE instr(body, CAST('attachment_placed' AS BLOB)) > 0";
    let lost = sqlx::query(lost).execute(&mut journal).await.unwrap();
    assert_eq!(lost.rows_affected(), 1);
    journal.close().await.unwrap();
}

/// Asserts S3.19: killed while the model is asked, or between the copy and what the journal says of it, the
/// server goes on with the same words, and the workspace has the file once.
#[tokio::test]
async fn a_paper_is_there_once_though_the_server_is_killed() {
    for loses_event in [false, true] {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        let model = ModelStub::start().await;
        let env = [("SPL_SANDBOX", "bubblewrap")];
        let server = Server::start_with(&data, &model, &env);
        let person = person(&data, &env);
        let client = Client::at(server.address, &person.key);
        let created = client.post("/api/sessions", json!({})).await.ok(201);
        let session = created["id"].as_str().unwrap().to_owned();
        let socket = TestSocket::open(server.address, &person, Some(&session)).await;
        let mut ana = Ana {
            person,
            client,
            session,
            socket,
        };
        model.will_say("never whole").stall_at_once();
        ana.attach(NAME, PAPER).await;
        model.stalled().await;
        let is_told = |said: &Said| said.args.iter().any(|it| it["placed"].is_object());
        ana.socket.wait_where(is_told).await;
        server.kill();
        if loses_event {
            lose_event(&data).await;
        }
        model.will_say("Read");
        let server = Server::start_with(&data, &model, &env);
        model.asked(2).await;
        ana.client = Client::at(server.address, &ana.person.key);
        let asked = model.requests();
        assert_eq!(asked[0].body["messages"], asked[1].body["messages"]);
        let text = asked[1].body.to_string();
        assert!(text.contains(&escaped(WORDS)), "{text}");
        assert_eq!(ana.placed().await.len(), 1);
        assert_eq!(files(data.join("workspaces")).len(), 1);
        server.kill();
    }
}
