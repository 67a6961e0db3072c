//! People come in by a proxy that names them in headers, and by nobody else who sends these.

use reqwest::Method;
use reqwest::header::SET_COOKIE;
use sepal::domain::Role;
use serde_json::{Value, json};

use crate::rest::{Answer, Client};
use crate::support::{Person, TestApp, TestSocket};

const USER: &str = "x-forwarded-user";
const EMAIL: &str = "x-forwarded-email";
const GROUPS: &str = "x-forwarded-groups";

/// A gateway behind a proxy on this machine, and the owner of the tenant into which its people come.
struct House {
    app: TestApp,
    owner: Person,
}

/// A browser behind the proxy, in which somebody may be signed in.
#[derive(Clone, Default)]
struct Browser {
    cookie: String,
    csrf: String,
    /// The headers that the proxy sets.
    named: Vec<(&'static str, String)>,
}

impl House {
    async fn open(more: &[(&str, &str)]) -> Self {
        let mut env = vec![
            ("SPL_SANDBOX", "none"),
            ("SPL_AUTH_PROXY_HEADER", "X-Forwarded-User"),
            ("SPL_AUTH_PROXY_EMAIL_HEADER", "X-Forwarded-Email"),
            ("SPL_AUTH_PROXY_GROUPS_HEADER", "X-Forwarded-Groups"),
            ("SPL_AUTH_PROXY_NAME", "sso"),
            ("SPL_AUTH_PROXY_LOGOUT_URL", "https://sso.test/sign_out"),
        ];
        let has = |wanted: &str| more.iter().any(|(name, _)| *name == wanted);
        if !has("SPL_AUTH_PROXY_ADDRESSES") {
            env.push(("SPL_AUTH_PROXY_ADDRESSES", "127.0.0.1"));
        }
        if !has("SPL_AUTH_PROXY_TENANTS") {
            env.push(("SPL_AUTH_PROXY_TENANT", "acme"));
        }
        env.extend(more);
        let app = TestApp::start_with(&env).await;
        let owner = app.person_with("acme", Role::Owner).await;
        Self { app, owner }
    }

    fn owner(&self) -> Client {
        Client::with_key(&self.app, &self.owner.key)
    }

    async fn sign_in(&self, browser: &mut Browser) -> Answer {
        let answer = browser
            .client(&self.app)
            .send(Method::POST, "/api/auth/proxy", None)
            .await;
        if let Some(set) = answer.headers.get(SET_COOKIE) {
            let set = set.to_str().unwrap();
            assert!(set.contains("HttpOnly; SameSite=Lax"), "{set}");
            let cookie = set.split(';').next().unwrap();
            cookie.clone_into(&mut browser.cookie);
            let me = answer.json();
            let csrf = me["csrfToken"].as_str().unwrap();
            csrf.clone_into(&mut browser.csrf);
        }
        answer
    }

    async fn change(&self, id: &Value, body: Value) {
        let path = format!("/api/people/{}", id.as_str().unwrap());
        self.owner()
            .send(Method::PATCH, &path, Some(body))
            .await
            .ok(200);
    }
}

impl Browser {
    /// A browser whose person has this account at the proxy.
    fn of(account: &str) -> Self {
        Self::default().and(USER, account)
    }

    fn and(mut self, name: &'static str, value: &str) -> Self {
        self.named.push((name, value.to_owned()));
        self
    }

    /// The same browser with the cookies of now, for another account.
    fn now_of(&self, account: &str) -> Self {
        Self {
            named: vec![(USER, account.to_owned())],
            ..self.clone()
        }
    }

    /// The same browser past the proxy.
    fn past_the_proxy(&self) -> Self {
        Self {
            named: Vec::new(),
            ..self.clone()
        }
    }

    fn client(&self, app: &TestApp) -> Client {
        let client = Client::nobody(app);
        let client = client
            .and("cookie", self.cookie.clone())
            .and("x-csrf-token", self.csrf.clone());
        let named = self.named.iter();
        named.fold(client, |client, (name, value)| {
            client.and(name, value.clone())
        })
    }

