//! Calls that want the yes of others than their session's owner, through every door.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{asked, given};
use crate::model_stub::ModelStub;
use crate::replicas::Pair;
use crate::rest::Client;
use crate::servers::Api;
use crate::support::postgres::new_database;
use crate::support::{Person, Server, TestApp, TestSocket, colleague, person};

/// A tenant whose admin asks for commands, and a session in which one waits.
struct House {
    app: TestApp,
    ana: Person,
    bo: Person,
    boss: Person,
    socket: TestSocket,
    card: Value,
}

impl House {
    async fn asking(approvers: &str) -> Self {
        let app = TestApp::with_sandbox().await;
        let ana = app.person_with("acme", Role::Member).await;
        let bo = app.person_with("acme", Role::Member).await;
        let boss = app.person_with("acme", Role::Admin).await;
        given(&Api::new(&app, &boss), &rule(approvers)).await;
        let mut socket = TestSocket::open(app.address, &ana, None).await;
        let card = asked(&app, &mut socket, "date").await;
        Self {
            app,
            ana,
            bo,
            boss,
            socket,
            card,
        }
    }

    /// Decides over REST: the status, and the answer.
    async fn decide(&self, who: &Person, card: &Value, approved: bool) -> (u16, Value) {
        let body = json!({
            "callId": card["callId"], "approved": approved, "digest": card["digest"],
        });
        self.post(who, &body).await
    }

    async fn post(&self, who: &Person, body: &Value) -> (u16, Value) {
        let path = format!("/api/sessions/{}/approvals", self.socket.session());
        Api::new(&self.app, who)
            .ask(Method::POST, &path, body)
            .await
    }

    /// The sessions that wait for somebody.
    async fn inbox(&self, who: &Person) -> Vec<Value> {
        let page = Api::new(&self.app, who).get("/api/approvals").await;
        page["items"].as_array().unwrap().clone()
    }

    /// The card as everybody who watches the session sees it next.
    async fn queued(&mut self) -> Value {
        let queue = self.socket.wait_for("tool:queue").await;
        queue.args[0]["calls"][0].clone()
    }
}

fn rule(approvers: &str) -> Value {
    json!({
        "effect": "ask", "scope": "tenant", "tool": "execute_command", "approvers": approvers,
    })
}

