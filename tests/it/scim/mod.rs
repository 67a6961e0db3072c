//! A company's directory makes, changes and disables people and groups (SCIM), on each kind of database.

mod access;
mod dialects;

use reqwest::Method;
use secrecy::ExposeSecret as _;
use sepal::domain::Role;
use sepal::tenancy::NewScimToken;
use serde_json::{Value, json};

use crate::rest::{Answer, Client};
use crate::support::postgres::new_database;
use crate::support::{Person, TestApp, TestSocket};

/// A gateway on SQLite, and one on PostgreSQL.
async fn both() -> [TestApp; 2] {
    let database = new_database().await;
    [
        TestApp::start_with(&[("SPL_SANDBOX", "none")]).await,
        TestApp::start_with(&[("SPL_SANDBOX", "none"), ("DATABASE_URL", &database)]).await,
    ]
}

/// The directory of a tenant, with its token.
struct Directory {
    client: Client,
    token: String,
}

impl Directory {
    async fn open(app: &TestApp, owner: &Person) -> Self {
        Self::open_with(app, owner, Role::Member, false).await
    }

    async fn open_with(app: &TestApp, owner: &Person, role: Role, deletes: bool) -> Self {
        let new = NewScimToken {
            name: "Entra".to_owned(),
            role,
            deletes,
        };
        let administration = app.tenancy.administration();
        let created = administration.add_scim_token(&owner.tenant, None, new);
        let created = created.await.unwrap();
        Self {
            client: Client::with_key(app, created.secret.expose_secret()),
            token: created.token.id,
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let request = self
            .client
            .request(method, &format!("/scim/v2{path}"))
            .header("content-type", "application/scim+json");
        let request = match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        Answer::of(request.send().await.unwrap()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(&body)).await
    }

    async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, Some(&body)).await
    }

    async fn patch(&self, path: &str, operations: Value) -> Answer {
        let schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"];
        let body = json!({ "schemas": schemas, "Operations": operations });
        self.send(Method::PATCH, path, Some(&body)).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None).await
    }

    /// Makes a person, and returns them as the directory reads them.
    async fn person(&self, name: &str, external_id: &str) -> Value {
        let body = json!({ "schemas": [USER], "userName": name, "externalId": external_id });
        self.post("/Users", body).await.ok(201)
    }

    /// The names of the users that fit a filter.
    async fn names(&self, filter: &str) -> Vec<String> {
        let query = url::form_urlencoded::byte_serialize(filter.as_bytes());
        let query: String = query.collect();
        let found = self.get(&format!("/Users?filter={query}")).await.ok(200);
        let found = found["Resources"].as_array().unwrap().iter();
        let mut names: Vec<String> = found.map(|user| text(&user["userName"])).collect();
        names.sort();
        names
    }
}

const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A refusal as the standard has it.
#[track_caller]
fn refused(answer: &Answer, status: u16, kind: &str) -> String {
    let error = answer.ok(status);
    assert_eq!(answer.header("content-type"), "application/scim+json");
    let schema = "urn:ietf:params:scim:api:messages:2.0:Error";
    assert_eq!(error["schemas"], json!([schema]), "{error}");
    assert_eq!(error["status"], status.to_string(), "{error}");
    assert_eq!(
        error["scimType"].as_str().unwrap_or_default(),
        kind,
        "{error}"
    );
    text(&error["detail"])
}

/// The newest record of an act of a tenant.
async fn act(owner: &Client, name: &str) -> Value {
    let page = owner.get(&format!("/api/audit?act={name}")).await.ok(200);
    page["items"][0]["record"].clone()
}

/// Somebody's key, made by the operator.
async fn key_of(app: &TestApp, owner: &Person, id: &str) -> Person {
    let user = sepal::domain::UserId::parse(id).unwrap();
    let administration = app.tenancy.administration();
    let key = administration.create_key(&owner.tenant, &user, "test");
    Person {
        tenant: owner.tenant.clone(),
        key: key.await.unwrap().secret.expose_secret().to_owned(),
    }
}

