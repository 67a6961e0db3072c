//! Who gets through the door of directories, who makes its tokens, and what each sees.

use reqwest::Method;
use secrecy::ExposeSecret as _;
use sepal::domain::Role;
use sepal::tenancy::NewScimToken;
use serde_json::{Value, json};

use super::{Directory, act, both, refused, text};
use crate::rest::{Answer, Client};
use crate::support::TestApp;

/// The paths of the door, of which each refuses strangers.
const PATHS: [&str; 8] = [
    "/ServiceProviderConfig",
    "/ResourceTypes",
    "/ResourceTypes/User",
    "/Schemas",
    "/Users",
    "/Users/usr_00000000000000000000000000000000",
    "/Groups",
    "/Groups/grp_00000000000000000000000000000000",
];

#[tokio::test]
async fn only_a_token_of_a_directory_opens_the_door_and_it_opens_no_other() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let directory = Directory::open(&app, &boss).await;
        let wrong = format!("scim_{}", "0".repeat(64));
        let nobody = [
            Client::nobody(&app),
            Client::with_key(&app, &boss.key),
            Client::with_key(&app, &wrong),
            Client::nobody(&app).and("cookie", "sepal=x"),
            Client::nobody(&app).and("authorization", "Basic eDp5"),
        ];
        for path in PATHS {
            for client in &nobody {
                let asked = client.request(Method::GET, &format!("/scim/v2{path}"));
                let answer = Answer::of(asked.send().await.unwrap()).await;
                refused(&answer, 401, "");
                assert_eq!(answer.header("www-authenticate"), "Bearer");
            }
        }
        let me = directory.client.get("/api/auth/me").await;
        me.problem(401, "unauthorized");
        let people = directory.client.get("/api/people").await;
        people.problem(401, "unauthorized");

        let owner = Client::with_key(&app, &boss.key);
        let listed = owner.get("/api/scim-tokens").await.ok(200);
        assert_eq!(
            listed["items"][0]["id"],
            directory.token.as_str(),
            "{listed}"
        );
        assert_eq!(listed["items"][0]["lastUsedAt"], Value::Null, "{listed}");
        assert_eq!(listed["address"], app.url("/scim/v2"), "{listed}");
        directory.get("/Users").await.ok(200);
        let listed = owner.get("/api/scim-tokens").await.ok(200);
        assert!(listed["items"][0]["lastUsedAt"].is_string(), "{listed}");
        let path = format!("/api/scim-tokens/{}", directory.token);
        owner.delete(&path).await.done();
        refused(&directory.get("/Users").await, 401, "");
        owner.delete(&path).await.problem(404, "not_found");
        let revoked = act(&owner, "scim_token.revoked").await;
        assert_eq!(revoked["on"]["id"], directory.token.as_str(), "{revoked}");
    }
}

#[tokio::test]
async fn a_directory_sees_nothing_of_another_tenant() {
    for app in both().await {
        let boss = app.person_with("acme", Role::Owner).await;
        let other = app.person_with("other", Role::Owner).await;
        let ours = Directory::open(&app, &boss).await;
        let theirs = Directory::open(&app, &other).await;
        let ann = text(&ours.person("ann", "1").await["id"]);
        let group = ours
            .post("/Groups", json!({ "displayName": "Finance" }))
            .await;
        let group = text(&group.ok(201)["id"]);
        assert_eq!(theirs.get("/Users").await.ok(200)["totalResults"], 0);
        assert_eq!(theirs.get("/Groups").await.ok(200)["totalResults"], 0);
        let off = json!([{ "op": "replace", "path": "active", "value": false }]);
        for path in [format!("/Users/{ann}"), format!("/Groups/{group}")] {
            refused(&theirs.get(&path).await, 404, "");
            refused(&theirs.patch(&path, off.clone()).await, 404, "");
            let body = json!({ "userName": "x", "displayName": "x" });
            refused(&theirs.put(&path, body).await, 404, "");
            refused(&theirs.delete(&path).await, 404, "");
        }
        // The same names and ids are free there, and nobody of another tenant becomes a member.
        theirs.person("ann", "1").await;
        let body = json!({ "displayName": "Finance", "members": [{ "value": ann }] });
        refused(&theirs.post("/Groups", body).await, 400, "invalidValue");
        let administration = app.tenancy.administration();
        administration.suspend_tenant(&boss.tenant).await.unwrap();
        refused(&ours.get("/Users").await, 401, "");
        theirs.get("/Users").await.ok(200);
    }
}

#[tokio::test]
async fn tokens_are_made_by_those_who_could_make_an_owner() {
    let app = TestApp::start().await;
    let boss = app.person_with("acme", Role::Owner).await;
    let administration = app.tenancy.administration();
    let new = |role| NewScimToken {
        name: "Okta".to_owned(),
        role,
        deletes: false,
    };
    for role in [Role::Admin, Role::Owner] {
        let made = administration.add_scim_token(&boss.tenant, None, new(role));
        assert!(made.await.is_err(), "{role:?}");
    }
    for _ in 0..5 {
        let made = administration.add_scim_token(&boss.tenant, None, new(Role::Member));
        let secret = made.await.unwrap().secret;
        assert!(secret.expose_secret().starts_with("scim_"));
    }
    let sixth = administration.add_scim_token(&boss.tenant, None, new(Role::Member));
    assert!(sixth.await.is_err());
    // A key makes no tokens; a browser of the right person does.
    let owner = Client::with_key(&app, &boss.key);
    let by_key = owner.post("/api/scim-tokens", json!({})).await;
    by_key.problem(403, "not_allowed");
    let caller = async |key: &str| {
        let key = sepal::tenancy::Credential::ApiKey(key.to_owned().into());
        let mut caller = app.tenancy.authenticate(&key).await.unwrap().caller;
        caller.credential = None;
        caller
    };
    let mine = caller(&boss.key).await;
    let settings = app.tenancy.directory_settings(&mine);
    let tokens = settings.tokens().await.unwrap();
    settings.revoke_token(&tokens[0].id).await.unwrap();
    let made = settings.add_token(new(Role::Viewer)).await.unwrap();
    assert_eq!(made.token.created_by, Some(mine.user.id.clone()));
    for role in [Role::Admin, Role::Member] {
        let person = app.person_with("acme", role).await;
        let theirs = caller(&person.key).await;
        let settings = app.tenancy.directory_settings(&theirs);
        assert!(settings.add_token(new(Role::Viewer)).await.is_err());
        assert!(settings.tokens().await.is_err());
        assert!(settings.revoke_token(&made.token.id).await.is_err());
        let asked = Client::with_key(&app, &person.key);
        let listed = asked.get("/api/scim-tokens").await;
        listed.problem(403, "not_allowed");
    }
}

#[tokio::test]
async fn a_directory_has_as_many_requests_as_a_person() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_LIMIT_REQUESTS_PER_MINUTE", "3"),
    ])
    .await;
    let boss = app.person_with("acme", Role::Owner).await;
    let directory = Directory::open(&app, &boss).await;
    let mut last = directory.get("/Users").await;
    assert!(last.header("ratelimit").starts_with("\"user\";r=2"));
    while last.status == 200 {
        last = directory.get("/Users").await;
    }
    refused(&last, 429, "");
    assert_ne!(last.header("retry-after"), "");
}
