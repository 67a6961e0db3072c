//! Bad input over the socket: a clear error or a refused connection; everybody else goes on.

use serde_json::{Value, json};

use crate::support::{DEADLINE, Person, TestApp, TestSocket};

/// After anything bad, the same socket and another one still work.
async fn goes_on(app: &TestApp, socket: &mut TestSocket) {
    app.model.will_say("fine");
    socket.say("still there?").await;
    assert_eq!(socket.wait_for_answer().await, "fine");
}

/// Asserts S0.2, S2.43.
#[tokio::test]
async fn wrong_commands_are_answered_with_the_field_and_the_connection_lives_on() {
    let app = TestApp::start().await;
    let mut ana = app.socket("acme").await;
    let cases: Vec<(&str, Vec<Value>, &str)> = vec![
        ("message", vec![json!(5)], "invalid_arguments"),
        ("message", vec![json!("")], "invalid_arguments"),
        ("message", vec![json!("x".repeat(300 * 1024))], "too_large"),
        (
            "tool:approval",
            vec![json!({"callId": "call_1_0", "approved": true})],
            "no_such_call",
        ),
        (
            "tool:approval",
            vec![json!("call_1_0")],
            "invalid_arguments",
        ),
        (
            "tool:approval_all",
            vec![json!({"approved": true})],
            "invalid_arguments",
        ),
        (
            "tool:outcome",
            vec![json!({"callId": "x", "happened": true})],
            "no_such_call",
        ),
        ("turn:retry", vec![], "nothing_to_do"),
        (
            "message:withdraw",
            vec![json!({"clientMessageId": "m"})],
            "nothing_to_do",
        ),
        ("no:such:event", vec![json!({})], "unknown_command"),
        ("constructor", vec![], "unknown_command"),
    ];
    for (name, args, code) in cases {
        let answer = ana.ask(name, &args).await;
        assert_eq!(answer["ok"], false, "{name} {answer}");
        assert_eq!(answer["error"]["code"], code, "{name} {answer}");
        assert!(
            answer["error"]["requestId"]
                .as_str()
                .unwrap()
                .starts_with("req_")
        );
    }
    ana.emit("message", &[json!([])]).await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(
        error.rest()["code"],
        "invalid_arguments",
        "without an acknowledgement it is an event"
    );
    goes_on(&app, &mut ana).await;
}

#[tokio::test]
async fn deep_nesting_is_refused_and_changes_nothing() {
    let app = TestApp::start().await;
    let mut ana = app.socket("acme").await;
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    ana.send_raw(&format!("42[\"message\",{deep}]")).await;
    let error = ana.wait_for("agent:error").await;
    assert_eq!(error.rest()["code"], "invalid_arguments", "{error:?}");
    goes_on(&app, &mut ana).await;
}

#[tokio::test]
async fn malformed_frames_end_only_their_own_connection() {
    let app = TestApp::start().await;
    let mut witness = app.socket("acme").await;
    let person = app.person("acme").await;
    for frame in [
        "42",
        "42[",
        "42{}",
        "42[5]",
        "4",
        "9",
        "",
        "451-[\"message\",{\"_placeholder\":true,\"num\":0}]",
        "\u{0}",
        "42/other,[\"message\",\"x\"]",
    ] {
        let mut bad = TestSocket::open(app.address, &person, None).await;
        bad.send_raw(frame).await;
        bad.vanish();
    }
    goes_on(&app, &mut witness).await;
}

#[tokio::test]
async fn an_oversized_frame_ends_its_connection_and_memory_stays_bounded() {
    let app = TestApp::start().await;
    let mut witness = app.socket("acme").await;
    let mut big = app.socket("acme").await;
    big.send_raw(&format!("42[\"message\",\"{}\"]", "x".repeat(3 << 20)))
        .await;
    big.wait_for_end().await;
    goes_on(&app, &mut witness).await;
}

