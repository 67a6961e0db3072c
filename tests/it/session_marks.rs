//! What people keep about their sessions: pinned, archived, tagged, given up and taken back.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Person, TestApp, TestSocket};

/// What the person is answered.
async fn ask(app: &TestApp, person: &Person, asked: (Method, &str), body: Value) -> (u16, Value) {
    let request = TestApp::http().request(asked.0, app.url(asked.1));
    let request = request.bearer_auth(&person.key).json(&body);
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or(Value::Null))
}

async fn change(app: &TestApp, person: &Person, session: &str, body: Value) -> (u16, Value) {
    let path = format!("/api/sessions/{session}");
    ask(app, person, (Method::PATCH, &path), body).await
}

async fn bulk(app: &TestApp, person: &Person, body: Value) -> Value {
    let (status, done) = ask(app, person, (Method::POST, "/api/sessions/bulk"), body).await;
    assert_eq!(status, 200, "{done}");
    done
}

/// The ids of a list.
async fn listed(app: &TestApp, person: &Person, query: &str) -> Vec<String> {
    let path = format!("/api/sessions{query}");
    let (status, page) = ask(app, person, (Method::GET, &path), json!({})).await;
    assert_eq!(status, 200, "{page}");
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

/// A new session of that person.
async fn create(app: &TestApp, person: &Person, title: &str) -> String {
    let body = json!({ "title": title });
    let (status, item) = ask(app, person, (Method::POST, "/api/sessions"), body).await;
    assert_eq!(status, 201, "{item}");
    item["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn pinned_archived_and_tagged_sessions_are_told_to_every_screen() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let one = create(&app, &ana, "one").await;
    let two = create(&app, &ana, "two").await;
    let mut list = TestSocket::listen(app.address, &ana).await.unwrap();
    let (status, item) = change(
        &app,
        &ana,
        &one,
        json!({ "isPinned": true, "tags": ["To Do", "x"] }),
    )
    .await;
    assert_eq!(status, 200, "{item}");
    assert_eq!(
        (&item["isPinned"], &item["tags"]),
        (&json!(true), &json!(["to do", "x"]))
    );
    let told = list
        .wait_where(|said| said.args[0]["isPinned"] == true)
        .await;
    assert_eq!(told.args[0], item);
    assert_eq!(listed(&app, &ana, "").await, [one.clone(), two.clone()]);
    assert_eq!(
        listed(&app, &ana, "?tag=TO%20DO").await,
        std::slice::from_ref(&one)
    );

    // What happens in the session leaves it where it is.
    app.model.will_say("hi");
    let mut socket = TestSocket::open(app.address, &ana, Some(&one)).await;
    socket.say("hello").await;
    socket.wait_for_answer().await;
    app.sessions.listed().await;
    let told = list
        .wait_where(|said| said.args[0]["version"].as_u64() > item["version"].as_u64())
        .await;
    assert_eq!(
        (&told.args[0]["isPinned"], &told.args[0]["tags"]),
        (&json!(true), &json!(["to do", "x"]))
    );
}

#[tokio::test]
async fn archived_sessions_leave_the_list_and_several_are_tagged_at_once() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let one = create(&app, &ana, "one").await;
    let two = create(&app, &ana, "two").await;
    let (status, item) = change(
        &app,
        &ana,
        &two,
        json!({ "isArchived": true, "title": "second" }),
    )
    .await;
    assert_eq!((status, &item["title"]), (200, &json!("second")), "{item}");
    assert_eq!(listed(&app, &ana, "").await, std::slice::from_ref(&one));
    assert_eq!(
        listed(&app, &ana, "?archived=true").await,
        std::slice::from_ref(&two)
    );
    let done = bulk(
        &app,
        &ana,
        json!({ "ids": [one, two, "ses_no"], "action": "tag", "tag": "both" }),
    )
    .await;
    assert_eq!(
        done,
        json!({ "done": [one, two], "notFound": ["ses_no"], "deleteAt": null })
    );
    assert_eq!(listed(&app, &ana, "?tag=both").await, [one]);
}

#[tokio::test]
async fn nobody_marks_or_gives_up_sessions_of_others() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let session = create(&app, &ana, "mine").await;
    for stranger in [app.person("acme").await, app.person("other").await] {
        let (status, _) = change(&app, &stranger, &session, json!({ "isPinned": true })).await;
        assert_eq!(status, 404);
        for action in ["pin", "unpin", "archive", "unarchive", "delete", "restore"] {
            let done = bulk(
                &app,
                &stranger,
                json!({ "ids": [session], "action": action }),
            )
            .await;
            assert_eq!(done["notFound"], json!([session]), "{action}");
        }
    }
    let (_, item) = ask(
        &app,
        &ana,
        (Method::GET, &format!("/api/sessions/{session}")),
        json!({}),
    )
    .await;
    assert_eq!(
        (&item["isPinned"], &item["isArchived"]),
        (&json!(false), &json!(false))
    );
    for (body, field) in [(json!({ "tags": [""] }), "tags"), (json!({}), "title")] {
        let (status, problem) = change(&app, &ana, &session, body).await;
        assert_eq!(
            (status, &problem["errors"][0]["field"]),
            (400, &json!(field)),
            "{problem}"
        );
    }
    for (body, field) in [
        (json!({ "action": "pin" }), "ids"),
        (json!({ "ids": [], "action": "pin" }), "ids"),
        (json!({ "ids": [session] }), "action"),
        (json!({ "ids": [session], "action": "tag" }), "tag"),
    ] {
        let (status, problem) = ask(&app, &ana, (Method::POST, "/api/sessions/bulk"), body).await;
        assert_eq!(
            (status, &problem["errors"][0]["field"]),
            (400, &json!(field)),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn what_was_given_up_is_gone_at_once_comes_back_in_time_and_outlives_no_restart() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    app.model.will_say("a bittern");
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    socket.say("name a bird").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    drop(socket);
    let mut list = TestSocket::listen(app.address, &ana).await.unwrap();
    let path = format!("/api/sessions/{session}");
    let state = async |app: &TestApp| ask(app, &ana, (Method::GET, &path), json!({})).await.0;

    let done = bulk(&app, &ana, json!({ "ids": [session], "action": "delete" })).await;
    assert_eq!(
        (&done["done"], done["deleteAt"].is_string()),
        (&json!([session]), true)
    );
    let gone = list.wait_for("sessions:removed").await;
    assert_eq!(gone.args, [json!({ "id": session })]);
    assert_eq!(listed(&app, &ana, "").await, [""; 0]);
    assert_eq!(state(&app).await, 404);
    let events = format!("{path}/events");
    assert_eq!(
        ask(&app, &ana, (Method::GET, &events), json!({})).await.0,
        404
    );
    let auth = json!({ "token": ana.key, "sessionId": session });
    let refused = TestSocket::try_open(app.address, auth).await.err().unwrap();
    assert!(refused.starts_with("session_not_found"), "{refused}");

    let done = bulk(&app, &ana, json!({ "ids": [session], "action": "restore" })).await;
    assert_eq!(done["done"], json!([session]));
    list.wait_where(|said| said.name == "sessions:changed" && said.args[0]["id"] == session)
        .await;
    assert_eq!(state(&app).await, 200);
    assert_eq!(
        ask(&app, &ana, (Method::GET, &events), json!({})).await.0,
        200
    );

    // The server ends before the time is over; the next one keeps what was decided.
    bulk(&app, &ana, json!({ "ids": [session], "action": "delete" })).await;
    let app = app.restart().await;
    let mut list = TestSocket::listen(app.address, &ana).await.unwrap();
    assert_eq!(state(&app).await, 404);
    // Told once it is deleted.
    let gone = list.wait_for("sessions:removed").await;
    assert_eq!(gone.args, [json!({ "id": session })]);
    let done = bulk(&app, &ana, json!({ "ids": [session], "action": "restore" })).await;
    assert_eq!(done["notFound"], json!([session]));
}
