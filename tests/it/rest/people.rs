//! People, invitations and keys, as the people of a tenant administer them.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Answer, Client};
use crate::support::postgres::new_database;
use crate::support::{Person, TestApp, TestSocket};

const PASSWORD: &str = "correct horse battery";

/// A browser that keeps its cookie and sends the token that the page got.
fn browser(app: &TestApp, entered: &Answer) -> Client {
    let me = entered.ok(200);
    let cookie = entered.header("set-cookie").split(';').next().unwrap();
    Client::nobody(app)
        .and("cookie", cookie)
        .and("x-csrf-token", me["csrfToken"].as_str().unwrap())
}

/// The secret of an invitation in that role.
async fn invited(client: &Client, role: &str) -> (String, String) {
    let answer = client
        .post("/api/invitations", json!({ "role": role, "note": "Ben" }))
        .await;
    let created = answer.ok(201);
    let link = created["link"].as_str().unwrap();
    let id = created["invitation"]["id"].as_str().unwrap();
    let (page, secret) = link.split_once('#').unwrap();
    assert!(page.ends_with("/join"), "{link}");
    (id.to_owned(), secret.to_owned())
}

async fn comes(app: &TestApp, secret: &str, name: &str) -> Answer {
    let body = json!({ "secret": secret, "name": name, "password": PASSWORD });
    Client::nobody(app).post("/api/auth/invitation", body).await
}

async fn change(client: &Client, id: &str, body: Value) -> Answer {
    let path = format!("/api/people/{id}");
    client.send(Method::PATCH, &path, Some(body)).await
}

async fn id_of(client: &Client) -> String {
    let me = client.get("/api/auth/me").await.ok(200);
    me["user"]["id"].as_str().unwrap().to_owned()
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["name"].as_str().unwrap()).collect()
}

/// The acts that the audit of the caller's tenant has of these kinds, oldest first.
async fn acts(client: &Client, family: &str) -> Vec<String> {
    let path = format!("/api/audit?act={family}");
    let page = client.get(&path).await.ok(200);
    let items = page["items"].as_array().unwrap().iter().rev();
    items
        .map(|item| item["act"].as_str().unwrap().to_owned())
        .collect()
}

async fn people_are_invited_once(app: &TestApp) {
    let owner = Client::with_key(app, &app.person_with("acme", Role::Owner).await.key);
    let (_, secret) = invited(&owner, "member").await;
    let read = Client::nobody(app)
        .post("/api/auth/invitation/read", json!({ "secret": secret }))
        .await
        .ok(200);
    assert_eq!(
        (&read["tenant"], &read["role"]),
        (&json!("acme"), &json!("member"))
    );
    // What does not fit costs the invitation nothing.
    let taken = owner.get("/api/people").await.ok(200);
    let taken = names(&taken)[0].to_owned();
    comes(app, &secret, &taken)
        .await
        .problem(409, "invalid_arguments");
    comes(app, &secret, "<b>")
        .await
        .problem(400, "invalid_arguments");

    let entered = comes(app, &secret, "Ben").await;
    let me = entered.ok(200);
    assert_eq!(
        (
            &me["user"]["name"],
            &me["user"]["role"],
            &me["tenant"]["name"]
        ),
        (&json!("Ben"), &json!("member"), &json!("acme"))
    );
    browser(app, &entered).get("/api/sessions").await.ok(200);
    comes(app, &secret, "Eve")
        .await
        .problem(401, "unauthorized");
    let list = owner.get("/api/invitations").await.ok(200);
    assert_eq!(list["items"][0]["usedBy"], me["user"]["id"]);
    assert_eq!(
        acts(&owner, "invitation").await,
        ["invitation.added", "invitation.used"]
    );

    // What is taken back lets nobody in; what was used cannot be taken back.
    let (id, secret) = invited(&owner, "viewer").await;
    let path = format!("/api/invitations/{id}");
    assert_eq!(owner.delete(&path).await.status, 204);
    comes(app, &secret, "Eve")
        .await
        .problem(401, "unauthorized");
    let used = list["items"][0]["id"].as_str().unwrap();
    let path = format!("/api/invitations/{used}");
    owner.delete(&path).await.problem(403, "not_allowed");
}

#[tokio::test]
async fn an_invitation_lets_one_person_in() {
    people_are_invited_once(&TestApp::start().await).await;
}

