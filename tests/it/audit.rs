//! The audit, on the whole app: who did what, what was decided in sessions, signatures, exports and the check.

use std::path::Path;

use reqwest::Method;
use sepal::agent::{ExportLine, check_lines};
use sepal::domain::Role;
use sepal::store::audit::PublicKey;
use serde_json::{Value, json};

use crate::model_stub::ModelStub;
use crate::replicas::Pair;
use crate::rest::{Answer, Client};
use crate::support::postgres::new_database;
use crate::support::{
    DEADLINE, RedisServer, Relayed, Server, TakenMail, TestApp, TestSocket, colleague_with, person,
    sepal,
};

async fn acts(client: &Client, query: &str) -> Vec<Value> {
    let page = client.get(&format!("/api/audit?{query}")).await.ok(200);
    page["items"].as_array().unwrap().clone()
}

fn names(items: &[Value]) -> Vec<&str> {
    items
        .iter()
        .map(|item| item["act"].as_str().unwrap())
        .collect()
}

async fn public_key(client: &Client) -> PublicKey {
    let key = client.get("/api/audit/key").await.ok(200);
    let read = PublicKey::parse(key["pem"].as_str().unwrap()).unwrap();
    assert_eq!(read.to_string(), key["key"]);
    read
}

async fn export(client: &Client, query: &str) -> String {
    let answer = client.request(Method::GET, &format!("/api/audit/export?{query}"));
    let answer = answer.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.text().await.unwrap()
}

#[tokio::test]
async fn an_act_is_told_with_its_person_and_door_and_no_secret() {
    let app = TestApp::start().await;
    let ann = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ann.key);
    let hook = json!({ "kind": "openai-compatible", "scope": "tenant", "models": ["m"],
        "baseUrl": "https://models.example/v1", "apiKey": "canary-of-a-provider" });
    client.put("/api/providers/mine", hook).await.ok(201);
    let items = acts(&client, "act=provider").await;
    assert_eq!(names(&items), ["provider.set"]);
    let record = &items[0]["record"];
    assert_eq!(record["on"], json!({ "id": "mine", "kind": "provider" }));
    assert_eq!(
        record["door"],
        json!({ "address": "127.0.0.1", "name": "http" })
    );
    assert_eq!(record["details"]["key"], json!(true));
    assert_eq!(items[0]["person"]["id"], record["by"]["id"]);
    assert!(
        record["by"]["credential"]
            .as_str()
            .unwrap()
            .starts_with("key_"),
        "{record}"
    );
    for format in ["jsonl", "csv", "ocsf", "cef"] {
        let text = export(&client, &format!("format={format}")).await;
        assert!(
            text.contains("provider.set") && !text.contains("canary"),
            "{text}"
        );
    }
    let told = acts(&client, "act=audit.exported").await;
    assert_eq!(told.len(), 4);
    app.stop().await;
}

#[tokio::test]
async fn strangers_who_guess_leave_few_records() {
    let app = TestApp::start().await;
    let ann = app.person_with("acme", Role::Owner).await;
    let nobody = Client::nobody(&app);
    for _ in 0..8 {
        let guess = json!({ "tenant": "acme", "name": "nobody", "password": "a-long-password" });
        nobody.post("/api/auth/login", guess).await.ok(401);
    }
    let client = Client::with_key(&app, &ann.key);
    let items = acts(&client, "act=sign_in").await;
    assert_eq!(names(&items), ["sign_in.failed"]);
    assert_eq!(items[0]["record"]["by"], json!({ "kind": "stranger" }));
    assert_eq!(items[0]["record"]["on"]["id"], "");
    app.stop().await;
}

#[tokio::test]
async fn what_a_role_may_not_do_is_told_once() {
    let app = TestApp::start().await;
    let ann = app.person_with("acme", Role::Owner).await;
    let bob = app.person_with("acme", Role::Viewer).await;
    let bobs = Client::with_key(&app, &bob.key);
    for _ in 0..3 {
        bobs.put("/api/sharing", json!({ "linksAllowed": true }))
            .await
            .ok(403);
    }
    bobs.get("/api/audit").await.ok(403);
    let client = Client::with_key(&app, &ann.key);
    let items = acts(&client, "act=request.refused").await;
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(items[0]["record"]["on"]["id"], "PUT /api/sharing");
    app.stop().await;
}

