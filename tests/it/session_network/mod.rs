//! What a session's own sandbox may reach by a rule of the session: who is told, who may give it, and when
//! it ends.

mod access;

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::replicas::Pair;
use crate::rules::given;
use crate::sandboxes::egress::site::Site;
use crate::servers::Api;
use crate::support::{Person, Server, TestApp, TestSocket, docker, person, until};

const ON_REQUEST: &str = "SPL_SANDBOX_NETWORK_ON_REQUEST";

/// Asks the proxy for a page: the image has bash and nothing better.
const GET: &str = r#"get() { exec 9<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'GET http://%s HTTP/1.0\r\n\r\n' "$1" >&9; cat <&9; exec 9>&-; };"#;

/// A call of that command waits; its card.
async fn asked(model: &ModelStub, socket: &mut TestSocket, command: &str) -> Value {
    let command = json!({ "command": format!("{GET} {command}") });
    model.will_call("execute_command", command).then_say("Done");
    socket.say("go").await;
    socket.wait_for_approval().await
}

/// What the call of that card gave.
async fn result(socket: &mut TestSocket, card: &Value) -> String {
    socket.approve(card).await;
    let output = socket.wait_for("tool:output").await.text().to_owned();
    assert_eq!(socket.wait_for_answer().await, "Done");
    output
}

async fn ran(model: &ModelStub, socket: &mut TestSocket, command: &str) -> String {
    let card = asked(model, socket, command).await;
    result(socket, &card).await
}

/// The newest line about a refused host: it comes before the end of its call.
fn refused_host(socket: &TestSocket) -> Value {
    let told = socket.log.iter().rev();
    let mut told = told.filter(|said| said.name == "session:changed");
    let found = told.find_map(|said| said.args[0].get("hostRefused").cloned());
    found.unwrap_or_else(|| panic!("{:#?}", socket.log))
}

fn opens(session: &str, hosts: &[&str]) -> Value {
    json!({ "effect": "allow", "scope": "session", "session": session, "network": hosts })
}

async fn gives(api: &Api<'_>, rule: &Value) -> (u16, Value) {
    api.ask(Method::POST, "/api/rules", rule).await
}

async fn takes_back(api: &Api<'_>, session: &str, rule: &Value) -> u16 {
    let id = rule["rule"]["id"].as_str().unwrap();
    let path = format!("/api/rules/{id}?session={session}");
    api.ask(Method::DELETE, &path, &Value::Null).await.0
}

/// Somebody who may act, and their session.
async fn member(app: &TestApp) -> (Person, TestSocket) {
    let person = app.person_with("acme", Role::Member).await;
    let socket = TestSocket::open(app.address, &person, None).await;
    (person, socket)
}

async fn with_sandbox(on_request: &str) -> TestApp {
    let own = [("SPL_SANDBOX", "bubblewrap"), (ON_REQUEST, on_request)];
    TestApp::start_with(&own).await
}

#[tokio::test]
async fn a_refused_host_is_told_and_opened_by_a_rule() {
    let site = Site::start().await;
    let app = with_sandbox(&format!("localhost:{}", site.port)).await;
    a_host_is_opened_and_closed(app, site).await;
}

#[tokio::test]
async fn a_refused_host_is_told_and_opened_by_a_rule_with_docker() {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let (address, image) = (docker::address(), docker::image());
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &address),
        ("SPL_SANDBOX_IMAGE", &image),
        (ON_REQUEST, &host),
    ])
    .await;
    a_host_is_opened_and_closed(app, site).await;
}

async fn a_host_is_opened_and_closed(app: TestApp, site: Site) {
    let host = format!("localhost:{}", site.port);
    let (ana, mut socket) = member(&app).await;
    let api = Api::new(&app, &ana);
    is_refused_and_told(&app, &mut socket, site.port).await;
    let session = socket.session();
    let rule = given(&api, &opens(&session, &[&host])).await;
    let sentence = format!("For the rest of this session, let commands reach `{host}`.");
    assert_eq!(rule["rule"]["sentence"], sentence);
    is_listed_there_alone(&api, &session, &host).await;
    is_reached(&app, &mut socket, &host).await;
    assert_eq!(site.visits(), 1);

    // Another session of the same person has nothing of it.
    let mut other = TestSocket::open(app.address, &ana, None).await;
    let text = ran(&app.model, &mut other, &format!("get {host}/")).await;
    assert!(text.contains("this session may not reach"), "{text}");

    assert_eq!(takes_back(&api, &session, &rule).await, 204);
    let card = asked(&app.model, &mut socket, &format!("get {host}/")).await;
    assert_eq!(card["runsIn"]["hosts"], json!([]));
    let text = result(&mut socket, &card).await;
    assert!(text.contains("this session may not reach"), "{text}");
    assert_eq!(site.visits(), 1);
    app.stop().await;
}

/// The program, the model and the person hear of it.
async fn is_refused_and_told(app: &TestApp, socket: &mut TestSocket, port: u16) {
    let host = format!("localhost:{port}");
    let get = format!("touch /tmp/kept; get {host}/; get {host}/");
    let card = asked(&app.model, socket, &get).await;
    let sealed = json!({ "kind": "sandbox", "hosts": [] });
    assert_eq!(card["runsIn"], sealed);
    let text = result(socket, &card).await;
    let words = format!("this session may not reach {host}. It may reach no host yet.");
    assert_eq!(text.matches(&words).count(), 2, "{text}");
    let told = format!("--- refused by the sandbox's proxy ---\n{host}: ");
    assert!(text.contains(&told), "{text}");
    let line = refused_host(socket);
    let expected = json!({
        "host": "localhost", "port": port, "entry": host, "onRequest": true, "reason": line["reason"],
    });
    assert_eq!(line, expected);
}