#[tokio::test]
async fn an_invitation_lets_one_person_in_on_postgres() {
    let database = new_database().await;
    let app = TestApp::start_with(&[("DATABASE_URL", &database)]).await;
    people_are_invited_once(&app).await;
}

/// Nobody comes back by a link that they made while they still could.
#[tokio::test]
async fn an_invitation_ends_with_the_rights_of_who_made_it() {
    let app = TestApp::start().await;
    let owner = Client::with_key(&app, &app.person_with("acme", Role::Owner).await.key);
    for (role, invites, change_to) in [
        (Role::Owner, "owner", json!({ "disabled": true })),
        (Role::Owner, "admin", json!({ "role": "admin" })),
        (Role::Admin, "member", json!({ "role": "member" })),
    ] {
        let other = Client::with_key(&app, &app.person_with("acme", role).await.key);
        let (_, secret) = invited(&other, invites).await;
        let read = async || {
            let body = json!({ "secret": secret });
            let nobody = Client::nobody(&app);
            nobody.post("/api/auth/invitation/read", body).await
        };
        read().await.ok(200);
        let id = id_of(&other).await;
        change(&owner, &id, change_to).await.ok(200);
        read().await.problem(401, "unauthorized");
        comes(&app, &secret, "Eve")
            .await
            .problem(401, "unauthorized");
    }
    // An admin who is one still lets members in.
    let admin = Client::with_key(&app, &app.person_with("acme", Role::Admin).await.key);
    let (_, secret) = invited(&admin, "member").await;
    comes(&app, &secret, "Ben").await.ok(200);
}

#[tokio::test]
async fn of_two_who_come_by_one_invitation_one_comes_in() {
    let app = TestApp::start().await;
    let owner = Client::with_key(&app, &app.person_with("acme", Role::Owner).await.key);
    let (_, secret) = invited(&owner, "member").await;
    let (one, other) = tokio::join!(comes(&app, &secret, "one"), comes(&app, &secret, "other"));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    let list = owner.get("/api/people").await.ok(200);
    assert_eq!(list["total"], 2, "the owner and one who came");
}

/// Admins and owners change whom they may; everybody else is refused.
#[tokio::test]
async fn admins_administer_members_and_owners_everybody() {
    let app = TestApp::start().await;
    let client = |person: &Person| Client::with_key(&app, &person.key);
    let owner = client(&app.person_with("acme", Role::Owner).await);
    let admin = client(&app.person_with("acme", Role::Admin).await);
    let member = client(&app.person_with("acme", Role::Member).await);
    let viewer = client(&app.person_with("acme", Role::Viewer).await);
    let stranger = client(&app.person_with("globex", Role::Owner).await);
    let (owner_id, admin_id) = (id_of(&owner).await, id_of(&admin).await);
    let (member_id, viewer_id) = (id_of(&member).await, id_of(&viewer).await);

    for who in [&member, &viewer] {
        for path in ["/api/people", "/api/invitations", "/api/keys?all=true"] {
            who.get(path).await.problem(403, "not_allowed");
        }
        let refused = change(who, &viewer_id, json!({ "role": "member" })).await;
        refused.problem(403, "not_allowed");
        let invite = who.post("/api/invitations", json!({})).await;
        invite.problem(403, "not_allowed");
    }
    for id in [&owner_id, &member_id] {
        let refused = change(&stranger, id, json!({ "disabled": true })).await;
        refused.problem(404, "not_found");
        let path = format!("/api/people/{id}/sign-out");
        stranger
            .post(&path, json!({}))
            .await
            .problem(404, "not_found");
    }
    assert_eq!(stranger.get("/api/people").await.ok(200)["total"], 1);

    // An admin makes members of viewers, and nobody an admin.
    let changed = change(&admin, &viewer_id, json!({ "role": "member" })).await;
    assert_eq!(changed.ok(200)["role"], "member");
    for (id, body) in [
        (&viewer_id, json!({ "role": "admin" })),
        (&admin_id, json!({ "role": "owner" })),
        (&owner_id, json!({ "role": "viewer" })),
        (&owner_id, json!({ "disabled": true })),
    ] {
        let refused = change(&admin, id, body).await;
        refused.problem(403, "not_allowed");
    }
    for role in ["admin", "owner"] {
        let invite = admin
            .post("/api/invitations", json!({ "role": role }))
            .await;
        invite.problem(403, "not_allowed");
        let add = json!({ "name": "x", "role": role });
        let add = admin.post("/api/people", add).await;
        add.problem(403, "not_allowed");
    }
    // An owner does all of that, but for what would leave nobody.
    change(&owner, &viewer_id, json!({ "role": "admin" }))
        .await
        .ok(200);
    for body in [json!({ "role": "admin" }), json!({ "disabled": true })] {
        let refused = change(&owner, &owner_id, body).await;
        refused.problem(403, "not_allowed");
    }
    let unknown = change(&owner, &viewer_id, json!({ "role": "king" })).await;
    let unknown = unknown.problem(400, "invalid_arguments");
    assert_eq!(unknown["errors"][0]["field"], "role");
}

