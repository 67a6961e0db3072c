//! Who may not: another tenant, another person of the same, whoever may only read.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{document, keep, send};
use crate::rest::Client;
use crate::support::TestApp;

#[tokio::test]
async fn nobody_else_reaches_a_persons_skill_and_only_admins_change_the_tenants() {
    let app = TestApp::start().await;
    let ana = Client::with_key(&app, &app.person("acme").await.key);
    let ben = Client::with_key(&app, &app.person("acme").await.key);
    let admin = Client::with_key(&app, &app.person_with("acme", Role::Admin).await.key);
    let viewer = Client::with_key(&app, &app.person_with("acme", Role::Viewer).await.key);
    let stranger = Client::with_key(&app, &app.person_with("other", Role::Owner).await.key);
    let nobody = Client::nobody(&app);
    let file = document("pdf", "Reads.", "Read.").into_bytes();
    let own = keep(&ana, "person", file.clone()).await;
    let team = keep(&admin, "tenant", file.clone()).await;
    let (own, team) = (
        own["id"].as_str().unwrap().to_owned(),
        team["id"].as_str().unwrap().to_owned(),
    );
    // Each door, as whom, of which skill, and what it says.
    let cases = [
        (&ben, &own, 404),
        (&admin, &own, 404),
        (&stranger, &own, 404),
        (&stranger, &team, 404),
        (&viewer, &own, 403),
        (&viewer, &team, 403),
        (&nobody, &own, 401),
        (&nobody, &team, 401),
    ];
    for (client, id, status) in cases {
        let path = format!("/api/skills/{id}");
        let reads = ["", "/archive", "/files/SKILL.md"];
        for below in reads {
            let answer = client.get(&format!("{path}{below}")).await;
            assert_eq!(answer.status, status, "{below} {}", answer.text);
        }
        let switch = Some(json!({ "enabled": false }));
        let switched = client.send(Method::PATCH, &path, switch).await;
        assert_eq!(switched.status, status, "{}", switched.text);
        let replaced = send(client, (Method::PUT, &path), file.clone()).await;
        assert_eq!(replaced.status, status, "{}", replaced.text);
        assert_eq!(client.delete(&path).await.status, status);
    }
    // A member sees and switches the tenant's for themselves, and changes it not.
    let path = format!("/api/skills/{team}");
    assert_eq!(ben.get(&path).await.status, 200);
    let replaced = send(&ben, (Method::PUT, &path), file.clone()).await;
    replaced.problem(403, "not_allowed");
    ben.delete(&path).await.problem(403, "not_allowed");
    let switch = Some(json!({ "enabledForTenant": false }));
    let switched = ben.send(Method::PATCH, &path, switch).await;
    switched.problem(403, "not_allowed");
    for scope in ["person", "tenant"] {
        for door in ["/api/skills", "/api/skills/check"] {
            let path = format!("{door}?scope={scope}");
            let door = (Method::POST, path.as_str());
            let viewed = send(&viewer, door.clone(), file.clone()).await;
            viewed.problem(403, "not_allowed");
            assert_eq!(send(&nobody, door.clone(), file.clone()).await.status, 401);
            if scope == "tenant" {
                let refused = send(&ben, door, file.clone()).await;
                refused.problem(403, "not_allowed");
            }
        }
    }
    viewer.get("/api/skills").await.problem(403, "not_allowed");
    let names = async |client: &Client| -> Vec<Value> {
        let listed = client.get("/api/skills").await.ok(200);
        let skills = listed["skills"].as_array().unwrap().iter();
        skills.map(|skill| skill["id"].clone()).collect()
    };
    assert_eq!(names(&stranger).await, [""; 0]);
    assert_eq!(names(&ben).await, [json!(team)]);
    let mut both = [json!(team), json!(own)];
    both.sort_by_key(Value::to_string);
    let mut seen = names(&ana).await;
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, both, "nothing of it was changed");
}