#[tokio::test]
async fn decisions_are_found_by_person_session_tool_verdict_and_time() {
    let app = TestApp::with_sandbox().await;
    let ann = app.person_with("acme", Role::Owner).await;
    let bob = app.person_with("acme", Role::Member).await;
    let client = Client::with_key(&app, &ann.key);
    app.model.will_call("list_files", json!({}));
    app.model.will_say("Done");
    let mut socket = TestSocket::open(app.address, &bob, None).await;
    socket.say("list what is there").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    socket.wait_for_answer().await;
    let session = socket.session();
    let items = acts(&client, &format!("session={session}&verdict=approved")).await;
    assert_eq!(names(&items), ["call.decided"]);
    let decided = &items[0];
    assert_eq!(decided["record"]["call"]["tool"], "list_files");
    let person = decided["person"]["id"].as_str().unwrap();
    for (query, is_found) in [
        (format!("person={person}"), true),
        ("tool=list_files&act=call".to_owned(), true),
        ("tool=other".to_owned(), false),
        ("verdict=rejected".to_owned(), false),
        (
            "act=call.decided&from=2020-01-01T00:00:00Z".to_owned(),
            true,
        ),
        ("act=call.decided&to=2020-01-01T00:00:00Z".to_owned(), false),
    ] {
        let items = acts(&client, &query).await;
        assert_eq!(
            names(&items).contains(&"call.decided"),
            is_found,
            "{query}: {items:?}"
        );
    }
    // Nothing of what was said.
    let all = acts(&client, "limit=500").await;
    assert!(!json!(all).to_string().contains("list what is there"));
    // Members see what they did, and nobody sees another tenant's.
    let bobs = Client::with_key(&app, &bob.key);
    let own = acts(&bobs, "limit=500").await;
    assert!(
        own.iter().all(|item| item["person"]["id"] == person),
        "{own:?}"
    );
    let other = app.person_with("other", Role::Owner).await;
    let others = Client::with_key(&app, &other.key);
    let found = acts(&others, &format!("session={session}")).await;
    assert_eq!(found.len(), 0);
    bobs.get("/api/audit?scope=installation").await.ok(403);
    bobs.get("/api/audit/state").await.ok(403);
    app.stop().await;
}