#[tokio::test]
async fn a_person_is_made_and_read() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let directory = Directory::open_with(&app, &boss, Role::Viewer, false).await;
        let body = json!({
            "schemas": [USER], "userName": "ann@acme.com", "externalId": "7", "active": true,
            "name": { "givenName": "Ann", "familyName": "Lee" }, "displayName": "Ann Lee",
            "emails": [{ "value": "ann@acme.com", "type": "work", "primary": true }],
            "title": "Chief", "password": "not kept",
        });
        let made = directory.post("/Users", body.clone()).await;
        let ann = made.ok(201);
        let id = text(&ann["id"]);
        let path = format!("/Users/{id}");
        assert_eq!(made.header("content-type"), "application/scim+json");
        assert_eq!(made.header("location"), app.url(&format!("/scim/v2{path}")));
        assert_eq!(made.header("etag"), ann["meta"]["version"], "{ann}");
        for name in [
            "userName",
            "externalId",
            "active",
            "name",
            "displayName",
            "emails",
        ] {
            assert_eq!(ann[name], body[name], "{ann}");
        }
        assert!(
            ann.get("title").is_none() && ann.get("password").is_none(),
            "{ann}"
        );
        let again = directory.post("/Users", body).await;
        refused(&again, 409, "uniqueness");
        let listed = owner.get("/api/people?search=ann").await.ok(200);
        assert_eq!(
            listed["items"][0]["role"], "viewer",
            "the role of the token"
        );
        let added = act(&owner, "user.added").await;
        assert_eq!(added["by"]["kind"], "directory", "{added}");
        assert_eq!(added["by"]["credential"], directory.token, "{added}");
        assert_eq!(added["details"]["externalId"], "7");

        let read = directory.get(&path).await;
        assert_eq!(read.ok(200), ann);
        let client = directory
            .client
            .request(Method::GET, &format!("/scim/v2{path}"));
        let known = client.header("if-none-match", read.header("etag"));
        assert_eq!(known.send().await.unwrap().status(), 304);
        let stale = directory
            .client
            .request(Method::DELETE, &format!("/scim/v2{path}"))
            .header("if-match", "W/\"other\"");
        refused(&Answer::of(stale.send().await.unwrap()).await, 412, "");
    }
}

#[tokio::test]
async fn a_person_is_disabled_restored_and_renamed() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let directory = Directory::open(&app, &boss).await;
        let ann = json!({ "userName": "ann@acme.com", "externalId": "7", "displayName": "Ann" });
        let ann = directory.post("/Users", ann).await.ok(201);
        let id = text(&ann["id"]);
        let path = format!("/Users/{id}");
        let person = key_of(&app, &boss, &id).await;
        let mut socket = TestSocket::open(app.address, &person, None).await;
        let off = json!([{ "op": "replace", "path": "active", "value": false }]);
        let patched = directory.patch(&path, off.clone()).await.ok(200);
        assert_eq!(patched["active"], false);
        socket.wait_for_end().await;
        let me = Client::with_key(&app, &person.key);
        me.get("/api/auth/me").await.problem(401, "unauthorized");
        let disabled = act(&owner, "user.disabled").await;
        assert_eq!(disabled["by"]["kind"], "directory", "{disabled}");
        let on = json!([{ "op": "replace", "value": { "active": true } }]);
        assert_eq!(
            directory.patch(&path, on.clone()).await.ok(200)["active"],
            true
        );
        me.get("/api/auth/me").await.ok(200);

        // Who was disabled here stays out, whatever the directory says.
        let here = json!({ "disabled": true });
        let person_path = format!("/api/people/{id}");
        owner
            .send(Method::PATCH, &person_path, Some(here))
            .await
            .ok(200);
        assert_eq!(
            directory.patch(&path, on.clone()).await.ok(200)["active"],
            false
        );
        directory.patch(&path, off.clone()).await.ok(200);
        assert_eq!(
            directory.patch(&path, on.clone()).await.ok(200)["active"],
            false
        );
        let here = json!({ "disabled": false });
        owner
            .send(Method::PATCH, &person_path, Some(here))
            .await
            .ok(200);
        assert_eq!(directory.get(&path).await.ok(200)["active"], true);

        let other = json!({ "schemas": [USER], "userName": "anna@acme.com", "externalId": "7" });
        let replaced = directory.put(&path, other).await.ok(200);
        assert_eq!(replaced["userName"], "anna@acme.com");
        assert!(replaced.get("displayName").is_none(), "{replaced}");
        assert_eq!(replaced["active"], true, "what is not named stays");
        assert_ne!(replaced["meta"]["version"], ann["meta"]["version"]);
        let listed = owner.get("/api/people?search=anna").await.ok(200);
        assert_eq!(listed["items"][0]["id"], id.as_str(), "the name follows");
        let changed = act(&owner, "directory.person_changed").await;
        assert_eq!(changed["details"]["name"], "anna@acme.com", "{changed}");
    }
}

