//! Who may not: another tenant, another person of the same, whoever may only read.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{document, keep, send};
use crate::rest::Client;
use crate::support::TestApp;

/// Everybody who knocks, with a skill of Ana's and one of her tenant.
struct House {
    ana: Client,
    ben: Client,
    admin: Client,
    reader: Client,
    stranger: Client,
    nobody: Client,
    own: String,
    team: String,
}

fn file() -> Vec<u8> {
    document("pdf", "Reads.", "Read.").into_bytes()
}

impl House {
    async fn build(app: &TestApp) -> Self {
        let client = async |tenant, role| {
            let person = app.person_with(tenant, role).await;
            Client::with_key(app, &person.key)
        };
        let ana = client("acme", Role::Member).await;
        let admin = client("acme", Role::Admin).await;
        let own = keep(&ana, "person", file()).await;
        let team = keep(&admin, "tenant", file()).await;
        let id = |skill: &Value| skill["id"].as_str().unwrap().to_owned();
        Self {
            ben: client("acme", Role::Member).await,
            reader: client("acme", Role::Viewer).await,
            stranger: client("other", Role::Owner).await,
            nobody: Client::nobody(app),
            own: id(&own),
            team: id(&team),
            ana,
            admin,
        }
    }
}

async fn listed(client: &Client) -> Vec<Value> {
    let listed = client.get("/api/skills").await.ok(200);
    let skills = listed["skills"].as_array().unwrap().iter();
    let mut ids: Vec<Value> = skills.map(|skill| skill["id"].clone()).collect();
    ids.sort_by_key(Value::to_string);
    ids
}

#[tokio::test]
async fn nobody_else_reaches_a_persons_skill_nor_that_of_a_tenant() {
    let app = TestApp::start().await;
    let house = House::build(&app).await;
    // As whom, of which skill, and what each door says.
    let cases = [
        (&house.ben, &house.own, 404),
        (&house.admin, &house.own, 404),
        (&house.stranger, &house.own, 404),
        (&house.stranger, &house.team, 404),
        (&house.reader, &house.own, 403),
        (&house.reader, &house.team, 403),
        (&house.nobody, &house.own, 401),
        (&house.nobody, &house.team, 401),
    ];
    for (client, id, status) in cases {
        let path = format!("/api/skills/{id}");
        for below in ["", "/archive", "/files/SKILL.md"] {
            let answer = client.get(&format!("{path}{below}")).await;
            assert_eq!(answer.status, status, "{below} {}", answer.text);
        }
        let switch = Some(json!({ "enabled": false }));
        let switched = client.send(Method::PATCH, &path, switch).await;
        assert_eq!(switched.status, status, "{}", switched.text);
        let replaced = send(client, Method::PUT, &path, file()).await;
        assert_eq!(replaced.status, status, "{}", replaced.text);
        assert_eq!(client.delete(&path).await.status, status);
    }
    let refused = house.reader.get("/api/skills").await;
    refused.problem(403, "not_allowed");
    assert_eq!(listed(&house.stranger).await, [""; 0]);
    assert_eq!(listed(&house.ben).await, [json!(house.team)]);
    let mut both = [json!(house.team), json!(house.own)];
    both.sort_by_key(Value::to_string);
    assert_eq!(listed(&house.ana).await, both, "nothing of it was changed");
}

#[tokio::test]
async fn only_admins_change_the_tenants_skills_and_viewers_none() {
    let app = TestApp::start().await;
    let house = House::build(&app).await;
    // A member sees and switches the tenant's for themselves, and changes it not.
    let path = format!("/api/skills/{}", house.team);
    assert_eq!(house.ben.get(&path).await.status, 200);
    let replaced = send(&house.ben, Method::PUT, &path, file()).await;
    replaced.problem(403, "not_allowed");
    let removed = house.ben.delete(&path).await;
    removed.problem(403, "not_allowed");
    let switch = Some(json!({ "enabledForTenant": false }));
    let switched = house.ben.send(Method::PATCH, &path, switch).await;
    switched.problem(403, "not_allowed");
    for scope in ["person", "tenant"] {
        for door in ["/api/skills", "/api/skills/check"] {
            let path = format!("{door}?scope={scope}");
            let refused = send(&house.reader, Method::POST, &path, file()).await;
            refused.problem(403, "not_allowed");
            let unknown = send(&house.nobody, Method::POST, &path, file()).await;
            assert_eq!(unknown.status, 401, "{}", unknown.text);
            if scope == "tenant" {
                let refused = send(&house.ben, Method::POST, &path, file()).await;
                refused.problem(403, "not_allowed");
            }
        }
    }
    assert_eq!(listed(&house.ben).await, [json!(house.team)]);
}
