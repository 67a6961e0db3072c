//! `sepal admin user` beside a running server.

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
}
