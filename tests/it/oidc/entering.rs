//! An account decides the person, their name, their tenant and their role.

use serde_json::{Value, json};

use super::provider::CLIENT;
use super::{House, Provider, refused};
use crate::rest::Client;
use crate::support::TestApp;
use sepal::domain::Role;
use sepal::tenancy::NewPerson;

const ROLES: (&str, &str) = ("SPL_OIDC_ROLES", "staff=member,ops=admin,bosses=owner");

#[tokio::test]
async fn a_person_comes_by_their_company_account_and_stays_the_same_person() {
    let house = House::open(&[ROLES, ("SPL_OIDC_DEFAULT_ROLE", "viewer")]).await;
    let stranger = Client::nobody(&house.app).get("/api/auth/me").await;
    let offered = stranger.problem(401, "unauthorized");
    let button = json!([{ "id": "company", "name": "your company account" }]);
    assert_eq!(offered["signInProviders"], button);

    let ann = json!({ "sub": "1", "preferred_username": "ann", "groups": ["staff", "x"] });
    house.provider.is(ann);
    let first = house.sign_in().await;
    assert_eq!(first.me["user"]["name"], "ann");
    assert_eq!(first.me["user"]["role"], "member");
    assert_eq!(first.me["user"]["installationAdmin"], false);
    assert_eq!(first.me["tenant"]["name"], "acme");
    assert_eq!(first.return_to, "/rules");
    assert_eq!(
        first.browser.cookies.len(),
        2,
        "{:?}",
        first.browser.cookies
    );
    first.client.get("/api/sessions").await.ok(200);
    let id = first.me["user"]["id"].clone();
    let added = house.acts("user.added").await.remove(0);
    assert_eq!(added["on"]["id"], id, "{added}");
    let details = &added["details"];
    assert_eq!(details["issuer"], house.provider.issuer, "{details}");
    let signed_in = &house.acts("sign_in.succeeded").await[0];
    assert_eq!(signed_in["by"]["id"], id, "{signed_in}");
    assert_eq!(signed_in["details"]["issuer"], house.provider.issuer);

    // Another name and other groups: the same person, in the role of now.
    let ann = json!({ "sub": "1", "preferred_username": "anna", "groups": ["ops"] });
    house.provider.is(ann);
    let again = house.sign_in().await;
    assert_eq!(again.me["user"]["id"], id);
    assert_eq!(again.me["user"]["name"], "ann");
    assert_eq!(again.me["user"]["role"], "admin");
    let set = &house.acts("user.role_set").await[0];
    assert_eq!(set["details"]["role"], "admin", "{set}");
    assert_eq!(set["details"]["issuer"], house.provider.issuer, "{set}");
    // The browser of before has the new role too.
    let me = first.client.get("/api/auth/me").await.ok(200);
    assert_eq!(me["user"]["role"], "admin");
    house.provider.is(json!({ "sub": "1" }));
    assert_eq!(house.sign_in().await.me["user"]["role"], "viewer");
    assert_eq!(house.acts("user.added").await.len(), 2, "with the owner");
}

#[tokio::test]
async fn an_account_never_takes_over_somebody_of_the_same_name_or_address() {
    let house = House::open(&[]).await;
    let tenant = &house.owner.tenant;
    let administration = house.app.tenancy.administration();
    for name in ["ann", "ann@acme.test"] {
        let person = NewPerson {
            name: name.to_owned(),
            role: Role::Owner,
            installation_admin: true,
            password: None,
        };
        administration.create_user(tenant, person).await.unwrap();
    }
    let of = |subject: &str, username: Value| {
        json!({
            "sub": subject, "preferred_username": username,
            "email": "ann@acme.test", "email_verified": true,
        })
    };
    for (account, name) in [
        (of("1", json!("ann")), "ann2"),
        (of("2", json!("ANN")), "ANN3"),
        (of("3", Value::Null), "ann@acme.test2"),
        (of("1", json!("ann")), "ann2"),
    ] {
        house.provider.is(account);
        let visitor = house.sign_in().await;
        assert_eq!(visitor.me["user"]["name"], name);
        assert_eq!(visitor.me["user"]["role"], "member");
        assert_eq!(visitor.me["user"]["installationAdmin"], false);
    }
}

