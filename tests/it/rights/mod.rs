//! Custom roles and groups: who gives which rights, and from when on they count and end.

mod archive;
mod hand_over;
mod readings;

use reqwest::Method;
use sepal::domain::{Caller, Role};
use sepal::tenancy::Credential;
use serde_json::{Value, json};

use crate::replicas::Pair;
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{DEADLINE, Person, TestApp, TestSocket};

/// A gateway on SQLite, and one on PostgreSQL.
async fn both() -> [TestApp; 2] {
    let database = new_database().await;
    [
        TestApp::start_with(&[("SPL_SANDBOX", "none")]).await,
        TestApp::start_with(&[("SPL_SANDBOX", "none"), ("DATABASE_URL", &database)]).await,
    ]
}

async fn caller(app: &TestApp, person: &Person) -> Caller {
    let key = Credential::ApiKey(person.key.clone().into());
    app.tenancy.authenticate(&key).await.unwrap().caller
}

/// The id of a person.
async fn id_of(client: &Client) -> String {
    let me = client.get("/api/auth/me").await.ok(200);
    me["user"]["id"].as_str().unwrap().to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Makes a role with these rights and returns its id.
async fn role(client: &Client, name: &str, rights: &[&str]) -> String {
    let body = json!({ "name": name, "rights": rights });
    text(&client.post("/api/roles", body).await.ok(201)["id"])
}

/// Gives a person exactly these roles.
async fn give(client: &Client, person: &str, roles: &[&str]) -> Value {
    let path = format!("/api/people/{person}/roles");
    client.put(&path, json!({ "roles": roles })).await.ok(200)
}

async fn patch(client: &Client, path: &str, body: Value) -> crate::rest::Answer {
    client.send(Method::PATCH, path, Some(body)).await
}

/// The names of the acts of a tenant, newest first.
async fn acts(client: &Client, act: &str) -> Vec<Value> {
    let page = client.get(&format!("/api/audit?act={act}")).await.ok(200);
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["record"].clone()).collect()
}

#[tokio::test]
async fn a_custom_role_gives_its_rights_until_it_is_changed_taken_or_deleted() {
    for app in both().await {
        let owner = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &owner.key);
        let ann = app.person_with("acme", Role::Viewer).await;
        let ann = Client::with_key(&app, &ann.key);
        let id = id_of(&ann).await;
        let may_read = async || ann.get("/api/audit/state").await.status == 200;
        assert!(!may_read().await);

        let auditor = role(&owner, "Auditor", &["audit.read", "usage.read"]).await;
        let given = give(&owner, &id, &[&auditor]).await;
        assert_eq!(given["rights"], json!(["audit.read", "usage.read"]));
        assert_eq!(given["roles"][0]["name"], "Auditor");
        assert!(may_read().await, "from the next request on");
        let me = ann.get("/api/auth/me").await.ok(200);
        assert_eq!(me["user"]["rights"], json!(["audit.read", "usage.read"]));
        assert_eq!(me["user"]["role"], "viewer");

        let path = format!("/api/roles/{auditor}");
        patch(&owner, &path, json!({ "rights": ["usage.read"] }))
            .await
            .ok(200);
        assert!(!may_read().await);
        patch(&owner, &path, json!({ "rights": ["audit.read"] }))
            .await
            .ok(200);
        assert!(may_read().await);
        give(&owner, &id, &[]).await;
        assert!(!may_read().await);
        give(&owner, &id, &[&auditor]).await;
        let listed = owner.get("/api/roles").await.ok(200);
        assert_eq!(listed["items"][0]["people"], 1);
        owner.delete(&path).await.done();
        assert!(!may_read().await);
        owner.delete(&path).await.problem(404, "not_found");
        let given = &acts(&owner, "role.given").await;
        assert_eq!(given.len(), 2);
        assert_eq!(given[0]["on"]["id"], id.as_str());
        assert_eq!(given[0]["details"]["rights"], "audit.read");
        assert_eq!(acts(&owner, "role.changed").await.len(), 2);
        assert_eq!(acts(&owner, "role.removed").await.len(), 1);
    }
}

