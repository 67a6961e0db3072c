//! Models and servers that are for members alone.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::House;
use crate::rest::Client;
use crate::servers::{Api, shell, wait_for_health};
use crate::support::TestSocket;
use crate::support::postgres::new_database;

async fn names(client: &Client, path: &str, member: &str) -> Vec<String> {
    let page = client.get(path).await.ok(200);
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|it| it[member].as_str().unwrap().to_owned())
        .collect()
}

impl House {
    /// Asks for a call of the server that is limited.
    async fn call(&mut self) {
        self.app.model.will_call("echo", json!({})).then_say("Done");
        self.socket.say("go").await;
    }
}

#[tokio::test]
async fn a_server_that_groups_name_is_open_to_their_members_alone() {
    let database = new_database().await;
    let kinds: [&[(&str, &str)]; 2] = [&[], &[("DATABASE_URL", &database)]];
    for extra in kinds {
        let mut house = House::start(extra).await;
        let api = Api::new(&house.app, &house.boss);
        api.add("ledger", shell("say fine")).await;
        wait_for_health(&mut house.socket, "ledger", "healthy").await;
        house.call().await;
        house.socket.wait_for_approval().await;
        // What waits is refused as soon as the server is closed to its person.
        let named = house.name(json!({ "servers": ["ledger"] })).await;
        assert_eq!(named["servers"], json!(["ledger"]));
        let decided = house.refused().await;
        assert!(decided.contains("access:ledger"), "{decided}");
        house
            .ann
            .get("/api/mcp/ledger")
            .await
            .problem(404, "not_found");
        assert!(
            !names(&house.ann, "/api/mcp", "name")
                .await
                .contains(&"ledger".to_owned())
        );
        // The model is not told of its tools, and a call of one has no tool.
        house.call().await;
        house.socket.wait_for_answer().await;
        let asked = house.app.model.requests();
        assert!(
            !asked.last().unwrap().body["tools"]
                .to_string()
                .contains("\"echo\"")
        );
        // Administrators manage it and do not use it.
        let seen = house.owner.get("/api/mcp/ledger").await.ok(200);
        assert_eq!(
            (&seen["groups"], &seen["closed"]),
            (&json!(["Finance"]), &json!(true))
        );
        let mut theirs = TestSocket::open(house.app.address, &house.boss, None).await;
        house.app.model.will_call("echo", json!({})).then_say("No");
        theirs.say("go").await;
        assert_eq!(theirs.wait_for_answer().await, "No");

        house.join().await;
        house.call().await;
        let card = house.socket.wait_for_approval().await;
        house.socket.approve(&card).await;
        assert_eq!(house.socket.wait_for("tool:output").await.text(), "fine");
        house.socket.wait_for_answer().await;
        let seen = house.ann.get("/api/mcp/ledger").await.ok(200);
        assert!(
            seen["groups"].is_null() && seen["closed"].is_null(),
            "{seen}"
        );
        house.call().await;
        house.socket.wait_for_approval().await;
        house.leave().await;
        house.refused().await;
        // Nobody of another tenant changes it, and nobody without the rights.
        for (who, status) in [
            (Role::Member, 403),
            (Role::Viewer, 403),
            (Role::Approver, 403),
        ] {
            let other = house.app.person_with("acme", who).await;
            let other = Client::with_key(&house.app, &other.key);
            let changed = other
                .put(&house.path("/access"), json!({ "servers": [] }))
                .await;
            assert_eq!(changed.status, status, "{who:?}");
        }
        let stranger = house.app.person_with("other", Role::Owner).await;
        let stranger = Client::with_key(&house.app, &stranger.key);
        let path = house.path("/access");
        let changed = stranger.put(&path, json!({ "servers": [] })).await;
        changed.problem(404, "not_found");
        // A name that is nothing is refused, and what no group names is open.
        let wrong = json!({ "servers": ["legder"] });
        let wrong = house.owner.put(&path, wrong).await;
        wrong.problem(400, "invalid_arguments");
        let wrong = json!({ "servers": ["sandbox"] });
        let wrong = house.owner.put(&path, wrong).await;
        wrong.problem(400, "invalid_arguments");
        house.name(json!({ "servers": [] })).await;
        house.call().await;
        house.socket.wait_for_approval().await;
        let given = house
            .owner
            .get("/api/audit?act=group.access_given")
            .await
            .ok(200);
        let given = given["items"].as_array().unwrap();
        assert_eq!(given.len(), 1);
        assert_eq!(given[0]["record"]["details"]["name"], "ledger");
    }
}

