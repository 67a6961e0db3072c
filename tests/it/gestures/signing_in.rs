//! Sign-in by a passkey alone, and people who chose that nothing else counts.

use reqwest::Method;
use serde_json::{Value, json};

use super::authenticator::Authenticator;
use super::{Browser, PASSWORD, person};
use crate::rest::Client;
use crate::support::TestApp;
use sepal::domain::{Role, UserId};

impl Browser {
    /// A browser with a challenge.
    async fn asked(app: &TestApp) -> (Self, Value) {
        let browser = Self::at(app);
        let (status, asked) = browser.post("/api/auth/passkey/start", &Value::Null).await;
        assert_eq!(status, 200, "{asked}");
        assert_eq!(asked["publicKey"]["userVerification"], "required");
        (browser, asked["publicKey"].clone())
    }

    /// Signs in by a passkey, in a browser of its own.
    async fn enter_by(app: &TestApp, passkey: &mut Authenticator) -> (u16, Value) {
        let (browser, options) = Self::asked(app).await;
        passkey.count += 1;
        let body = json!({ "credential": passkey.get_of_anybody(&options) });
        browser.post("/api/auth/passkey/finish", &body).await
    }

    async fn enter_by_password(app: &TestApp, name: &str, password: &str) -> (u16, Value) {
        let body = json!({ "tenant": "acme", "name": name, "password": password });
        Self::at(app).post("/api/auth/login", &body).await
    }

    /// Chooses that passkeys alone count, or no longer.
    async fn choose(&self, body: &Value) -> (u16, Value) {
        self.ask(Method::PUT, "/api/passkey-only", body).await
    }
}

#[tokio::test]
async fn a_passkey_signs_in_without_a_name() {
    let app = TestApp::start().await;
    let (ana, _) = person(&app, "acme", "ana").await;
    let (bo, _) = person(&app, "other", "ana").await;
    let mut passkey = ana.add_passkey().await;
    let mut of_bo = bo.add_passkey().await;
    let (status, me) = Browser::enter_by(&app, &mut passkey).await;
    assert_eq!(status, 200, "{me}");
    assert_eq!(
        (&me["user"]["name"], &me["tenant"]["name"]),
        (&json!("ana"), &json!("acme"))
    );
    let (status, other) = Browser::enter_by(&app, &mut of_bo).await;
    assert_eq!(status, 200, "{other}");
    assert_eq!(other["tenant"]["name"], "other");
    assert_ne!(other["user"]["id"], me["user"]["id"]);
    let owner = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &owner.key);
    let page = owner.get("/api/audit?act=sign_in.succeeded").await.ok(200);
    let record = &page["items"][0]["record"];
    assert_eq!(record["by"]["id"], me["user"]["id"], "{record}");
    assert_eq!(record["details"]["passkey"], true, "{record}");
    let path = format!("/api/people/{}", me["user"]["id"].as_str().unwrap());
    let ended = owner.send(Method::PATCH, &path, Some(json!({ "disabled": true })));
    ended.await.ok(200);
    let (status, refused) = Browser::enter_by(&app, &mut passkey).await;
    assert_eq!((status, &refused["reason"]), (403, &json!("disabled")));
}

#[tokio::test]
async fn an_answer_that_proves_nobody_signs_nobody_in() {
    let app = TestApp::start().await;
    let (ana, _) = person(&app, "acme", "ana").await;
    let (bo, _) = person(&app, "acme", "bo").await;
    let mut passkey = ana.add_passkey().await;
    let of_bo = bo.add_passkey().await;
    let refused = async |passkey: &mut Authenticator| {
        let (status, problem) = Browser::enter_by(&app, passkey).await;
        assert_eq!(status, 401, "{problem}");
        assert_eq!(problem["code"], "unauthorized");
    };
    let origin = passkey.origin.clone();
    passkey.origin = "https://evil.example".into();
    refused(&mut passkey).await;
    passkey.origin = origin.clone();
    passkey.rp_id = "evil.example".into();
    refused(&mut passkey).await;
    passkey.rp_id = "localhost".into();
    passkey.verifies = false;
    refused(&mut passkey).await;
    passkey.verifies = true;
    // It says that it is of somebody else, or of nobody.
    let handle = passkey.handle.clone();
    passkey.handle = of_bo.handle.clone();
    refused(&mut passkey).await;
    passkey.handle = Value::Null;
    refused(&mut passkey).await;
    passkey.handle = handle.clone();
    // A passkey that nobody here has, with the name of somebody.
    let mut unknown = Authenticator::at(&origin);
    unknown.handle = handle.clone();
    refused(&mut unknown).await;
    // The same answer twice, and one to another challenge.
    let (browser, options) = Browser::asked(&app).await;
    passkey.count += 1;
    let body = json!({ "credential": passkey.get_of_anybody(&options) });
    let (status, _) = browser.post("/api/auth/passkey/finish", &body).await;
    assert_eq!(status, 200);
    let (status, _) = browser.post("/api/auth/passkey/finish", &body).await;
    assert_eq!(status, 401);
    // A challenge for a gesture signs nobody in, and one for a sign-in makes no gesture.
    let for_gesture = ana.challenge(&json!([])).await;
    passkey.count += 1;
    let mut named = passkey.get(&for_gesture);
    named["response"]["userHandle"] = handle;
    let (status, _) = browser
        .post("/api/auth/passkey/finish", &json!({ "credential": named }))
        .await;
    assert_eq!(status, 401);
    let (_, options) = Browser::asked(&app).await;
    let body = json!({ "credential": passkey.get_of_anybody(&options) });
    let (status, _) = ana.post("/api/gestures", &body).await;
    assert_eq!(status, 403);
    // A copy of the passkey has an older counter.
    passkey.count = 1;
    refused(&mut passkey).await;
    // By an address without a name there are no passkeys.
    let by_address = Client::nobody(&app);
    let refused = by_address.post("/api/auth/passkey/start", json!({})).await;
    refused.problem(403, "not_allowed");
}