#[tokio::test]
async fn a_group_gives_its_roles_to_its_members() {
    for app in both().await {
        let owner = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &owner.key);
        let ann = app.person_with("acme", Role::Member).await;
        let ann = Client::with_key(&app, &ann.key);
        let id = id_of(&ann).await;
        let may_read = async || ann.get("/api/audit/state").await.status == 200;
        let auditor = role(&owner, "Auditor", &["audit.read"]).await;
        let added = owner
            .post("/api/groups", json!({ "name": "Finance" }))
            .await;
        let group = text(&added.ok(201)["group"]["id"]);
        let path = format!("/api/groups/{group}");
        patch(&owner, &path, json!({ "roles": [auditor] }))
            .await
            .ok(200);
        let member = format!("{path}/members/{id}");
        owner.put(&member, json!({})).await.done();
        assert!(may_read().await);
        let found = owner.get(&path).await.ok(200);
        assert_eq!(found["members"][0]["id"], id.as_str());
        assert_eq!(found["members"][0]["issuer"], Value::Null);
        assert_eq!(found["group"]["members"], 1);
        let sources = owner.get(&format!("/api/people/{id}/roles")).await.ok(200);
        assert_eq!(sources["roles"], json!([]));
        assert_eq!(sources["groups"][0]["name"], "Finance");

        owner.delete(&member).await.done();
        assert!(!may_read().await);
        owner.delete(&member).await.problem(404, "not_found");
        owner.put(&member, json!({})).await.done();
        patch(&owner, &path, json!({ "roles": [] })).await.ok(200);
        assert!(!may_read().await);
        patch(&owner, &path, json!({ "roles": [auditor] }))
            .await
            .ok(200);
        assert!(may_read().await);
        owner.delete(&path).await.done();
        assert!(!may_read().await);
        assert_eq!(acts(&owner, "group.joined").await.len(), 2);
        assert_eq!(acts(&owner, "group.removed").await.len(), 1);
    }
}

#[tokio::test]
async fn nobody_gives_or_takes_a_right_that_they_lack() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let boss = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &boss.key);
    let ann = app.person_with("acme", Role::Member).await;
    let ann = Client::with_key(&app, &ann.key);
    let (boss, id) = (id_of(&owner).await, id_of(&ann).await);
    let rights = ["roles.manage", "groups.manage", "audit.read"];
    let helper = role(&owner, "Helper", &rights).await;
    let reader = role(&owner, "Reader", &["sessions.read_content"]).await;
    give(&owner, &id, &[&helper]).await;
    let listed = ann.get("/api/roles").await.ok(200);
    assert_eq!(listed["giveable"].as_array().unwrap().len(), 3);

    let more = json!({ "name": "More", "rights": ["audit.read", "usage.read"] });
    ann.post("/api/roles", more)
        .await
        .problem(403, "not_allowed");
    let own = role(&ann, "Less", &["audit.read"]).await;
    let own = format!("/api/roles/{own}");
    let wider = json!({ "rights": ["audit.read", "people.manage_admins"] });
    patch(&ann, &own, wider).await.problem(403, "not_allowed");
    let foreign = format!("/api/roles/{reader}");
    for change in [
        json!({ "name": "Mine" }),
        json!({ "rights": ["audit.read"] }),
    ] {
        patch(&ann, &foreign, change)
            .await
            .problem(403, "not_allowed");
    }
    ann.delete(&foreign).await.problem(403, "not_allowed");
    let path = format!("/api/people/{id}/roles");
    let both = json!({ "roles": [helper, reader] });
    ann.put(&path, both.clone())
        .await
        .problem(403, "not_allowed");
    // Nor is it taken from others, or gained by a group.
    owner
        .put(&format!("/api/people/{boss}/roles"), both)
        .await
        .ok(200);
    let path = format!("/api/people/{boss}/roles");
    let taken = ann.put(&path, json!({ "roles": [] })).await;
    taken.problem(403, "not_allowed");
    let group = ann.post("/api/groups", json!({ "name": "Readers" })).await;
    let group = format!("/api/groups/{}", text(&group.ok(201)["group"]["id"]));
    patch(&ann, &group, json!({ "roles": [reader] }))
        .await
        .problem(403, "not_allowed");
    patch(&owner, &group, json!({ "roles": [reader] }))
        .await
        .ok(200);
    ann.put(&format!("{group}/members/{id}"), json!({}))
        .await
        .problem(403, "not_allowed");
    ann.delete(&group).await.problem(403, "not_allowed");
    owner
        .put(&format!("{group}/members/{id}"), json!({}))
        .await
        .done();

    // An admin has groups, and gives no roles.
    let admin = app.person_with("acme", Role::Admin).await;
    let admin = Client::with_key(&app, &admin.key);
    let role = json!({ "name": "Other", "rights": ["audit.read"] });
    admin
        .post("/api/roles", role)
        .await
        .problem(403, "not_allowed");
    patch(&admin, &group, json!({ "description": "Who reads" }))
        .await
        .ok(200);
    // A group of a provider could fill it by its new name.
    let renamed = patch(&admin, &group, json!({ "name": "staff" })).await;
    renamed.problem(403, "not_allowed");
    let own = format!("{group}/members/{}", id_of(&admin).await);
    admin.put(&own, json!({})).await.problem(403, "not_allowed");
}

