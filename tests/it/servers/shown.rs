//! What a card showed is what runs: whatever a decision binds is changed between card and decision, and
//! every way of deciding is tried.

use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use reqwest::Method;
use secrecy::SecretString;
use sepal::config::ApprovalWay;
use sepal::domain::Caller;
use sepal::gateway::mcp::{Door, DoorReply, Ending, News, Question, Verdict};
use sepal::session::Call;
use sepal::tenancy::Credential;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::{Api, operator, tool};
use crate::model_stub::Reply;
use crate::support::{DEADLINE, Person, TestApp, TestSocket};

/// What the stand-in offers at every address, and what it was asked to run.
#[derive(Default)]
struct Offered {
    tools: Mutex<Vec<Value>>,
    ran: Mutex<Vec<Value>>,
}

/// A tool server over plain HTTP.
struct Shop {
    url: String,
    offered: Arc<Offered>,
    _server: AbortOnDropHandle<()>,
}

async fn answer(
    State(offered): State<Arc<Offered>>,
    Path(_name): Path<String>,
    Json(asked): Json<Value>,
) -> Response {
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "shop", "version": "1" },
        }),
        "tools/list" => json!({ "tools": *offered.tools.lock().unwrap() }),
        "tools/call" => {
            let mut ran = offered.ran.lock().unwrap();
            ran.push(asked["params"].clone());
            json!({ "content": [{ "type": "text", "text": "ran" }] })
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).into_response()
}

impl Shop {
    async fn start() -> Self {
        let offered = Arc::<Offered>::default();
        let router = Router::new()
            .route("/{name}", post(answer))
            .with_state(Arc::clone(&offered));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving =
            TaskTracker::new().spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            offered,
            _server: AbortOnDropHandle::new(serving),
        }
    }

    fn offer(&self, tools: &[(&str, &str)]) {
        let tools = tools.iter().map(|(name, says)| tool(name, says));
        let tools = tools.map(|tool| serde_json::from_str(&tool).unwrap());
        *self.offered.tools.lock().unwrap() = tools.collect();
    }

    fn ran(&self) -> Vec<Value> {
        self.offered.ran.lock().unwrap().clone()
    }

    fn config(&self, name: &str) -> Value {
        json!({ "url": format!("{}/{name}", self.url) })
    }
}

/// Lists what a server offers now.
async fn look(api: &Api<'_>, server: &str) {
    let path = format!("/api/mcp/{server}/test");
    let (status, tried) = api.ask(Method::POST, &path, &Value::Null).await;
    assert_eq!((status, &tried["ok"]), (200, &json!(true)), "{tried}");
}

/// What is changed between card and decision: each part of the digest but the content of the sandbox's
/// image, which `retagged` changes in the same ways.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    /// Another server has the bare name.
    Server,
    /// The same, and its tool is denied.
    DeniedServer,
    /// Another tool of the server has the name.
    Tool,
    Definition,
    /// Where the server is reached, or with what.
    Entry,
}

const PARTS: [Part; 5] = [
    Part::Server,
    Part::DeniedServer,
    Part::Tool,
    Part::Definition,
    Part::Entry,
];

/// How it is decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Way {
    AsItIs,
    Edited,
    Batch,
    Rest,
    RestEdited,
    RestBatch,
}

pub(super) const WAYS: [Way; 6] = [
    Way::AsItIs,
    Way::Edited,
    Way::Batch,
    Way::Rest,
    Way::RestEdited,
    Way::RestBatch,
];

/// One server with one tool, whose names no other case has.
struct Case<'a> {
    api: &'a Api<'a>,
    shop: &'a Shop,
    n: usize,
}

impl Case<'_> {
    fn server(&self) -> String {
        format!("s{}", self.n)
    }

    fn tool(&self) -> String {
        format!("t{}", self.n)
    }

    async fn begin(&self) {
        let own = self.n.to_string();
        self.shop
            .offer(&[(&self.tool(), "Reads"), (&own, "Deletes")]);
        self.api
            .add(&self.server(), self.shop.config(&self.server()))
            .await;
        look(self.api, &self.server()).await;
    }

    async fn change(&self, part: Part) {
        let (api, server) = (self.api, self.server());
        let path = format!("/api/mcp/{server}");
        let change = async |patch: Value| {
            let (status, answer) = api.ask(Method::PATCH, &path, &patch).await;
            assert_eq!(status, 200, "{answer}");
            look(api, &server).await;
        };
        match part {
            Part::Server | Part::DeniedServer => {
                let (status, _) = api.ask(Method::DELETE, &path, &Value::Null).await;
                assert!(status < 300, "{status}");
                let other = format!("o{}", self.n);
                api.add(&other, self.shop.config(&other)).await;
                look(api, &other).await;
                if part == Part::DeniedServer {
                    let path = format!("/api/mcp/{other}/tools/{}", self.tool());
                    let deny = json!({ "effect": "deny" });
                    assert_eq!(api.ask(Method::PUT, &path, &deny).await.0, 200);
                }
            }
            Part::Tool => change(json!({ "toolPrefix": "t" })).await,
            Part::Definition => {
                self.shop.offer(&[(&self.tool(), "Deletes everything")]);
                look(api, &server).await;
            }
            Part::Entry => change(json!({ "headers": { "X-For": "another" } })).await,
        }
    }

    /// Removes what it has made, so that names stay free.
    async fn end(&self) {
        for server in [self.server(), format!("o{}", self.n)] {
            let path = format!("/api/mcp/{server}");
            self.api.ask(Method::DELETE, &path, &Value::Null).await;
        }
    }
}