    async fn me(&self, app: &TestApp) -> Answer {
        self.client(app).get("/api/auth/me").await
    }
}

fn reason(answer: &Answer, status: u16, expected: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(answer.json()["reason"], expected, "{}", answer.text);
    assert!(!answer.headers.contains_key(SET_COOKIE), "{}", answer.text);
}

#[tokio::test]
async fn whom_the_proxy_names_comes_in_and_stays_the_same_person() {
    let house = House::open(&[]).await;
    let mut ann = Browser::of("ann").and(EMAIL, "ann@acme.test");
    let stranger = ann.me(&house.app).await.problem(401, "unauthorized");
    assert_eq!(stranger["proxyAccount"], "ann");
    let first = house.sign_in(&mut ann).await.ok(200);
    assert_eq!(first["user"]["name"], "ann");
    assert_eq!(first["user"]["role"], "member");
    assert_eq!(first["tenant"]["name"], "acme");
    assert_eq!(first["signOutUrl"], "https://sso.test/sign_out");
    let me = ann.me(&house.app).await.ok(200);
    assert_eq!(me["user"], first["user"]);
    assert_eq!(me["signOutUrl"], first["signOutUrl"]);
    let mut elsewhere = Browser::of("ann").and(EMAIL, "anna@other.test");
    let again = house.sign_in(&mut elsewhere).await.ok(200);
    assert_eq!(again["user"]["id"], first["user"]["id"]);
    let page = house.owner().get("/api/audit?act=sign_in.succeeded").await;
    let record = page.ok(200)["items"][0]["record"].clone();
    assert_eq!(record["by"]["id"], first["user"]["id"], "{record}");
    assert_eq!(record["details"]["issuer"], "proxy:sso", "{record}");
    // Such a person has no password here.
    let body = json!({ "new": "correct horse battery" });
    let answer = ann.client(&house.app).put("/api/password", body).await;
    answer.problem(403, "not_allowed");
    let page = ann.client(&house.app);
    let out = page.post("/api/auth/logout", json!({})).await;
    assert_eq!(out.status, 204);
    ann.me(&house.app).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_sign_in_counts_only_with_the_account_that_made_it() {
    let house = House::open(&[]).await;
    let mut ann = Browser::of("ann");
    house.sign_in(&mut ann).await.ok(200);
    for other in [
        ann.past_the_proxy(),
        ann.now_of("bo"),
        ann.now_of("ANN"),
        ann.clone().and(USER, "ann"),
    ] {
        other.me(&house.app).await.problem(401, "unauthorized");
        let sessions = other.client(&house.app).get("/api/sessions").await;
        sessions.problem(401, "unauthorized");
        let page = other.client(&house.app);
        let ticket = page.post("/api/auth/ticket", json!({})).await;
        ticket.problem(401, "unauthorized");
    }
    ann.me(&house.app).await.ok(200);
    // Bo takes over the browser, and Ann's sign-in in it ends.
    let mut bo = ann.now_of("bo");
    let me = house.sign_in(&mut bo).await.ok(200);
    assert_eq!(me["user"]["name"], "bo");
    ann.me(&house.app).await.problem(401, "unauthorized");
    bo.me(&house.app).await.ok(200);
    // Without a proxy in the settings, such cookies are worth nothing.
    let app = house.app.restart_with(&[("SPL_SANDBOX", "none")]).await;
    bo.me(&app).await.problem(401, "unauthorized");
    let page = bo.client(&app);
    let door = page.send(Method::POST, "/api/auth/proxy", None).await;
    door.problem(404, "not_found");
}

#[tokio::test]
async fn a_handshake_needs_the_account_too() {
    let house = House::open(&[]).await;
    let mut ann = Browser::of("ann");
    house.sign_in(&mut ann).await.ok(200);
    let connect = async |cookie: &str, account: &str| {
        let headers = [("cookie", cookie), (USER, account)];
        let opened = TestSocket::connect(house.app.address, json!({}), &headers).await;
        opened.err()
    };
    assert_eq!(connect(&ann.cookie, "ann").await, None);
    for account in ["bo", ""] {
        let refused = connect(&ann.cookie, account).await.unwrap();
        assert!(refused.starts_with("unauthorized"), "{refused}");
    }
    // A ticket stands for the sign-in that it was issued for.
    let page = ann.client(&house.app);
    let issued = page.post("/api/auth/ticket", Value::Null).await.ok(200);
    let query = format!("&ticket={}", issued["ticket"].as_str().unwrap());
    let past = TestSocket::try_open_at(house.app.address, json!({}), &query).await;
    let refused = past.err().unwrap();
    assert!(refused.starts_with("unauthorized"), "{refused}");
}

#[tokio::test]
async fn the_header_counts_from_the_proxy_alone() {
    // The test is not that proxy, and says of itself what a proxy would say of others.
    let house = House::open(&[
        ("SPL_AUTH_PROXY_ADDRESSES", "10.9.8.7,192.0.2.0/24"),
        ("SPL_TRUSTED_PROXIES", "127.0.0.0/8"),
    ])
    .await;
    for (name, value) in [
        ("x-forwarded-for", "10.9.8.7"),
        ("x-forwarded-for", "10.9.8.7, 192.0.2.1"),
        ("x-real-ip", "10.9.8.7"),
        ("forwarded", "for=10.9.8.7"),
    ] {
        let mut spoof = Browser::of("ann").and(name, value);
        let me = spoof.me(&house.app).await.problem(401, "unauthorized");
        assert_eq!(me["proxyAccount"], Value::Null, "{name}: {value}");
        let refused = house.sign_in(&mut spoof).await;
        refused.problem(401, "unauthorized");
        assert!(spoof.cookie.is_empty());
    }
    // A key is not of that person, whatever the header says.
    let owner = house.owner().and(USER, "ann");
    let me = owner.get("/api/auth/me").await.ok(200);
    assert_ne!(me["user"]["name"], "ann");
    let people = house.owner().get("/api/people").await.ok(200);
    assert_eq!(people["items"].as_array().unwrap().len(), 1, "{people}");
}

#[tokio::test]
async fn a_header_that_comes_twice_names_nobody() {
    let house = House::open(&[("SPL_AUTH_PROXY_ROLES", "ops=admin")]).await;
    for twice in [
        Browser::of("ann").and(USER, "bo"),
        Browser::of("ann").and(USER, "ann"),
        Browser::of("ann").and(GROUPS, "x").and(GROUPS, "ops"),
        Browser::of("ann").and(EMAIL, "a@b.c").and(EMAIL, "d@e.f"),
        Browser::default(),
        Browser::of(" "),
    ] {
        let mut twice = twice;
        let refused = house.sign_in(&mut twice).await;
        refused.problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn the_groups_of_the_proxy_give_the_role_and_who_has_none_stays_out() {
    let house = House::open(&[
        ("SPL_AUTH_PROXY_ROLES", "staff=member,ops=admin"),
        ("SPL_AUTH_PROXY_DEFAULT_ROLE", "none"),
    ])
    .await;
    let of = |groups: &str| Browser::of("ann").and(GROUPS, groups);
    let me = house.sign_in(&mut of("x|staff")).await.ok(200);
    assert_eq!(me["user"]["role"], "member");
    let me = house.sign_in(&mut of("staff, ops")).await.ok(200);
    assert_eq!(me["user"]["role"], "admin");
    reason(&house.sign_in(&mut of("x")).await, 403, "no_role");
    let mut stranger = Browser::of("bo");
    reason(&house.sign_in(&mut stranger).await, 403, "no_role");
}

#[tokio::test]
async fn who_may_not_enter_is_told_why() {
    let house = House::open(&[]).await;
    let mut ann = Browser::of("ann");
    let me = house.sign_in(&mut ann).await.ok(200);
    let id = me["user"]["id"].clone();
    house.change(&id, json!({ "disabled": true })).await;
    ann.me(&house.app).await.problem(401, "unauthorized");
    let again = house.sign_in(&mut Browser::of("ann")).await;
    reason(&again, 403, "disabled");
    house.change(&id, json!({ "disabled": false })).await;
    house.sign_in(&mut Browser::of("ann")).await.ok(200);
    let administration = house.app.tenancy.administration();
    administration
        .suspend_tenant(&house.owner.tenant)
        .await
        .unwrap();
    let again = house.sign_in(&mut Browser::of("ann")).await;
    reason(&again, 403, "suspended");
    administration
        .resume_tenant(&house.owner.tenant)
        .await
        .unwrap();
    let strict = House::open(&[("SPL_AUTH_PROXY_CREATE_PEOPLE", "false")]).await;
    let refused = strict.sign_in(&mut Browser::of("ann")).await;
    reason(&refused, 403, "no_person");
}

#[tokio::test]
async fn the_domain_of_the_address_chooses_the_tenant() {
    let house = House::open(&[("SPL_AUTH_PROXY_TENANTS", "acme.test=acme,b.test=other")]).await;
    let other = house.app.person_with("other", Role::Owner).await;
    let mut ann = Browser::of("ann").and(EMAIL, "ann@acme.test");
    let here = house.sign_in(&mut ann).await.ok(200);
    assert_eq!(here["tenant"]["name"], "acme");
    let mut moved = Browser::of("ann").and(EMAIL, "ann@b.test");
    let there = house.sign_in(&mut moved).await.ok(200);
    assert_eq!(there["tenant"]["name"], "other");
    assert_ne!(there["user"]["id"], here["user"]["id"]);
    // Neither is known to the people of the other tenant.
    let theirs = Client::with_key(&house.app, &other.key);
    let path = format!("/api/people/{}", here["user"]["id"].as_str().unwrap());
    let changed = theirs.send(Method::PATCH, &path, Some(json!({ "role": "viewer" })));
    changed.await.problem(404, "not_found");
    for browser in [
        Browser::of("ann").and(EMAIL, "ann@evil.test"),
        Browser::of("ann"),
    ] {
        let mut browser = browser;
        reason(&house.sign_in(&mut browser).await, 403, "no_tenant");
    }
}

#[tokio::test]
async fn nobody_comes_by_the_proxy_before_the_first_owner_or_from_another_site() {
    let env = [
        ("SPL_SANDBOX", "none"),
        ("SPL_AUTH_PROXY_HEADER", "x-forwarded-user"),
        ("SPL_AUTH_PROXY_ADDRESSES", "127.0.0.1"),
    ];
    let app = TestApp::start_with(&env).await;
    let client = Browser::of("ann").client(&app);
    let refused = client.send(Method::POST, "/api/auth/proxy", None).await;
    reason(&refused, 403, "setup_needed");
    app.person_with("default", Role::Owner).await;
    let foreign = Browser::of("ann")
        .client(&app)
        .and("origin", "https://evil.test");
    let refused = foreign.send(Method::POST, "/api/auth/proxy", None).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert!(!refused.headers.contains_key(SET_COOKIE));
}
