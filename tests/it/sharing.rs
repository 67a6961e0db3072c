//! Sessions that others may read: what they see, who they are, and how it ends.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use crate::attachments::{png, upload};
use crate::rest::{Answer, Client};
use crate::support::{Person, TestApp, TestSocket};

const PLAIN: &[(&str, &str)] = &[("SPL_SANDBOX", "none")];

/// A session of a member with one answer, and an admin of the tenant.
struct House {
    app: TestApp,
    ana: Person,
    boss: Person,
    socket: TestSocket,
    session: String,
}

impl House {
    async fn new() -> Self {
        let app = TestApp::start_with(PLAIN).await;
        let ana = app.person_with("acme", Role::Member).await;
        let boss = app.person_with("acme", Role::Admin).await;
        let mut socket = TestSocket::open(app.address, &ana, None).await;
        app.model.will_say("With a **needle**");
        socket.say("how do I mend a sail").await;
        socket.wait_for_answer().await;
        let session = socket.session();
        Self {
            app,
            ana,
            boss,
            socket,
            session,
        }
    }

    fn client(&self, person: &Person) -> Client {
        Client::with_key(&self.app, &person.key)
    }

    async fn allow_links(&self, are_allowed: bool) {
        let body = json!({ "linksAllowed": are_allowed });
        self.client(&self.boss)
            .put("/api/sharing", body)
            .await
            .ok(200);
    }

    fn shares(&self) -> String {
        format!("/api/sessions/{}/shares", self.session)
    }

    async fn share(&self, body: Value) -> Value {
        let client = self.client(&self.ana);
        client.post(&self.shares(), body).await.ok(201)
    }

    /// The path of a link.
    async fn link(&self) -> String {
        self.allow_links(true).await;
        let made = self.share(json!({ "audience": "link" })).await;
        made["path"].as_str().unwrap().to_owned()
    }

    /// What somebody without a sign-in gets.
    async fn nobody(&self, path: &str) -> Answer {
        Client::nobody(&self.app).get(path).await
    }
}

