//! Service accounts: who makes them, and that no door but a key lets them in.

use reqwest::Method;
use secrecy::SecretString;
use sepal::domain::{Role, UserId};
use sepal::tenancy::{Error, NewKey};
use serde_json::{Value, json};

use super::caller;
use crate::rest::{Answer, Client};
use crate::support::postgres::new_database;
use crate::support::{Person, TestApp, TestSocket};

const PASSWORD: &str = "correct horse battery";

/// Somebody in a browser, who comes by an invitation of an owner.
async fn browser(app: &TestApp, owner: &Client, role: &str, name: &str) -> Client {
    let invited = owner
        .post("/api/invitations", json!({ "role": role }))
        .await;
    let link = invited.ok(201)["link"].as_str().unwrap().to_owned();
    let (_, secret) = link.split_once('#').unwrap();
    let body = json!({ "secret": secret, "name": name, "password": PASSWORD });
    let entered = Client::nobody(app).post("/api/auth/invitation", body).await;
    let me = entered.ok(200);
    let cookie = entered.header("set-cookie").split(';').next().unwrap();
    Client::nobody(app)
        .and("cookie", cookie)
        .and("x-csrf-token", me["csrfToken"].as_str().unwrap())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn make(client: &Client, name: &str, role: &str) -> Answer {
    let body = json!({ "name": name, "role": role });
    client.post("/api/service-accounts", body).await
}

async fn change(client: &Client, id: &str, body: Value) -> Answer {
    let path = format!("/api/people/{id}");
    client.send(Method::PATCH, &path, Some(body)).await
}

#[tokio::test]
async fn a_service_account_is_made_renamed_given_keys_and_deleted() {
    let database = new_database().await;
    for app in [
        TestApp::start_with(&[("SPL_SANDBOX", "none")]).await,
        TestApp::start_with(&[("SPL_SANDBOX", "none"), ("DATABASE_URL", &database)]).await,
    ] {
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let admin = browser(&app, &owner, "admin", "ada").await;
        let made = make(&admin, "robot", "member").await.ok(201);
        assert_eq!(made["serviceAccount"], true);
        let id = text(&made["id"]);
        make(&admin, "robot", "member")
            .await
            .problem(409, "invalid_arguments");
        make(&admin, "chief", "admin")
            .await
            .problem(403, "not_allowed");
        make(&owner, "chief", "owner")
            .await
            .problem(403, "not_allowed");
        let listed = admin.get("/api/service-accounts").await.ok(200);
        assert_eq!(listed["items"].as_array().unwrap().len(), 1);
        let people = admin.get("/api/people?serviceAccount=false").await.ok(200);
        assert_eq!(people["total"], 2);

        let path = format!("/api/service-accounts/{id}/keys");
        let refused = owner.post(&path, json!({})).await;
        refused.problem(403, "not_allowed");
        let body = json!({ "name": "nightly", "scopes": ["read", "message"] });
        let key = admin.post(&path, body).await.ok(201);
        assert_eq!(key["key"]["person"], id.as_str());
        assert_eq!(key["key"]["scopes"], json!(["read", "message"]));
        let robot = Client::with_key(&app, key["secret"].as_str().unwrap());
        let me = robot.get("/api/auth/me").await.ok(200);
        assert_eq!(me["user"]["name"], "robot");
        robot.post("/api/sessions", json!({})).await.ok(201);

        change(&admin, &id, json!({ "name": "android" }))
            .await
            .ok(200);
        let me = robot.get("/api/auth/me").await.ok(200);
        assert_eq!(me["user"]["name"], "android");
        change(&owner, &id, json!({ "role": "owner" }))
            .await
            .problem(403, "not_allowed");
        change(&admin, &id, json!({ "disabled": true }))
            .await
            .ok(200);
        robot.get("/api/auth/me").await.problem(401, "unauthorized");
        change(&admin, &id, json!({ "disabled": false }))
            .await
            .ok(200);
        robot.get("/api/auth/me").await.ok(200);
        let key = text(&key["key"]["id"]);
        admin.delete(&format!("/api/keys/{key}")).await.done();
        robot.get("/api/auth/me").await.problem(401, "unauthorized");
        let gone = Some(json!({ "name": "android" }));
        let path = format!("/api/people/{id}");
        let gone = admin.send(Method::DELETE, &path, gone).await;
        assert_eq!(gone.status, 202, "{}", gone.text);

        // A person keeps their name, and gets no key from others.
        let other = app.person_with("acme", Role::Member).await;
        let other = caller(&app, &other).await.user.id;
        let renamed = change(&owner, other.as_str(), json!({ "name": "x" })).await;
        renamed.problem(403, "not_allowed");
        let path = format!("/api/service-accounts/{other}/keys");
        admin.post(&path, json!({})).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn no_door_but_a_key_lets_a_service_account_in() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let administration = app.tenancy.administration();
    let tenant = &owner.tenant;
    let robot = administration.create_service_account(tenant, "robot", Role::Member);
    let robot = robot.await.unwrap();
    let password = SecretString::from(PASSWORD.to_owned());
    let set = administration.set_password(tenant, &robot.id, &password);
    assert!(matches!(set.await, Err(Error::Refused(_))));
    let is_admin = administration.set_installation_admin(tenant, &robot.id, true);
    assert!(matches!(is_admin.await, Err(Error::Refused(_))));
    let owner_of = administration.set_role(tenant, &robot.id, Role::Owner);
    assert!(matches!(owner_of.await, Err(Error::Refused(_))));
    let by_password = json!({ "tenant": "acme", "name": "robot", "password": PASSWORD });
    let nobody = Client::nobody(&app);
    let entered = nobody.post("/api/auth/login", by_password).await;
    entered.problem(401, "unauthorized");
    let setup = app.tenancy.setup();
    let link = setup.link("https://sepal.example", Some("acme"), Some("robot"));
    assert!(link.await.is_err());

    let key = administration.create_key(tenant, &robot.id, "key").await;
    let key = secrecy::ExposeSecret::expose_secret(&key.unwrap().secret).to_owned();
    let client = Client::with_key(&app, &key);
    let refused = client
        .put("/api/password", json!({ "new": PASSWORD }))
        .await;
    refused.problem(403, "not_allowed");
    let passkey = json!({ "name": "x", "credential": {} });
    let refused = client.post("/api/passkeys", passkey).await;
    assert!(refused.status >= 400, "{}", refused.text);
    // The only owner stays, however many service accounts there are.
    let last = caller(&app, &owner).await.user.id;
    let disabled = administration.disable_user(tenant, &last).await;
    assert!(matches!(disabled, Err(Error::Refused(_))));
}

#[tokio::test]
async fn an_installation_with_service_accounts_alone_is_not_set_up() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let administration = app.tenancy.administration();
    let tenant = administration.find_tenant("default").await.unwrap();
    let robot = administration.create_service_account(&tenant.id, "robot", Role::Member);
    robot.await.unwrap();
    assert!(app.tenancy.setup().check_needed().await.unwrap());
}

#[tokio::test]
async fn who_may_less_makes_no_keys_of_a_service_account() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let boss = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &boss.key);
    let member = browser(&app, &owner, "member", "ben").await;
    let ben = member.get("/api/auth/me").await.ok(200)["user"]["id"].clone();
    let robot = text(&make(&owner, "robot", "member").await.ok(201)["id"]);
    let path = format!("/api/service-accounts/{robot}/keys");
    let refused = member.post(&path, json!({})).await;
    refused.problem(403, "not_allowed");
    make(&member, "mine", "member")
        .await
        .problem(403, "not_allowed");

    let give = async |person: &str, name: &str, rights: &[&str]| {
        let role = json!({ "name": name, "rights": rights });
        let role = owner.post("/api/roles", role).await.ok(201)["id"].clone();
        let path = format!("/api/people/{person}/roles");
        owner.put(&path, json!({ "roles": [role] })).await.ok(200);
    };
    give(ben.as_str().unwrap(), "Keys", &["keys.manage"]).await;
    member.post(&path, json!({})).await.ok(201);
    give(&robot, "Auditor", &["audit.read"]).await;
    let refused = member.post(&path, json!({})).await;
    refused.problem(403, "not_allowed");
    let chief = text(&make(&owner, "chief", "admin").await.ok(201)["id"]);
    let path = format!("/api/service-accounts/{chief}/keys");
    let refused = member.post(&path, json!({})).await;
    refused.problem(403, "not_allowed");
}