#[tokio::test]
async fn what_the_id_token_lacks_is_asked_for() {
    let house = House::open(&[ROLES]).await;
    house.provider.is_thin();
    house.provider.is(json!({
        "sub": "1", "name": "Ann B.", "email": "ann@acme.test", "groups": ["ops"],
    }));
    let visitor = house.sign_in().await;
    assert_eq!(visitor.me["user"]["name"], "ann@acme.test");
    assert_eq!(visitor.me["user"]["role"], "admin");
}

#[tokio::test]
async fn the_domain_of_a_verified_address_chooses_the_tenant() {
    let house = House::open(&[("SPL_OIDC_TENANTS", "acme.test=acme,b.test=other")]).await;
    house.app.person_with("other", Role::Owner).await;
    let of = |email: &str, verified: Value| json!({ "sub": "1", "email": email, "email_verified": verified });
    house.provider.is(of("ann@acme.test", json!(true)));
    assert_eq!(house.sign_in().await.me["tenant"]["name"], "acme");
    // The same account, of another company now: somebody else there, and a stranger to the first.
    house.provider.is(of("ann@b.test", json!("true")));
    let there = house.sign_in().await;
    assert_eq!(there.me["tenant"]["name"], "other");
    for (email, verified, reason) in [
        ("ann@acme.test", json!(false), "mail_not_verified"),
        ("ann@acme.test", Value::Null, "mail_not_verified"),
        ("ann@evil.test", json!(true), "no_tenant"),
    ] {
        house.provider.is(of(email, verified));
        let mut browser = house.browser();
        refused(&browser.sign_in().await, 403, reason);
        browser.check_nobody().await;
    }
}

#[tokio::test]
async fn who_may_not_enter_is_told_why() {
    let house = House::open(&[ROLES, ("SPL_OIDC_DEFAULT_ROLE", "none")]).await;
    let account =
        |groups: Value| json!({ "sub": "1", "preferred_username": "ann", "groups": groups });
    let is_refused = async |status: u16, reason: &str| {
        let mut browser = house.browser();
        let text = refused(&browser.sign_in().await, status, reason);
        browser.check_nobody().await;
        text
    };
    house.provider.is(account(json!(["x"])));
    let text = is_refused(403, "no_role").await;
    assert!(text.contains("ask your administrator"), "{text}");
    house.provider.is(account(json!(["staff"])));
    let visitor = house.sign_in().await;
    // Who lost their group comes in no more.
    house.provider.is(account(json!([])));
    is_refused(403, "no_role").await;
    house.provider.is(account(json!(["staff"])));
    let path = format!("/api/people/{}", visitor.me["user"]["id"].as_str().unwrap());
    let owner = house.owner();
    let change = async |body: Value| {
        let request = owner.request(reqwest::Method::PATCH, &path).json(&body);
        assert_eq!(request.send().await.unwrap().status(), 200);
    };
    change(json!({ "disabled": true })).await;
    is_refused(403, "disabled").await;
    let failed = &house.acts("sign_in.failed").await;
    let of_ann = failed
        .iter()
        .filter(|it| it["on"]["id"] == visitor.me["user"]["id"]);
    assert_eq!(of_ann.count(), 1, "{failed:?}");
    change(json!({ "disabled": false })).await;
    house.sign_in().await;
    let tenant = &house.owner.tenant;
    let administration = house.app.tenancy.administration();
    administration.suspend_tenant(tenant).await.unwrap();
    is_refused(403, "suspended").await;
}

#[tokio::test]
async fn nobody_is_made_where_the_settings_say_so() {
    let house = House::open(&[("SPL_OIDC_CREATE_PEOPLE", "false")]).await;
    let mut browser = house.browser();
    refused(&browser.sign_in().await, 403, "no_person");
    browser.check_nobody().await;
}

#[tokio::test]
async fn the_last_owner_stays_one_whatever_the_groups_say() {
    let house = House::open(&[ROLES]).await;
    house
        .provider
        .is(json!({ "sub": "1", "groups": ["bosses"] }));
    let visitor = house.sign_in().await;
    assert_eq!(visitor.me["user"]["role"], "owner");
    let people = house.owner().get("/api/people").await.ok(200);
    let people = people["items"].as_array().unwrap();
    let me = house.owner().get("/api/auth/me").await.ok(200);
    assert!(people.iter().any(|it| it["id"] == me["user"]["id"]));
    let path = format!("/api/people/{}", me["user"]["id"].as_str().unwrap());
    let change = visitor.client.request(reqwest::Method::PATCH, &path);
    let changed = change.json(&json!({ "role": "member" })).send().await;
    assert_eq!(changed.unwrap().status(), 200);
    house
        .provider
        .is(json!({ "sub": "1", "groups": ["staff"] }));
    let last = house.sign_in().await;
    assert_eq!(last.me["user"]["role"], "owner");
}