#[tokio::test]
async fn a_link_shows_the_session_as_it_was_to_anybody_and_nothing_else() {
    let mut house = House::new().await;
    let client = house.client(&house.ana);
    let image = png(20, 10, [9, 9, 9]);
    let image = upload(&client, &house.session, "sail.png", image).await;
    let image = image.ok(201)["id"].clone();
    house.app.model.will_say("A sail");
    let seen = json!({ "text": "and this?", "attachments": [image] });
    house.socket.emit("message", &[seen]).await;
    house.socket.wait_for_answer().await;
    let path = house.link().await;
    let word = path.strip_prefix("/shared/").unwrap();
    // 256 bits.
    assert_eq!(word.len(), 43);
    house.app.model.will_say("never told");
    house.socket.say("a secret afterwards").await;
    house.socket.wait_for_answer().await;
    let address = format!("/api/sessions/{}", house.session);
    let renamed = json!({ "title": "another title" });
    client
        .send(Method::PATCH, &address, Some(renamed))
        .await
        .ok(200);

    for path in [path.clone(), format!("/api{path}")] {
        let page = house.nobody(&path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(page.header("content-type").starts_with("text/html"));
        let text = &page.text;
        assert!(text.contains("how do I mend a sail") && text.contains("<strong>needle</strong>"));
        assert!(
            text.contains("data:image/png;base64,"),
            "the picture is in it"
        );
        for hidden in [
            "secret",
            "never told",
            "another title",
            &house.session,
            "cost",
            "token",
        ] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
        let policy = page.header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("sandbox"),
            "{policy}"
        );
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        assert_eq!(page.header("x-robots-tag"), "noindex, nofollow");
        assert_eq!(page.header("cache-control"), "no-store");
    }
    // The secret is told once.
    let listed = client.get(&house.shares()).await.ok(200);
    assert_eq!(listed["items"][0]["path"], Value::Null);
    assert!(!listed.to_string().contains(word));
    // Whoever has the link has nothing but the page.
    let events = format!("/api/sessions/{}/events", house.session);
    house.nobody(&events).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_link_that_is_ended_or_has_expired_or_is_switched_off_opens_nothing() {
    let house = House::new().await;
    let path = house.link().await;
    let client = house.client(&house.ana);
    let listed = client.get(&house.shares()).await.ok(200);
    let id = listed["items"][0]["id"].as_str().unwrap().to_owned();

    house.allow_links(false).await;
    assert_eq!(house.nobody(&path).await.status, 404);
    let refused = client
        .post(&house.shares(), json!({ "audience": "link" }))
        .await;
    refused.problem(403, "not_allowed");
    house.allow_links(true).await;
    assert_eq!(house.nobody(&path).await.status, 200);

    let ended = client.delete(&format!("{}/{id}", house.shares())).await;
    assert_eq!(ended.status, 204);
    let page = house.nobody(&path).await;
    assert_eq!(page.status, 404);
    assert!(page.text.contains("opens nothing"), "{}", page.text);
    house
        .nobody(&format!("/api{path}"))
        .await
        .problem(404, "not_found");
    let again = client.delete(&format!("{}/{id}", house.shares())).await;
    again.problem(404, "not_found");

    let made = house
        .share(json!({ "audience": "link", "expiresInDays": 1 }))
        .await;
    let path = made["path"].as_str().unwrap();
    assert_eq!(house.nobody(path).await.status, 200);
    let word = path.strip_prefix("/shared/").unwrap().to_owned();
    // A day and a moment later, by the clock of whoever asks the sessions.
    let day = 24 * 60 * 60 * 1000;
    let now = house.app.tenancy.now();
    let secret = word.into();
    for (at, opens) in [(now.0 + day - 60_000, true), (now.0 + day + 1, false)] {
        let by = sepal::agent::SharedBy::Link(&secret);
        let view = house
            .app
            .sessions
            .sharing()
            .open(by, sepal::domain::Timestamp(at))
            .await;
        assert_eq!(view.unwrap().is_some(), opens);
    }
    for days in [0, 3651] {
        let body = json!({ "audience": "link", "expiresInDays": days });
        let refused = client.post(&house.shares(), body).await;
        refused.problem(400, "invalid_arguments");
    }
}

#[tokio::test]
async fn the_people_of_a_tenant_read_what_is_shared_with_it_and_nobody_else_does() {
    let house = House::new().await;
    let viewer = house.app.person_with("acme", Role::Viewer).await;
    let stranger = house.app.person_with("other", Role::Owner).await;
    let made = house.share(json!({ "audience": "tenant" })).await;
    let path = made["path"].as_str().unwrap();
    for person in [&house.ana, &house.boss, &viewer] {
        let page = house.client(person).get(path).await;
        assert_eq!(page.status, 200);
        assert!(page.text.contains("needle"));
    }
    let page = house.nobody(path).await;
    assert_eq!(page.status, 401);
    assert!(page.text.contains("Sign in"), "{}", page.text);
    // Signing in leads back, and nothing but an id that was read as one stands in the link.
    let link = format!("href=\"/sign-in?to={path}\"");
    assert!(page.text.contains(&link), "{}", page.text);
    for wrong in [
        "shr_\"><b>",
        "shr_1",
        "..%2f..%2f%2fevil.example",
        "%2f%2fevil.example",
    ] {
        let page = house.nobody(&format!("/shared/{wrong}")).await;
        assert!(!page.text.contains("sign-in?to="), "{wrong}: {}", page.text);
    }
    assert_eq!(house.client(&stranger).get(path).await.status, 404);
    // It opens this one page, not the session.
    for person in [&house.boss, &viewer, &stranger] {
        let client = house.client(person);
        for path in [
            format!("/api/sessions/{}", house.session),
            format!("/api/sessions/{}/events", house.session),
            house.shares(),
        ] {
            client.get(&path).await.problem(404, "session_not_found");
        }
    }
    let listed = house.client(&house.ana).get(&house.shares()).await.ok(200);
    assert_eq!(listed["items"][0]["path"], made["path"], "it is no secret");
    assert_eq!(listed["linksAllowed"], false);
}

#[tokio::test]
async fn only_the_owner_shares_and_only_admins_allow_links() {
    let house = House::new().await;
    let stranger = house.app.person_with("other", Role::Owner).await;
    let body = json!({ "audience": "tenant" });
    let made = house.share(body.clone()).await;
    let one = format!("{}/{}", house.shares(), made["id"].as_str().unwrap());
    for person in [&house.boss, &stranger] {
        let client = house.client(person);
        let refused = client.post(&house.shares(), body.clone()).await;
        refused.problem(404, "session_not_found");
        client.delete(&one).await.problem(404, "session_not_found");
    }
    let member = house.client(&house.ana);
    let allow = json!({ "linksAllowed": true });
    member
        .put("/api/sharing", allow.clone())
        .await
        .problem(403, "not_allowed");
    let said = member.get("/api/sharing").await.ok(200);
    assert_eq!(said, json!({ "linksAllowed": false, "mayChange": false }));
    // Another tenant's switch is its own.
    house
        .client(&stranger)
        .put("/api/sharing", allow)
        .await
        .ok(200);
    assert_eq!(
        member.get("/api/sharing").await.ok(200)["linksAllowed"],
        false
    );
    let said = house.client(&house.boss).get("/api/sharing").await.ok(200);
    assert_eq!(said["mayChange"], true);
}

#[tokio::test]
async fn what_is_deleted_or_whose_owner_is_shut_out_is_shared_no_more() {
    let house = House::new().await;
    let path = house.link().await;
    let client = house.client(&house.ana);
    let ids = json!({ "ids": [house.session], "action": "delete" });
    client.post("/api/sessions/bulk", ids).await.ok(200);
    assert_eq!(house.nobody(&path).await.status, 404, "given up");
    let ids = json!({ "ids": [house.session], "action": "restore" });
    client.post("/api/sessions/bulk", ids).await.ok(200);
    assert_eq!(house.nobody(&path).await.status, 200);

    let administration = house.app.tenancy.administration();
    let users = administration.users(&house.ana.tenant).await.unwrap();
    let is_ana = |person: &&sepal::tenancy::Person| person.user.role == Role::Member;
    let ana = users.iter().find(is_ana).unwrap().user.id.clone();
    administration
        .disable_user(&house.ana.tenant, &ana)
        .await
        .unwrap();
    assert_eq!(
        house.nobody(&path).await.status,
        404,
        "its owner may not enter"
    );
    administration
        .enable_user(&house.ana.tenant, &ana)
        .await
        .unwrap();
    assert_eq!(house.nobody(&path).await.status, 200);

    let gone = client
        .delete(&format!("/api/sessions/{}", house.session))
        .await;
    assert_eq!(gone.status, 204);
    assert_eq!(house.nobody(&path).await.status, 404, "deleted");
}

#[tokio::test]
async fn whoever_guesses_links_is_slowed_down_and_a_link_stays_good() {
    let house = House::new().await;
    let path = house.link().await;
    let mut refused = 0;
    for n in 0..70 {
        let answer = house.nobody(&format!("/api/shared/guess-{n}")).await;
        match answer.status {
            404 => {}
            429 => {
                refused += 1;
                assert!(!answer.header("retry-after").is_empty());
            }
            other => panic!("{other}: {}", answer.text),
        }
    }
    assert!(refused >= 5, "{refused}");
    assert_eq!(house.nobody(&path).await.status, 200);
}
