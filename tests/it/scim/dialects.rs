//! What Entra and Okta send, as their documentation shows it.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Directory, refused, text};
use crate::rest::Answer;
use crate::support::TestApp;

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

#[tokio::test]
async fn entra_makes_changes_and_disables_people() {
    let app = TestApp::start().await;
    let boss = app.person_with("acme", Role::Owner).await;
    let entra = Directory::open(&app, &boss).await;
    // "Test connection" asks for somebody who is not there.
    let nobody = entra
        .get("/Users?filter=userName%20eq%20%22non-existent%22")
        .await;
    assert_eq!(nobody.ok(200)["totalResults"], 0);
    let body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", ENTERPRISE],
        "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
        "userName": "Test_User_ab6490ee-1e48-479e-a20b-2d77186b5dd1",
        "active": true,
        "emails": [{ "primary": true, "type": "work", "value": "Test_User_fd0ea19b@testuser.com" }],
        "meta": { "resourceType": "User" },
        "name": { "formatted": "givenName familyName", "familyName": "familyName", "givenName": "givenName" },
        "roles": [],
        ENTERPRISE: { "department": "Sales" },
    });
    let made = entra.post("/Users", body).await.ok(201);
    let path = format!("/Users/{}", text(&made["id"]));
    let multi = json!([
        { "op": "Replace", "path": "emails[type eq \"work\"].value", "value": "updatedEmail@microsoft.com" },
        { "op": "Replace", "path": "name.familyName", "value": "updatedFamilyName" },
        { "op": "Add", "path": format!("{ENTERPRISE}:department"), "value": "Other" },
        { "op": "Add", "path": "phoneNumbers[type eq \"mobile\"].value", "value": "555" },
    ]);
    let changed = entra.patch(&path, multi).await.ok(200);
    assert_eq!(changed["emails"][0]["value"], "updatedEmail@microsoft.com");
    assert_eq!(changed["name"]["familyName"], "updatedFamilyName");
    assert_eq!(changed["name"]["givenName"], "givenName");
    let name = json!([{ "op": "Replace", "path": "userName", "value": "5b50642d@testuser.com" }]);
    let changed = entra.patch(&path, name).await.ok(200);
    assert_eq!(changed["userName"], "5b50642d@testuser.com");
    let off = json!([{ "op": "Replace", "path": "active", "value": "False" }]);
    assert_eq!(entra.patch(&path, off).await.ok(200)["active"], false);
    let on = json!([{ "op": "Replace", "path": "active", "value": "True" }]);
    assert_eq!(entra.patch(&path, on).await.ok(200)["active"], true);

    let group = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
        "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159", "displayName": "displayName",
        "meta": { "resourceType": "Group" },
    });
    let group = entra.post("/Groups", group).await.ok(201);
    let group = format!("/Groups/{}", text(&group["id"]));
    let member = json!([{ "$ref": null, "value": made["id"] }]);
    let joins = json!([{ "op": "Add", "path": "members", "value": member }]);
    let filled = entra.patch(&group, joins).await.ok(200);
    assert_eq!(filled["members"][0]["value"], made["id"]);
    let leaves = json!([{ "op": "Remove", "path": "members", "value": member }]);
    let emptied = entra.patch(&group, leaves).await.ok(200);
    assert_eq!(emptied.get("members"), None);
    let renamed =
        json!([{ "op": "Replace", "path": "displayName", "value": "1879db59-3bdf-4490" }]);
    let renamed = entra.patch(&group, renamed).await.ok(200);
    assert_eq!(renamed["displayName"], "1879db59-3bdf-4490");
    let seen = entra
        .get(&format!("{group}?excludedAttributes=members"))
        .await;
    assert_eq!(seen.ok(200)["displayName"], "1879db59-3bdf-4490");
    entra.delete(&group).await.done();
    entra.delete(&path).await.done();
}