async fn is_listed_there_alone(api: &Api<'_>, session: &str, host: &str) {
    let is_listed = |rules: &Value| {
        let mut rules = rules["rules"].as_array().unwrap().iter();
        rules.any(|it| it["network"] == json!([host]))
    };
    let listed = api.get(&format!("/api/rules?session={session}")).await;
    assert!(is_listed(&listed), "{listed}");
    assert!(!is_listed(&api.get("/api/rules").await));
}

/// The same sandbox goes on, and a command that is asked for now was shown with the host.
async fn is_reached(app: &TestApp, socket: &mut TestSocket, host: &str) {
    let get = format!("ls /tmp/kept; get {host}/");
    let card = asked(&app.model, socket, &get).await;
    assert_eq!(card["runsIn"]["hosts"], json!([host]));
    let dry = json!({ "callId": card["callId"], "digest": card["digest"] });
    let ack = socket.ask("tool:dry_run", &[dry]).await;
    assert_eq!(ack["ok"], false, "it would reach the outside: {ack}");
    let text = result(socket, &card).await;
    let has_both = text.contains("/tmp/kept") && text.contains("I am /");
    assert!(has_both, "{text}");
    let requests = app.model.requests();
    let last = requests.last().unwrap().body.to_string();
    let told = "allowed commands of this session to reach";
    assert!(last.contains(told), "the model hears of it: {last}");
}

#[tokio::test]
async fn what_is_open_is_closed_when_its_rule_is_taken_back() {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let app = with_sandbox(&host).await;
    let (ana, mut socket) = member(&app).await;
    let (api, session) = (Api::new(&app, &ana), socket.session());
    // A session that nobody has told anything has no rules.
    ran(&app.model, &mut socket, "true").await;
    let rule = given(&api, &opens(&session, &[&host])).await;
    let endless = format!("get {host}/endless | wc -c");
    let card = asked(&app.model, &mut socket, &endless).await;
    socket.approve(&card).await;
    let begun = socket.wait_for("tool:started").await;
    assert_eq!(begun.args[0]["callId"], card["callId"]);
    let visits = std::sync::Arc::new(site);
    let seen = std::sync::Arc::clone(&visits);
    until("it downloads", move || seen.visits() == 1).await;
    assert_eq!(takes_back(&api, &session, &rule).await, 204);
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    socket.wait_for_answer().await;
    drop(socket);
    app.stop().await;
}

/// What was shown is what runs: a card that says "no network" is about a command without one.
#[tokio::test]
async fn a_command_reaches_only_what_it_was_shown_with() {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let app = with_sandbox(&host).await;
    let (ana, mut socket) = member(&app).await;
    let (api, session) = (Api::new(&app, &ana), socket.session());
    let card = asked(&app.model, &mut socket, &format!("get {host}/")).await;
    let rule = given(&api, &opens(&session, &[&host])).await;
    let text = result(&mut socket, &card).await;
    assert!(
        text.contains("it was allowed after the running command was shown"),
        "{text}"
    );
    assert_eq!(site.visits(), 0);
    let card = asked(&app.model, &mut socket, &format!("get {host}/")).await;
    assert_eq!(takes_back(&api, &session, &rule).await, 204);
    let text = result(&mut socket, &card).await;
    assert!(text.contains("this session may not reach"), "{text}");
    assert_eq!(site.visits(), 0);
    app.stop().await;
}

#[tokio::test]
async fn a_rule_given_at_one_gateway_opens_the_host_at_the_other() {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap"), (ON_REQUEST, &host)]).await;
    let (ana, mut a, b) = pair.sockets("network").await;
    let model = &pair.a.model;
    let get = format!("get {host}/");
    ran(model, &mut a, &get).await;
    let (api, session) = (Api::new(&pair.b, &ana), b.session());
    let rule = given(&api, &opens(&session, &[&host])).await;
    let text = ran(model, &mut a, &get).await;
    assert!(text.contains("I am /"), "{text}");
    assert_eq!(takes_back(&api, &session, &rule).await, 204);
    let text = ran(model, &mut a, &get).await;
    assert!(text.contains("this session may not reach"), "{text}");
    assert_eq!(site.visits(), 1);
}

#[tokio::test]
async fn rules_and_lines_about_hosts_survive_a_kill() {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let env = [("SPL_SANDBOX", "bubblewrap"), (ON_REQUEST, host.as_str())];
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &[]);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    let get = format!("get {host}/");
    ran(&model, &mut socket, &get).await;
    let session = socket.session();
    let url = format!("http://{}/api/rules", server.address);
    let rule = opens(&session, &[&host]);
    let request = TestApp::http().post(&url).bearer_auth(&ana.key).json(&rule);
    assert_eq!(request.send().await.unwrap().status(), 201);
    server.kill();

    let server = Server::start_with(&data, &model, &env);
    let mut again = TestSocket::open(server.address, &ana, Some(&session)).await;
    let shown = again.ready["state"]["transcript"].to_string();
    assert!(shown.contains("hostRefused"), "{shown}");
    let text = ran(&model, &mut again, &get).await;
    assert!(text.contains("I am /"), "{text}");
    assert_eq!(site.visits(), 1);
}
