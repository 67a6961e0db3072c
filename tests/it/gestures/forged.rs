//! Answers of passkeys that must not count.

use serde_json::{Value, json};

use super::authenticator::Authenticator;
use super::{Browser, asked, person, shown, signing, yes};
use crate::support::TestSocket;

/// Answers a challenge for these calls after `change`, and expects to be refused.
async fn refused(
    browser: &Browser,
    passkey: &mut Authenticator,
    calls: &Value,
    change: impl FnOnce(&mut Authenticator),
) {
    let options = browser.challenge(calls).await;
    passkey.count += 1;
    change(passkey);
    let body = json!({ "credential": passkey.get(&options) });
    let (status, problem) = browser.post("/api/gestures", &body).await;
    assert_eq!(
        (status, &problem["code"], &problem["errors"][0]["field"]),
        (403, &json!("gesture_required"), &json!("credential")),
        "{problem}"
    );
}

/// Asserts O5.
#[tokio::test]
async fn an_answer_for_another_page_name_or_person_does_not_count() {
    let app = signing().await;
    let (ana, key) = person(&app, "acme", "ana").await;
    let (bo, _) = person(&app, "acme", "bo").await;
    let (stranger, _) = person(&app, "other", "ana").await;
    let mut passkey = ana.add_passkey().await;
    let mut of_bo = bo.add_passkey().await;
    let mut of_stranger = stranger.add_passkey().await;
    let mut socket = TestSocket::open(app.address, &key, None).await;
    let card = asked(&app, &mut socket, "date").await;
    let calls = shown(&socket, &card);
    let origin = passkey.origin.clone();
    for other in [
        "https://evil.example",
        "http://localhost",
        "http://127.0.0.1",
    ] {
        refused(&ana, &mut passkey, &calls, |it| it.origin = other.into()).await;
    }
    passkey.origin = origin;
    refused(&ana, &mut passkey, &calls, |it| {
        it.rp_id = "evil.example".into();
    })
    .await;
    passkey.rp_id = "localhost".into();
    refused(&ana, &mut passkey, &calls, |it| it.verifies = false).await;
    passkey.verifies = true;
    for theirs in [&mut of_bo, &mut of_stranger] {
        refused(&ana, theirs, &calls, |_| {}).await;
    }
    // Others make gestures for the call, and have nothing of it.
    for (browser, passkey) in [(&bo, &mut of_bo), (&stranger, &mut of_stranger)] {
        let proof = browser.by_passkey(passkey, &calls).await;
        let (status, _) = ana.decide(&socket.session(), &yes(&card, &proof)).await;
        assert_eq!(status, 403, "a gesture of somebody else");
        let (status, problem) = browser.decide(&socket.session(), &yes(&card, &proof)).await;
        assert_eq!(status, 404, "{problem}");
    }
    let proof = ana.by_passkey(&mut passkey, &calls).await;
    let (status, _) = ana.decide(&socket.session(), &yes(&card, &proof)).await;
    assert_eq!(status, 202);
    socket.wait_for_answer().await;
}

#[tokio::test]
async fn a_replayed_answer_and_a_counter_that_goes_back_do_not_count() {
    let app = signing().await;
    let (ana, key) = person(&app, "acme", "ana").await;
    let mut passkey = ana.add_passkey().await;
    let mut socket = TestSocket::open(app.address, &key, None).await;
    let card = asked(&app, &mut socket, "date").await;
    let calls = shown(&socket, &card);
    let options = ana.challenge(&calls).await;
    passkey.count += 1;
    let body = json!({ "credential": passkey.get(&options) });
    let (status, _) = ana.post("/api/gestures", &body).await;
    assert_eq!(status, 201);
    let (status, problem) = ana.post("/api/gestures", &body).await;
    assert_eq!(
        (status, &problem["code"]),
        (403, &json!("gesture_required"))
    );
    // A copy of the passkey has an older counter.
    refused(&ana, &mut passkey, &calls, |it| it.count = 1).await;
}

#[tokio::test]
async fn a_gesture_for_another_call_or_digest_does_not_count() {
    let app = signing().await;
    let (ana, key) = person(&app, "acme", "ana").await;
    let mut socket = TestSocket::open(app.address, &key, None).await;
    let card = asked(&app, &mut socket, "date").await;
    for (field, value) in [
        ("digest", json!("0".repeat(64))),
        ("callId", json!("call_1_0")),
        ("sessionId", json!(format!("ses_{}", "0".repeat(32)))),
    ] {
        let mut other = shown(&socket, &card);
        other[0][field] = value;
        let proof = ana.by_password(&other).await;
        let (status, problem) = ana.decide(&socket.session(), &yes(&card, &proof)).await;
        assert_eq!(
            (status, &problem["code"]),
            (403, &json!("gesture_required")),
            "{field}"
        );
    }
    let wrong = json!({ "password": "wrong password", "calls": shown(&socket, &card) });
    let (mut status, mut problem) = ana.post("/api/gestures", &wrong).await;
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (403, &json!("password")),
        "{problem}"
    );
    for _ in 0..20 {
        (status, problem) = ana.post("/api/gestures", &wrong).await;
        if status != 403 {
            break;
        }
    }
    assert_eq!(status, 429, "guessing is slowed down: {problem}");
}