#[tokio::test]
async fn pages_lead_through_everything_once() {
    let app = TestApp::start().await;
    let ann = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ann.key);
    for n in 0..7 {
        let tool = format!("t{n}");
        let rule = json!({ "effect": "ask", "scope": "tenant", "server": "sandbox", "tool": tool });
        client.post("/api/rules", rule).await.ok(201);
    }
    let all = acts(&client, "limit=500").await;
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client
            .get(&format!("/api/audit?limit=2&cursor={cursor}"))
            .await
            .ok(200);
        paged.extend(page["items"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(paged, all);
    for wrong in [
        "limit=0",
        "cursor=x",
        "from=today",
        "scope=world",
        "person=ann",
    ] {
        let answer: Answer = client.get(&format!("/api/audit?{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    app.stop().await;
}

/// The export of a stopped app, whose end is signed, is checked with the public key alone.
#[tokio::test]
async fn an_export_is_checked_with_the_public_key_alone() {
    let app = TestApp::start().await;
    let ann = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ann.key);
    let rule = json!({ "effect": "ask", "scope": "tenant", "server": "sandbox", "tool": "x" });
    client.post("/api/rules", rule).await.ok(201);
    let key = public_key(&client).await;
    app.audit.seal().await.unwrap();
    let text = export(&client, "format=jsonl").await;
    let lines = || text.lines().map(|line| ExportLine::parse(line).unwrap());
    let checks = check_lines(lines(), &[key]);
    assert_eq!(checks.len(), 1);
    assert!(
        checks[0].is_whole() && checks[0].report.proven.is_some(),
        "{checks:?}"
    );
    let records = checks[0].report.records;
    for dropped in 0..usize::try_from(records).unwrap() - 1 {
        let mut record = 0;
        let rest = lines().filter(|line| {
            let is_record = matches!(line, ExportLine::Record(..));
            record += usize::from(is_record);
            !(is_record && record == dropped + 1)
        });
        assert!(
            !check_lines(rest, &[key])[0].is_whole(),
            "without {dropped}"
        );
    }
    let verified = client.post("/api/audit/verify", json!({})).await.ok(200);
    assert_eq!(verified["ok"], json!(true), "{verified}");
    let state = client.get("/api/audit/state").await.ok(200);
    assert_eq!(state["sealed"]["key"], json!(key.to_string()));
    app.stop().await;
}

/// Signatures of the former key count once the settings name it.
#[tokio::test]
async fn a_chain_is_verified_after_a_change_of_its_key() {
    let [a, b] = ["ab", "cd"].map(|digits| digits.repeat(32));
    let none = ("SPL_SANDBOX", "none");
    let app = TestApp::start_with(&[none, ("SPL_AUDIT_KEY", &a)]).await;
    let ann = app.person_with("acme", Role::Owner).await;
    let former = public_key(&Client::with_key(&app, &ann.key)).await;
    app.audit.seal().await.unwrap();
    let app = app.restart_with(&[none, ("SPL_AUDIT_KEY", &b)]).await;
    let client = Client::with_key(&app, &ann.key);
    assert_ne!(public_key(&client).await, former);
    let sharing = json!({ "linksAllowed": true });
    client.put("/api/sharing", sharing).await.ok(200);
    app.audit.seal().await.unwrap();
    let verified = client.post("/api/audit/verify", json!({})).await.ok(200);
    assert_eq!(verified["ok"], json!(false), "{verified}");
    let detail = verified["problem"]["detail"].as_str().unwrap();
    for part in [former.to_string().as_str(), "`audit.trusted_keys`"] {
        assert!(detail.contains(part), "{detail}");
    }
    let last = verified["provenRecord"].clone();
    let file = app.folder.path().join("former.pem");
    std::fs::write(&file, former.to_pem()).unwrap();
    let mut app = app;
    for named in [
        former.to_string(),
        former.to_pem(),
        file.to_str().unwrap().to_owned(),
    ] {
        let env = [
            none,
            ("SPL_AUDIT_KEY", &b),
            ("SPL_AUDIT_TRUSTED_KEYS", &named),
        ];
        app = app.restart_with(&env).await;
        let client = Client::with_key(&app, &ann.key);
        let verified = client.post("/api/audit/verify", json!({})).await.ok(200);
        assert_eq!(verified["ok"], json!(true), "{verified}");
        assert!(
            verified["provenRecord"].as_i64() >= last.as_i64(),
            "{verified}"
        );
    }
    app.stop().await;
}

/// Somebody outside who takes what is posted, or refuses it at first.
async fn receiver(refusals: usize) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (told, heard) = tokio::sync::mpsc::unbounded_channel();
    let refused = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let take = move |body: String| {
        let is_refused = refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < refusals;
        if !is_refused {
            let _ = told.send(body);
        }
        std::future::ready(if is_refused {
            axum::http::StatusCode::SERVICE_UNAVAILABLE
        } else {
            axum::http::StatusCode::OK
        })
    };
    let router = axum::Router::new().route("/", axum::routing::post(take));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test's own server")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}/"), heard)
}

/// A time-stamp service would answer here; this one does not, and holds nothing up.
#[tokio::test]
async fn signatures_are_kept_outside_and_what_fails_is_told() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("seals");
    let (url, mut posted) = receiver(0).await;
    let app = TestApp::start_with(&[
        ("SPL_AUDIT_ANCHOR_FILE", file.to_str().unwrap()),
        ("SPL_AUDIT_ANCHOR_WEBHOOK", &url),
        ("SPL_AUDIT_ANCHOR_TIMESTAMP", &url),
        ("SPL_AUDIT_KEY", &"ab".repeat(32)),
    ])
    .await;
    let ann = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ann.key);
    app.audit.seal().await.unwrap();
    // A pass ends for an anchor at the first failure, and there are other signatures.
    let failing = async {
        loop {
            app.audit.anchor().await;
            let state = client.get("/api/audit/state").await.ok(200);
            let mut anchors = state["anchors"].as_array().unwrap().iter();
            if anchors.any(|one| one["anchor"] == "timestamp" && one["error"].is_string()) {
                return state;
            }
        }
    };
    let state = tokio::time::timeout(DEADLINE, failing).await.unwrap();
    let sealed = &state["sealed"];
    let line = json!({ "at": state_at(sealed), "key": sealed["key"], "link": sealed["link"],
        "n": sealed["n"], "signature": sealed["signature"], "tenant": ann.tenant.as_str() })
    .to_string();
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.lines().any(|kept| kept == line), "{line} in {kept}");
    let mut found = false;
    while let Ok(body) = posted.try_recv() {
        found |= body == line;
    }
    assert!(found, "{line} was posted");
    let of = |name: &str| {
        let anchors = state["anchors"].as_array().unwrap().iter();
        let mut of = anchors.filter(|one| one["anchor"] == name);
        of.next().cloned().unwrap()
    };
    assert!(of("file")["at"].is_string() && of("webhook")["at"].is_string());
    assert_eq!(of("timestamp")["at"], Value::Null);
    assert!(
        of("timestamp")["error"]
            .as_str()
            .unwrap()
            .contains("time-stamp service")
    );
    app.stop().await;
}

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let value = parts.concat();
    let length = u8::try_from(value.len()).unwrap();
    let head = if length < 128 {
        vec![tag, length]
    } else {
        vec![tag, 0x81, length]
    };
    [head, value].concat()
}