/// Decides; the refusal's code, if it is refused.
pub(super) async fn decide(
    way: Way,
    card: &Value,
    socket: &mut TestSocket,
    api: &Api<'_>,
) -> Option<String> {
    let mut one = json!({ "callId": card["callId"], "approved": true, "digest": card["digest"] });
    let all = json!({ "callIds": [card["callId"]], "approved": true });
    if matches!(way, Way::Edited | Way::RestEdited) {
        let names = card["args"].as_object().unwrap().keys();
        one["args"] = names
            .map(|name| (name.clone(), json!("otherwise")))
            .collect();
    }
    let path = format!("/api/sessions/{}/approvals", socket.session());
    let answer = match way {
        Way::AsItIs | Way::Edited => socket.ask("tool:approval", &[one]).await,
        Way::Batch => socket.ask("tool:approval_all", &[all]).await,
        Way::Rest | Way::RestEdited => api.ask(Method::POST, &path, &one).await.1,
        Way::RestBatch => api.ask(Method::POST, &path, &all).await.1,
    };
    let code = answer["error"]["code"].as_str().or(answer["code"].as_str());
    code.map(ToOwned::to_owned)
}

#[tokio::test]
async fn whatever_changes_after_the_card_nothing_runs_by_any_decision() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let (api, shop) = (Api::new(&app, &person), Shop::start().await);
    let mut wrong = Vec::new();
    let cases = PARTS.iter().flat_map(|part| WAYS.map(|way| (*part, way)));
    for (n, (part, way)) in cases.enumerate() {
        let case = Case {
            api: &api,
            shop: &shop,
            n,
        };
        case.begin().await;
        app.model.forget_rest();
        app.model
            .will_call(&case.tool(), json!({ "how": "so" }))
            .then_say("Over");
        let mut socket = TestSocket::open(app.address, &person, None).await;
        socket.say("go").await;
        let card = socket.wait_for_approval().await;
        case.change(part).await;
        let refused = decide(way, &card, &mut socket, &api).await;
        let code = if let Some(code) = refused {
            socket.decide(&card, false).await;
            code
        } else {
            let output = socket.wait_for("tool:output").await;
            // The model reads it, and may ask for the tool as it is now.
            let has_changed = output.text().contains("changed since it was approved");
            let code = if has_changed {
                "changed_since_shown"
            } else {
                output.text()
            };
            code.to_owned()
        };
        assert_eq!(socket.wait_for_answer().await, "Over");
        let ran = std::mem::take(&mut *shop.offered.ran.lock().unwrap());
        if code != "changed_since_shown" || !ran.is_empty() {
            wrong.push(format!("{part:?} {way:?}: {code}, ran {ran:?}"));
        }
        case.end().await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Somebody at an MCP client, who says yes after something has changed.
struct SlowDoor<'a> {
    case: &'a Case<'a>,
    part: Part,
}

#[async_trait::async_trait]
impl Door for SlowDoor<'_> {
    async fn decide(&self, _call: &Call) -> DoorReply {
        self.case.change(self.part).await;
        DoorReply::Verdict(Verdict {
            approved: true,
            reason: None,
        })
    }

    async fn report(&self, _news: News<'_>) {}
}

async fn caller(app: &TestApp, person: &Person) -> Caller {
    let key = Credential::ApiKey(SecretString::from(person.key.clone()));
    app.tenancy.authenticate(&key).await.unwrap().caller
}

#[tokio::test]
async fn a_yes_over_mcp_to_what_has_changed_runs_nothing() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let (api, shop) = (Api::new(&app, &person), Shop::start().await);
    let caller = caller(&app, &person).await;
    for (n, part) in PARTS.into_iter().enumerate() {
        let case = Case {
            api: &api,
            shop: &shop,
            n,
        };
        case.begin().await;
        app.model
            .will_call(&case.tool(), json!({ "how": "so" }))
            .then_say("Over");
        let question = Question {
            sessions: &app.sessions,
            caller: &caller,
            ways: &[ApprovalWay::Elicit],
            has_page: false,
            limit: None,
            stop: CancellationToken::new(),
        };
        let door = SlowDoor { case: &case, part };
        let (_, ending) = question.ask("go".to_owned(), &door).await.unwrap();
        assert_eq!(ending, Ending::Answered("Over".to_owned()), "{part:?}");
        assert_eq!(shop.ran(), Vec::<Value>::new(), "{part:?}");
        let told = format!("{:?}", app.model.requests().pop().unwrap());
        assert!(told.contains("changed since"), "{part:?}: {told}");
        case.end().await;
    }
}

