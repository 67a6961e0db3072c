//! Mail: to whoever wants it, when calls have waited for a while, and once for each batch.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::receiver::Receiver;
use super::{ENV, HUSH, reject, waiting};
use crate::rest::Client;
use crate::rules::given;
use crate::servers::Api;
use crate::support::{Relayed, TestApp};

const SETTING: &str = "/api/notifications/mail";

/// An app that mails after so many seconds.
async fn start(relay: &Relayed, delay: &str) -> TestApp {
    let url = relay.url();
    let mut env = ENV.to_vec();
    env.extend([
        ("SPL_SMTP_URL", url.as_str()),
        ("SPL_SMTP_FROM", "Sepal <sepal@house.example>"),
        ("SPL_NOTIFICATIONS_MAIL_DELAY", delay),
    ]);
    TestApp::start_with(&env).await
}

async fn turn_on(client: &Client, address: &str) {
    let body = json!({ "address": address, "isOn": true });
    client.put(SETTING, body).await.ok(200);
}

#[tokio::test]
async fn a_person_who_wants_it_gets_one_mail_without_arguments() {
    let relay = Relayed::start().await;
    let app = start(&relay, "0.3").await;
    let (ana, bob) = (app.person("acme").await, app.person("acme").await);
    let client = Client::with_key(&app, &ana.key);
    // Nobody gets any unasked, neither for what waits already.
    let (_before, _) = waiting(&app, &ana, 1).await;
    let (_others, _) = waiting(&app, &bob, 1).await;
    turn_on(&client, "ana@sepal.example").await;
    // For now the relay cannot take it.
    relay.will_answer(&[451]);
    let (socket, _) = waiting(&app, &ana, 2).await;
    let mails = relay.wait_for(2).await;
    let session = socket.session();
    for mail in &mails {
        assert_eq!(mail.from, "sepal@house.example");
        assert_eq!(mail.to, ["ana@sepal.example"]);
        assert_eq!(mail.header("From"), "Sepal <sepal@house.example>");
        assert_eq!(mail.header("To"), "ana@sepal.example");
        assert_eq!(mail.header("Subject"), "2 calls wait");
        assert_eq!(mail.header("Message-ID"), mails[0].header("Message-ID"));
        // Long lines come folded.
        let text = mail.text.replace("=\r\n", "");
        assert!(text.contains(&format!("/s/{session}")), "{text}");
        assert!(text.contains("- list_files\r\n"), "{text}");
        assert!(!text.contains(HUSH) && !text.contains("mend"), "{text}");
    }
}

#[tokio::test]
async fn titles_are_told_only_where_the_operator_says_so() {
    let (relay, hook) = (Relayed::start().await, Receiver::start().await);
    let url = relay.url();
    let mut env = ENV.to_vec();
    env.extend([
        ("SPL_SMTP_URL", url.as_str()),
        ("SPL_SMTP_FROM", "Sepal <sepal@house.example>"),
        ("SPL_NOTIFICATIONS_MAIL_DELAY", "0"),
        ("SPL_NOTIFICATIONS_TITLES", "true"),
    ]);
    let app = TestApp::start_with(&env).await;
    let boss = app.person_with("acme", Role::Admin).await;
    let client = Client::with_key(&app, &boss.key);
    let body = json!({ "url": hook.url("/hook") });
    client.post("/api/webhooks", body).await.ok(201);
    turn_on(&client, "ana@sepal.example").await;
    let (_socket, _) = waiting(&app, &boss, 2).await;
    let mails = relay.wait_for(1).await;
    let subject = mails[0].header("Subject");
    assert!(
        subject.starts_with("2 calls wait: mend the sail"),
        "{subject}"
    );
    let told = hook.wait_for(1).await;
    let title = told[0].json()["data"]["title"].clone();
    assert!(title.as_str().unwrap().starts_with("mend the sail"));
}

