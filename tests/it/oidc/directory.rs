//! A person whom the directory made signs in by their company's account, and is the same person.

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{House, refused};
use crate::rest::{Answer, Client};
use reqwest::Method;
use sepal::domain::Role;
use sepal::tenancy::NewScimToken;

/// Makes a person by SCIM and returns their id.
async fn made(house: &House, body: Value) -> String {
    let answer = send(house, Method::POST, "/Users", body).await;
    answer.ok(201)["id"].as_str().unwrap().to_owned()
}

async fn send(house: &House, method: Method, path: &str, body: Value) -> Answer {
    let administration = house.app.tenancy.administration();
    for token in administration
        .scim_tokens(&house.owner.tenant)
        .await
        .unwrap()
    {
        let tenant = &house.owner.tenant;
        administration
            .revoke_scim_token(tenant, &token.id)
            .await
            .unwrap();
    }
    let new = NewScimToken {
        name: String::new(),
        role: Role::Viewer,
        deletes: false,
    };
    let created = administration.add_scim_token(&house.owner.tenant, None, new);
    let secret = created.await.unwrap().secret;
    let client = Client::with_key(&house.app, secret.expose_secret());
    let request = client.request(method, &format!("/scim/v2{path}"));
    Answer::of(request.json(&body).send().await.unwrap()).await
}

#[tokio::test]
async fn an_account_is_bound_once_to_the_person_whom_the_directory_made_for_it() {
    for (link, body, claims) in [
        (
            "sub",
            json!({ "userName": "x", "externalId": "7" }),
            json!({ "sub": "7", "preferred_username": "y" }),
        ),
        (
            "preferred_username",
            json!({ "userName": "Ann" }),
            json!({ "sub": "7", "preferred_username": "ann" }),
        ),
        (
            "email",
            json!({ "userName": "ann@acme.com" }),
            json!({ "sub": "7", "email": "Ann@acme.com", "email_verified": true }),
        ),
    ] {
        let house = House::open(&[("SPL_OIDC_SCIM_LINK", link)]).await;
        let id = made(&house, body).await;
        house.provider.is(claims);
        let ann = house.sign_in().await;
        assert_eq!(ann.me["user"]["id"], id.as_str(), "{link}");
        assert_eq!(ann.me["user"]["role"], "viewer", "{link}");
        let bound = &house.acts("user.account_bound").await[0];
        assert_eq!(bound["details"]["issuer"], house.provider.issuer, "{bound}");
        assert_eq!(bound["on"]["id"], id.as_str(), "{bound}");
        // Another account with the same claims is another person.
        house.provider.is(json!({
            "sub": "8", "preferred_username": "ann", "email": "ann@acme.com", "email_verified": true,
        }));
        let other = house.sign_in().await;
        assert_ne!(other.me["user"]["id"], id.as_str(), "{link}");
    }
}

#[tokio::test]
async fn nobody_is_bound_without_the_setting_or_who_was_here_before_or_is_not_vouched_for() {
    let off = House::open(&[]).await;
    let id = made(&off, json!({ "userName": "ann", "externalId": "7" })).await;
    off.provider
        .is(json!({ "sub": "7", "preferred_username": "ann" }));
    assert_ne!(off.sign_in().await.me["user"]["id"], id.as_str());

    let house = House::open(&[("SPL_OIDC_SCIM_LINK", "email")]).await;
    let id = made(&house, json!({ "userName": "ann@acme.com" })).await;
    house
        .provider
        .is(json!({ "sub": "7", "email": "ann@acme.com", "email_verified": false }));
    assert_ne!(house.sign_in().await.me["user"]["id"], id.as_str());

    let house = House::open(&[("SPL_OIDC_SCIM_LINK", "sub")]).await;
    let owner = house.owner();
    let added = owner.post("/api/people", json!({ "name": "ann" })).await;
    let added = added.ok(201);
    let id = added["id"].as_str().unwrap();
    let link = json!({ "userName": "ann", "externalId": "7" });
    let path = format!("/api/directory/people/{id}");
    owner.put(&path, link).await.ok(200);
    house
        .provider
        .is(json!({ "sub": "7", "preferred_username": "ann" }));
    assert_ne!(house.sign_in().await.me["user"]["id"], id);
}

#[tokio::test]
async fn whom_the_directory_disabled_or_deleted_does_not_come_in_as_somebody_new() {
    let house = House::open(&[("SPL_OIDC_SCIM_LINK", "sub")]).await;
    let body = json!({ "userName": "ann", "externalId": "7", "active": false });
    let id = made(&house, body).await;
    house
        .provider
        .is(json!({ "sub": "7", "preferred_username": "ann" }));
    refused(&house.browser().sign_in().await, 403, "disabled");
    let path = format!("/Users/{id}");
    let on = json!({ "userName": "ann", "externalId": "7", "active": true });
    send(&house, Method::PUT, &path, on).await.ok(200);
    assert_eq!(house.sign_in().await.me["user"]["id"], id.as_str());
    send(&house, Method::DELETE, &path, json!({})).await.done();
    refused(&house.browser().sign_in().await, 403, "disabled");
}

#[tokio::test]
async fn without_new_people_only_those_of_the_directory_come_in() {
    let more = [
        ("SPL_OIDC_SCIM_LINK", "sub"),
        ("SPL_OIDC_CREATE_PEOPLE", "false"),
    ];
    let house = House::open(&more).await;
    house.provider.is(json!({ "sub": "7" }));
    refused(&house.browser().sign_in().await, 403, "no_person");
    let id = made(&house, json!({ "userName": "ann", "externalId": "7" })).await;
    assert_eq!(house.sign_in().await.me["user"]["id"], id.as_str());
}
