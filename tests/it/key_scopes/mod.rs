//! What keys with scopes and limits may do at every door, and service accounts.

mod confined;
mod service_accounts;

use reqwest::Method;
use secrecy::ExposeSecret as _;
use sepal::domain::{Caller, KeyGrant, KeyScope, KeyScopes, Role};
use sepal::tenancy::{Credential, NewKey};
use serde_json::{Value, json};

use crate::rest::Client;
use crate::support::{Person, TestApp, TestSocket};

async fn caller(app: &TestApp, person: &Person) -> Caller {
    let key = Credential::ApiKey(person.key.clone().into());
    app.tenancy.authenticate(&key).await.unwrap().caller
}

/// Another key of a person.
pub(crate) async fn key_with(app: &TestApp, person: &Person, grant: KeyGrant) -> Person {
    let user = caller(app, person).await.user.id;
    let new = NewKey {
        grant,
        ..NewKey::unlimited("limited")
    };
    let administration = app.tenancy.administration();
    let created = administration.add_key(&person.tenant, &user, new).await;
    Person {
        tenant: person.tenant.clone(),
        key: created.unwrap().secret.expose_secret().to_owned(),
    }
}

pub(crate) fn scoped(scopes: &[KeyScope]) -> KeyGrant {
    KeyGrant::within(Some(scopes.iter().copied().collect()), None, None)
}

/// An operation with the scope that the description names.
struct Operation {
    id: String,
    method: Method,
    path: String,
    scope: String,
}

async fn operations(app: &TestApp) -> Vec<Operation> {
    let api = Client::nobody(app).get("/api/openapi.json").await.json();
    let mut all = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap() {
            if let Some(scope) = about["x-key-scope"].as_str() {
                all.push(Operation {
                    id: about["operationId"].as_str().unwrap().to_owned(),
                    method: method.to_uppercase().parse().unwrap(),
                    path: path.clone(),
                    scope: scope.to_owned(),
                });
            }
        }
    }
    all
}

/// An address behind which nothing is.
fn filled(path: &str) -> String {
    let zeros = "0".repeat(32);
    let path = path.replace("/api/sessions/{id}", &format!("/api/sessions/ses_{zeros}"));
    let words = path.split('/').map(|part| match part {
        "{id}" | "{name}" | "{call}" | "{callId}" | "{tool}" | "{secret}" | "{path}" | "{word}" => {
            "nothing"
        }
        "{number}" | "{version}" => "1",
        other if other.starts_with('{') => "nothing",
        other => other,
    });
    words.collect::<Vec<_>>().join("/")
}

/// The status of a request, and its text if it was refused with 403.
async fn ask(client: &Client, operation: &Operation) -> (u16, Value) {
    let request = client.request(operation.method.clone(), &filled(&operation.path));
    let request = match operation.method {
        Method::GET => request,
        _ => request.json(&json!({})),
    };
    // A stream never ends, so no other body is read.
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body = match status {
        403 => response.json().await.unwrap(),
        _ => Value::Null,
    };
    (status, body)
}

#[tokio::test]
async fn every_operation_is_let_through_with_its_scope_and_with_no_other() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut clients = Vec::new();
    for scope in KeyScope::ALL {
        let person = key_with(&app, &owner, scoped(&[scope])).await;
        clients.push((scope.as_str(), Client::with_key(&app, &person.key)));
    }
    let operations = operations(&app).await;
    assert!(operations.len() > 150, "{}", operations.len());
    let mut wrong = Vec::new();
    for operation in &operations {
        let Operation { id, scope, .. } = operation;
        for (has, client) in &clients {
            app.model.forget_rest();
            for _ in 0..4 {
                app.model.will_say("fine");
            }
            let (status, body) = ask(client, operation).await;
            let is_refused = body["code"] == "scope_missing";
            let named = format!("`{scope}`");
            let says = body["detail"].as_str().unwrap_or_default();
            let may = scope == "none" || has == scope;
            if is_refused == may || (is_refused && !says.contains(&named)) || status == 500 {
                wrong.push(format!("{id} with `{has}`: {status} {body}"));
            }
        }
    }
    app.model.forget_rest();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_key_tells_its_program_what_it_may() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = app.person("acme").await;
    let whole = Client::with_key(&app, &ana.key);
    let me = whole.get("/api/auth/me").await.ok(200);
    let all = json!(["read", "message", "decide", "administer"]);
    assert_eq!(me["key"]["scopes"], all);
    assert_eq!(me["key"]["sessions"], Value::Null);
    let limited = key_with(&app, &ana, scoped(&[KeyScope::Decide])).await;
    let limited = Client::with_key(&app, &limited.key);
    let me = limited.get("/api/auth/me").await.ok(200);
    assert_eq!(me["key"]["scopes"], json!(["decide"]));
    let listed = whole.get("/api/keys").await.ok(200);
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items[0]["scopes"], json!(["decide"]));
    assert_eq!(items[1]["scopes"], all);
}

