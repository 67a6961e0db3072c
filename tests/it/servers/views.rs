//! Views of tools (MCP Apps): which tools have one, whom tools are for, and what a document may be before
//! anybody is shown it.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::stand_in::{Answer, SILENT, StandIn};
use super::{Api, offered, operator, wait_for_health};
use crate::support::{Person, TestApp, TestSocket};

pub(crate) const URI: &str = "ui://chart/main.html";
const TYPE: &str = "text/html;profile=mcp-app";

/// The address of such a server, and what keeps it.
pub(crate) async fn start() -> (String, StandIn) {
    let server = charts().await;
    (server.url.clone(), server)
}

/// A server with a tool that has a view, and one that only views may call.
async fn charts() -> StandIn {
    StandIn::start(json!({ "tools": {}, "resources": {} }), answer).await
}

pub(super) fn answer(method: &str, params: &Value) -> Answer {
    let uri = params["uri"].as_str().unwrap_or_default();
    let content = |mime: &str, text: &str, meta: Value| {
        Ok(json!({ "contents": [
            { "uri": uri, "mimeType": mime, "text": text, "_meta": meta },
        ] }))
    };
    match method {
        "tools/list" => Ok(json!({ "tools": [
            { "name": "chart", "inputSchema": { "type": "object" },
                "_meta": { "ui": { "resourceUri": URI } } },
            { "name": "refresh", "inputSchema": { "type": "object" },
                "_meta": { "ui": { "resourceUri": URI, "visibility": ["app"] } } },
            { "name": "plain", "inputSchema": { "type": "object" } },
        ] })),
        "tools/call" => Ok(json!({ "content": [{ "type": "text", "text": "drawn" }],
            "structuredContent": { "points": [1, 2] } })),
        "resources/list" => Ok(json!({ "resources": [{ "uri": "ui://chart/listed.html",
            "name": "listed", "mimeType": TYPE,
            "_meta": { "ui": { "csp": { "connectDomains": ["https://listed.example.com"] } } } }] })),
        "resources/templates/list" => Ok(json!({ "resourceTemplates": [] })),
        "resources/read" => match uri {
            URI => content(
                TYPE,
                "<h1>Chart</h1>",
                json!({ "ui": { "csp": {
                "connectDomains": ["https://api.example.com", "*", "https://x.example.com; script-src *",
                    "http://plain.example.com"],
                "resourceDomains": ["https://*.cdn.example.com"],
                "frameDomains": ["https://video.example.com\r\nSet-Cookie: a=b"],
            }, "permissions": { "camera": {} } } }),
            ),
            "ui://chart/listed.html" => content(TYPE, "<h1>Listed</h1>", json!({})),
            "ui://chart/page.html" => content("text/html", "<h1>A page</h1>", json!({})),
            "ui://chart/other.html" => content(
                "text/html;profile=mcp-app;charset=utf-8",
                "<h1>Other</h1>",
                json!({}),
            ),
            "ui://chart/large.html" => content(TYPE, &"x".repeat((2 << 20) + 1), json!({})),
            "ui://chart/silent.html" => Err((SILENT, "")),
            "ui://chart/empty.html" => Ok(json!({ "contents": [] })),
            _ => Err((-32_002, "Resource not found")),
        },
        _ => Err((-32_601, "no such method")),
    }
}