#[tokio::test]
async fn who_the_directory_deletes_is_disabled_and_comes_back_as_the_same_person() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let directory = Directory::open(&app, &boss).await;
        let ann = text(&directory.person("ann", "7").await["id"]);
        let path = format!("/Users/{ann}");
        directory.delete(&path).await.done();
        refused(&directory.get(&path).await, 404, "");
        refused(&directory.delete(&path).await, 404, "");
        let listed = owner.get("/api/people?search=ann").await.ok(200);
        assert_eq!(listed["items"][0]["disabled"], true, "{listed}");
        let people = owner.get("/api/directory/people").await.ok(200);
        assert_eq!(people["items"][0]["removed"], true, "{people}");
        // Another person of the same name is not the same person.
        let other = json!({ "userName": "ann", "externalId": "8" });
        refused(&directory.post("/Users", other).await, 409, "uniqueness");
        let back = directory.person("ann", "7").await;
        assert_eq!(back["id"], ann.as_str());
        assert_eq!(back["active"], true);

        let deleting = Directory::open_with(&app, &boss, Role::Member, true).await;
        deleting.delete(&path).await.done();
        let given_up = act(&owner, "user.given_up").await;
        assert_eq!(given_up["by"]["credential"], deleting.token, "{given_up}");
        refused(&deleting.get(&path).await, 404, "");
    }
}