#[tokio::test]
async fn a_socket_shows_and_does_what_its_key_may() {
    let app = TestApp::with_sandbox().await;
    let ana = app.person("acme").await;
    let key = async |scopes: &[KeyScope]| key_with(&app, &ana, scoped(scopes)).await;
    let open = async |person: &Person, session: Option<&str>| {
        let auth = json!({ "token": person.key, "sessionId": session });
        TestSocket::try_open(app.address, auth).await
    };
    app.model.will_call("list_files", json!({}));
    let mut whole = TestSocket::open(app.address, &ana, None).await;
    whole.say("list").await;
    let card = whole.wait_for_approval().await;
    let session = whole.session();

    let says = key(&[KeyScope::Message]).await;
    let refused = open(&says, Some(&session)).await.err().unwrap();
    assert!(
        refused.starts_with("scope_missing") && refused.contains("`read`"),
        "{refused}"
    );
    assert!(TestSocket::listen(app.address, &says).await.is_err());

    let reads = key(&[KeyScope::Read]).await;
    let refused = open(&reads, None).await.err().unwrap();
    assert!(refused.contains("`message`"), "{refused}");
    assert!(TestSocket::listen(app.address, &reads).await.is_ok());
    let mut reader = open(&reads, Some(&session)).await.unwrap();
    for (name, args, scope) in [
        ("message", json!("more"), "`message`"),
        ("agent:cancel", json!({}), "`message`"),
        (
            "tool:approval",
            json!({ "callId": card["callId"], "approved": true, "digest": card["digest"] }),
            "`decide`",
        ),
    ] {
        let answer = reader.ask(name, &[args]).await;
        assert_eq!(answer["error"]["code"], "scope_missing", "{answer}");
        let says = answer["error"]["message"].as_str().unwrap();
        assert!(says.contains(scope), "{says}");
    }
    let from = [json!({ "lastSeq": 0 })];
    assert_eq!(reader.ask("session:resume", &from).await["ok"], true);

    // A ticket is what its key is.
    let client = Client::with_key(&app, &reads.key);
    let ticket = client.post("/api/auth/ticket", json!({})).await.ok(200);
    let query = format!("&ticket={}", ticket["ticket"].as_str().unwrap());
    let auth = json!({ "sessionId": session });
    let by_ticket = TestSocket::try_open_at(app.address, auth, &query).await;
    let answer = by_ticket.unwrap().ask("message", &[json!("more")]).await;
    assert_eq!(answer["error"]["code"], "scope_missing", "{answer}");

    let decides = key(&[KeyScope::Read, KeyScope::Decide]).await;
    let mut inbox = open(&decides, Some(&session)).await.unwrap();
    app.model.will_say("listed");
    assert_eq!(inbox.decide(&card, true).await["ok"], true);
    assert_eq!(whole.wait_for_answer().await, "listed");
}

#[tokio::test]
async fn a_rule_of_the_tenant_is_no_decision_of_ones_own() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let whole = Client::with_key(&app, &owner.key);
    let decides = key_with(&app, &owner, scoped(&[KeyScope::Decide])).await;
    let decides = Client::with_key(&app, &decides.key);
    let rule =
        |scope: &str| json!({ "effect": "deny", "scope": scope, "server": "x", "tool": "y" });
    let of_tenant = whole.post("/api/rules", rule("tenant")).await.ok(201);
    let id = of_tenant["rule"]["id"].as_str().unwrap();
    let refused = decides.post("/api/rules", rule("tenant")).await;
    refused.problem(403, "scope_missing");
    let refused = decides.delete(&format!("/api/rules/{id}")).await;
    refused.problem(403, "scope_missing");
    let own = decides.post("/api/rules", rule("person")).await.ok(201);
    let id = own["rule"]["id"].as_str().unwrap();
    decides.delete(&format!("/api/rules/{id}")).await.done();
}

#[tokio::test]
async fn a_request_sent_again_is_not_answered_to_a_key_that_may_less() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = app.person("acme").await;
    let send = async |key: &str| {
        let client = Client::with_key(&app, key).and("idempotency-key", "k1");
        client
            .post("/api/sessions", json!({ "title": "Mine" }))
            .await
    };
    send(&ana.key).await.ok(201);
    let reads = key_with(&app, &ana, scoped(&[KeyScope::Read])).await;
    send(&reads.key).await.problem(403, "scope_missing");
    let says = key_with(&app, &ana, scoped(&[KeyScope::Message])).await;
    send(&says.key).await.problem(422, "key_in_use");
}

#[tokio::test]
async fn a_key_is_made_with_limits_that_make_sense() {
    let app = TestApp::start_with(&[("SPL_SANDBOX", "none")]).await;
    let ana = app.person("acme").await;
    let user = caller(&app, &ana).await.user.id;
    let administration = app.tenancy.administration();
    let unknown = [sepal::domain::SessionId::from_bits(1)].into();
    let servers = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned());
        Some(std::sync::Arc::new(names.collect()))
    };
    for grant in [
        KeyGrant::within(Some(KeyScopes::from_text("")), None, None),
        KeyGrant::within(Some(KeyScopes::all()), None, servers(&["a"])),
        KeyGrant::within(None, None, servers(&[])),
        KeyGrant::within(None, None, servers(&["a b"])),
        KeyGrant::within(None, Some([].into()), None),
        KeyGrant::within(None, Some(unknown), None),
    ] {
        let new = NewKey {
            grant: grant.clone(),
            ..NewKey::unlimited("x")
        };
        let made = administration.add_key(&ana.tenant, &user, new).await;
        assert!(made.is_err(), "{grant:?}");
    }
}
