//! The history of a session's workspace over REST: what changed, by whom, and the way back.

mod bounds;
mod cost;
mod doors;
mod dry_runs;
mod random;
mod together;

use serde_json::{Value, json};

use crate::rest::Answer;
use crate::support::{TestApp, TestSocket};
use crate::workspace_files::Ana;

/// Prints every entry of the workspace with what an undo has to bring back.
const TREE: &str = r"(find . -mindepth 1 -type f -printf 'f %m %P ' -exec sha256sum {} \;;
    find . -mindepth 1 -type d -printf 'd %m %P\n'; find . -type l -printf 'l %P %l\n') | LC_ALL=C sort";

impl Ana {
    /// The history, the newest first.
    async fn history(&self) -> Vec<Value> {
        let list = self.client.get(&self.at("changes")).await.ok(200);
        list["items"].as_array().unwrap().clone()
    }

    /// What a step changed: `+` made, `~` changed, `-` gone.
    async fn changed(&self, number: &Value) -> Vec<String> {
        let path = self.at(&format!("changes/{number}"));
        let step = self.client.get(&path).await.ok(200);
        assert_eq!(step["total"], step["files"].as_array().unwrap().len());
        marked(&step["files"])
    }

    /// Whose session it is.
    async fn id(&self) -> String {
        let me = self.client.get("/api/auth/me").await.ok(200);
        me["user"]["id"].as_str().unwrap().to_owned()
    }

    async fn plan(&self, number: &Value) -> Value {
        let path = self.at(&format!("changes/{number}/undo"));
        self.client.get(&path).await.ok(200)
    }

    async fn undo(&self, number: &Value, digest: &Value) -> Answer {
        let path = self.at(&format!("changes/{number}/undo"));
        self.client.post(&path, json!({ "digest": digest })).await
    }

    /// Undoes what the plan shows.
    async fn undoes(&self, number: &Value) -> Value {
        let plan = self.plan(number).await;
        self.undo(number, &plan["digest"]).await.ok(200)
    }

    /// The contents of a changed file before and after.
    async fn texts(&self, number: &Value, path: &str) -> [Value; 2] {
        let path = self.at(&format!("changes/{number}/file?path={path}"));
        let file = self.client.get(&path).await.ok(200);
        ["before", "after"].map(|side| file[side]["text"].clone())
    }

