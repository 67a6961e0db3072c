//! Fresh gestures: by passkey and by password, through every door, and whoever has none.

mod authenticator;
mod forged;
mod signing_in;
mod two_gateways;

use reqwest::{Client, Method};
use secrecy::ExposeSecret as _;
use sepal::config::Settings;
use sepal::domain::Role;
use sepal::tenancy::NewPerson;
use sepal_policy::{Effect, Rule, Scope};
use serde_json::{Value, json};

pub(crate) use self::authenticator::Authenticator;
use crate::support::{Person, TestApp, TestSocket};

const PASSWORD: &str = "correct horse battery";

/// Every call of the installation wants a fresh gesture.
pub(crate) fn sign_everything(settings: &mut Settings) {
    let mut rule = Rule::new("sign", Effect::Ask, Scope::Installation);
    rule.approvers.fresh_gesture = true;
    settings.rules = vec![rule];
}

/// A server whose rules want a fresh gesture with each yes.
async fn signing() -> TestApp {
    TestApp::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], sign_everything).await
}

/// A person in a browser that is signed in, at `localhost`.
struct Browser {
    http: Client,
    address: std::net::SocketAddr,
    cookie: String,
    csrf: String,
}

impl Browser {
    async fn sign_in(app: &TestApp, tenant: &str, name: &str) -> Self {
        let mut browser = Self::at(app);
        let body = json!({ "tenant": tenant, "name": name, "password": PASSWORD });
        let request = browser.request(Method::POST, "/api/auth/login").json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
        browser.cookie = cookie.split(';').next().unwrap().to_owned();
        let me: Value = answer.json().await.unwrap();
        let csrf = me["csrfToken"].as_str().unwrap();
        csrf.clone_into(&mut browser.csrf);
        browser
    }

    fn at(app: &TestApp) -> Self {
        Self {
            http: TestApp::http(),
            address: app.address,
            cookie: String::new(),
            csrf: String::new(),
        }
    }

    /// The same person at another gateway.
    fn moved_to(&self, app: &TestApp) -> Self {
        Self {
            cookie: self.cookie.clone(),
            csrf: self.csrf.clone(),
            ..Self::at(app)
        }
    }

    fn origin(&self) -> String {
        format!("http://localhost:{}", self.address.port())
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        let host = format!("localhost:{}", self.address.port());
        let request = self.http.request(method, url).header("host", host);
        let request = request.header("origin", self.origin());
        request
            .header("cookie", &self.cookie)
            .header("x-csrf-token", &self.csrf)
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.request(method, path).json(body).send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask(Method::POST, path, body).await
    }

    /// Asks for a gesture for these calls; the challenge.
    async fn challenge(&self, calls: &Value) -> Value {
        let body = json!({ "calls": calls });
        let (status, answer) = self.post("/api/gestures/challenge", &body).await;
        assert_eq!(status, 200, "{answer}");
        answer["publicKey"].clone()
    }

    /// Makes a gesture by passkey for these calls, of one session.
    async fn by_passkey(&self, passkey: &mut Authenticator, calls: &Value) -> Value {
        let options = self.challenge(calls).await;
        passkey.count += 1;
        let body = json!({ "credential": passkey.get(&options) });
        gesture(self.post("/api/gestures", &body).await)
    }

    async fn by_password(&self, calls: &Value) -> Value {
        let body = json!({ "password": PASSWORD, "calls": calls });
        gesture(self.post("/api/gestures", &body).await)
    }

    /// Adds a passkey by the password.
    async fn add_passkey(&self) -> Authenticator {
        let proof = self.by_password(&json!([])).await;
        let body = json!({ "gesture": proof });
        let (status, asked) = self.post("/api/passkeys/challenge", &body).await;
        assert_eq!(status, 200, "{asked}");
        let mut passkey = Authenticator::at(&self.origin());
        let credential = passkey.create(&asked["publicKey"]);
        let body = json!({ "name": "laptop", "credential": credential });
        let (status, added) = self.post("/api/passkeys", &body).await;
        assert_eq!(status, 201, "{added}");
        passkey
    }

    /// Sends a decision by POST.
    async fn decide(&self, session: &str, decision: &Value) -> (u16, Value) {
        let path = format!("/api/sessions/{session}/approvals");
        self.post(&path, decision).await
    }
}

fn gesture((status, answer): (u16, Value)) -> Value {
    assert_eq!(status, 201, "{answer}");
    answer["gestures"][0]["gesture"].clone()
}

/// A member with a password, in the browser and with a key.
async fn person(app: &TestApp, tenant: &str, name: &str) -> (Browser, Person) {
    let key_holder = app.person(tenant).await;
    let new = NewPerson {
        name: name.to_owned(),
        role: Role::Member,
        installation_admin: false,
        password: Some(PASSWORD.into()),
    };
    let administration = app.tenancy.administration();
    let user = administration
        .create_user(&key_holder.tenant, new)
        .await
        .unwrap();
    let key = administration
        .create_key(&user.tenant, &user.id, "test")
        .await
        .unwrap();
    let person = Person {
        tenant: user.tenant,
        key: key.secret.expose_secret().to_owned(),
    };
    let browser = Browser::sign_in(app, tenant, name).await;
    (browser, person)
}

/// What a gesture is asked for.
fn shown(socket: &TestSocket, card: &Value) -> Value {
    json!([{
        "sessionId": socket.session(), "callId": card["callId"], "digest": card["digest"],
    }])
}

fn yes(card: &Value, gesture: &Value) -> Value {
    json!({
        "callId": card["callId"], "approved": true, "digest": card["digest"], "gesture": gesture,
    })
}

