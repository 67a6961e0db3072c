//! `sepal admin user` beside a running server.

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{DEADLINE, Server, person, sepal};

#[tokio::test]
async fn who_administers_the_installation_is_said_on_the_command_line() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let env = [("SPL_SANDBOX", "none")];
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let client = Client::at(server.address, &ana.key);
    let told = |words: &[&str]| {
        let mut command = sepal(&data);
        command.envs(env).args(["admin", "user"]).args(words);
        let output = command.args(["--tenant", "acme"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // A server of the whole installation is for its admins only.
    let add = async || {
        let config = json!({ "url": "https://9.9.9.9/mcp", "enabled": false });
        let server = json!({ "name": "shared", "config": config, "scope": "installation" });
        client.post("/api/mcp/add", server).await.status
    };
    let administers = async |whether: bool| {
        let me = async || client.get("/api/auth/me").await.ok(200);
        // What a server has checked counts for some seconds.
        let heard = async { while me().await["user"]["installationAdmin"] != whether {} };
        tokio::time::timeout(DEADLINE, heard).await.unwrap();
    };
    administers(false).await;
    assert_eq!(add().await, 403);
    told(&["installation-admin", "ana", "yes"]);
    administers(true).await;
    assert_eq!(add().await, 201);
    assert!(told(&["list"]).contains("ana  member  installation admin"));
    told(&["installation-admin", "ana", "no"]);
    administers(false).await;
    assert!(!told(&["list"]).contains("installation admin"));

    told(&["add", "ben", "--installation-admin"]);
    assert!(told(&["list"]).contains("ben  member  installation admin"));
    told(&["delete", "ben", "--yes"]);
    // The running server deletes him.
    let deleted = async {
        while told(&["list"]).contains("ben  ") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, deleted).await.unwrap();
}

#[tokio::test]
async fn people_are_invited_on_the_command_line() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let env = [("SPL_SANDBOX", "none")];
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let invite = |words: &[&str]| {
        let mut command = sepal(&data);
        command.envs(env).args(["admin", "user", "invite"]);
        command
            .args(["--tenant", "acme"])
            .args(words)
            .output()
            .unwrap()
    };
    let refused = invite(&["--days", "31"]);
    assert!(!refused.status.success());
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("from 1 to 30"), "{told}");
    let invited = invite(&["--role", "viewer", "--note", "Ben"]);
    assert!(invited.status.success(), "{invited:?}");
    let told = String::from_utf8(invited.stdout).unwrap();
    // The link leads to the server that runs.
    let start = format!("http://{}/join#", server.address);
    let secret = told.trim().rsplit_once(&start).unwrap().1;
    let nobody = Client::at(server.address, "");
    let body = json!({ "secret": secret, "name": "Ben", "password": "correct horse battery" });
    let me = nobody.post("/api/auth/invitation", body).await.ok(200);
    assert_eq!(me["user"]["role"], "viewer");
    // Whoever invited nobody sees it all the same: Ana is no admin.
    let client = Client::at(server.address, &ana.key);
    client
        .get("/api/invitations")
        .await
        .problem(403, "not_allowed");
}

#[tokio::test]
async fn roles_and_groups_are_managed_on_the_command_line() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let env = [("SPL_SANDBOX", "none")];
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let client = Client::at(server.address, &ana.key);
    let run = |words: &[&str]| {
        let mut command = sepal(&data);
        command.envs(env).arg("admin").args(words);
        command.args(["--tenant", "acme"]).output().unwrap()
    };
    let told = |words: &[&str]| {
        let output = run(words);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let may_read = async |may: bool| {
        let heard = async { while (client.get("/api/audit/state").await.status == 200) != may {} };
        tokio::time::timeout(DEADLINE, heard).await.unwrap();
    };
    let unknown = run(&["role", "add", "Auditor", "--right", "tea.make"]);
    let unknown = String::from_utf8(unknown.stderr).unwrap();
    assert!(unknown.contains("`tea.make`"), "{unknown}");
    told(&["role", "add", "Auditor", "--right", "audit.read"]);
    told(&["role", "give", "auditor", "ana"]);
    may_read(true).await;
    told(&["role", "take", "Auditor", "ana"]);
    may_read(false).await;
    told(&["group", "add", "Finance", "--description", "Who pays"]);
    told(&["group", "give", "Finance", "Auditor"]);
    told(&["group", "join", "Finance", "ana"]);
    may_read(true).await;
    let shown = told(&["group", "show", "finance"]);
    assert!(
        shown.contains("Auditor") && shown.contains("ana"),
        "{shown}"
    );
    assert!(told(&["group", "list"]).contains("Finance  1 members"));
    told(&["group", "take", "Finance", "Auditor"]);
    may_read(false).await;
    told(&["role", "set", "Auditor", "--right", "usage.read"]);
    assert!(told(&["role", "list"]).contains("Auditor  usage.read"));
    told(&["group", "leave", "Finance", "ana"]);
    told(&["group", "remove", "Finance"]);
    told(&["role", "remove", "Auditor"]);
    assert_eq!(told(&["role", "list"]), "");

    let made = told(&["scim-token", "add", "Entra", "--role", "viewer"]);
    let id = made.split_whitespace().next().unwrap();
    let directory = Client::at(server.address, made.lines().last().unwrap());
    let status = async || {
        let asked = directory.request(Method::GET, "/scim/v2/Users");
        asked.send().await.unwrap().status().as_u16()
    };
    assert_eq!(status().await, 200);
    assert!(told(&["scim-token", "list"]).contains("Entra  viewer"));
    told(&["scim-token", "revoke", id]);
    assert_eq!(status().await, 401);
}