/// The answer of a time-stamp service (RFC 3161) to a request for SHA-256 with a nonce, which it checks.
fn time_stamp(request: &[u8]) -> Vec<u8> {
    const SIGNED_DATA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
    const TST_INFO: [u8; 11] = [
        0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04,
    ];
    let (head, rest) = request.split_at(5);
    assert_eq!(head, [0x30, 0x43, 0x02, 0x01, 0x01], "version 1");
    let (imprint, rest) = rest.split_at(51);
    assert_eq!(imprint[..4], [0x30, 0x31, 0x30, 0x0d], "an imprint");
    let (nonce, rest) = rest.split_at(10);
    assert_eq!((nonce[0], rest), (0x02, &[0x01, 0x01, 0xff][..]));
    let policy = der(0x06, &[&[0x2a, 3, 4]]);
    let time = der(0x18, &[b"20261129070000.123Z"]);
    let info = der(
        0x30,
        &[&[2, 1, 1], &policy, imprint, &[2, 1, 7], &time, nonce],
    );
    let octets = der(0xa0, &[&der(0x04, &[&info])]);
    let encapsulated = der(0x30, &[&der(0x06, &[&TST_INFO]), &octets]);
    let signed = der(0x30, &[&[2, 1, 3], &der(0x31, &[]), &encapsulated]);
    let token = der(0x30, &[&der(0x06, &[&SIGNED_DATA]), &der(0xa0, &[&signed])]);
    der(0x30, &[&der(0x30, &[&[2, 1, 0]]), &token])
}

/// A receiver of syslog over TCP: each message that comes, by its length (RFC 6587).
async fn syslog() -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    use tokio::io::AsyncReadExt as _;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (told, heard) = tokio::sync::mpsc::unbounded_channel();
    #[expect(clippy::disallowed_methods, reason = "a test's own server")]
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            let mut rest = text.as_str();
            while let Some((length, frames)) = rest.split_once(' ') {
                let (message, behind) = frames.split_at(length.parse().unwrap());
                let _ = told.send(message.to_owned());
                rest = behind;
            }
        }
    });
    (format!("tcp://{address}"), heard)
}

#[tokio::test]
async fn signatures_are_mailed_and_stamped_and_records_are_logged_elsewhere() {
    let relay = Relayed::start().await;
    let stamp = |body: axum::body::Bytes| std::future::ready(time_stamp(&body));
    let router = axum::Router::new().route("/", axum::routing::post(stamp));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = format!("http://{}/", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "a test's own server")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    let (log, mut logged) = syslog().await;
    let app = TestApp::start_with(&[
        ("SPL_SMTP_URL", &relay.url()),
        ("SPL_SMTP_FROM", "sepal@example.org"),
        ("SPL_AUDIT_ANCHOR_MAIL", "auditor@example.org"),
        ("SPL_AUDIT_ANCHOR_TIMESTAMP", &service),
        ("SPL_AUDIT_SIEM_SYSLOG", &log),
        ("SPL_AUDIT_SIEM_FORMAT", "jsonl"),
    ])
    .await;
    let ann = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ann.key);
    app.audit.seal().await.unwrap();
    app.audit.anchor().await;
    app.audit.pass_on().await;

    let state = client.get("/api/audit/state").await.ok(200);
    let anchors = state["anchors"].as_array().unwrap().iter();
    let has = |name: &str| {
        let mut of = anchors.clone().filter(|one| one["anchor"] == name);
        of.any(|one| one["at"].is_string())
    };
    assert!(has("mail") && has("timestamp"), "{state}");
    let signature = state["sealed"]["signature"].as_str().unwrap();
    // One of the installation, and one of the tenant.
    let mails = relay.wait_for(2).await;
    // Long lines are folded (quoted-printable).
    let says = |mail: &&TakenMail| mail.text.replace("=\r\n", "").contains(signature);
    let mut of_tenant = mails.iter().filter(says);
    assert_eq!(of_tenant.next().unwrap().to, ["auditor@example.org"]);
    assert!(of_tenant.next().is_none(), "{mails:?}");
    let mut messages = Vec::new();
    for item in acts(&client, "limit=500").await {
        let record = item["record"].to_string();
        let has_it = |message: &String| message.contains(&record);
        while !messages.iter().any(has_it) {
            let message = tokio::time::timeout(DEADLINE, logged.recv()).await;
            messages.push(message.unwrap().unwrap());
        }
    }
    assert!(
        messages
            .iter()
            .all(|message| message.starts_with("<110>1 20"))
    );
    app.stop().await;
}