/// Has the model ask for a command; its card.
async fn asked(app: &TestApp, socket: &mut TestSocket, command: &str) -> Value {
    app.model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    assert_eq!(card["freshGesture"], true, "{card}");
    card
}

async fn decided_by(socket: &mut TestSocket, means: &str) {
    let decided = socket.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["gesture"], means, "{decided}");
    assert_eq!(socket.wait_for_answer().await, "Done");
}

#[tokio::test]
async fn a_call_runs_by_a_passkey_or_the_password_and_by_nothing_less() {
    let app = signing().await;
    let (ana, key) = person(&app, "acme", "ana").await;
    let mut passkey = ana.add_passkey().await;
    let mut socket = TestSocket::open(app.address, &key, None).await;
    let card = asked(&app, &mut socket, "date").await;
    // A program with a key presses the button.
    let refused = socket.decide(&card, true).await;
    assert_eq!(refused["error"]["code"], "gesture_required", "{refused}");
    let all = json!({ "callIds": [card["callId"]], "approved": true });
    let refused = socket.ask("tool:approval_all", &[all]).await;
    assert_eq!(refused["error"]["code"], "gesture_required", "{refused}");
    let (status, problem) = ana
        .decide(&socket.session(), &yes(&card, &json!("x")))
        .await;
    assert_eq!(
        (status, &problem["code"]),
        (403, &json!("gesture_required"))
    );
    let proof = ana.by_passkey(&mut passkey, &shown(&socket, &card)).await;
    let (status, answer) = ana.decide(&socket.session(), &yes(&card, &proof)).await;
    assert_eq!(status, 202, "{answer}");
    decided_by(&mut socket, "passkey").await;
    // By the socket, and by the password.
    let card = asked(&app, &mut socket, "ls").await;
    let proof = ana.by_password(&shown(&socket, &card)).await;
    let answer = socket.ask("tool:approval", &[yes(&card, &proof)]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    decided_by(&mut socket, "password").await;
}

#[tokio::test]
async fn changed_arguments_run_by_a_gesture_for_them() {
    let app = signing().await;
    let (ana, key) = person(&app, "acme", "ana").await;
    let mut socket = TestSocket::open(app.address, &key, None).await;
    let card = asked(&app, &mut socket, "date").await;
    let args = json!({ "command": "date -u" });
    let for_card = ana.by_password(&shown(&socket, &card)).await;
    let mut decision = yes(&card, &for_card);
    decision["args"] = args.clone();
    let (status, problem) = ana.decide(&socket.session(), &decision).await;
    assert_eq!(
        (status, &problem["code"]),
        (403, &json!("gesture_required"))
    );
    let mut changed = shown(&socket, &card);
    changed[0]["args"] = args;
    decision["gesture"] = ana.by_password(&changed).await;
    let (status, answer) = ana.decide(&socket.session(), &decision).await;
    assert_eq!(status, 202, "{answer}");
    decided_by(&mut socket, "password").await;
}

#[tokio::test]
async fn passkeys_are_added_named_and_removed_by_their_person_alone() {
    let app = signing().await;
    let (ana, key) = person(&app, "acme", "ana").await;
    let (bo, _) = person(&app, "acme", "bo").await;
    let (_, problem) = ana.post("/api/passkeys/challenge", &json!({})).await;
    assert_eq!(problem["code"], "gesture_required", "{problem}");
    let mut passkey = ana.add_passkey().await;
    let (_, listed) = ana.ask(Method::GET, "/api/passkeys", &Value::Null).await;
    let id = listed["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(listed["items"][0]["usableHere"], true, "{listed}");
    assert_eq!(listed["relyingParty"], "localhost", "{listed}");
    let (_, listed) = bo.ask(Method::GET, "/api/passkeys", &Value::Null).await;
    assert_eq!(listed["items"], json!([]));
    let path = format!("/api/passkeys/{id}");
    let name = json!({ "name": "phone" });
    let (status, _) = bo.ask(Method::PATCH, &path, &name).await;
    assert_eq!(status, 404);
    let by_key = TestApp::http().patch(app.url(&path)).bearer_auth(&key.key);
    let by_key = by_key.json(&name).send().await.unwrap();
    assert_eq!(by_key.status(), 403, "a key is no person");
    let (status, _) = ana.ask(Method::PATCH, &path, &name).await;
    assert_eq!(status, 204);
    let proof = bo.by_password(&json!([])).await;
    let (status, _) = ana
        .ask(Method::DELETE, &path, &json!({ "gesture": proof }))
        .await;
    assert_eq!(status, 403, "another person's gesture");
    let proof = ana.by_passkey(&mut passkey, &json!([])).await;
    let (status, _) = ana
        .ask(Method::DELETE, &path, &json!({ "gesture": proof }))
        .await;
    assert_eq!(status, 204);
    let (_, listed) = ana.ask(Method::GET, "/api/passkeys", &Value::Null).await;
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn whoever_has_neither_passkey_nor_password_is_told_what_to_add() {
    let app = signing().await;
    let person = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let card = asked(&app, &mut socket, "date").await;
    let body = json!({ "calls": shown(&socket, &card) });
    let request = TestApp::http().post(app.url("/api/gestures/challenge"));
    let request = request.header("host", format!("localhost:{}", app.address.port()));
    let answer = request.bearer_auth(&person.key).json(&body).send().await;
    let problem: Value = answer.unwrap().json().await.unwrap();
    assert_eq!(problem["code"], "gesture_required", "{problem}");
    let text = problem["detail"].as_str().unwrap();
    assert!(text.contains("add a passkey in the settings"), "{text}");
}