    async fn tree(&self, app: &TestApp) -> String {
        let printed = self.runs(app, TREE).await;
        let lines = printed.lines().filter(|line| {
            let is_entry = |kind: &str| line.starts_with(kind);
            is_entry("f ") || is_entry("d ") || is_entry("l ")
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn marked(files: &Value) -> Vec<String> {
    let files = files.as_array().unwrap().iter();
    let mark = |file: &Value| match (file["before"].is_null(), file["after"].is_null()) {
        (true, _) => '+',
        (_, true) => '-',
        (false, false) => '~',
    };
    let path = |file: &Value| file["path"].as_str().unwrap().to_owned();
    files
        .map(|file| format!("{}{}", mark(file), path(file)))
        .collect()
}

async fn changes_are_told_and_undone(app: TestApp) {
    let ana = Ana::open(&app, "acme").await;
    // Nothing was looked at, and nothing is started to say so.
    assert!(ana.history().await.is_empty());
    ana.put("a.txt", "one\n").await.ok(201);
    let first = "echo two >> a.txt; mkdir d; echo x > d/b; ln -s /etc/passwd out; mkfifo pipe";
    ana.runs(&app, first).await;
    let before = ana.tree(&app).await;
    ana.runs(&app, "rm -r d; echo three > a.txt; chmod 600 a.txt")
        .await;

    let history = ana.history().await;
    let [third, _look, second, upload] = &history[..] else {
        panic!("{history:?}");
    };
    are_told(&ana, [third, second, upload]).await;
    is_undone_and_back(&ana, &app, third, &before).await;
    all_is_undone(&ana, &app, &upload["number"]).await;
}

async fn are_told(ana: &Ana, [third, second, upload]: [&Value; 3]) {
    assert_eq!(upload["people"], json!([ana.id().await]));
    assert_eq!(
        (&upload["calls"], &upload["created"]),
        (&json!([]), &json!(1))
    );
    assert_eq!(second["calls"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&second["created"], &second["modified"], &second["deleted"]),
        (&json!(2), &json!(1), &json!(0))
    );
    assert_eq!(second["folders"], 1, "{second}");
    let expected = ["~a.txt", "+d", "+d/b", "+out"];
    assert_eq!(ana.changed(&second["number"]).await, expected);
    assert_eq!(
        ana.texts(&second["number"], "a.txt").await,
        ["one\n", "one\ntwo\n"]
    );
    // What a link leads to is nobody's business.
    assert_eq!(
        ana.texts(&second["number"], "out").await,
        [Value::Null, Value::Null]
    );
    assert_eq!(
        ana.changed(&third["number"]).await,
        ["~a.txt", "-d", "-d/b"]
    );
}

/// Back to before the third, and, as that is a step too, back again.
async fn is_undone_and_back(ana: &Ana, app: &TestApp, third: &Value, before: &str) {
    let undone = ana.undoes(&third["number"]).await;
    assert_eq!(
        (&undone["restored"], &undone["unrestored"]),
        (&json!(3), &json!([]))
    );
    assert_eq!(ana.tree(app).await, before);
    let undo = &ana.history().await[1];
    assert_eq!(undo["number"], undone["number"]);
    assert_eq!(
        (&undo["undoes"], &undo["people"]),
        (&third["number"], &json!([ana.id().await]))
    );
    ana.undoes(&undo["number"]).await;
    assert!(ana.runs(app, "cat a.txt; ls").await.contains("three"));
}

/// Before everything: also what was uploaded is gone, and the pipe, which is nobody's file, stays.
async fn all_is_undone(ana: &Ana, app: &TestApp, upload: &Value) {
    let plan = ana.plan(upload).await;
    assert_eq!(marked(&plan["files"]), ["-a.txt", "-out"]);
    ana.undoes(upload).await;
    assert_eq!(ana.tree(app).await, "");
    let none = ana.plan(upload).await;
    assert_eq!(none["files"], json!([]));
    let nothing = ana.undo(upload, &none["digest"]).await.ok(200);
    assert_eq!(
        (&nothing["number"], &nothing["restored"]),
        (&Value::Null, &json!(0))
    );
}

#[tokio::test]
async fn changes_are_told_and_undone_in_bubblewrap() {
    changes_are_told_and_undone(TestApp::with_sandbox().await).await;
}

#[tokio::test]
async fn changes_are_told_and_undone_in_docker() {
    changes_are_told_and_undone(TestApp::with_docker().await).await;
}

#[tokio::test]
async fn what_was_shown_is_what_is_undone() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.put("a", "1").await.ok(201);
    ana.put("b", "1").await.ok(201);
    let number = ana.history().await[0]["number"].clone();
    let plan = ana.plan(&number).await;
    assert_eq!(marked(&plan["files"]), ["-b"]);
    ana.put("b?overwrite=true", "2").await.ok(200);
    let late = ana.undo(&number, &plan["digest"]).await;
    late.problem(409, "changed_since_shown");
    let missing = ana.client.post(&ana.at("changes/1/undo"), json!({})).await;
    missing.problem(400, "invalid_arguments");
    for unknown in ["0", "99"] {
        let path = ana.at(&format!("changes/{unknown}/undo"));
        ana.client.get(&path).await.problem(404, "not_found");
        let path = ana.at(&format!("changes/{unknown}"));
        ana.client.get(&path).await.problem(404, "not_found");
    }
    let wrong = ana.client.get(&ana.at("changes/x")).await;
    wrong.problem(404, "not_found");
    let path = ana.at(&format!("changes/{number}/file?path=a"));
    ana.client.get(&path).await.problem(404, "not_found");
    assert!(ana.runs(&app, "cat a b").await.contains("12"));
}

#[tokio::test]
async fn the_model_is_told_what_was_undone_until_it_changes_files_again() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.runs(&app, "echo 1 > undone.txt").await;
    let number = ana.history().await[0]["number"].clone();
    let is_told = || {
        let requests = app.model.requests();
        let last = requests.last().unwrap().body.to_string();
        last.contains("undid changes") && last.contains("- `undone.txt`")
    };
    assert!(!is_told());
    ana.undoes(&number).await;
    let mut socket = TestSocket::open(app.address, &ana.person, Some(&ana.session)).await;
    for _ in 0..2 {
        app.model.will_say("I see");
        socket.say("and now?").await;
        assert_eq!(socket.wait_for_answer().await, "I see");
        assert!(is_told());
    }
    ana.runs(&app, "echo 2 > other.txt").await;
    assert_eq!(socket.wait_for_answer().await, "Ran");
    app.model.will_say("Fine");
    socket.say("and now?").await;
    assert_eq!(socket.wait_for_answer().await, "Fine");
    assert!(!is_told());
}

#[tokio::test]
async fn a_history_outlives_a_restart_and_tells_what_nobody_owned_up_to() {
    let app = TestApp::with_sandbox().await;
    let mut ana = Ana::open(&app, "acme").await;
    ana.put("kept", "before").await.ok(201);
    let change = |folder: &std::path::Path| {
        let mut folders = std::fs::read_dir(folder.join("workspaces")).unwrap();
        let workspace = folders.find(|it| it.as_ref().unwrap().path().join("kept").exists());
        std::fs::write(workspace.unwrap().unwrap().path().join("kept"), "meanwhile").unwrap();
    };
    let app = app
        .restart_after(async |folder: &std::path::Path| change(folder))
        .await;
    ana.client = crate::rest::Client::with_key(&app, &ana.person.key);
    ana.runs(&app, "echo after > kept").await;
    let history = ana.history().await;
    let [call, between, upload] = &history[..] else {
        panic!("{history:?}");
    };
    assert_eq!(
        (&between["calls"], &between["people"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(
        ana.texts(&between["number"], "kept").await,
        ["before", "meanwhile"]
    );
    assert_eq!(
        ana.texts(&call["number"], "kept").await,
        ["meanwhile", "after\n"]
    );
    ana.undoes(&between["number"]).await;
    assert!(ana.runs(&app, "cat kept").await.contains("before"));
    assert_eq!(upload["created"], 1);

    // With the session, all of it goes.
    let rows = ana.client.delete(ana.at("").trim_end_matches('/')).await;
    assert_eq!(rows.status, 204);
    let gone = ana.client.get(&ana.at("changes")).await;
    gone.problem(404, "session_not_found");
}