#[tokio::test]
async fn whoever_decides_in_time_gets_none() {
    let relay = Relayed::start().await;
    let app = start(&relay, "1").await;
    let ana = app.person("acme").await;
    turn_on(&Client::with_key(&app, &ana.key), "ana@sepal.example").await;
    let (mut first, cards) = waiting(&app, &ana, 1).await;
    app.model.will_say("Then not");
    reject(&app, &ana, &first, &cards[0]).await;
    first.wait_for_answer().await;
    // The mail of the first would have come before that of the second.
    let (second, _) = waiting(&app, &ana, 1).await;
    let mails = relay.wait_for(1).await;
    assert_eq!(mails.len(), 1);
    let text = mails[0].text.replace("=\r\n", "");
    assert!(text.contains(&second.session()), "{text}");
}

#[tokio::test]
async fn somebody_else_who_may_decide_gets_a_mail_that_tells_nothing_of_the_session() {
    let relay = Relayed::start().await;
    let app = start(&relay, "0").await;
    let ana = app.person_with("acme", Role::Member).await;
    let boss = app.person_with("acme", Role::Admin).await;
    let rule = json!({
        "effect": "ask", "scope": "tenant", "tool": "list_files", "approvers": "somebody_else",
    });
    given(&Api::new(&app, &boss), &rule).await;
    turn_on(&Client::with_key(&app, &boss.key), "boss@sepal.example").await;
    let (socket, _) = waiting(&app, &ana, 2).await;
    let mails = relay.wait_for(1).await;
    assert_eq!(mails[0].to, ["boss@sepal.example"]);
    assert_eq!(mails[0].header("Subject"), "2 calls wait");
    // Long lines come folded.
    let text = mails[0].text.replace("=\r\n", "");
    assert!(text.contains("in a session of"), "{text}");
    for hidden in [&*socket.session(), "list_files", HUSH, "mend"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
}

#[tokio::test]
async fn a_person_sets_their_own_address_and_nobody_elses() {
    let relay = Relayed::start().await;
    let app = start(&relay, "60").await;
    let ana = Client::with_key(&app, &app.person("acme").await.key);
    let none = json!({ "isAvailable": true, "address": null, "isOn": false });
    assert_eq!(ana.get(SETTING).await.ok(200), none);
    for wrong in [
        "ana",
        "ana@sepal",
        "a@b.example, c@d.example",
        "a@b.example\nBcc: c@d.example",
    ] {
        let refused = ana
            .put(SETTING, json!({ "address": wrong, "isOn": true }))
            .await;
        let refused = refused.problem(400, "invalid_arguments");
        assert_eq!(refused["errors"][0]["field"], "address", "{wrong}");
    }
    let without = ana.put(SETTING, json!({ "isOn": true })).await;
    without.problem(400, "invalid_arguments");
    turn_on(&ana, " ana@sepal.example ").await;
    let on = json!({ "isAvailable": true, "address": "ana@sepal.example", "isOn": true });
    assert_eq!(ana.get(SETTING).await.ok(200), on);
    for other in [app.person("acme").await, app.person("other").await] {
        let other = Client::with_key(&app, &other.key);
        assert_eq!(other.get(SETTING).await.ok(200), none);
        other.put(SETTING, json!({ "isOn": false })).await.ok(200);
    }
    assert_eq!(ana.get(SETTING).await.ok(200), on);
    let nobody = Client::nobody(&app);
    nobody.get(SETTING).await.problem(401, "unauthorized");
    let put = nobody.put(SETTING, json!({ "isOn": false })).await;
    put.problem(401, "unauthorized");

    let off = json!({ "address": "", "isOn": false });
    assert_eq!(ana.put(SETTING, off).await.ok(200), none);
    let without = TestApp::start().await;
    let bob = Client::with_key(&without, &without.person("acme").await.key);
    let setting = bob.get(SETTING).await.ok(200);
    assert_eq!(setting["isAvailable"], Value::Bool(false));
}