#[tokio::test]
async fn more_commands_than_the_limit_are_refused_but_a_stop_never_is() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_LIMIT_COMMANDS_PER_SOCKET", "2"),
    ])
    .await;
    app.model.will_say("first").stall();
    let mut ana = app.socket("acme").await;
    // One frame after the other without reading an answer: some of them wait together.
    for id in 0..200 {
        ana.send_raw(&format!("42{}[\"message\",\"m\"]", 1_000 + id))
            .await;
    }
    let stopped = ana.ask("agent:cancel", &[json!({})]).await;
    assert_eq!(stopped["ok"], true, "{stopped}");
    let refused = ana
        .answers_from(1_000)
        .into_iter()
        .filter(|answer| answer["ok"] == false);
    let codes: Vec<&Value> = refused.map(|answer| &answer["error"]["code"]).collect();
    assert!(!codes.is_empty(), "nothing was refused");
    assert!(
        codes.iter().all(|code| **code == "too_many_requests"),
        "{codes:?}"
    );
}

#[tokio::test]
async fn commands_above_the_limit_are_refused_also_without_an_acknowledgement() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_LIMIT_COMMANDS_PER_SOCKET", "2"),
    ])
    .await;
    app.model.will_say("first").stall();
    let mut ana = app.socket("acme").await;
    for _ in 0..200 {
        ana.send_raw("42[\"message\",\"m\"]").await;
    }
    let told = ana.wait_for("agent:error").await;
    assert_eq!(told.rest()["code"], "too_many_requests");
}

#[tokio::test]
async fn a_handshake_that_cannot_be_read_is_refused_in_words_and_not_in_part() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    for (field, value) in [
        ("lastSeq", json!(-1)),
        ("lastSeq", json!("7")),
        ("sessionId", json!(7)),
    ] {
        let auth = json!({ "token": ana.key, field: value });
        let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
        assert!(
            refused.starts_with("invalid_arguments"),
            "{field}: {refused}"
        );
    }
}

/// Asserts S2.2.
#[tokio::test]
async fn forged_and_foreign_credentials_are_refused_with_their_code() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    let forged = format!("{}x", ana.key);
    for token in [
        json!(null),
        json!(""),
        json!("spl_"),
        json!(forged),
        json!("x".repeat(10_000)),
    ] {
        let refused = TestSocket::try_open(app.address, json!({ "token": token })).await;
        let refused = refused.err().unwrap();
        assert!(refused.starts_with("unauthorized:"), "{refused}");
    }
    for session in ["ses_00000000000000000000000000000000", "ses_x"] {
        let auth = json!({ "token": ana.key, "sessionId": session });
        let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
        assert!(refused.starts_with("session_not_found"), "{refused}");
    }
    for session in ["../x", "a b", "ä", &"x".repeat(65)] {
        let auth = json!({ "token": ana.key, "sessionId": session });
        let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
        assert!(refused.starts_with("invalid_arguments"), "{refused}");
    }
}

#[tokio::test]
async fn a_foreign_origin_or_host_is_refused_and_the_setting_is_named() {
    let app = TestApp::start().await;
    let ana = app.person("acme").await;
    for headers in [
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("host", "evil.example")],
        [("sec-fetch-site", "cross-site")],
    ] {
        let refused = TestSocket::connect(app.address, json!({ "token": ana.key }), &headers).await;
        assert!(refused.is_err(), "{headers:?}");
    }
    let own = format!("http://{}", app.address);
    let let_in = TestSocket::connect(
        app.address,
        json!({ "token": ana.key }),
        &[("origin", &own)],
    )
    .await;
    assert!(let_in.is_ok());
    let evil = TestApp::http()
        .get(app.url("/api/sessions"))
        .header("host", "evil.example");
    let answer = evil.send().await.unwrap();
    assert_eq!(answer.status(), 403);
    let text = answer.text().await.unwrap();
    assert!(
        text.contains("host_refused") && text.contains("public_url"),
        "{text}"
    );
}