#[tokio::test]
async fn who_is_disabled_is_out_at_once_and_comes_back_whole() {
    let app = TestApp::start().await;
    let owner = Client::with_key(&app, &app.person_with("acme", Role::Owner).await.key);
    let ben = app.person("acme").await;
    let client = Client::with_key(&app, &ben.key);
    let id = id_of(&client).await;
    let mut socket = TestSocket::open(app.address, &ben, None).await;
    change(&owner, &id, json!({ "disabled": true }))
        .await
        .ok(200);
    socket.wait_for_end().await;
    client
        .get("/api/sessions")
        .await
        .problem(401, "unauthorized");
    let list = owner.get("/api/people?disabled=true").await.ok(200);
    assert_eq!(list["items"][0]["id"], json!(id));
    change(&owner, &id, json!({ "disabled": false }))
        .await
        .ok(200);
    client.get("/api/sessions").await.ok(200);
}

#[tokio::test]
async fn signing_a_person_out_ends_their_browsers_and_not_their_keys() {
    let app = TestApp::start().await;
    let owner = Client::with_key(&app, &app.person_with("acme", Role::Owner).await.key);
    let (_, secret) = invited(&owner, "member").await;
    let ben = browser(&app, &comes(&app, &secret, "Ben").await);
    let key = ben.post("/api/keys", json!({ "name": "ci" })).await.ok(201);
    let id = id_of(&ben).await;
    let path = format!("/api/people/{id}/sign-out");
    assert_eq!(owner.post(&path, json!({})).await.status, 204);
    ben.get("/api/auth/me").await.problem(401, "unauthorized");
    let keyed = Client::with_key(&app, key["secret"].as_str().unwrap());
    assert_eq!(id_of(&keyed).await, id);
}

#[tokio::test]
async fn people_are_listed_by_what_is_asked_for() {
    let app = TestApp::start().await;
    let owner = Client::with_key(&app, &app.person_with("acme", Role::Owner).await.key);
    for (name, role) in [("ann", "viewer"), ("Anton", "member"), ("ben", "member")] {
        let add = json!({ "name": name, "role": role });
        owner.post("/api/people", add).await.ok(201);
    }
    let list = async |query: &str| owner.get(&format!("/api/people?{query}")).await.ok(200);
    assert_eq!(names(&list("search=AN").await), ["ann", "Anton"]);
    assert_eq!(names(&list("search=an&role=member").await), ["Anton"]);
    assert_eq!(list("disabled=true").await["total"], 0);
    let by_role = list("sort=role").await;
    assert_eq!(by_role["items"][0]["role"], "owner");
    assert_eq!(by_role["items"][3]["name"], "ann");
    let newest = list("sort=created&limit=1").await;
    assert_eq!(newest["total"], 4);
    let cursor = newest["nextCursor"].as_str().unwrap();
    let rest = list(&format!("sort=created&cursor={cursor}")).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), 3);
    owner
        .get("/api/people?role=king")
        .await
        .problem(400, "invalid_arguments");
    // Names are what they are, whatever their case.
    let again = owner.post("/api/people", json!({ "name": "ANN" })).await;
    again.problem(409, "invalid_arguments");
}

