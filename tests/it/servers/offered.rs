//! Resources and prompts of servers: listed without them, read over the session's own connection, kept as
//! they were read, and nobody else's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::stand_in::StandIn;
use super::{Api, operator, wait_for_health};
use crate::support::{DEADLINE, Person, TestApp, TestSocket};

/// A server with some of everything, whose note reads as `text` says.
async fn library() -> StandIn {
    let capabilities = json!({ "resources": { "subscribe": true, "listChanged": true },
        "prompts": { "listChanged": true }, "completions": {} });
    StandIn::start(capabilities, answer).await
}

fn answer(method: &str, params: &Value) -> super::stand_in::Answer {
    let uri = params["uri"].as_str().unwrap_or_default();
    match method {
        "resources/list" if params["cursor"] == "2" => Ok(json!({ "resources": [
            { "uri": "demo://picture", "name": "picture", "mimeType": "image/png" },
        ] })),
        "resources/list" => Ok(json!({ "nextCursor": "2", "resources": [
            { "uri": "demo://note", "name": "note", "title": "The note", "size": 5 },
            { "uri": "demo://note", "name": "the same again" },
        ] })),
        "resources/templates/list" => Ok(json!({ "resourceTemplates": [
            { "uriTemplate": "demo://notes/{id}", "name": "notes" },
        ] })),
        "prompts/list" => Ok(
            json!({ "prompts": [{ "name": "review", "description": "Looks at it",
            "arguments": [{ "name": "language", "required": true }] }] }),
        ),
        "resources/read" if uri == "demo://note" => Ok(json!({ "contents": [
            { "uri": uri, "mimeType": "text/plain", "text": "hello from the note" },
        ] })),
        "resources/read" => Err((-32_002, "Resource not found")),
        "resources/subscribe" => Ok(json!({})),
        "prompts/get" => Ok(json!({ "description": "A review", "messages": [
            { "role": "user", "content": { "type": "text",
                "text": format!("Review my {}", params["arguments"]["language"]) } },
            { "role": "assistant", "content": { "type": "text", "text": "Gladly." } },
            { "role": "user", "content": { "type": "resource",
                "resource": { "uri": "demo://style", "text": "tabs" } } },
        ] })),
        "completion/complete" => Ok(json!({ "completion": { "values": ["Rust", "Ruby"] } })),
        _ => Err((-32_601, "no such method")),
    }
}

/// Adds it for everybody, and gives a session of its operator.
async fn session_with(app: &TestApp, server: &StandIn) -> (Person, TestSocket) {
    let person = operator(app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(app, &person);
    api.add("lib", json!({ "url": server.url })).await;
    wait_for_health(&mut socket, "lib", "healthy").await;
    (person, socket)
}

/// What is said of a server in a list, once the list was made.
async fn listed(api: &Api<'_>, path: &str) -> Value {
    let mut found = Value::Null;
    tokio::time::timeout(DEADLINE, async {
        while found.is_null() {
            let list = api.get(path).await;
            let item = &list["items"][0];
            if item["listed"] == true {
                found = item.clone();
            } else {
                tokio::task::yield_now().await;
            }
        }
    })
    .await
    .unwrap();
    found
}

/// Asserts S0.52: lists with pages are known without a server, and what was read goes with the
/// message, as it was read.
#[tokio::test]
async fn a_resource_is_listed_read_and_said_as_it_was() {
    let app = TestApp::start().await;
    let server = library().await;
    let (person, mut socket) = session_with(&app, &server).await;
    let api = Api::new(&app, &person);
    let at = format!("/api/sessions/{}", socket.session());
    let list = listed(&api, &format!("{at}/resources")).await;
    assert_eq!(list["server"], "lib");
    let uris: Vec<&str> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, ["demo://note", "demo://picture"]);
    assert_eq!(list["templates"][0]["uriTemplate"], "demo://notes/{id}");
    assert_eq!(list["problems"], json!([]));
    // One that has no tools is not asked for them.
    assert!(server.asked("tools/list").is_empty());

    let which = json!({ "server": "lib", "uri": "demo://note" });
    let (status, read) = api
        .ask(Method::POST, &format!("{at}/resources/read"), &which)
        .await;
    assert_eq!(status, 200, "{read}");
    let kept = &read["items"][0];
    assert_eq!(kept["name"], "note");
    assert_eq!(kept["mediaType"], "text/plain");
    assert_eq!(kept["source"], which);
    app.model.will_say("I see");
    let message = json!({ "text": "look", "attachments": [kept["id"]] });
    let (status, said) = api
        .ask(Method::POST, &format!("{at}/messages"), &message)
        .await;
    assert_eq!(status, 202, "{said}");
    assert_eq!(socket.wait_for_answer().await, "I see");
    let asked = app.model.requests().pop().unwrap().body.to_string();
    assert!(asked.contains("hello from the note"), "{asked}");

    // The same over the socket, in one step.
    app.model.will_say("Again");
    let answer = socket
        .ask(
            "message",
            &[json!({ "text": "and again", "resources": [which] })],
        )
        .await;
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(socket.wait_for_answer().await, "Again");
    assert_eq!(server.asked("resources/read").len(), 2);

    let missing = json!({ "server": "lib", "uri": "demo://none" });
    let path = format!("{at}/resources/read");
    let (_, refused) = api.refused(Method::POST, &path, &missing).await;
    let text = refused.to_string();
    assert!(
        text.contains("Resource not found") && text.contains("lib"),
        "{text}"
    );
    let nowhere = json!({ "server": "none", "uri": "demo://none" });
    let (status, refused) = api.refused(Method::POST, &path, &nowhere).await;
    assert_eq!(status, 404);
    assert_eq!(refused["errors"][0]["field"], "server", "{refused}");
}