#[tokio::test]
async fn an_account_of_the_company_needs_no_password_and_gets_none() {
    let house = House::open(&[]).await;
    let visitor = house.sign_in().await;
    let body = json!({ "new": "correct horse battery" });
    let answer = visitor.client.put("/api/password", body).await;
    answer.problem(403, "not_allowed");
}

#[tokio::test]
async fn nobody_comes_before_the_first_owner() {
    let provider = Provider::start().await;
    let app = House::gateway(&provider, &[]).await;
    let mut browser = super::Browser {
        app: &app,
        cookies: std::collections::BTreeMap::new(),
    };
    refused(&browser.sign_in().await, 403, "setup_needed");
    browser.check_nobody().await;
}

#[tokio::test]
async fn a_gateway_without_providers_has_no_such_door() {
    let app = TestApp::start().await;
    let nobody = Client::nobody(&app);
    let offered = nobody
        .get("/api/auth/me")
        .await
        .problem(401, "unauthorized");
    assert_eq!(offered["signInProviders"], json!([]));
    let base = format!("/api/auth/oidc/{CLIENT}");
    let start = nobody.post(&format!("{base}/start"), json!({})).await;
    start.problem(404, "not_found");
    let back = nobody.get(&format!("{base}/callback?code=x")).await;
    back.problem(404, "not_found");
    let finish = json!({ "state": "x", "code": "y" });
    let finish = nobody.post(&format!("{base}/finish"), finish).await;
    finish.problem(404, "not_found");
}

#[tokio::test]
async fn the_providers_groups_fill_groups_here_at_each_sign_in() {
    let house = House::open(&[
        ("SPL_OIDC_GROUPS", "staff=Everybody,money=Finance"),
        ("SPL_OIDC_SAME_GROUPS", "true"),
    ])
    .await;
    let owner = house.owner();
    for name in ["Everybody", "Finance", "Ops", "By hand"] {
        let added = owner.post("/api/groups", json!({ "name": name })).await;
        added.ok(201);
    }
    let groups = owner.get("/api/groups").await.ok(200);
    let id_of = |name: &str| {
        let mut items = groups["items"].as_array().unwrap().iter();
        let found = items.find(|item| item["name"] == name).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    let is_in = async |claims: Value| {
        house.provider.is(claims);
        let me = house.sign_in().await.me;
        let path = format!("/api/people/{}/roles", me["user"]["id"].as_str().unwrap());
        let found = owner.get(&path).await.ok(200);
        let names = found["groups"].as_array().unwrap().iter();
        let names: Vec<String> = names
            .map(|group| group["name"].as_str().unwrap().to_owned())
            .collect();
        (me["user"]["id"].as_str().unwrap().to_owned(), names)
    };
    let ann = |groups: Value| json!({ "sub": "1", "preferred_username": "ann", "groups": groups });
    let (id, names) = is_in(ann(json!(["staff", "OPS", "nothing here"]))).await;
    assert_eq!(names, ["Everybody", "Ops"]);
    // What somebody gave here stays, and counts as given here from now on.
    for name in ["By hand", "Ops"] {
        let path = format!("/api/groups/{}/members/{id}", id_of(name));
        owner.put(&path, json!({})).await.done();
    }
    let (_, names) = is_in(ann(json!(["money"]))).await;
    assert_eq!(names, ["By hand", "Finance", "Ops"]);
    let (_, names) = is_in(ann(json!([]))).await;
    assert_eq!(names, ["By hand", "Ops"]);
    let left = &house.acts("group.left").await;
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(left[0]["details"]["issuer"], house.provider.issuer);
    assert_eq!(left[0]["by"]["id"], id.as_str());
    let (_, names) =
        is_in(json!({ "sub": "2", "preferred_username": "ben", "groups": ["ops"] })).await;
    assert_eq!(names, ["Ops"], "somebody new");
}