#[tokio::test]
async fn somebody_else_says_yes_and_sees_the_card_and_what_led_to_it_alone() {
    let mut house = House::asking("somebody_else").await;
    assert_eq!(house.card["approvers"], json!(["somebody_else"]));
    let (status, refused) = house.decide(&house.ana, &house.card, true).await;
    assert_eq!((status, &refused["code"]), (403, &json!("not_allowed")));
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("somebody else"), "{refused}");
    let refused = house.socket.decide(&house.card.clone(), true).await;
    assert_eq!(refused["error"]["code"], "not_allowed", "{refused}");

    let items = house.inbox(&house.bo).await;
    let [item] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(item["prompt"], "go");
    assert_eq!(item["title"], Value::Null);
    assert!(item["owner"]["name"].is_string(), "{item}");
    let theirs = &item["queue"]["calls"][0];
    assert_eq!(theirs["digest"], house.card["digest"]);
    assert_eq!(theirs["args"], house.card["args"]);
    let client = Client::with_key(&house.app, &house.bo.key);
    let counted = client.get("/api/approvals/count").await.ok(200);
    assert_eq!(
        (&counted["calls"], &counted["sessions"]),
        (&json!(1), &json!(1))
    );
    // Nothing else of the session is theirs.
    let session = house.socket.session();
    for path in ["", "/events", "/export", "/shares", "/attachments"] {
        let path = format!("/api/sessions/{session}{path}");
        let status = client.get(&path).await.status;
        assert!(matches!(status, 404 | 405), "{path}: {status}");
    }
    let message = json!({ "text": "let me in" });
    let path = format!("/api/sessions/{session}/messages");
    client
        .post(&path, message)
        .await
        .problem(404, "session_not_found");
    let auth = json!({ "token": house.bo.key, "sessionId": session });
    assert!(TestSocket::try_open(house.app.address, auth).await.is_err());

    let (status, answer) = house.decide(&house.bo, theirs, true).await;
    assert_eq!(status, 202, "{answer}");
    house.socket.wait_for_answer().await;
    assert_eq!(house.inbox(&house.bo).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_role_decides_and_no_other_and_nobody_of_another_tenant() {
    let mut house = House::asking("role:admin").await;
    let strangers = [
        house.app.person_with("acme", Role::Viewer).await,
        house.app.person_with("other", Role::Owner).await,
        house.app.installation_admin("other").await,
    ];
    for stranger in strangers.iter().chain([&house.bo]) {
        for approved in [true, false] {
            let (status, answer) = house.decide(stranger, &house.card, approved).await;
            assert!(matches!(status, 403 | 404), "{answer}");
            let all = json!({ "callIds": [house.card["callId"]], "approved": approved });
            let (status, answer) = house.post(stranger, &all).await;
            assert!(matches!(status, 403 | 404), "{answer}");
        }
        let all = json!({ "approved": false });
        let (status, _) = house.post(stranger, &all).await;
        assert!(matches!(status, 403 | 404), "{status}");
        assert_eq!(house.inbox(stranger).await, Vec::<Value>::new());
    }
    // Neither a rule of the session nor one of the person stands for the admin.
    for scope in ["session", "person"] {
        let rule = json!({
            "effect": "allow", "scope": scope, "session": house.socket.session(),
            "callId": house.card["callId"], "digest": house.card["digest"],
            "confirm": "execute_command",
        });
        let answer = given(&Api::new(&house.app, &house.ana), &rule).await;
        assert_eq!(answer["hasApproved"], false, "{answer}");
    }
    assert_eq!(house.inbox(&house.boss).await.len(), 1);
    let (status, answer) = house.decide(&house.boss, &house.card, true).await;
    assert_eq!(status, 202, "{answer}");
    house.socket.wait_for_answer().await;
}

#[tokio::test]
async fn an_approver_decides_what_a_rule_names_them_for_and_has_no_sessions() {
    let mut house = House::asking("role:approver").await;
    let app = &house.app;
    let cleo = app.person_with("acme", Role::Approver).await;
    let stranger = app.person_with("other", Role::Approver).await;
    let client = Client::with_key(app, &cleo.key);
    // Nothing but what waits for them.
    let begun = client.post("/api/sessions", json!({})).await;
    begun.problem(403, "not_allowed");
    let session = house.socket.session();
    let path = format!("/api/sessions/{session}");
    client.get(&path).await.problem(404, "session_not_found");
    let message = json!({ "text": "let me in" });
    let said = client.post(&format!("{path}/messages"), message).await;
    said.problem(403, "not_allowed");
    let rule = json!({ "effect": "deny", "scope": "person", "tool": "execute_command" });
    client
        .post("/api/rules", rule)
        .await
        .problem(403, "not_allowed");
    assert_eq!(house.inbox(&stranger).await, Vec::<Value>::new());
    let (status, _) = house.decide(&stranger, &house.card, true).await;
    assert_eq!(status, 404);

    let items = house.inbox(&cleo).await;
    assert_eq!(items.len(), 1, "{items:?}");
    let counted = client.get("/api/approvals/count").await.ok(200);
    assert_eq!(counted["calls"], 1);
    let (status, answer) = house.decide(&cleo, &house.card, true).await;
    assert_eq!(status, 202, "{answer}");
    house.socket.wait_for_answer().await;
    // A call that wants a member, or its owner alone, is not theirs.
    let given = Api::new(&house.app, &house.boss);
    let only_members = json!({
        "effect": "ask", "scope": "tenant", "tool": "execute_command", "approvers": "role:member",
    });
    let all = given.get("/api/rules").await;
    let old = all["rules"].as_array().unwrap().iter();
    let old = old.filter(|rule| rule["approvers"] == "role:approver");
    for rule in old {
        let path = format!("/api/rules/{}", rule["id"].as_str().unwrap());
        let (status, _) = given.ask(Method::DELETE, &path, &Value::Null).await;
        assert_eq!(status, 204);
    }
    super::given(&given, &only_members).await;
    let card = asked(&house.app, &mut house.socket, "date").await;
    assert_eq!(house.inbox(&cleo).await, Vec::<Value>::new());
    let (status, _) = house.decide(&cleo, &card, true).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn two_people_say_yes_to_the_same_arguments() {
    let mut house = House::asking("two").await;
    let ana = house.socket.decide(&house.card.clone(), true).await;
    assert_eq!(ana["ok"], true, "{ana}");
    let card = house.queued().await;
    let card = if card["consents"].is_null() {
        house.queued().await
    } else {
        card
    };
    assert_eq!(card["status"], "pending");
    assert_eq!(card["consents"].as_array().unwrap().len(), 1, "{card}");
    // With other arguments the first yes is gone, and the one who changes them gives the new first one.
    let changed = json!({
        "callId": card["callId"], "approved": true, "digest": card["digest"],
        "args": { "command": "date -u" },
    });
    let (status, answer) = house.post(&house.bo, &changed).await;
    assert_eq!(status, 202, "{answer}");
    let (status, answer) = house.decide(&house.ana, &card, true).await;
    assert_eq!(
        (status, &answer["code"]),
        (409, &json!("changed_since_shown")),
        "{answer}"
    );
    let items = house.inbox(&house.ana).await;
    let card = &items[0]["queue"]["calls"][0];
    assert_eq!(card["args"]["command"], "date -u");
    let (status, answer) = house.decide(&house.ana, card, true).await;
    assert_eq!(status, 202, "{answer}");
    house.socket.wait_for_answer().await;
}

#[tokio::test]
async fn what_another_person_writes_runs_with_the_owners_yes_and_the_record_says_so() {
    let mut house = House::asking("somebody_else").await;
    let (ana, bo) = (house.ana.clone(), house.bo.clone());
    let changed = json!({
        "callId": house.card["callId"], "approved": true, "digest": house.card["digest"],
        "args": { "command": "echo other words" },
    });
    let (status, answer) = house.post(&bo, &changed).await;
    assert_eq!(status, 202, "{answer}");
    let mut card = house.queued().await;
    while card["editedBy"].is_null() {
        card = house.queued().await;
    }
    assert_eq!(card["status"], "pending", "{card}");
    assert_eq!(card["approvers"], json!(["owner", "somebody_else"]));
    assert_eq!(card["args"], json!({ "command": "echo other words" }));
    assert_eq!(card["originalArgs"], json!({ "command": "date" }));
    // Nobody but the owner completes it, and the owner only by what the card shows now.
    let (status, answer) = house.decide(&bo, &card, true).await;
    assert_eq!(status, 202, "{answer}");
    let (status, answer) = house.decide(&ana, &house.card.clone(), true).await;
    assert_eq!(status, 409, "{answer}");
    let [item] = &house.inbox(&ana).await[..] else {
        panic!("the owner is asked")
    };
    assert_eq!(item["queue"]["calls"][0]["status"], "pending", "{item}");
    house.socket.approve(&card).await;
    let output = house.socket.wait_for("tool:output").await;
    assert!(output.text().trim().ends_with("other words"), "{output:?}");
    house.socket.wait_for_answer().await;

    let session = house.socket.session();
    let api = Api::new(&house.app, &ana);
    let page = api.get(&format!("/api/sessions/{session}/events")).await;
    let events = page["items"].as_array().unwrap().iter();
    let mut decided = events.filter(|it| it["event"] == "tool:decided");
    let decided = &decided.next().unwrap()["args"][0];
    assert_eq!(decided["edited"], true, "{decided}");
    assert_eq!(decided["args"], card["args"], "{decided}");
    assert_eq!(decided["editedBy"], card["editedBy"], "{decided}");
    let path = format!(
        "http://{}/api/sessions/{session}/export?format=md",
        house.app.address
    );
    let export = TestApp::http().get(&path).bearer_auth(&ana.key).send();
    let export = export.await.unwrap().text().await.unwrap();
    for part in ["echo other words", "\"command\": \"date\"", " changed\n"] {
        assert!(export.contains(part), "{part:?} in {export}");
    }
}

#[tokio::test]
async fn who_must_say_yes_is_said_by_the_rule_and_checked() {
    let app = TestApp::with_sandbox().await;
    let boss = app.person_with("acme", Role::Admin).await;
    let api = Api::new(&app, &boss);
    let kept = given(&api, &rule("role:admin")).await;
    assert_eq!(kept["rule"]["approvers"], "role:admin");
    let sentence = kept["rule"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("role `admin`"), "{sentence}");
    for wrong in ["role:viewer", "role:nobody", "three", ""] {
        let (status, answer) = api.ask(Method::POST, "/api/rules", &rule(wrong)).await;
        assert_eq!(status, 400, "{wrong}: {answer}");
    }
    let mut allow = rule("two");
    allow["effect"] = json!("allow");
    let (status, answer) = api.ask(Method::POST, "/api/rules", &allow).await;
    assert_eq!(status, 400, "{answer}");
}

#[tokio::test]
async fn the_first_yes_of_two_survives_a_kill() {
    first_yes_survives_a_kill(None).await;
}

#[tokio::test]
async fn the_first_yes_of_two_survives_a_kill_in_postgres_too() {
    let database = new_database().await;
    first_yes_survives_a_kill(Some(&database)).await;
}

async fn first_yes_survives_a_kill(database: Option<&str>) {
    let env: Vec<_> = database
        .map(|url| ("DATABASE_URL", url))
        .into_iter()
        .collect();
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, &env);
    let (ana, bo) = (person(&data, &env), colleague(&data, &env, "bo"));
    let mut rule = rule("two");
    rule["scope"] = json!("person");
    let url = format!("http://{}/api/rules", server.address);
    let given = TestApp::http().post(&url).bearer_auth(&ana.key).json(&rule);
    assert_eq!(given.send().await.unwrap().status(), 201);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    model
        .will_call("execute_command", json!({ "command": "date" }))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    assert_eq!(card["approvers"], json!(["two"]));
    let session = socket.session();
    let said = socket.decide(&card, true).await;
    assert_eq!(said["ok"], true, "{said}");
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let url = format!("http://{}/api/approvals", server.address);
    let page = TestApp::http().get(&url).bearer_auth(&bo.key).send().await;
    let page: Value = page.unwrap().json().await.unwrap();
    let call = &page["items"][0]["queue"]["calls"][0];
    assert_eq!(call["consents"].as_array().map(Vec::len), Some(1), "{page}");
    let body = json!({ "callId": card["callId"], "approved": true, "digest": card["digest"] });
    let url = format!("http://{}/api/sessions/{session}/approvals", server.address);
    let request = TestApp::http().post(&url).bearer_auth(&bo.key).json(&body);
    assert_eq!(request.send().await.unwrap().status(), 202);
    again.wait_for_answer().await;
}

#[tokio::test]
async fn the_yes_of_each_of_two_comes_from_another_gateway() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (ana, mut a, _b) = pair.sockets("two").await;
    let bo = pair.b.person_with("acme", Role::Admin).await;
    given(&Api::new(&pair.b, &bo), &rule("two")).await;
    pair.a
        .model
        .will_call("execute_command", json!({ "command": "date" }))
        .then_say("Done");
    a.say("go").await;
    let card = a.wait_for_approval().await;
    let path = format!("/api/sessions/{}/approvals", a.session());
    let body = json!({ "callId": card["callId"], "approved": true, "digest": card["digest"] });
    let (status, answer) = Api::new(&pair.a, &ana)
        .ask(Method::POST, &path, &body)
        .await;
    assert_eq!(status, 202, "{answer}");
    let (status, answer) = Api::new(&pair.b, &bo).ask(Method::POST, &path, &body).await;
    assert_eq!(status, 202, "{answer}");
    a.wait_for_answer().await;
}