/// Two calls of two tools; the first is approved.
async fn first_of_two(app: &TestApp, socket: &mut TestSocket, tools: [&str; 2]) -> [Value; 2] {
    let calls = tools.map(|tool| (tool, json!({ "how": "so" })));
    app.model.will(Reply::answer("", &calls)).then_say("Over");
    socket.say("go").await;
    let first = socket.wait_for_approval().await;
    socket.approve(&first).await;
    let second = socket.wait_for_approval().await;
    [first, second]
}

fn is_rejected(said: &crate::support::Said, card: &Value) -> bool {
    said.name == "tool:output"
        && said.rest()["callId"] == card["callId"]
        && said.rest()["status"] == "rejected"
}

#[tokio::test]
async fn what_is_denied_neither_waits_nor_starts_with_its_siblings() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let (api, shop) = (Api::new(&app, &person), Shop::start().await);
    shop.offer(&[("one", "Reads"), ("two", "Reads")]);
    api.add("aux", shop.config("aux")).await;
    look(&api, "aux").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let [first, second] = first_of_two(&app, &mut socket, ["one", "two"]).await;
    let deny = json!({ "effect": "deny" });
    let (status, _) = api.ask(Method::PUT, "/api/mcp/aux/tools/one", &deny).await;
    assert_eq!(status, 200);
    // Nobody decides anything: the rule does.
    let denied = tokio::time::timeout(DEADLINE, async {
        socket.wait_where(|said| is_rejected(said, &first)).await
    });
    assert!(denied.await.unwrap().text().contains("one of aux"));
    socket.approve(&second).await;
    assert_eq!(socket.wait_for_answer().await, "Over");
    let ran = shop.ran();
    assert_eq!(ran.len(), 1, "{ran:?}");
    assert_eq!(ran[0]["name"], "two");

    // A card that waits, and whose session nobody has told anything meanwhile.
    app.model
        .will_call("two", json!({ "how": "so" }))
        .then_say("Denied");
    socket.say("again").await;
    let waiting = socket.wait_for_approval().await;
    let (status, _) = api.ask(Method::PUT, "/api/mcp/aux/tools/two", &deny).await;
    assert_eq!(status, 200);
    socket.wait_where(|said| is_rejected(said, &waiting)).await;
    assert_eq!(socket.wait_for_answer().await, "Denied");
    assert_eq!(shop.ran().len(), 1);
}

#[tokio::test]
async fn a_changed_definition_is_said_yes_to_only_by_whoever_names_it() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let (api, shop) = (Api::new(&app, &person), Shop::start().await);
    let path = "/api/mcp/aux/tools/one";
    let now = async || api.get("/api/mcp/aux/tools").await["items"][0].clone();
    shop.offer(&[("one", "Reads")]);
    api.add("aux", shop.config("aux")).await;
    look(&api, "aux").await;
    let first = now().await;
    // What has not changed is decided about with its hash or without.
    for known in [
        json!({ "effect": "allow" }),
        json!({ "effect": "allow", "hash": first["hash"] }),
    ] {
        assert_eq!(api.ask(Method::PUT, path, &known).await.0, 200);
    }
    shop.offer(&[("one", "Deletes everything")]);
    look(&api, "aux").await;
    let second = now().await;
    assert_ne!(first["hash"], second["hash"]);
    for unseen in [
        json!({ "effect": "allow" }),
        json!({ "effect": "ask" }),
        json!({ "effect": "allow", "enabled": true }),
        json!({ "effect": "allow", "hash": first["hash"] }),
        json!({ "effect": "deny", "hash": first["hash"] }),
        json!({ "enabled": true, "hash": first["hash"] }),
    ] {
        let (status, refused) = api.ask(Method::PUT, path, &unseen).await;
        assert_eq!(
            (status, &refused["code"]),
            (409, &json!("changed_since_shown")),
            "{unseen}"
        );
        assert_eq!(refused["hash"], second["hash"]);
        assert_eq!(refused["tool"]["description"], "Deletes everything");
    }
    // What only takes away is taken, and says yes to nothing.
    for mere in [
        json!({ "enabled": false }),
        json!({ "enabled": true }),
        json!({ "enabled": true, "hash": second["hash"] }),
        json!({ "effect": "deny" }),
    ] {
        let (status, tool) = api.ask(Method::PUT, path, &mere).await;
        assert_eq!(status, 200, "{tool}");
        assert!(tool["drift"]["since"].is_string(), "{mere}: {tool}");
    }
    let yes = json!({ "effect": "allow", "hash": second["hash"] });
    let (status, tool) = api.ask(Method::PUT, path, &yes).await;
    assert_eq!((status, tool.get("drift")), (200, None), "{tool}");
}