async fn session_with(app: &TestApp, server: &StandIn) -> (Person, TestSocket) {
    let person = operator(app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(app, &person);
    api.add("charts", json!({ "url": server.url })).await;
    wait_for_health(&mut socket, "charts", "healthy").await;
    (person, socket)
}

/// Has the model call the tool, and the person say yes to it.
pub(crate) async fn run_chart(app: &TestApp, socket: &mut TestSocket) {
    app.model
        .will_call("chart", json!({ "of": "sales" }))
        .then_say("Here");
    socket.say("draw").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    assert_eq!(socket.wait_for_answer().await, "Here");
}

/// Asserts S0.52: the extension is announced, a tool's view is told with its call, now and later, and a
/// tool for views alone is none of the model's.
#[tokio::test]
async fn a_call_says_its_view_and_what_is_for_views_alone_is_not_offered() {
    let app = TestApp::with_sandbox().await;
    let server = charts().await;
    let (person, mut socket) = session_with(&app, &server).await;
    let hello = server.asked("initialize").pop().unwrap();
    let announced = &hello["capabilities"]["extensions"]["io.modelcontextprotocol/ui"];
    assert_eq!(announced, &json!({ "mimeTypes": [TYPE] }));

    run_chart(&app, &mut socket).await;
    let names = offered(&app);
    assert!(
        names.contains(&"chart".to_owned()) && names.contains(&"plain".to_owned()),
        "{names:?}"
    );
    assert!(!names.contains(&"refresh".to_owned()), "{names:?}");
    let api = Api::new(&app, &person);
    let tools = api.get("/api/mcp/charts/tools").await;
    let told: Vec<Value> = tools["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| json!([tool["name"], tool["appOnly"], tool["view"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["chart", false, URI]),
            json!(["refresh", true, URI]),
            json!(["plain", false, null])
        ]
    );
    let report = api.get("/api/mcp/charts").await;
    assert_eq!(
        (&report["toolCount"], &report["enabledTools"]),
        (&json!(3), &json!(2)),
        "{report}"
    );

    // A model that guesses the name reaches nothing.
    app.model.will_call("refresh", json!({})).then_say("No");
    socket.say("refresh").await;
    assert_eq!(socket.wait_for_answer().await, "No");
    assert_eq!(server.asked("tools/call").len(), 1);

    let live = socket
        .log
        .iter()
        .find(|said| said.name == "tool:started")
        .unwrap();
    assert_eq!(live.args[0]["view"], URI, "{live:?}");
    let events = api
        .get(&format!("/api/sessions/{}/events", socket.session()))
        .await;
    let later = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["event"] == "tool:started")
        .unwrap();
    assert_eq!(later["args"][0]["view"], URI, "{later}");
}

/// Asserts S0.52: a document comes with the hosts that are plainly hosts, and what is no view is refused.
#[tokio::test]
async fn a_view_is_given_with_a_policy_that_nobody_can_write_into() {
    let app = TestApp::start().await;
    let server = charts().await;
    let (person, mut socket) = session_with(&app, &server).await;
    let api = Api::new(&app, &person);
    let path = format!("/api/sessions/{}/views", socket.session());
    let which = |uri: &str| json!({ "server": "charts", "uri": uri });
    // Nobody begins a session by looking at a view.
    let (status, _) = api.refused(Method::POST, &path, &which(URI)).await;
    assert_eq!(status, 404);
    run_chart(&app, &mut socket).await;

    let (status, view) = api.ask(Method::POST, &path, &which(URI)).await;
    assert_eq!(status, 200, "{view}");
    assert_eq!(view["html"], "<h1>Chart</h1>");
    assert_eq!(view["connect"], json!(["https://api.example.com"]));
    assert_eq!(view["load"], json!(["https://*.cdn.example.com"]));
    assert_eq!((&view["frames"], &view["base"]), (&json!([]), &json!([])));
    assert_eq!(view["leftOut"].as_array().unwrap().len(), 4, "{view}");
    assert_eq!(view["permissions"], json!(["camera"]));
    let (_, listed) = api
        .ask(Method::POST, &path, &which("ui://chart/listed.html"))
        .await;
    assert_eq!(
        listed["connect"],
        json!(["https://listed.example.com"]),
        "{listed}"
    );

    for (uri, status, word) in [
        ("ui://chart/page.html", 502, "text/html"),
        (
            "ui://chart/other.html",
            502,
            "a view is text/html;profile=mcp-app",
        ),
        ("ui://chart/large.html", 502, "at most"),
        ("ui://chart/empty.html", 502, "no content"),
        ("ui://chart/none.html", 502, "Resource not found"),
        ("https://example.com/x", 400, "ui://"),
        ("ui://a b", 400, "ui://"),
    ] {
        let (answered, refused) = api.refused(Method::POST, &path, &which(uri)).await;
        assert_eq!(answered, status, "{uri}: {refused}");
        assert!(refused.to_string().contains(word), "{uri}: {refused}");
    }
    let (status, _) = api
        .refused(
            Method::POST,
            &path,
            &json!({ "server": "none", "uri": URI }),
        )
        .await;
    assert_eq!(status, 404);
    frame_is_sealed(&app, &person, view["frame"].as_str().unwrap()).await;
}