/// Asserts S0.52: a prompt comes with its arguments filled in, by the server's own completion.
#[tokio::test]
async fn a_prompt_is_given_as_what_it_is_and_says_nothing_by_itself() {
    let app = TestApp::start().await;
    let server = library().await;
    let (person, socket) = session_with(&app, &server).await;
    let api = Api::new(&app, &person);
    let at = format!("/api/sessions/{}", socket.session());
    let list = listed(&api, &format!("{at}/prompts")).await;
    let prompt = &list["prompts"][0];
    assert_eq!(prompt["name"], "review");
    assert_eq!(prompt["arguments"][0]["required"], true);
    let typed =
        json!({ "server": "lib", "prompt": "review", "argument": "language", "value": "Ru" });
    let (status, values) = api
        .ask(Method::POST, &format!("{at}/completions"), &typed)
        .await;
    assert_eq!((status, &values["values"]), (200, &json!(["Rust", "Ruby"])));
    let wanted = json!({ "server": "lib", "name": "review", "arguments": { "language": "Rust" } });
    let (status, given) = api
        .ask(Method::POST, &format!("{at}/prompts/get"), &wanted)
        .await;
    assert_eq!(status, 200, "{given}");
    let messages = given["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(messages[0]["text"], "Review my \"Rust\"");
    assert_eq!(messages[2]["attachment"]["source"]["uri"], "demo://style");
    assert!(app.model.requests().is_empty(), "nothing was said");
    let both =
        json!({ "server": "lib", "prompt": "a", "template": "b", "argument": "x", "value": "" });
    let (status, _) = api
        .refused(Method::POST, &format!("{at}/completions"), &both)
        .await;
    assert_eq!(status, 400);
}

/// Asserts S0.52.
#[tokio::test]
async fn nobody_else_gets_in_at_any_of_the_doors() {
    let app = TestApp::start().await;
    let server = library().await;
    let (person, socket) = session_with(&app, &server).await;
    let at = format!("/api/sessions/{}", socket.session());
    let uri = json!({ "server": "lib", "uri": "demo://note" });
    let prompt = json!({ "server": "lib", "name": "review" });
    let typed = json!({ "server": "lib", "prompt": "review", "argument": "language", "value": "" });
    let doors = [
        (Method::GET, "/resources", Value::Null),
        (Method::POST, "/resources/read", uri.clone()),
        (Method::GET, "/prompts", Value::Null),
        (Method::POST, "/prompts/get", prompt),
        (Method::POST, "/completions", typed),
        (
            Method::POST,
            "/messages",
            json!({ "text": "x", "resources": [uri.clone()] }),
        ),
    ];
    let (asked, said) = (
        server.asked("resources/read").len(),
        app.model.requests().len(),
    );
    for stranger in [
        app.person_with("acme", Role::Owner).await,
        app.person_with("house", Role::Member).await,
    ] {
        let api = Api::new(&app, &stranger);
        for (method, door, body) in &doors {
            let path = format!("{at}{door}");
            let (status, refused) = api.refused(method.clone(), &path, body).await;
            assert_eq!(status, 404, "{door}: {refused}");
        }
    }
    let viewer = app.person_with("house", Role::Viewer).await;
    let api = Api::new(&app, &viewer);
    for (method, door, body) in &doors {
        let (status, refused) = api
            .refused(method.clone(), &format!("{at}{door}"), body)
            .await;
        assert!([403, 404].contains(&status), "{door}: {refused}");
    }
    assert_eq!(server.asked("resources/read").len(), asked);
    assert_eq!(app.model.requests().len(), said);
    // What a rule denies is denied to the owner too.
    let owner = Api::new(&app, &person);
    let rule = json!({ "effect": "deny", "scope": "person", "server": "lib" });
    let (status, made) = owner.ask(Method::POST, "/api/rules", &rule).await;
    assert!(status < 300, "{made}");
    let (status, refused) = owner
        .refused(Method::POST, &format!("{at}/resources/read"), &uri)
        .await;
    assert_eq!(status, 403, "{refused}");
    assert!(refused.to_string().contains("denies"), "{refused}");
}