#[tokio::test]
async fn lists_are_filtered_and_cut_into_pages() {
    let app = TestApp::start().await;
    let boss = app.person_with("acme", Role::Owner).await;
    let directory = Directory::open(&app, &boss).await;
    for n in 0..5 {
        let body = json!({
            "userName": format!("p{n}@acme.com"), "externalId": format!("x{n}"), "active": n != 4,
            "displayName": format!("Person {n}"),
            "emails": [{ "value": format!("p{n}@mail.test"), "type": "work" }],
        });
        directory.post("/Users", body).await.ok(201);
    }
    for (filter, expected) in [
        (r#"userName eq "P1@ACME.COM""#, &["p1@acme.com"][..]),
        (r#"externalId eq "x2""#, &["p2@acme.com"]),
        (r#"emails.value eq "p3@mail.test""#, &["p3@acme.com"]),
        (
            r#"emails[type eq "work" and value sw "p3"]"#,
            &["p3@acme.com"],
        ),
        (
            r#"displayName co "son 0" or active eq false"#,
            &["p0@acme.com", "p4@acme.com"],
        ),
        (
            r#"not (userName sw "p") or (externalId eq "x1" and active eq true)"#,
            &["p1@acme.com"],
        ),
        ("title pr", &[]),
        (r#"userName eq "nobody""#, &[]),
    ] {
        assert_eq!(directory.names(filter).await, expected, "{filter}");
    }
    let (mut start, mut all) = (1, Vec::new());
    loop {
        let page = format!("/Users?startIndex={start}&count=2");
        let page = directory.get(&page).await.ok(200);
        assert_eq!(
            (&page["totalResults"], &page["startIndex"]),
            (&json!(5), &json!(start))
        );
        let found = page["Resources"].as_array().unwrap();
        assert_eq!(page["itemsPerPage"], found.len());
        if found.is_empty() {
            break;
        }
        start += found.len();
        all.extend(found.iter().map(|user| text(&user["userName"])));
    }
    all.sort();
    assert_eq!(all.len(), 5);
    all.dedup();
    assert_eq!(all.len(), 5);
    for (query, count) in [
        ("count=0", 0),
        ("count=-3", 0),
        ("startIndex=0", 5),
        ("startIndex=9", 0),
    ] {
        let page = directory.get(&format!("/Users?{query}")).await.ok(200);
        assert_eq!(
            page["Resources"].as_array().unwrap().len(),
            count,
            "{query}"
        );
        assert_eq!(page["totalResults"], 5);
    }
    let page = directory
        .get("/Users?count=100000&attributes=userName")
        .await
        .ok(200);
    let first = page["Resources"][0].as_object().unwrap();
    let mut names: Vec<&str> = first.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["id", "schemas", "userName"]);
    for filter in [
        "userName",
        "userName%20eq",
        "%28userName%20pr",
        &"a".repeat(1_001),
    ] {
        let found = directory.get(&format!("/Users?filter={filter}")).await;
        refused(&found, 400, "invalidFilter");
    }
    refused(
        &directory.get("/Users?count=many").await,
        400,
        "invalidValue",
    );
}

#[tokio::test]
async fn groups_are_made_filled_and_give_their_roles() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let directory = Directory::open(&app, &boss).await;
        let ann = text(&directory.person("ann", "1").await["id"]);
        let ben = text(&directory.person("ben", "2").await["id"]);
        let body = json!({
            "schemas": [GROUP], "displayName": "Finance", "externalId": "f",
            "members": [{ "value": ann }],
        });
        let made = directory.post("/Groups", body.clone()).await.ok(201);
        let id = text(&made["id"]);
        let path = format!("/Groups/{id}");
        assert_eq!(made["members"][0]["value"], ann, "{made}");
        refused(&directory.post("/Groups", body).await, 409, "uniqueness");
        let user = directory.get(&format!("/Users/{ann}")).await.ok(200);
        assert_eq!(user["groups"][0]["display"], "Finance", "{user}");

        // Its roles are given here, and reach the members.
        let role = json!({ "name": "Auditor", "rights": ["audit.read"] });
        let role = owner.post("/api/roles", role).await.ok(201)["id"].clone();
        let group = format!("/api/groups/{id}");
        owner
            .send(Method::PATCH, &group, Some(json!({ "roles": [role] })))
            .await
            .ok(200);
        let person = key_of(&app, &boss, &ann).await;
        let as_ann = Client::with_key(&app, &person.key);
        as_ann.get("/api/audit/state").await.ok(200);

        // Who was added here stays, and so does who is not of the directory.
        let me = owner.get("/api/auth/me").await.ok(200);
        let me = text(&me["user"]["id"]);
        for member in [&me, &ben] {
            let member = format!("{group}/members/{member}");
            owner.put(&member, json!({})).await.done();
        }
        let members = async || {
            let found = owner.get(&group).await.ok(200);
            let found = found["members"].as_array().unwrap().iter();
            let mut all: Vec<(String, Value)> = found
                .map(|it| (text(&it["id"]), it["issuer"].clone()))
                .collect();
            all.sort_by_key(|(id, _)| id.clone());
            all
        };
        let mut expected = vec![
            (ann.clone(), json!("scim")),
            (ben.clone(), Value::Null),
            (me.clone(), Value::Null),
        ];
        expected.sort_by_key(|(id, _)| id.clone());
        assert_eq!(members().await, expected);
        let seen = directory.get(&path).await.ok(200);
        assert_eq!(seen["members"].as_array().unwrap().len(), 2, "{seen}");
        let empty = json!([{ "op": "replace", "path": "members", "value": [] }]);
        directory.patch(&path, empty).await.ok(200);
        expected.retain(|(id, _)| *id != ann);
        assert_eq!(members().await, expected);
        let state = as_ann.get("/api/audit/state").await;
        state.problem(403, "not_allowed");
        let left = act(&owner, "group.left").await;
        assert_eq!(left["by"]["kind"], "directory", "{left}");

        let renamed = json!({ "displayName": "Money", "members": [{ "value": ann }] });
        let renamed = directory.put(&path, renamed).await.ok(200);
        assert_eq!(renamed["displayName"], "Money");
        assert!(renamed.get("externalId").is_none(), "{renamed}");
        let found = directory
            .get("/Groups?filter=displayName%20eq%20%22money%22&excludedAttributes=members");
        let found = found.await.ok(200);
        assert_eq!(found["totalResults"], 1, "{found}");
        assert!(found["Resources"][0].get("members").is_none(), "{found}");
        let by_member = format!("/Groups?filter=members%20eq%20%22{ann}%22");
        assert_eq!(directory.get(&by_member).await.ok(200)["totalResults"], 1);
        for members in [
            json!([{ "value": format!("usr_{}", "0".repeat(32)) }]),
            json!([{ "value": id }]),
        ] {
            let body = json!({ "displayName": "Money", "members": members });
            refused(&directory.put(&path, body).await, 400, "invalidValue");
        }
        directory.delete(&path).await.done();
        refused(&directory.get(&path).await, 404, "");
        owner.get(&group).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn who_was_here_before_is_seen_only_after_a_link() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let directory = Directory::open(&app, &boss).await;
        let added = owner.post("/api/people", json!({ "name": "ann" })).await;
        let ann = text(&added.ok(201)["id"]);
        let group = owner
            .post("/api/groups", json!({ "name": "Finance" }))
            .await;
        let group = text(&group.ok(201)["group"]["id"]);
        let path = format!("/Users/{ann}");
        assert_eq!(directory.get("/Users").await.ok(200)["totalResults"], 0);
        assert_eq!(directory.get("/Groups").await.ok(200)["totalResults"], 0);
        refused(&directory.get(&path).await, 404, "");
        refused(&directory.delete(&path).await, 404, "");
        let off = json!([{ "op": "replace", "path": "active", "value": false }]);
        refused(&directory.patch(&path, off.clone()).await, 404, "");
        let same = directory.post("/Users", json!({ "userName": "ANN" })).await;
        let detail = refused(&same, 409, "uniqueness");
        assert!(detail.contains("link"), "{detail}");
        let same = directory
            .post("/Groups", json!({ "displayName": "finance" }))
            .await;
        refused(&same, 409, "uniqueness");

        let link = json!({ "userName": "ann@acme.com", "externalId": "7" });
        let linked = owner
            .put(&format!("/api/directory/people/{ann}"), link.clone())
            .await;
        assert_eq!(linked.ok(200)["linked"], true);
        let again = owner
            .put(&format!("/api/directory/people/{ann}"), link)
            .await;
        again.problem(409, "invalid_arguments");
        assert_eq!(
            directory.names(r#"userName eq "ann@acme.com""#).await.len(),
            1
        );
        let renamed = json!([{ "op": "replace", "path": "userName", "value": "anna@acme.com" }]);
        directory.patch(&path, renamed).await.ok(200);
        let listed = owner.get("/api/people?search=ann").await.ok(200);
        assert_eq!(
            listed["items"][0]["name"], "ann",
            "a name that was given here stays"
        );
        let linked = owner
            .put(&format!("/api/directory/groups/{group}"), json!({}))
            .await;
        assert_eq!(linked.ok(200)["linked"], true);
        let group_path = format!("/Groups/{group}");
        let joins = json!([{ "op": "add", "path": "members", "value": [{ "value": ann }] }]);
        directory.patch(&group_path, joins).await.ok(200);
        // A linked group outlives its directory.
        directory.delete(&group_path).await.done();
        let found = owner.get(&format!("/api/groups/{group}")).await.ok(200);
        assert_eq!(found["members"], json!([]), "{found}");
        owner
            .delete(&format!("/api/directory/people/{ann}"))
            .await
            .done();
        refused(&directory.get(&path).await, 404, "");
        let listed = owner.get("/api/people?search=ann").await.ok(200);
        assert_eq!(listed["items"][0]["disabled"], false);
    }
}

#[tokio::test]
async fn the_last_owner_stays_whatever_the_directory_says() {
    let app = TestApp::start().await;
    let boss = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &boss.key);
    let directory = Directory::open(&app, &boss).await;
    let me = owner.get("/api/auth/me").await.ok(200);
    let me = text(&me["user"]["id"]);
    let link = json!({ "userName": "boss" });
    owner
        .put(&format!("/api/directory/people/{me}"), link)
        .await
        .ok(200);
    let path = format!("/Users/{me}");
    let off = json!([{ "op": "replace", "path": "active", "value": false }]);
    for answer in [
        directory.patch(&path, off).await,
        directory.delete(&path).await,
    ] {
        let detail = refused(&answer, 409, "");
        assert!(detail.contains("owner"), "{detail}");
    }
    owner.get("/api/auth/me").await.ok(200);
}