/// The time of a signature, in milliseconds.
fn state_at(sealed: &Value) -> i64 {
    let at: jiff::Timestamp = sealed["at"].as_str().unwrap().parse().unwrap();
    at.as_millisecond()
}

#[tokio::test]
async fn a_receiver_gets_every_record_although_it_was_away_and_another_one_is() {
    let (url, mut posted) = receiver(2).await;
    let app = TestApp::start_with(&[
        ("SPL_AUDIT_SIEM_WEBHOOK", &url),
        // Nobody listens there.
        ("SPL_AUDIT_SIEM_SYSLOG", "tcp://127.0.0.1:1"),
        ("SPL_AUDIT_SIEM_FORMAT", "jsonl"),
    ])
    .await;
    let ann = app.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&app, &ann.key);
    app.model.will_say("Done");
    let mut socket = TestSocket::open(app.address, &ann, None).await;
    socket.say("what is it?").await;
    socket.wait_for_answer().await;
    let all = acts(&client, "limit=500").await;
    assert!(names(&all).contains(&"message.sent"), "{all:?}");
    for _ in 0..8 {
        app.audit.pass_on().await;
    }
    let mut given = String::new();
    while let Ok(body) = posted.try_recv() {
        given.push_str(&body);
    }
    for item in &all {
        let record = item["record"].to_string();
        assert_eq!(given.matches(&record).count(), 1, "{record} in {given}");
    }
    app.stop().await;
}

/// A receiver that takes its time: while it holds one batch of records, no other gateway gives it the same.
#[tokio::test]
async fn of_two_gateways_one_passes_records_on_at_a_time() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let answers = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&answers);
    let take = async move |body: String| {
        told.send(body).unwrap();
        held.acquire().await.unwrap().forget();
    };
    let router = axum::Router::new().route("/", axum::routing::post(take));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "a test's own server")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    let pair = Pair::start_with(&[
        ("SPL_SANDBOX", "none"),
        ("SPL_AUDIT_SIEM_WEBHOOK", &url),
        ("SPL_AUDIT_SIEM_FORMAT", "jsonl"),
    ])
    .await;
    let ann = pair.a.person_with("acme", Role::Owner).await;
    let client = Client::with_key(&pair.a, &ann.key);
    let all = acts(&client, "limit=500").await;
    let (of_a, of_b) = (pair.a.audit.clone(), pair.b.audit.clone());
    let (mut a, mut b) = (Box::pin(of_a.pass_on()), Box::pin(of_b.pass_on()));
    // One of them waits for the answer, and the other one has nothing to do.
    let passing = async {
        let first = tokio::select! { biased; () = &mut a => true, () = &mut b => false };
        answers.add_permits(1_000);
        if first { b.await } else { a.await }
    };
    tokio::time::timeout(DEADLINE, passing).await.unwrap();
    of_a.pass_on().await;
    of_b.pass_on().await;
    let mut given = String::new();
    while let Ok(body) = heard.try_recv() {
        given.push_str(&body);
    }
    for item in &all {
        let record = item["record"].to_string();
        assert_eq!(given.matches(&record).count(), 1, "{record} in {given}");
    }
    pair.a.stop().await;
    pair.b.stop().await;
}

/// Runs `sepal` with arguments beside a server, and returns whether it succeeded, its output and its errors.
fn beside_server(data: &Path, env: &[(&str, &str)], args: &[&str]) -> (bool, String, String) {
    let output = sepal(data)
        .envs(env.iter().copied())
        .args(args)
        .output()
        .unwrap();
    let [wrote, failed] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), wrote, failed)
}