#[tokio::test]
async fn okta_makes_changes_and_disables_people() {
    let app = TestApp::start().await;
    let boss = app.person_with("acme", Role::Owner).await;
    let okta = Directory::open(&app, &boss).await;
    let query = "/Users?filter=userName%20eq%20%22test.user%40okta.local%22&startIndex=1&count=100";
    let found = okta.get(query).await.ok(200);
    assert_eq!(found["Resources"], json!([]));
    let user = |active: bool, given: &str| {
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
            "userName": "test.user@okta.local",
            "name": { "givenName": given, "familyName": "User" },
            "emails": [{ "primary": true, "value": "test.user@okta.local", "type": "work" }],
            "displayName": "Test User", "locale": "en-US", "externalId": "00ujl29u0le5T6Aj10h7",
            "groups": [], "password": "1mz050nq", "active": active,
        })
    };
    let made = okta.post("/Users", user(true, "Test")).await.ok(201);
    let path = format!("/Users/{}", text(&made["id"]));
    assert_eq!(okta.get(query).await.ok(200)["totalResults"], 1);
    let other = okta.put(&path, user(true, "Another")).await.ok(200);
    assert_eq!(other["name"]["givenName"], "Another");
    let off = json!([{ "op": "replace", "value": { "active": false } }]);
    assert_eq!(okta.patch(&path, off).await.ok(200)["active"], false);
    assert_eq!(
        okta.put(&path, user(true, "Another")).await.ok(200)["active"],
        true
    );

    let group = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
        "displayName": "Test SCIMv2", "members": [],
    });
    let group = okta.post("/Groups", group).await.ok(201);
    let id = text(&group["id"]);
    let group = format!("/Groups/{id}");
    let renamed = json!([{ "op": "replace", "value": { "id": id, "displayName": "Test SCIMv0" } }]);
    assert_eq!(
        okta.patch(&group, renamed).await.ok(200)["displayName"],
        "Test SCIMv0"
    );
    let member = text(&made["id"]);
    let both = json!([
        { "op": "remove", "path": format!("members[value eq \"{member}\"]") },
        { "op": "add", "path": "members",
          "value": [{ "value": member, "display": "test.user@okta.local" }] },
    ]);
    let filled = okta.patch(&group, both).await.ok(200);
    assert_eq!(filled["members"][0]["value"], member.as_str());
    let whole =
        json!({ "displayName": "Test SCIMv0", "members": [{ "value": member, "display": "x" }] });
    assert_eq!(
        okta.put(&group, whole).await.ok(200)["members"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    okta.delete(&group).await.done();
}

#[tokio::test]
async fn the_door_describes_itself_and_refuses_in_the_standards_words() {
    let app = TestApp::start().await;
    let boss = app.person_with("acme", Role::Owner).await;
    let directory = Directory::open(&app, &boss).await;
    let config = directory.get("/ServiceProviderConfig").await;
    assert_eq!(config.header("content-type"), "application/scim+json");
    assert_eq!(config.header("cache-control"), "no-store");
    assert_eq!(
        config.ok(200)["filter"],
        json!({ "supported": true, "maxResults": 200 })
    );
    for (path, names) in [("/ResourceTypes", "name"), ("/Schemas", "id")] {
        let all = directory.get(path).await.ok(200);
        assert_eq!(all["totalResults"], 2, "{all}");
        for one in all["Resources"].as_array().unwrap() {
            let found = directory
                .get(&format!("{path}/{}", text(&one[names])))
                .await;
            assert_eq!(found.ok(200), *one);
        }
        refused(&directory.get(&format!("{path}/nothing")).await, 404, "");
    }
    let person = directory.person("ann", "1").await;
    let path = format!("/Users/{}", text(&person["id"]));
    refused(&directory.get("/Nothing").await, 404, "");
    refused(&directory.get("/Users/nothing").await, 404, "");
    refused(&directory.send(Method::PUT, "/Users", None).await, 405, "");
    for (body, kind) in [
        (json!({ "externalId": "1" }), "invalidValue"),
        (json!({ "userName": "" }), "invalidValue"),
        (json!({ "userName": "x".repeat(256) }), "invalidValue"),
        (
            json!({ "userName": "ben", "active": "perhaps" }),
            "invalidValue",
        ),
        (
            json!({ "userName": "ben", "externalId": "1" }),
            "uniqueness",
        ),
        (json!([1]), "invalidSyntax"),
    ] {
        let status = if kind == "uniqueness" { 409 } else { 400 };
        refused(&directory.post("/Users", body).await, status, kind);
    }
    for (operations, kind) in [
        (json!([{ "op": "remove" }]), "noTarget"),
        (
            json!([{ "op": "replace", "path": "id", "value": "x" }]),
            "mutability",
        ),
        (
            json!([{ "op": "replace", "path": "nothing", "value": "x" }]),
            "invalidPath",
        ),
        (
            json!([{ "op": "replace", "path": "emails[", "value": "x" }]),
            "invalidPath",
        ),
        (
            json!([{ "op": "replace", "path": "active", "value": "x" }]),
            "invalidValue",
        ),
        (json!("x"), "invalidSyntax"),
    ] {
        refused(&directory.patch(&path, operations).await, 400, kind);
    }
    let plain = directory
        .client
        .request(Method::POST, "/scim/v2/Users")
        .body("{}");
    let plain = plain.header("content-type", "text/plain");
    refused(&Answer::of(plain.send().await.unwrap()).await, 415, "");
    let large = Value::from("x".repeat(1024 * 1024)).to_string();
    let large = directory
        .client
        .request(Method::POST, "/scim/v2/Users")
        .body(large);
    let large = large.header("content-type", "application/json");
    refused(&Answer::of(large.send().await.unwrap()).await, 413, "");
}