/// Asserts S0.52: a change of what was read is told once, until it is read again.
#[tokio::test]
async fn a_change_of_a_resource_is_told_to_whoever_read_it() {
    let app = TestApp::start().await;
    let server = library().await;
    let (person, mut socket) = session_with(&app, &server).await;
    let api = Api::new(&app, &person);
    let path = format!("/api/sessions/{}/resources/read", socket.session());
    let which = json!({ "server": "lib", "uri": "demo://note" });
    for round in 1..=2 {
        let (status, _) = api.ask(Method::POST, &path, &which).await;
        assert_eq!(status, 200);
        assert_eq!(server.asked("resources/subscribe").len(), round);
        server.heard().await;
        for uri in ["demo://other", "demo://note", "demo://note"] {
            server.notify("notifications/resources/updated", &json!({ "uri": uri }));
        }
        let told = socket.wait_for("session:resource_changed").await;
        assert_eq!(told.args[0], which);
    }
}

/// Asserts S0.52: a session that said nothing yet keeps the connection over which its owner reads, whatever
/// else is done in it.
#[tokio::test]
async fn what_an_owner_reads_comes_over_one_connection() {
    let app = TestApp::start().await;
    let server = library().await;
    let (person, mut socket) = session_with(&app, &server).await;
    let api = Api::new(&app, &person);
    let at = format!("/api/sessions/{}", socket.session());
    let which = json!({ "server": "lib", "uri": "demo://note" });
    let read = || async {
        let path = format!("{at}/resources/read");
        let (status, read) = api.ask(Method::POST, &path, &which).await;
        assert_eq!(status, 200, "{read}");
    };
    read().await;
    server.heard().await;
    let opened = server.asked("initialize").len();
    for round in 0..3 {
        let title = json!({ "title": format!("Take {round}") });
        let (status, refused) = api.ask(Method::PATCH, &at, &title).await;
        assert!(status < 300, "{refused}");
        read().await;
    }
    server.notify(
        "notifications/resources/updated",
        &json!({ "uri": "demo://note" }),
    );
    socket.wait_for("session:resource_changed").await;
    assert_eq!(server.asked("initialize").len(), opened);
}

/// Asserts S0.52: lists are read again when their server says so, and one that never ends is cut.
#[tokio::test]
async fn lists_follow_their_server_and_one_without_end_is_cut_with_a_word() {
    let app = TestApp::start().await;
    let is_endless = Arc::<AtomicBool>::default();
    let seen = Arc::clone(&is_endless);
    let capabilities = json!({ "resources": { "listChanged": true }, "tools": {} });
    let server = StandIn::start(capabilities, move |method, params| match method {
        "tools/list" => Ok(json!({ "tools": [] })),
        "resources/list" if seen.load(Ordering::Acquire) => {
            let page = params["cursor"]
                .as_str()
                .unwrap_or("0")
                .parse::<u32>()
                .unwrap();
            let own = json!({ "uri": format!("demo://{page}"), "name": "one of many" });
            Ok(json!({ "resources": [own], "nextCursor": (page + 1).to_string() }))
        }
        "resources/list" => Ok(json!({ "resources": [] })),
        "resources/read" => Ok(json!({ "contents": [{ "uri": "demo://1", "text": "x" }] })),
        _ => Err((-32_601, "no such method")),
    })
    .await;
    let (person, socket) = session_with(&app, &server).await;
    let api = Api::new(&app, &person);
    let at = format!("/api/sessions/{}", socket.session());
    // Only a connection hears that the lists change.
    let which = json!({ "server": "lib", "uri": "demo://1" });
    let (status, _) = api
        .ask(Method::POST, &format!("{at}/resources/read"), &which)
        .await;
    assert_eq!(status, 200);
    server.heard().await;
    is_endless.store(true, Ordering::Release);
    server.notify("notifications/resources/list_changed", &json!({}));
    let list = tokio::time::timeout(DEADLINE, async {
        loop {
            let list = api.get(&format!("{at}/resources")).await;
            if !list["items"][0]["problems"].is_null() {
                return list["items"][0].clone();
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(list["resources"].as_array().unwrap().len(), 50);
    let problem = list["problems"][0].as_str().unwrap();
    assert!(problem.contains("does not end"), "{problem}");
}