#[tokio::test]
async fn too_many_failed_handshakes_from_one_address_are_slowed_down() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_LIMIT_CONNECTS_PER_MINUTE", "5"),
    ])
    .await;
    let ana = app.person("acme").await;
    let mut last = String::new();
    for _ in 0..8 {
        last = TestSocket::try_open(app.address, json!({"token": "spl_no"}))
            .await
            .err()
            .unwrap();
    }
    assert!(last.starts_with("too_many_requests"), "{last}");
    TestSocket::open(app.address, &ana, None).await;
}

#[tokio::test]
async fn one_user_has_so_many_sockets_and_no_more() {
    let app =
        TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_LIMIT_SOCKETS_PER_USER", "3")]).await;
    let (ana, bo) = (app.person("acme").await, app.person("acme").await);
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(TestSocket::open(app.address, &ana, None).await);
    }
    let refused = TestSocket::try_open(app.address, json!({ "token": ana.key })).await;
    assert!(refused.err().unwrap().starts_with("too_many_requests"));
    TestSocket::open(app.address, &bo, None).await;
}

// On several threads: the end of a connection and the beginning of its session meet there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_leaves_in_its_handshake_leaves_its_place() {
    const PLACES: usize = 20;
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_LIMIT_SOCKETS_PER_USER", "20"),
    ])
    .await;
    let ana = app.person("acme").await;
    let auth = json!({ "token": ana.key });
    for _ in 0..20 {
        let knocking = (0..PLACES).map(|_| TestSocket::knock(app.address, &auth));
        futures::future::join_all(knocking).await;
        let leaving = (0..PLACES).map(|_| async {
            if let Ok(socket) = TestSocket::connect(app.address, auth.clone(), &[]).await {
                socket.vanish();
            }
        });
        futures::future::join_all(leaving).await;
    }
    all_places_are_free(&app, &ana, PLACES).await;
}

#[tokio::test]
async fn a_client_that_leaves_with_commands_unanswered_leaves_its_place() {
    const PLACES: usize = 5;
    let app =
        TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_LIMIT_SOCKETS_PER_USER", "5")]).await;
    let ana = app.person("acme").await;
    for _ in 0..PLACES {
        let mut socket = TestSocket::open(app.address, &ana, None).await;
        for id in 0..15 {
            let nothing = json!({ "clientMessageId": "nobody-s" });
            let command = json!(["message:withdraw", nothing]);
            socket.send_raw(&format!("42{id}{command}")).await;
        }
        socket.vanish();
    }
    all_places_are_free(&app, &ana, PLACES).await;
}

/// So many sockets are open at the same time, once the server has seen all the others go.
async fn all_places_are_free(app: &TestApp, person: &Person, places: usize) {
    let auth = json!({ "token": person.key });
    let all_open = async {
        loop {
            let opening = (0..places).map(|_| TestSocket::try_open(app.address, auth.clone()));
            let opened = futures::future::join_all(opening).await;
            if opened.iter().all(Result::is_ok) {
                return;
            }
        }
    };
    let all_open = tokio::time::timeout(DEADLINE, all_open).await;
    assert!(all_open.is_ok(), "places are still taken");
}

#[tokio::test]
async fn a_thousand_connects_leave_a_server_that_answers() {
    let app =
        TestApp::start_with(&[("SPL_SANDBOX", "none"), ("SPL_LIMIT_SOCKETS_PER_USER", "0")]).await;
    let ana = app.person("acme").await;
    let mut open = Vec::new();
    for batch in 0..20 {
        let opening = (0..50).map(|_| TestSocket::open(app.address, &ana, None));
        open.extend(futures::future::join_all(opening).await);
        assert_eq!(open.len(), (batch + 1) * 50);
    }
    let mut witness = open.pop().unwrap();
    goes_on(&app, &mut witness).await;
    drop(open);
    goes_on(&app, &mut witness).await;
}