#[tokio::test]
async fn a_model_that_groups_name_is_open_to_their_members_alone() {
    let database = new_database().await;
    let kinds: [&[(&str, &str)]; 2] = [&[], &[("DATABASE_URL", &database)]];
    for extra in kinds {
        let house = House::start(extra).await;
        let lab = json!({ "kind": "scripted", "scope": "tenant", "models": ["small", "large"] });
        house.owner.put("/api/providers/lab", lab).await.ok(201);
        house.name(json!({ "models": ["lab/large"] })).await;
        let models = async |client: &Client| {
            let page = client.get("/api/models/available").await.ok(200);
            let all = page["models"].as_array().unwrap().clone();
            let of_lab = all.into_iter().filter(|it| it["provider"] == "lab");
            let ids = of_lab.map(|it| it["id"].as_str().unwrap().to_owned());
            // The kind has a model of its own beside those that were named.
            ids.filter(|id| id != "scripted").collect::<Vec<_>>()
        };
        assert_eq!(models(&house.ann).await, ["small"]);
        let wanted = json!({ "provider": "lab", "model": "large" });
        let session = house.socket.session();
        let path = format!("/api/sessions/{session}/model");
        let mut socket = house.socket;
        house.app.model.will_say("hi");
        socket.say("hello").await;
        socket.wait_for_answer().await;
        let refused = house.ann.put(&path, wanted.clone()).await;
        let told = refused.problem(403, "not_allowed");
        assert!(
            told["detail"]
                .as_str()
                .unwrap()
                .contains("only for members"),
            "{told}"
        );
        let own = house.ann.put("/api/models/default", wanted.clone()).await;
        own.problem(403, "not_allowed");
        // Whoever chooses for everybody need not be a member; others fall back to what is open to them.
        let mut for_all = wanted.clone();
        for_all["scope"] = json!("tenant");
        house
            .owner
            .put("/api/models/default", for_all)
            .await
            .ok(200);
        let default = house.ann.get("/api/models/available").await.ok(200);
        assert_ne!(default["model"], "large", "{default}");

        let member = format!("/api/groups/{}/members/{}", house.group, house.ann_id);
        house.owner.put(&member, json!({})).await.done();
        assert_eq!(models(&house.ann).await, ["small", "large"]);
        house.ann.put(&path, wanted).await.ok(202);
        socket.say("hello").await;
        socket.wait_for_answer().await;
        // From the next message on the session has to choose another one.
        house.owner.delete(&member).await.done();
        let messages = format!("/api/sessions/{session}/messages");
        let refused = house.ann.post(&messages, json!({ "text": "more" })).await;
        refused.problem(403, "not_allowed");
        let small = json!({ "provider": "lab", "model": "small" });
        house.ann.put(&path, small).await.ok(202);
        socket.say("hello").await;
        socket.wait_for_answer().await;
        // A whole provider is limited in the same way, and its managers see it still.
        let all = json!({ "models": ["lab"] });
        let access = format!("/api/groups/{}/access", house.group);
        house.owner.put(&access, all).await.ok(200);
        assert_eq!(models(&house.ann).await, Vec::<String>::new());
        house
            .ann
            .get("/api/providers/lab")
            .await
            .problem(404, "not_found");
        let seen: Value = house.owner.get("/api/providers/lab").await.ok(200);
        assert_eq!(seen["groups"], json!(["Finance"]));
        let wrong = json!({ "models": ["lba"] });
        let wrong = house.owner.put(&access, wrong).await;
        wrong.problem(400, "invalid_arguments");
    }
}

#[tokio::test]
async fn an_assistant_that_uses_such_a_server_works_for_those_who_may() {
    let house = House::start(&[]).await;
    let api = Api::new(&house.app, &house.boss);
    api.add("ledger", shell("say fine")).await;
    let helper = json!({ "name": "Clerk", "tools": [{ "server": "ledger" }] });
    let made = house.owner.post("/api/assistants?scope=team", helper).await;
    let id = made.ok(201)["id"].as_str().unwrap().to_owned();
    house.name(json!({ "servers": ["ledger"] })).await;
    let start = json!({ "assistant": id });
    let refused = house.ann.post("/api/sessions", start.clone()).await;
    let told = refused.problem(403, "not_allowed");
    assert!(
        told["detail"].as_str().unwrap().contains("`ledger`"),
        "{told}"
    );
    house.join().await;
    house.ann.post("/api/sessions", start).await.ok(201);
}