#[tokio::test]
async fn roles_and_groups_are_named_once_and_only_in_their_tenant() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &owner.key);
    let stranger = app.person_with("other", Role::Owner).await;
    let stranger = Client::with_key(&app, &stranger.key);
    let auditor = role(&owner, "Auditor", &["audit.read"]).await;
    let again = json!({ "name": "AUDITOR", "rights": [] });
    assert_eq!(owner.post("/api/roles", again).await.status, 409);
    for (body, field) in [
        (json!({ "rights": [] }), "name"),
        (json!({ "name": "owner", "rights": [] }), "name"),
        (json!({ "name": "x" }), "rights"),
        (json!({ "name": "x", "rights": ["tea.make"] }), "rights"),
    ] {
        let problem = owner
            .post("/api/roles", body)
            .await
            .problem(400, "invalid_arguments");
        assert!(
            problem["errors"][0]["field"]
                .as_str()
                .unwrap()
                .starts_with(field),
            "{problem}"
        );
    }
    // The other tenant has the same names, and nothing of this one.
    role(&stranger, "Auditor", &["audit.read"]).await;
    let own = id_of(&stranger).await;
    let path = format!("/api/people/{own}/roles");
    let foreign = json!({ "roles": [auditor] });
    stranger.put(&path, foreign).await.problem(404, "not_found");
    let group = stranger.post("/api/groups", json!({ "name": "G" })).await;
    let group = format!("/api/groups/{}", text(&group.ok(201)["group"]["id"]));
    let foreign = json!({ "roles": [auditor] });
    patch(&stranger, &group, foreign)
        .await
        .problem(404, "not_found");
    let other = id_of(&owner).await;
    stranger
        .put(&format!("{group}/members/{other}"), json!({}))
        .await
        .problem(404, "not_found");
    assert_eq!(owner.get("/api/groups").await.ok(200)["items"], json!([]));
}

#[tokio::test]
async fn a_member_who_manages_people_has_no_power_over_admins() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &owner.key);
    let ann = app.person_with("acme", Role::Member).await;
    let ann = Client::with_key(&app, &ann.key);
    let id = id_of(&ann).await;
    let admin = app.person_with("acme", Role::Admin).await;
    let admin = id_of(&Client::with_key(&app, &admin.key)).await;
    let people = role(&owner, "People", &["people.manage"]).await;
    give(&owner, &id, &[&people]).await;
    let person = |name: &str, role: &str| json!({ "name": name, "role": role });
    ann.post("/api/people", person("ben", "member"))
        .await
        .ok(201);
    ann.post("/api/people", person("cy", "admin"))
        .await
        .problem(403, "not_allowed");
    for (who, role) in [(&id, "admin"), (&id, "owner"), (&admin, "viewer")] {
        let path = format!("/api/people/{who}");
        patch(&ann, &path, json!({ "role": role }))
            .await
            .problem(403, "not_allowed");
    }
    ann.get("/api/keys?of=tenant").await;
    // A link that they made ends with their right.
    let invited = ann
        .post("/api/invitations", json!({ "role": "member" }))
        .await
        .ok(201);
    let link = text(&invited["link"]);
    let secret = link.rsplit_once('#').unwrap().1;
    let nobody = Client::nobody(&app);
    let read = async || {
        let body = json!({ "secret": secret });
        nobody.post("/api/auth/invitation/read", body).await.status
    };
    assert_eq!(read().await, 200);
    give(&owner, &id, &[]).await;
    assert_eq!(read().await, 401);
}

#[tokio::test]
async fn the_other_gateway_heeds_a_role_that_was_taken() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "none")]).await;
    let boss = pair.a.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&pair.a, &boss.key);
    let ann = pair.a.person_with("acme", Role::Member).await;
    let there = Client::with_key(&pair.b, &ann.key);
    let id = id_of(&there).await;
    let auditor = role(&owner, "Auditor", &["audit.read"]).await;
    let becomes = async |status: u16| {
        // What a gateway has checked counts for some seconds.
        let heard = async { while there.get("/api/audit/state").await.status != status {} };
        tokio::time::timeout(DEADLINE, heard).await.unwrap();
    };
    becomes(403).await;
    give(&owner, &id, &[&auditor]).await;
    becomes(200).await;
    let mut socket = TestSocket::open(pair.b.address, &ann, None).await;
    owner.delete(&format!("/api/roles/{auditor}")).await.done();
    becomes(403).await;
    // A socket of before ends with its next command: the page opens it again with the rights of now.
    let send = [json!({ "clientMessageId": "m1" })];
    socket.emit("message:withdraw", &send).await;
    socket.wait_for_end().await;
}
