//! People, keys and tenants that lose their right to act: what goes on for them ends, at every gateway.

use sepal::agent::ListUpdate;
use sepal::domain::{Role, UserId};
use sepal::store::records::SessionState;
use sepal::tenancy::Tenancy;
use serde_json::{Value, json};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tempfile::TempDir;

use crate::model_stub::{ModelStub, Reply};
use crate::replicas::Pair;
use crate::rest::Client;
use crate::rules::given;
use crate::servers::Api;
use crate::support::{DEADLINE, Person, Server, TestApp, TestSocket, person, sepal};

/// A way in which somebody loses their right to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Disabled,
    Demoted,
    KeyRevoked,
    TenantSuspended,
}

async fn id_of(client: &Client) -> UserId {
    let me = client.get("/api/auth/me").await.ok(200);
    UserId::parse(me["user"]["id"].as_str().unwrap()).unwrap()
}

impl Loss {
    async fn happen(self, tenancy: &Tenancy, person: &Person, user: &UserId) {
        let admin = tenancy.administration();
        let tenant = &person.tenant;
        match self {
            Self::Disabled => admin.disable_user(tenant, user).await.unwrap(),
            Self::Demoted => admin.set_role(tenant, user, Role::Viewer).await.unwrap(),
            Self::KeyRevoked => {
                for key in admin.keys(tenant).await.unwrap() {
                    admin.revoke_key(tenant, &key.id).await.unwrap();
                }
            }
            Self::TenantSuspended => admin.suspend_tenant(tenant).await.unwrap(),
        }
    }

    async fn undo(self, tenancy: &Tenancy, person: &Person, user: &UserId) {
        let admin = tenancy.administration();
        let tenant = &person.tenant;
        match self {
            Self::Disabled => admin.enable_user(tenant, user).await.unwrap(),
            Self::Demoted => admin.set_role(tenant, user, Role::Member).await.unwrap(),
            Self::KeyRevoked => {}
            Self::TenantSuspended => admin.resume_tenant(tenant).await.unwrap(),
        }
    }
}

/// Has a person's own rule run one command at the gateway of `socket`; the model is then about to ask
/// for another one.
async fn run_by_rule(api: &Api<'_>, model: &ModelStub, socket: &mut TestSocket) {
    let echo = json!({ "command": [{ "words": ["echo"] }] });
    let rule = json!({ "effect": "allow", "scope": "person", "when": echo });
    given(api, &rule).await;
    let command = |text: &str| json!({ "command": text });
    model
        .will_call("execute_command", command("echo one"))
        .then(Reply::answer(
            "",
            &[("execute_command", command("echo two"))],
        ))
        .stall()
        .then_say("never said");
    socket.say("go").await;
    socket.wait_for("tool:output").await;
    model.stalled().await;
}

/// The calls that started in a session, by its transcript.
async fn started(client: &Client, session: &str) -> usize {
    let page = client.get(&format!("/api/sessions/{session}/events")).await;
    let page = page.ok(200);
    let items = page["items"].as_array().unwrap().iter();
    items.filter(|item| item["event"] == "tool:started").count()
}

/// Waits until nothing goes on in any session whose row changes.
async fn at_rest(rows: &mut tokio::sync::broadcast::Receiver<ListUpdate>) {
    let resting = async {
        loop {
            if let ListUpdate::Changed(row) | ListUpdate::Unlisted(row) = rows.recv().await.unwrap()
                && row.state == SessionState::Idle
            {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, resting).await.unwrap();
}

/// Asserts that what a person's own rule would run does not start once they may no longer act, although
/// the model asks for it a moment later.
#[tokio::test]
async fn nothing_starts_for_somebody_who_may_no_longer_act() {
    for loss in [Loss::Disabled, Loss::Demoted, Loss::TenantSuspended] {
        let app = TestApp::with_sandbox().await;
        let ana = app.person("acme").await;
        let (api, client) = (Api::new(&app, &ana), Client::with_key(&app, &ana.key));
        let user = id_of(&client).await;
        let mut socket = TestSocket::open(app.address, &ana, None).await;
        run_by_rule(&api, &app.model, &mut socket).await;
        let (session, asked) = (socket.session(), app.model.requests().len());
        let mut rows = app.sessions.rows();
        loss.happen(&app.tenancy, &ana, &user).await;
        // The answer asks for another call, which the person's rule allows.
        app.model.release();
        at_rest(&mut rows).await;
        app.model.forget_rest();
        assert_eq!(app.model.requests().len(), asked, "{loss:?}");
        loss.undo(&app.tenancy, &ana, &user).await;
        assert_eq!(started(&client, &session).await, 1, "{loss:?}");
    }
}

/// Asserts that a turn whose model says nothing ends with the key that began it, or with its person.
#[tokio::test]
async fn a_turn_ends_with_the_key_that_began_it() {
    let app = TestApp::start().await;
    for loss in [Loss::KeyRevoked, Loss::Disabled] {
        let ana = app.person("acme").await;
        let user = id_of(&Client::with_key(&app, &ana.key)).await;
        let mut socket = TestSocket::open(app.address, &ana, None).await;
        app.model.will_say("never heard").stall();
        socket.say("hello").await;
        app.model.stalled().await;
        loss.happen(&app.tenancy, &ana, &user).await;
        // Nobody listens to the model any more.
        let idle = tokio::time::timeout(DEADLINE, app.model.idle());
        idle.await.unwrap_or_else(|_| panic!("{loss:?}"));
    }
}

/// Asserts that what runs at one gateway ends when the other one disables its person.
#[tokio::test]
async fn the_other_gateway_ends_what_runs_for_somebody_who_was_disabled() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (ana, _at_a, mut at_b) = pair.sockets("leaving").await;
    let user = id_of(&Client::with_key(&pair.b, &ana.key)).await;
    let model = &pair.a.model;
    run_by_rule(&Api::new(&pair.b, &ana), model, &mut at_b).await;
    let (session, asked) = (at_b.session(), model.requests().len());
    let mut rows = pair.b.sessions.rows();
    Loss::Disabled.happen(&pair.a.tenancy, &ana, &user).await;
    model.release();
    at_rest(&mut rows).await;
    model.forget_rest();
    assert_eq!(model.requests().len(), asked);
    Loss::Disabled.undo(&pair.a.tenancy, &ana, &user).await;
    let client = Client::with_key(&pair.b, &ana.key);
    assert_eq!(started(&client, &session).await, 1);
}

/// Rows of all tables in which a text occurs, by table.
async fn rows_with(data: &std::path::Path, text: &str) -> Vec<String> {
    let options = SqliteConnectOptions::new().filename(data.join("sepal.db"));
    let pool = SqlitePoolOptions::new()
        .connect_with(options)
        .await
        .unwrap();
    let tables = "SELECT m.name AS name, c.name AS column_name FROM sqlite_master m \
                  JOIN pragma_table_info(m.name) c WHERE m.type = 'table'";
    let mut found = Vec::new();
    for row in sqlx::query(tables).fetch_all(&pool).await.unwrap() {
        let (table, column): (String, String) = (row.get("name"), row.get("column_name"));
        let count = format!(
            "SELECT COUNT(*) FROM \"{table}\" WHERE instr(CAST(\"{column}\" AS TEXT), $1) > 0"
        );
        let count = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(count)).bind(text);
        // The audit of the installation goes on saying that the tenant was there, and who deleted it.
        if table != "audit" && count.fetch_one(&pool).await.unwrap_or(0) > 0 {
            found.push(format!("{table}.{column}"));
        }
    }
    pool.close().await;
    found
}

