//! People who have neither a passkey nor a password confirm calls by a new sign-in at their provider.

use serde_json::{Value, json};

use super::provider::{CLIENT, Lie, SECRET};
use super::{House, Provider, Returned, Visitor};
use crate::gestures::sign_everything;
use crate::rest::{Answer, Client};
use crate::support::{TestApp, TestSocket};
use sepal::domain::Role;

const START: &str = "/api/gestures/provider";
const FINISH: &str = "/api/gestures/provider/finish";

/// A house whose rules want a fresh gesture with each yes, and whose provider has to check in the way `mfa`.
async fn house() -> House {
    let provider = Provider::start().await;
    let env = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_OIDC_ISSUER", provider.issuer.as_str()),
        ("SPL_OIDC_CLIENT_ID", CLIENT),
        ("SPL_OIDC_CLIENT_SECRET", SECRET),
        ("SPL_OIDC_TENANT", "acme"),
        ("SPL_OIDC_STEP_UP_ACR", "mfa,phr"),
    ];
    let app = TestApp::start_tuned(&env, sign_everything).await;
    let owner = app.person_with("acme", Role::Owner).await;
    House {
        provider,
        app,
        owner,
    }
}

impl Visitor<'_> {
    /// The signed-in browser, with its token.
    fn page(&self) -> Client {
        let csrf = self.me["csrfToken"].as_str().unwrap();
        self.browser.client().and("x-csrf-token", csrf)
    }

    async fn begin(&mut self, calls: &Value) -> Answer {
        let begun = self.page().post(START, json!({ "calls": calls })).await;
        self.browser.keep(&begun);
        begun
    }

    /// Confirms at the provider, and comes back.
    async fn confirm(&mut self, calls: &Value) -> Returned {
        let begun = self.begin(calls).await.ok(200);
        let url = begun["url"].as_str().unwrap().parse().unwrap();
        self.browser.visit(url).await
    }

    async fn finish(&self, returned: &Returned) -> Answer {
        self.page().post(FINISH, json!(returned)).await
    }

    async fn socket(&self) -> TestSocket {
        let issued = self.page().post("/api/auth/ticket", Value::Null).await;
        let issued = issued.ok(200);
        let query = format!("&ticket={}", issued["ticket"].as_str().unwrap());
        let address = self.browser.app.address;
        TestSocket::try_open_at(address, json!({}), &query)
            .await
            .unwrap()
    }
}

/// Has the model ask for a command, and returns what a gesture for it is asked with.
async fn asked(house: &House, socket: &mut TestSocket) -> (Value, Value) {
    let command = json!({ "command": "date" });
    let model = &house.app.model;
    model.will_call("execute_command", command).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    let calls = json!([{
        "sessionId": socket.session(), "callId": card["callId"], "digest": card["digest"],
    }]);
    (card, calls)
}