/// The frame has the policy of those hosts, and takes no others.
async fn frame_is_sealed(app: &TestApp, person: &Person, address: &str) {
    let http = TestApp::http();
    let frame = http
        .get(app.url(&format!("/{address}")))
        .bearer_auth(&person.key);
    let frame = frame.send().await.unwrap();
    assert_eq!(frame.status(), 200);
    let header = |name: &str| frame.headers()[name].to_str().unwrap().to_owned();
    let policy = header("content-security-policy");
    assert!(
        policy.starts_with("sandbox allow-scripts allow-forms; default-src 'none';"),
        "{policy}"
    );
    assert!(
        policy.contains("connect-src https://api.example.com;"),
        "{policy}"
    );
    assert!(
        policy.contains("script-src 'unsafe-inline' https://*.cdn.example.com;"),
        "{policy}"
    );
    assert!(
        policy.contains("frame-src 'none';") && policy.contains("frame-ancestors 'self'"),
        "{policy}"
    );
    assert_eq!(header("x-frame-options"), "SAMEORIGIN");
    assert_eq!(header("cache-control"), "no-store");
    assert!(header("permissions-policy").contains("camera=()"));
    assert!(
        !frame.text().await.unwrap().contains("Chart"),
        "the frame has no document"
    );
    for odd in [
        "connect=*",
        "connect=https%3A%2F%2Fa.example.com%3B%20script-src%20*",
        "load='unsafe-eval'",
        "frames=data:",
        "base=http%3A%2F%2Fa.example.com",
        "load=https%3A%2F%2Fa.example.com%0d%0aX%3A%20y",
    ] {
        let asked = http
            .get(app.url(&format!("/api/view-frame?{odd}")))
            .bearer_auth(&person.key);
        assert_eq!(asked.send().await.unwrap().status(), 400, "{odd}");
    }
    let nobody = http.get(app.url("/api/view-frame")).send().await.unwrap();
    assert_eq!(nobody.status(), 401);
}

/// Asserts S0.52.
#[tokio::test]
async fn a_view_of_somebody_elses_session_is_nobodys() {
    let app = TestApp::start().await;
    let server = charts().await;
    let (person, mut socket) = session_with(&app, &server).await;
    run_chart(&app, &mut socket).await;
    let path = format!("/api/sessions/{}/views", socket.session());
    let which = json!({ "server": "charts", "uri": URI });
    for stranger in [
        app.person_with("acme", Role::Owner).await,
        app.person_with("house", Role::Owner).await,
        app.person_with("house", Role::Member).await,
        app.person_with("house", Role::Viewer).await,
    ] {
        let api = Api::new(&app, &stranger);
        let (status, refused) = api.refused(Method::POST, &path, &which).await;
        assert_eq!(status, 404, "{refused}");
    }
    assert!(server.asked("resources/read").is_empty());
    // What a rule denies is denied to the owner too.
    let owner = Api::new(&app, &person);
    let rule = json!({ "effect": "deny", "scope": "person", "server": "charts" });
    let (status, made) = owner.ask(Method::POST, "/api/rules", &rule).await;
    assert!(status < 300, "{made}");
    let (status, refused) = owner.refused(Method::POST, &path, &which).await;
    assert_eq!(status, 403, "{refused}");
    assert!(server.asked("resources/read").is_empty());
}

/// Asserts S0.52: nobody waits for ever, and what went wrong is said.
#[tokio::test]
async fn a_server_that_gives_no_view_in_time_or_is_gone_is_told_so() {
    let app = TestApp::start().await;
    let server = charts().await;
    let person = operator(&app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(&app, &person);
    api.add("charts", json!({ "url": server.url, "timeout": 1 }))
        .await;
    wait_for_health(&mut socket, "charts", "healthy").await;
    run_chart(&app, &mut socket).await;
    let path = format!("/api/sessions/{}/views", socket.session());
    let which = |uri: &str| json!({ "server": "charts", "uri": uri });
    let silent = which("ui://chart/silent.html");
    let (status, refused) = api.refused(Method::POST, &path, &silent).await;
    assert_eq!(status, 502, "{refused}");
    assert!(
        refused.to_string().contains("no answer within 1 s"),
        "{refused}"
    );
    // It is asked again when somebody asks again.
    let (status, view) = api.ask(Method::POST, &path, &which(URI)).await;
    assert_eq!(status, 200, "{view}");
    drop(server);
    let (status, refused) = api.refused(Method::POST, &path, &which(URI)).await;
    assert_eq!(status, 502, "{refused}");
    assert!(refused.to_string().contains("charts"), "{refused}");
}