/// What a service account does is its own, as with every person; to another tenant it does not exist.
#[tokio::test]
async fn sessions_of_a_service_account_are_its_own() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let administration = app.tenancy.administration();
    let robot = administration.create_service_account(&owner.tenant, "robot", Role::Member);
    let robot = robot.await.unwrap();
    let key = administration.add_key(&owner.tenant, &robot.id, NewKey::unlimited("key"));
    let key = secrecy::ExposeSecret::expose_secret(&key.await.unwrap().secret).to_owned();
    let person = Person {
        tenant: owner.tenant.clone(),
        key,
    };
    app.model.will_say("noted");
    let mut socket = TestSocket::open(app.address, &person, None).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    for other in [&owner, &stranger] {
        let client = Client::with_key(&app, &other.key);
        let found = client.get(&format!("/api/sessions/{session}")).await;
        found.problem(404, "session_not_found");
    }
    let stranger = Client::with_key(&app, &stranger.key);
    let listed = stranger.get("/api/service-accounts").await.ok(200);
    assert_eq!(listed["items"], json!([]));
    let renamed = change(&stranger, robot.id.as_str(), json!({ "name": "x" })).await;
    renamed.problem(404, "not_found");
    assert!(UserId::parse(robot.id.as_str()).is_some());
    let path = format!("/api/service-accounts/{}/keys", robot.id);
    let made = stranger.post(&path, json!({})).await;
    made.problem(404, "not_found");
}