fn refused(answer: &Answer, text: &str) {
    let problem = answer.problem(403, "gesture_required");
    let said = problem["errors"][0]["field"].as_str().unwrap();
    assert_eq!(said, "provider", "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(text), "{detail}");
}

#[tokio::test]
async fn a_call_runs_by_a_new_check_at_the_provider() {
    let house = house().await;
    let mut ann = house.sign_in().await;
    let mut socket = ann.socket().await;
    let (card, calls) = asked(&house, &mut socket).await;
    let page = ann.page();
    let body = json!({ "calls": calls });
    let ways = page.post("/api/gestures/challenge", body).await.ok(200);
    assert_eq!(ways["provider"], "your company account", "{ways}");
    assert_eq!(
        (&ways["publicKey"], &ways["password"]),
        (&Value::Null, &json!(false))
    );
    let returned = ann.confirm(&calls).await;
    let made = ann.finish(&returned).await.ok(201);
    let gesture = &made["gestures"][0];
    assert_eq!(gesture["sessionId"], socket.session(), "{made}");
    let again = ann.finish(&returned).await;
    again.problem(403, "gesture_required");
    let yes = json!({
        "callId": card["callId"], "approved": true, "digest": card["digest"],
        "gesture": gesture["gesture"],
    });
    let answer = socket.ask("tool:approval", &[yes]).await;
    assert_eq!(answer["ok"], true, "{answer}");
    let decided = socket.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["gesture"], "provider", "{decided}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    let made = &house.acts("gesture.made").await[0];
    assert_eq!(made["details"]["means"], "provider", "{made}");
}

#[tokio::test]
async fn an_old_a_weak_or_another_check_does_not_count() {
    let house = house().await;
    let mut ann = house.sign_in().await;
    let mut socket = ann.socket().await;
    let (_, calls) = asked(&house, &mut socket).await;
    for (lie, text) in [
        (Lie::OldCheck, "did not check anew"),
        (Lie::NoCheck, "did not check anew"),
        (Lie::OtherAcr, "in the way that this installation requires"),
        (Lie::NoAcr, "in the way that this installation requires"),
    ] {
        house.provider.lies(Some(lie));
        let returned = ann.confirm(&calls).await;
        refused(&ann.finish(&returned).await, text);
    }
    house.provider.lies(Some(Lie::Nonce));
    let returned = ann.confirm(&calls).await;
    let forged = ann.finish(&returned).await;
    assert_eq!(forged.status, 502, "{}", forged.text);
    house.provider.lies(None);
    // Somebody else confirms at the provider.
    house
        .provider
        .is(json!({ "sub": "2", "preferred_username": "bo" }));
    let returned = ann.confirm(&calls).await;
    refused(&ann.finish(&returned).await, "another account");
}

#[tokio::test]
async fn a_confirmation_is_of_its_person_browser_and_purpose() {
    let house = house().await;
    let mut ann = house.sign_in().await;
    house
        .provider
        .is(json!({ "sub": "2", "preferred_username": "bo" }));
    let bo = house.sign_in().await;
    house
        .provider
        .is(json!({ "sub": "1", "preferred_username": "ann" }));
    let mut socket = ann.socket().await;
    let (_, calls) = asked(&house, &mut socket).await;
    let returned = ann.confirm(&calls).await;
    // In the browser of somebody else, with and without the cookie of the flow.
    let theirs = bo.page().post(FINISH, json!(returned)).await;
    theirs.problem(403, "gesture_required");
    // It signs nobody in, and a sign-in confirms nothing.
    let page = ann.page();
    let sign_in = page
        .post("/api/auth/oidc/company/finish", json!(returned))
        .await;
    sign_in.problem(401, "unauthorized");
    let url = ann.browser.begin().await;
    let of_sign_in = ann.browser.visit(url).await;
    let confirmed = ann.finish(&of_sign_in).await;
    confirmed.problem(403, "gesture_required");
    ann.finish(&returned).await.ok(201);
    // Nobody, a key, no calls, and somebody who has a password.
    let nobody = Client::nobody(&house.app);
    let begun = nobody.post(START, json!({ "calls": calls })).await;
    begun.problem(401, "unauthorized");
    let finished = nobody.post(FINISH, json!(returned)).await;
    finished.problem(401, "unauthorized");
    let by_key = house.owner().post(START, json!({ "calls": calls })).await;
    by_key.problem(403, "not_allowed");
    let begun = ann.begin(&json!([])).await;
    begun.problem(403, "gesture_required");
    let me = ann.me["user"]["id"].as_str().unwrap();
    let user = sepal::domain::UserId::parse(me).unwrap();
    let administration = house.app.tenancy.administration();
    let password = "correct horse battery".into();
    let set = administration.set_password(&house.owner.tenant, &user, &password);
    set.await.unwrap();
    let mut ann = house.sign_in().await;
    refused(&ann.begin(&calls).await, "confirm with it");
}
