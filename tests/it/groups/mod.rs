//! What groups carry for their members: rules, and models and servers that are theirs alone. Budgets are in
//! `budgets/groups.rs`.

mod access;
mod rules;

use sepal::domain::Role;
use serde_json::{Value, json};

use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket};

/// Tools run in real sandboxes.
const SANDBOXED: [(&str, &str); 1] = [("SPL_SANDBOX", "bubblewrap")];

/// A tenant with an owner, a group, and a member of the tenant with an open session.
struct House {
    app: TestApp,
    owner: Client,
    boss: Person,
    ann: Client,
    ann_id: String,
    group: String,
    socket: TestSocket,
}

impl House {
    async fn start(extra: &[(&str, &str)]) -> Self {
        let app = TestApp::start_with(&[&SANDBOXED[..], extra].concat()).await;
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let person = app.person_with("acme", Role::Member).await;
        let ann = Client::with_key(&app, &person.key);
        let group = owner
            .post("/api/groups", json!({ "name": "Finance" }))
            .await
            .ok(201)["group"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let me = ann.get("/api/auth/me").await.ok(200);
        let ann_id = me["user"]["id"].as_str().unwrap().to_owned();
        let socket = TestSocket::open(app.address, &person, None).await;
        Self {
            app,
            owner,
            boss,
            ann,
            ann_id,
            group,
            socket,
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/groups/{}{rest}", self.group)
    }

    async fn join(&self) {
        let path = self.path(&format!("/members/{}", self.ann_id));
        self.owner.put(&path, json!({})).await.done();
    }

    async fn leave(&self) {
        let path = self.path(&format!("/members/{}", self.ann_id));
        self.owner.delete(&path).await.done();
    }

    async fn name(&self, access: Value) -> Value {
        self.owner.put(&self.path("/access"), access).await.ok(200)
    }

    /// Asks for a command in the open session.
    async fn ask(&mut self) {
        let command = json!({ "command": "date" });
        self.app
            .model
            .will_call("execute_command", command)
            .then_say("Done");
        self.socket.say("go").await;
    }

    /// How a call was decided without anybody, with the reason.
    async fn refused(&mut self) -> String {
        let decided = self.socket.wait_for("tool:decided").await.args[0].clone();
        assert_eq!(decided["approved"], false, "{decided}");
        self.socket.wait_for_answer().await;
        decided.to_string()
    }
}