#[tokio::test]
async fn whoever_wants_passkeys_alone_has_no_other_way_in() {
    let app = TestApp::start().await;
    let (ana, key) = person(&app, "acme", "ana").await;
    let mut passkey = ana.add_passkey().await;
    // By the password, by a key, without a second passkey: no.
    let by_password = ana.by_password(&json!([])).await;
    let choice = |gesture: &Value| json!({ "passkeyOnly": true, "recoveryByLink": true, "gesture": gesture });
    let (status, refused) = ana.choose(&choice(&by_password)).await;
    assert_eq!(
        (status, &refused["errors"][0]["field"]),
        (403, &json!("gesture")),
        "{refused}"
    );
    let by_key = Client::with_key(&app, &key.key);
    let refused = by_key.put("/api/passkey-only", choice(&by_password)).await;
    refused.problem(403, "not_allowed");
    let proof = ana.by_passkey(&mut passkey, &json!([])).await;
    let alone = json!({ "passkeyOnly": true, "gesture": proof });
    let (status, refused) = ana.choose(&alone).await;
    assert_eq!(
        (status, &refused["errors"][0]["field"]),
        (403, &json!("passkeyOnly")),
        "{refused}"
    );
    let (status, refused) = ana.choose(&choice(&proof)).await;
    assert_eq!(status, 204, "{refused}");

    // The right password is answered as a wrong one.
    let right = Browser::enter_by_password(&app, "ana", PASSWORD).await;
    let wrong = Browser::enter_by_password(&app, "ana", "wrong horse battery").await;
    assert_eq!((right.0, &right.1["detail"]), (401, &wrong.1["detail"]));
    assert_eq!(right.1["code"], wrong.1["code"]);
    let body = json!({ "password": PASSWORD, "calls": [] });
    let (status, _) = ana.post("/api/gestures", &body).await;
    assert_eq!(status, 403, "a gesture by password");
    let body = json!({ "old": PASSWORD, "new": "another long password" });
    let (status, _) = ana.ask(Method::PUT, "/api/password", &body).await;
    assert_eq!(status, 403);
    let (_, listed) = ana.ask(Method::GET, "/api/passkeys", &Value::Null).await;
    assert_eq!(
        (&listed["passkeyOnly"], &listed["hasPassword"]),
        (&json!(true), &json!(false))
    );
    // The last passkey stays.
    let path = format!(
        "/api/passkeys/{}",
        listed["items"][0]["id"].as_str().unwrap()
    );
    let proof = ana.by_passkey(&mut passkey, &json!([])).await;
    let body = json!({ "gesture": proof });
    let (status, refused) = ana.ask(Method::DELETE, &path, &body).await;
    assert_eq!((status, &refused["code"]), (403, &json!("not_allowed")));
    let (status, _) = Browser::enter_by(&app, &mut passkey).await;
    assert_eq!(status, 200);
    let proof = ana.by_passkey(&mut passkey, &json!([])).await;
    let off = json!({ "passkeyOnly": false, "gesture": proof });
    assert_eq!(ana.choose(&off).await.0, 204);
    let (status, _) = Browser::enter_by_password(&app, "ana", PASSWORD).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn an_administrator_lets_the_password_count_again() {
    let app = TestApp::start().await;
    let (ana, key) = person(&app, "acme", "ana").await;
    let mut passkey = ana.add_passkey().await;
    let second = ana.add_passkey().await;
    assert_ne!(second.handle, Value::Null);
    let choose = async |passkey: &mut Authenticator| {
        let proof = ana.by_passkey(passkey, &json!([])).await;
        let body = json!({ "passkeyOnly": true, "gesture": proof });
        assert_eq!(ana.choose(&body).await.0, 204);
        let (status, _) = Browser::enter_by_password(&app, "ana", PASSWORD).await;
        assert_eq!(status, 401);
    };
    choose(&mut passkey).await;
    let (_, me) = ana.ask(Method::GET, "/api/auth/me", &Value::Null).await;
    let id = me["user"]["id"].as_str().unwrap();
    let path = format!("/api/people/{id}/passkey-only");
    let stranger = app.person_with("other", Role::Owner).await;
    let stranger = Client::with_key(&app, &stranger.key);
    stranger.delete(&path).await.problem(404, "not_found");
    let own = Client::with_key(&app, &key.key).delete(&path).await;
    own.problem(403, "not_allowed");
    let owner = app.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&app, &owner.key);
    let listed = owner.get("/api/people?search=ana").await.ok(200);
    assert_eq!(listed["items"][0]["passkeyOnly"], true, "{listed}");
    owner.delete(&path).await.done();
    let page = owner.get("/api/audit?act=user.passkey_only_set").await;
    let page = page.ok(200);
    let record = &page["items"][0]["record"];
    assert_eq!(record["on"]["id"], id, "{record}");
    assert_eq!(record["details"]["passkeyOnly"], false, "{record}");
    let (status, _) = Browser::enter_by_password(&app, "ana", PASSWORD).await;
    assert_eq!(status, 200);
    // What `sepal admin user password` does.
    choose(&mut passkey).await;
    let user = UserId::parse(id).unwrap();
    let administration = app.tenancy.administration();
    let new = "a new long password".into();
    let set = administration.set_password(&key.tenant, &user, &new).await;
    set.unwrap();
    let (status, _) = Browser::enter_by_password(&app, "ana", "a new long password").await;
    assert_eq!(status, 200);
}