#[tokio::test]
async fn what_was_acknowledged_is_in_the_chain_after_a_kill() {
    the_chain_survives_kills(None).await;
}

#[tokio::test]
async fn what_two_gateways_acknowledged_is_in_the_chain_after_kills() {
    let database = new_database().await;
    let redis = RedisServer::start();
    the_chain_survives_kills(Some((&database, &redis.url()))).await;
}

/// Two people change things at once, at the same gateway or at one each, and a gateway is killed meanwhile.
async fn the_chain_survives_kills(shared: Option<(&str, &str)>) {
    let mut env = vec![
        ("SPL_SANDBOX", "none"),
        ("SPL_SECRET_KEY", "a key of thirty-two characters or more"),
    ];
    if let Some((database, redis)) = shared {
        env.extend([("DATABASE_URL", database), ("SPL_REDIS_URL", redis)]);
    }
    let folder = tempfile::tempdir().unwrap();
    let gateways = if shared.is_some() { 2 } else { 1 };
    let model = ModelStub::start().await;
    let start = || -> Vec<Server> {
        let data = (0..gateways).map(|gateway| folder.path().join(format!("data-{gateway}")));
        data.map(|data| Server::start_with(&data, &model, &env))
            .collect()
    };
    let mut servers = start();
    let data = folder.path().join("data-0");
    person(&data, &env);
    let people = ["ben", "cleo"].map(|name| colleague_with(&data, &env, name, "owner"));
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let work = people.iter().enumerate().map(|(at, person)| {
            let address = servers[at % servers.len()].address;
            let client = Client::at(address, &person.key);
            let told = told.clone();
            async move {
                for count in 0.. {
                    let tool = format!("tool-{round}-{at}-{count}");
                    let rule = json!({ "effect": "deny", "scope": "tenant", "server": "sandbox",
                        "tool": tool });
                    let answer = client
                        .request(Method::POST, "/api/rules")
                        .json(&rule)
                        .send();
                    // Killed while it answered, it did not acknowledge.
                    let Ok(answer) = answer.await else {
                        return;
                    };
                    let Ok(rule) = answer.json::<Value>().await else {
                        return;
                    };
                    assert!(rule["rule"]["id"].is_string(), "{rule}");
                    told.send(rule["rule"]["id"].as_str().unwrap().to_owned())
                        .unwrap();
                }
            }
        });
        let work = futures::future::join_all(work);
        drop(told);
        let kill = async {
            // In the middle of their work.
            for _ in 0..5 {
                acknowledged.push(heard.recv().await.unwrap());
            }
            servers.remove(0).kill();
            // The other gateway goes on until its person has been answered once more.
            acknowledged.push(heard.recv().await.unwrap_or_default());
            for server in servers.drain(..) {
                server.kill();
            }
        };
        tokio::join!(work, kill);
        while let Some(rule) = heard.recv().await {
            acknowledged.push(rule);
        }
        servers = start();
    }
    acknowledged.retain(|rule| !rule.is_empty());
    let (has_sealed, _, failed) = beside_server(&data, &env, &["audit", "seal"]);
    assert!(has_sealed, "{failed}");
    let (is_whole, _, failed) = beside_server(&data, &env, &["audit", "verify"]);
    assert!(is_whole, "{failed}");
    let (_, key, _) = beside_server(&data, &env, &["audit", "key"]);
    let (has_exported, export, failed) = beside_server(&data, &env, &["audit", "export"]);
    assert!(has_exported, "{failed}");
    for rule in &acknowledged {
        assert_eq!(export.matches(rule.as_str()).count(), 1, "{rule}");
    }

    // A file of somebody else is checked without any installation.
    let file = folder.path().join("export");
    std::fs::write(&file, &export).unwrap();
    let nowhere = folder.path().join("nowhere").join("data");
    std::fs::create_dir(nowhere.parent().unwrap()).unwrap();
    let verify = ["audit", "verify", file.to_str().unwrap(), "--key", &key];
    let (is_whole, _, failed) = beside_server(&nowhere, &[], &verify);
    assert!(is_whole, "{failed}");
    std::fs::write(
        &file,
        export.replacen(&acknowledged[7], &acknowledged[6], 1),
    )
    .unwrap();
    let (is_whole, _, failed) = beside_server(&nowhere, &[], &verify);
    assert!(!is_whole && failed.contains("BROKEN"), "{failed}");
    assert!(!nowhere.exists(), "nothing was written");
}