/// Asserts the commands for whole tenants: a suspended one is locked out until it is let in again, and of a
/// deleted one nothing is left, while another tenant keeps what it has.
#[tokio::test]
async fn a_tenant_is_suspended_resumed_and_deleted_on_the_command_line() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let model = ModelStub::start().await;
    let env = [("SPL_SANDBOX", "none")];
    let server = Server::start_with(&data, &model, &env);
    let told = |words: &[&str], input: &str| {
        let mut command = sepal(&data);
        command.envs(env).arg("admin").args(words);
        command.stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped());
        let mut running = command.spawn().unwrap();
        std::io::Write::write_all(&mut running.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = running.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), format!("{text}{said}"))
    };
    let ana = person(&data, &env);
    told(&["tenant", "add", "other"], "");
    told(&["user", "add", "ben", "--tenant", "other"], "");
    let (_, key) = told(
        &["key", "add", "t", "--user", "ben", "--tenant", "other"],
        "",
    );
    let ben = Client::at(server.address, key.lines().last().unwrap());
    let client = Client::at(server.address, &ana.key);
    for person in [&client, &ben] {
        let rule = json!({ "effect": "deny", "scope": "person", "tool": "x" });
        person.post("/api/rules", rule).await.ok(201);
        let session = person.post("/api/sessions", json!({})).await.ok(201);
        let path = format!("/api/sessions/{}/messages", session["id"].as_str().unwrap());
        model.will_say("Hello");
        let said = person.post(&path, json!({ "text": "hello" })).await;
        assert!(said.status < 300, "{}", said.text);
    }
    let me = client.get("/api/auth/me").await.ok(200);
    let tenant = me["tenant"]["id"].as_str().unwrap().to_owned();
    let status = async |wanted: u16| {
        // What a server has checked counts for some seconds.
        let heard = async { while client.get("/api/auth/me").await.status != wanted {} };
        tokio::time::timeout(DEADLINE, heard).await.unwrap();
    };
    assert!(told(&["tenant", "suspend", "acme"], "").0);
    status(401).await;
    assert!(told(&["tenant", "list"], "").1.contains("acme  suspended"));
    assert!(told(&["tenant", "resume", "acme"], "").0);
    status(200).await;

    let (is_done, said) = told(&["tenant", "delete", "acme"], "other\n");
    assert!(!is_done && said.contains("nothing was deleted"), "{said}");
    assert!(!rows_with(&data, &tenant).await.is_empty());
    let (is_done, said) = told(&["tenant", "delete", "acme"], "acme\n");
    assert!(is_done, "{said}");
    let (is_done, said) = told(&["tenant", "resume", "acme"], "");
    assert!(!is_done, "{said}");
    status(401).await;
    let gone = async { while !rows_with(&data, &tenant).await.is_empty() {} };
    let gone = tokio::time::timeout(DEADLINE, gone).await;
    assert!(gone.is_ok(), "left: {:?}", rows_with(&data, &tenant).await);
    let rules: Value = ben.get("/api/rules").await.ok(200);
    let listed = rules["rules"].to_string();
    assert!(listed.contains("\"person\""), "{rules}");
    drop(server);
}