#[tokio::test]
async fn keys_are_made_in_a_browser_and_revoked_by_whom_they_concern() {
    let app = TestApp::start().await;
    let owner = Client::with_key(&app, &app.person_with("acme", Role::Owner).await.key);
    let admin = Client::with_key(&app, &app.person_with("acme", Role::Admin).await.key);
    let eve = Client::with_key(&app, &app.person("acme").await.key);
    let (_, secret) = invited(&owner, "member").await;
    let ben = browser(&app, &comes(&app, &secret, "Ben").await);
    // A key that gets lost makes no more of its kind.
    let refused = eve.post("/api/keys", json!({ "name": "mine" })).await;
    refused.problem(403, "not_allowed");
    let wrong = ben.post("/api/keys", json!({ "expiresAt": "soon" })).await;
    let wrong = wrong.problem(400, "invalid_arguments");
    assert_eq!(wrong["errors"][0]["field"], "expiresAt");
    let past = json!({ "expiresAt": "2020-01-01T00:00:00Z" });
    let past = ben.post("/api/keys", past).await;
    past.problem(400, "invalid_arguments");

    let new = json!({ "name": "ci", "expiresAt": "2200-01-01T00:00:00Z" });
    let made = ben.post("/api/keys", new).await.ok(201);
    assert_eq!(made["key"]["expiresAt"], "2200-01-01T00:00:00.000Z");
    let secret = made["secret"].as_str().unwrap().to_owned();
    let prefix = made["key"]["prefix"].as_str().unwrap();
    assert!(secret.starts_with(prefix));
    let id = made["key"]["id"].as_str().unwrap();
    let path = format!("/api/keys/{id}");
    assert_eq!(ben.get("/api/keys").await.ok(200)["items"][0], made["key"]);
    // A colleague does not see it, an admin does.
    eve.delete(&path).await.problem(404, "not_found");
    let all = admin.get("/api/keys?all=true").await.ok(200);
    let mut found = all["items"].as_array().unwrap().iter();
    assert!(found.any(|key| key["id"] == *id), "{all}");
    assert!(!all.to_string().contains(&secret));
    let keyed = Client::with_key(&app, &secret);
    keyed.get("/api/sessions").await.ok(200);
    assert_eq!(admin.delete(&path).await.status, 204);
    keyed
        .get("/api/sessions")
        .await
        .problem(401, "unauthorized");
    assert_eq!(ben.get("/api/keys").await.ok(200)["items"], json!([]));
    // The keys of an owner are the owners'.
    let mut owners = all["items"].as_array().unwrap().iter();
    let me = id_of(&owner).await;
    let owners = owners.find(|key| key["person"] == *me).unwrap();
    let path = format!("/api/keys/{}", owners["id"].as_str().unwrap());
    admin.delete(&path).await.problem(403, "not_allowed");
}

#[tokio::test]
async fn a_new_password_needs_the_old_one_and_ends_other_browsers() {
    const NEW: &str = "staple battery horse";
    let app = TestApp::start().await;
    let owner = Client::with_key(&app, &app.person_with("acme", Role::Owner).await.key);
    let (_, secret) = invited(&owner, "member").await;
    let ben = browser(&app, &comes(&app, &secret, "Ben").await);
    let sign_in = async |password: &str| {
        let body = json!({ "name": "Ben", "tenant": "acme", "password": password });
        Client::nobody(&app).post("/api/auth/login", body).await
    };
    let other = browser(&app, &sign_in(PASSWORD).await);
    let listed = async |client: &Client| client.get("/api/sign-ins").await.ok(200);
    let both = listed(&ben).await;
    let current = |list: &Value| {
        let items = list["items"].as_array().unwrap().iter();
        let current = items.filter(|item| item["current"] == true);
        current.map(|item| item["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(both["items"].as_array().unwrap().len(), 2);
    assert_eq!(current(&both).len(), 1);
    assert_ne!(current(&both), current(&listed(&other).await));

    for (body, status, code) in [
        (json!({ "new": NEW }), 400, "invalid_arguments"),
        (
            json!({ "new": NEW, "old": "wrong" }),
            400,
            "invalid_arguments",
        ),
        (
            json!({ "new": "short", "old": PASSWORD }),
            400,
            "invalid_arguments",
        ),
        (json!({ "old": PASSWORD }), 400, "invalid_arguments"),
    ] {
        ben.put("/api/password", body).await.problem(status, code);
    }
    let body = json!({ "new": NEW, "old": PASSWORD });
    assert_eq!(ben.put("/api/password", body).await.status, 204);
    other.get("/api/auth/me").await.problem(401, "unauthorized");
    sign_in(PASSWORD).await.problem(401, "unauthorized");

    // One browser of several is signed out, and nobody else's.
    let third = browser(&app, &sign_in(NEW).await);
    let id = current(&listed(&third).await)[0]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/sign-ins/{id}");
    owner.delete(&path).await.problem(404, "not_found");
    assert_eq!(ben.delete(&path).await.status, 204);
    third.get("/api/auth/me").await.problem(401, "unauthorized");
    assert_eq!(listed(&ben).await["items"].as_array().unwrap().len(), 1);
}
