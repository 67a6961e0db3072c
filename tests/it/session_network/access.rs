//! Who opens hosts for a session, which, and what is refused with the reason.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{asked, gives, member, opens, ran, refused_host, takes_back, with_sandbox};
use crate::rules::given;
use crate::sandboxes::egress::site::Site;
use crate::servers::Api;
use crate::support::{TestApp, TestSocket};

/// Rules that were given in the session.
async fn own_rules(api: &Api<'_>, session: &str) -> usize {
    let rules = api.get(&format!("/api/rules?session={session}")).await;
    let rules = rules["rules"].as_array().unwrap().iter();
    rules.filter(|rule| rule["scope"] == "session").count()
}

/// Asserts it of the admin, an approver and a viewer of the same tenant, and of another tenant's owner.
#[tokio::test]
async fn nobody_else_opens_hosts_for_a_session() {
    let app = with_sandbox("pypi.org").await;
    let (ana, mut socket) = member(&app).await;
    let api = Api::new(&app, &ana);
    let admin = app.person_with("acme", Role::Admin).await;
    let wants = json!({ "effect": "ask", "scope": "tenant", "approvers": "somebody_else" });
    given(&Api::new(&app, &admin), &wants).await;
    let card = asked(&app.model, &mut socket, "true").await;
    let session = socket.session();
    let waiting = Api::new(&app, &admin).get("/api/approvals").await;
    let decidable = &waiting["items"][0]["queue"]["calls"][0];
    assert_eq!(decidable["callId"], card["callId"], "{waiting}");

    let viewer = app.person_with("acme", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let others = [(&admin, 404), (&stranger, 404), (&viewer, 403)];
    let rule = opens(&session, &["pypi.org"]);
    for (who, expected) in others {
        let theirs = Api::new(&app, who);
        assert_eq!(gives(&theirs, &rule).await.0, expected);
        let (status, _) = theirs.ask(Method::POST, "/api/rules/simulate", &rule).await;
        assert_eq!(status, expected);
        // Words about a rule keep nothing, and say nothing of the session.
        let (status, _) = theirs.ask(Method::POST, "/api/rules/preview", &rule).await;
        assert!(status == 200 || status == expected, "{status}");
    }
    assert_eq!(own_rules(&api, &session).await, 0);
    let rule = given(&api, &rule).await;
    for (who, expected) in others {
        let theirs = Api::new(&app, who);
        assert_eq!(takes_back(&theirs, &session, &rule).await, expected);
    }
    assert_eq!(own_rules(&api, &session).await, 1);
    assert_eq!(takes_back(&api, &session, &rule).await, 204);
    socket.decide(&card, false).await;
    drop(socket);
    app.stop().await;
}

#[tokio::test]
async fn a_person_opens_what_the_settings_name_and_no_more() {
    let app = with_sandbox("pypi.org,*.pythonhosted.org").await;
    let (ana, mut socket) = member(&app).await;
    let api = Api::new(&app, &ana);
    ran(&app.model, &mut socket, "true").await;
    let session = socket.session();
    for wider in [
        "pypi.org:22",
        "*.pypi.org",
        "evil.example",
        "pythonhosted.org",
    ] {
        let (status, said) = gives(&api, &opens(&session, &["pypi.org", wider])).await;
        assert_eq!(status, 403, "{wider}: {said}");
        let said = said.to_string();
        assert!(said.contains("only an administrator"), "{said}");
        assert!(said.contains("pypi.org, *.pythonhosted.org"), "{said}");
    }
    let hosts = ["PyPI.org.", "files.pythonhosted.org:443"];
    let rule = given(&api, &opens(&session, &hosts)).await;
    let hosts = json!(["pypi.org", "files.pythonhosted.org:443"]);
    assert_eq!(rule["rule"]["network"], hosts);
    let mut more = opens(&session, &["pypi.org"]);
    more["expiresInHours"] = json!(2);
    let rule = given(&api, &more).await;
    let sentence = rule["rule"]["sentence"].as_str().unwrap();
    assert!(
        rule["rule"]["until"].is_string() && sentence.starts_with("Until "),
        "{rule}"
    );
    drop(socket);
    app.stop().await;
}

#[tokio::test]
async fn a_rule_about_hosts_that_makes_no_sense_is_refused_with_the_reason() {
    let app = with_sandbox("pypi.org").await;
    let admin = app.person_with("acme", Role::Admin).await;
    let mut socket = TestSocket::open(app.address, &admin, None).await;
    ran(&app.model, &mut socket, "true").await;
    let (api, session) = (Api::new(&app, &admin), socket.session());
    let check = async |more: Value, field: &str, expected: &str| {
        let mut rule = opens(&session, &["pypi.org"]);
        for (name, value) in more.as_object().unwrap() {
            rule[name] = value.clone();
        }
        let (status, said) = gives(&api, &rule).await;
        assert_eq!(status, 400, "{said}");
        assert_eq!(said["errors"][0]["field"], field, "{said}");
        assert!(said.to_string().contains(expected), "{said}");
    };
    let wrong = json!({ "network": ["https://pypi.org", "10.0.0.1", "*"] });
    check(wrong.clone(), "network", "begins with a scheme").await;
    check(wrong.clone(), "network", "it is an address").await;
    check(wrong, "network", "`*`: it is too wide").await;
    check(json!({ "network": [] }), "network", "has no entry").await;
    check(json!({ "effect": "deny" }), "effect", "only be allowed").await;
    check(json!({ "scope": "person" }), "scope", "`sandbox.network`").await;
    check(json!({ "tool": "execute_command" }), "network", "leave out").await;
    let when = json!({ "command": [{ "words": ["pip"] }] });
    check(json!({ "when": when }), "network", "leave out").await;
    drop(socket);
    app.stop().await;
}

/// Where the settings name nothing, an administrator opens hosts all the same, but none of our own networks;
/// the sandbox, which began without a way out, gets one with the next command.
#[tokio::test]
async fn an_administrator_opens_public_hosts_where_nothing_is_set() {
    let site = Site::start().await;
    let host = format!("localhost:{}", site.port);
    let app = TestApp::with_sandbox().await;
    let admin = app.person_with("acme", Role::Admin).await;
    let mut socket = TestSocket::open(app.address, &admin, None).await;
    let text = ran(&app.model, &mut socket, "echo proxy=$HTTP_PROXY.").await;
    assert!(
        text.contains("proxy=."),
        "nothing can be reached or asked for: {text}"
    );
    let (api, session) = (Api::new(&app, &admin), socket.session());
    let rule = given(&api, &opens(&session, &[&host])).await;
    assert_eq!(rule["rule"]["state"], "active");
    let text = ran(&app.model, &mut socket, &format!("get {host}/")).await;
    assert!(text.contains("private or reserved address"), "{text}");
    assert_eq!(site.visits(), 0);
    let line = refused_host(&socket);
    assert_eq!(
        (&line["entry"], &line["onRequest"]),
        (&Value::Null, &json!(false))
    );
    let ben = app.person_with("acme", Role::Member).await;
    let mut theirs = TestSocket::open(app.address, &ben, None).await;
    ran(&app.model, &mut theirs, "true").await;
    let rule = opens(&theirs.session(), &["pypi.org"]);
    let (status, said) = gives(&Api::new(&app, &ben), &rule).await;
    assert_eq!(status, 403, "{said}");
    assert!(
        said.to_string().contains("sandbox.network_on_request"),
        "{said}"
    );
    app.stop().await;
}
