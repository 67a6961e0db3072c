//! `sepal admin tenant export` and `import`: a whole tenant moves from one installation to another, as the real
//! program does it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use crate::model_stub::ModelStub;
use crate::rest::{Answer, Client};
use crate::skills::{document, keep};
use crate::support::postgres::new_database;
use crate::support::{
    DEADLINE, Person, RedisServer, Server, TestSocket, colleague_with, person, sepal,
};

const KEY: &str = "sk-of-the-tenant";
const PASSWORD: &str = "a long enough password";
const NOTE: &str = "remember the milk";

/// An installation.
struct Place {
    folder: TempDir,
    env: Vec<(&'static str, String)>,
    model: ModelStub,
}

impl Place {
    async fn new(more: &[(&'static str, &str)]) -> Self {
        let mut env = vec![
            ("SPL_SANDBOX", "none".to_owned()),
            ("SPL_OUTGOING_ALLOW", "127.0.0.0/8".to_owned()),
        ];
        let more = more.iter();
        env.extend(more.map(|(name, value)| (*name, (*value).to_owned())));
        Self {
            folder: TempDir::new().unwrap(),
            env,
            model: ModelStub::start().await,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn env(&self) -> Vec<(&str, &str)> {
        let env = self.env.iter();
        env.map(|(name, value)| (*name, value.as_str())).collect()
    }

    fn start(&self) -> Server {
        Server::start_with(&self.data(), &self.model, &self.env())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = sepal(&self.data());
        command.envs(self.env()).args(args);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program; what it said, and whether it worked.
    fn run(&self, args: &[&str], input: &str) -> (bool, String) {
        let mut process = self.command(args).spawn().unwrap();
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let output = process.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    #[track_caller]
    fn done(&self, args: &[&str]) -> String {
        let (is_done, text) = self.run(args, "");
        assert!(is_done, "{args:?}: {text}");
        text
    }

    #[track_caller]
    fn refused(&self, args: &[&str], words: &str) {
        let (is_done, text) = self.run(args, "");
        assert!(!is_done && text.contains(words), "{args:?}: {text}");
    }

    #[track_caller]
    fn export(&self, file: &Path) -> String {
        self.done(&["admin", "tenant", "suspend", "acme"]);
        let file = file.to_str().unwrap();
        self.done(&["admin", "tenant", "export", "acme", file])
    }

    #[track_caller]
    fn import(&self, file: &Path) -> String {
        self.done(&["admin", "tenant", "import", file.to_str().unwrap()])
    }

    #[track_caller]
    fn import_is_refused(&self, file: &Path, words: &str) {
        let file = file.to_str().unwrap();
        self.refused(&["admin", "tenant", "import", file], words);
    }
}

/// What a tenant has at the start.
struct Tenant {
    ana: Person,
    ben: Person,
    session: String,
    attachment: String,
}

/// A tenant with two people and some of everything.
async fn fill(place: &Place, server: &Server) -> Tenant {
    let (data, env) = (place.data(), place.env());
    let ana = person(&data, &env);
    let ben = colleague_with(&data, &env, "ben", "owner");
    let password = ["admin", "user", "password", "ben", "--tenant", "acme"];
    assert!(place.run(&password, PASSWORD).0);
    place.done(&[
        "admin",
        "user",
        "installation-admin",
        "ben",
        "yes",
        "--tenant",
        "acme",
    ]);
    let (member, owner) = (
        Client::at(server.address, &ana.key),
        Client::at(server.address, &ben.key),
    );
    let denial = json!({ "effect": "deny", "scope": "person", "tool": "x" });
    member.post("/api/rules", denial).await.ok(201);
    let role = json!({ "name": "Helpers", "rights": ["people.manage"] });
    let role = owner.post("/api/roles", role).await.ok(201);
    let group = json!({ "name": "Finance" });
    let group = owner.post("/api/groups", group).await.ok(201);
    let path = format!("/api/groups/{}", group["group"]["id"].as_str().unwrap());
    let me = member.get("/api/auth/me").await.ok(200);
    let me = me["user"]["id"].as_str().unwrap();
    owner
        .put(&format!("{path}/members/{me}"), json!({}))
        .await
        .done();
    owner
        .put(
            &format!("/api/people/{me}/roles"),
            json!({ "roles": [role["id"]] }),
        )
        .await
        .ok(200);
    keep(
        &owner,
        "tenant",
        document("pdf", "Reads.", "Read.").into_bytes(),
    )
    .await;
    let assistant = json!({ "name": "Writer", "instructions": "Speak like a pirate." });
    owner
        .post("/api/assistants?scope=team", assistant)
        .await
        .ok(201);
    let provider = json!({ "kind": "openai-compatible", "baseUrl": place.model.base_url(),
        "apiKey": KEY, "models": ["m"] });
    owner.put("/api/providers/mine", provider).await.ok(201);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    let session = socket.session();
    let path = format!("/api/sessions/{session}/attachments?name=note.txt");
    let request = member.request(Method::POST, &path).body(NOTE);
    let attachment = Answer::of(request.send().await.unwrap()).await.ok(201);
    let attachment = attachment["id"].as_str().unwrap().to_owned();
    place.model.will_say("noted").then_say("noted again");
    let message = json!({ "text": "read this", "attachments": [attachment] });
    socket.ask("message", &[message]).await;
    assert_eq!(socket.wait_for_answer().await, "noted");
    socket.say("and this").await;
    assert_eq!(socket.wait_for_answer().await, "noted again");
    Tenant {
        ana,
        ben,
        session,
        attachment,
    }
}

/// What people of the tenant see of it.
async fn seen(server: &Server, tenant: &Tenant) -> Vec<(String, Value)> {
    let member = Client::at(server.address, &tenant.ana.key);
    let owner = Client::at(server.address, &tenant.ben.key);
    let mut found = Vec::new();
    for path in [
        "/api/rules",
        "/api/sessions",
        "/api/auth/me",
        &format!("/api/sessions/{}", tenant.session),
        &format!("/api/sessions/{}/events", tenant.session),
    ] {
        found.push((path.to_owned(), member.get(path).await.ok(200)));
    }
    for path in [
        "/api/roles",
        "/api/groups",
        "/api/skills",
        "/api/assistants",
        "/api/providers/mine",
        "/api/budgets",
        "/api/usage?by=model",
    ] {
        found.push((path.to_owned(), owner.get(path).await.ok(200)));
    }
    for (path, value) in &mut found {
        if path.starts_with("/api/providers/") {
            // Another installation cannot open the key, and says so.
            let provider = value.as_object_mut().unwrap();
            provider.retain(|name, _| name != "hasKey" && name != "problem");
        }
    }
    let path = format!(
        "/api/sessions/{}/attachments/{}",
        tenant.session, tenant.attachment
    );
    let text = member.request(Method::GET, &path).send().await;
    assert_eq!(text.unwrap().text().await.unwrap(), NOTE);
    found
}

/// Waits until a gateway has deleted the tenant.
async fn gone(place: &Place) {
    let looking = async {
        while place.done(&["admin", "tenant", "list"]).contains("acme") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap();
}

async fn signs_in(server: &Server) -> u16 {
    let said = json!({ "tenant": "acme", "name": "ben", "password": PASSWORD });
    let client = Client::nobody_at(server.address);
    client.post("/api/auth/login", said).await.status
}

/// Lets the tenant in and uses it.
async fn is_whole(place: &Place, server: &Server, tenant: &Tenant, before: &[(String, Value)]) {
    assert_eq!(signs_in(server).await, 401);
    place.done(&["admin", "tenant", "resume", "acme"]);
    assert_eq!(signs_in(server).await, 200);
    for ((path, now), (_, then)) in seen(server, tenant).await.iter().zip(before) {
        assert_eq!(now, then, "{path}");
    }
    let owner = Client::at(server.address, &tenant.ben.key);
    let me = owner.get("/api/auth/me").await.ok(200);
    assert_eq!(me["user"]["installationAdmin"], json!(false), "{me}");
    place.done(&["audit", "seal"]);
    let said = place.done(&["audit", "verify"]);
    assert!(!said.contains("BROKEN"), "{said}");
}

/// Says one more thing in the session.
async fn goes_on(place: &Place, server: &Server, tenant: &Tenant) {
    place.model.will_say("still here");
    let session = Some(tenant.session.as_str());
    let mut socket = TestSocket::open(server.address, &tenant.ana, session).await;
    socket.say("are you there?").await;
    assert_eq!(socket.wait_for_answer().await, "still here");
    let asked = place.model.requests().pop().unwrap().body.to_string();
    for text in ["read this", "noted again"] {
        assert!(asked.contains(text), "{asked}");
    }
}

/// The status of a test of the tenant's provider, and the key that it was asked with.
async fn asks_provider(at: &ModelStub, server: &Server, tenant: &Tenant) -> (bool, Option<String>) {
    at.will_say("OK");
    let client = Client::at(server.address, &tenant.ben.key);
    let path = "/api/providers/mine/test";
    let tried = client.post(path, json!({ "model": "m" })).await;
    let is_ok = tried.status == 200 && tried.json()["ok"] == json!(true);
    let authorization = at.requests().pop().and_then(|asked| asked.authorization);
    at.forget_rest();
    (is_ok, authorization)
}

#[tokio::test]
async fn a_tenant_moves_from_sqlite_to_postgres_with_redis_and_back() {
    let redis = RedisServer::start();
    let (first, third) = (Place::new(&[]).await, Place::new(&[]).await);
    let database = new_database().await;
    let url = redis.url();
    let second = Place::new(&[("DATABASE_URL", &database), ("SPL_REDIS_URL", &url)]).await;
    let server = first.start();
    let tenant = fill(&first, &server).await;
    let before = seen(&server, &tenant).await;

    let file = first.folder.path().join("acme.tenant.gz");
    let export = ["admin", "tenant", "export", "acme", file.to_str().unwrap()];
    first.refused(&export, "sepal admin tenant suspend acme");
    let said = first.export(&file);
    assert!(said.contains("1 sessions with"), "{said}");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    first.refused(&export, "exists; give another name");
    // Its audit can be checked with the public key of the installation alone.
    let audit = first.folder.path().join("audit.jsonl");
    let key = first.done(&["audit", "key"]);
    let lines = read(&file);
    let begin = lines
        .iter()
        .position(|line| line.get("audit").is_some_and(|it| *it == json!({})));
    let audited = lines[begin.unwrap() + 1..lines.len() - 1].iter();
    let audited: Vec<String> = audited.map(Value::to_string).collect();
    fs::write(&audit, audited.join("\n")).unwrap();
    let said = first.done(&["audit", "verify", audit.to_str().unwrap(), "--key", &key]);
    assert!(said.contains("proven up to record"), "{said}");
    // The secret is only there sealed.
    assert!(!lines.iter().any(|line| line.to_string().contains(KEY)));
    assert!(
        lines
            .iter()
            .any(|line| line["record"]["act"] == "rule.added")
    );
    server.stop();

    let said = second.import(&file);
    assert!(
        said.contains("1 of its secrets were sealed by another installation"),
        "{said}"
    );
    assert!(
        said.contains("1 of its people administered the installation"),
        "{said}"
    );
    let server = second.start();
    is_whole(&second, &server, &tenant, &before).await;
    goes_on(&second, &server, &tenant).await;
    let (is_ok, key) = asks_provider(&first.model, &server, &tenant).await;
    assert!(!is_ok && key != Some(format!("Bearer {KEY}")), "{key:?}");
    second.import_is_refused(&file, "is here, by the name `acme`");
    let before = seen(&server, &tenant).await;

    let file = second.folder.path().join("acme.tenant.gz");
    second.export(&file);
    server.stop();
    third.import(&file);
    let server = third.start();
    is_whole(&third, &server, &tenant, &before).await;
    goes_on(&third, &server, &tenant).await;
    server.stop();
}

#[tokio::test]
async fn a_deleted_tenant_comes_back_with_its_secrets() {
    let place = Place::new(&[]).await;
    let server = place.start();
    let tenant = fill(&place, &server).await;
    let before = seen(&server, &tenant).await;
    let file = place.folder.path().join("acme.tenant.gz");
    place.export(&file);
    place.done(&["admin", "tenant", "delete", "acme", "--yes"]);
    let list = ["admin", "tenant", "list"];
    gone(&place).await;
    let said = place.import(&file);
    assert!(!said.contains("sealed by another installation"), "{said}");
    assert!(place.done(&list).contains("acme  suspended"));
    server.stop();
    let server = place.start();
    is_whole(&place, &server, &tenant, &before).await;
    goes_on(&place, &server, &tenant).await;
    let asked = asks_provider(&place.model, &server, &tenant).await;
    assert_eq!(asked, (true, Some(format!("Bearer {KEY}"))));
    server.stop();
}

/// The lines of an export.
fn read(file: &Path) -> Vec<Value> {
    let mut text = String::new();
    let mut decoder = GzDecoder::new(fs::File::open(file).unwrap());
    decoder.read_to_string(&mut text).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Writes an export with other lines and a right digest.
fn forged(file: &Path, change: impl FnOnce(&mut Vec<Value>)) -> PathBuf {
    let mut lines = read(file);
    let mut end = lines.pop().unwrap();
    change(&mut lines);
    let text = lines.iter().map(Value::to_string).collect::<Vec<_>>();
    let text = text.join("\n") + "\n";
    end["end"]["sha256"] = hex::encode(Sha256::digest(&text)).into();
    let to = file.with_extension("forged");
    let mut encoder = GzEncoder::new(fs::File::create(&to).unwrap(), Compression::fast());
    writeln!(encoder, "{text}{end}").unwrap();
    encoder.finish().unwrap();
    to
}

/// The place of the line that begins a table.
fn table(lines: &[Value], name: &str) -> usize {
    let is_it = |line: &Value| line["table"]["name"] == name;
    lines.iter().position(is_it).unwrap()
}

#[tokio::test]
async fn what_is_no_export_of_one_tenant_changes_nothing() {
    let place = Place::new(&[]).await;
    let server = place.start();
    let tenant = fill(&place, &server).await;
    drop(tenant);
    let file = place.folder.path().join("acme.tenant.gz");
    place.export(&file);
    place.import_is_refused(&file, "is here, by the name `acme`");
    server.stop();

    let other = Place::new(&[]).await;
    other.done(&["admin", "tenant", "add", "acme"]);
    other.import_is_refused(&file, "give the imported one another name with --name");
    let before = other.done(&["admin", "tenant", "list"]);
    let stranger = before.split_whitespace().next().unwrap();
    let to = file.to_str().unwrap();
    let named = |name| ["admin", "tenant", "import", to, "--name", name];
    other.refused(&named("A b"), "needs 1 to 64 of");

    let bytes = fs::read(&file).unwrap();
    let cut = file.with_extension("cut");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    other.import_is_refused(&cut, "is damaged: it ends too early");
    let version = forged(&file, |lines| lines[0]["schema"] = 54.into());
    other.import_is_refused(&version, "export it again with this version");
    // A row cannot say whose it is.
    let foreign = forged(&file, |lines| {
        let at = table(lines, "rules");
        let columns = lines[at]["table"]["columns"].as_array_mut().unwrap();
        columns.push("tenant".into());
        lines[at + 1].as_array_mut().unwrap().push(stranger.into());
    });
    other.import_is_refused(&foreign, "`rules` has a column `tenant`");
    let unknown = forged(&file, |lines| {
        let at = table(lines, "api_keys");
        lines[at]["table"]["name"] = "tenants".into();
    });
    other.import_is_refused(&unknown, "`tenants` stands in the place of `api_keys`");
    // What a gateway would stumble over is removed at once.
    let unreadable = forged(&file, |lines| {
        let at = table(lines, "providers");
        let columns = lines[at]["table"]["columns"].as_array().unwrap();
        let models = columns.iter().position(|it| it == "models").unwrap();
        lines[at + 1][models] = "{".into();
    });
    other.refused(
        &[
            "admin",
            "tenant",
            "import",
            unreadable.to_str().unwrap(),
            "--name",
            "new",
        ],
        "a gateway cannot read its rows",
    );
    assert_eq!(other.done(&["admin", "tenant", "list"]), before);
    other.done(&named("new"));
    assert!(
        other
            .done(&["admin", "tenant", "list"])
            .contains("new  suspended")
    );
}

#[tokio::test]
async fn a_killed_import_leaves_no_tenant_that_anybody_can_use() {
    let place = Place::new(&[]).await;
    let server = place.start();
    let tenant = fill(&place, &server).await;
    let before = seen(&server, &tenant).await;
    let file = place.folder.path().join("acme.tenant.gz");
    place.export(&file);
    server.stop();

    let database = new_database().await;
    let other = Place::new(&[("DATABASE_URL", &database)]).await;
    other.done(&["admin", "tenant", "list"]);
    // Every row is there before the first journal, which waits here.
    let mut lock = PgConnection::connect(&database).await.unwrap();
    let mut observer = PgConnection::connect(&database).await.unwrap();
    for sql in ["BEGIN", "LOCK TABLE journal IN EXCLUSIVE MODE"] {
        sqlx::query(sql).execute(&mut lock).await.unwrap();
    }
    let args = ["admin", "tenant", "import", file.to_str().unwrap()];
    let mut import = other.command(&args).spawn().unwrap();
    let waiting = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted \
                   AND relation = 'journal'::regclass";
    let waits = async {
        while sqlx::query_scalar::<_, i64>(waiting)
            .fetch_one(&mut observer)
            .await
            .unwrap()
            == 0
        {}
    };
    tokio::time::timeout(DEADLINE, waits).await.unwrap();
    import.kill().unwrap();
    import.wait().unwrap();
    let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid IN (SELECT pid FROM pg_locks \
               WHERE NOT granted AND relation = 'journal'::regclass)";
    sqlx::query(end).fetch_all(&mut observer).await.unwrap();
    sqlx::query("ROLLBACK").execute(&mut lock).await.unwrap();

    let list = ["admin", "tenant", "list"];
    assert!(other.done(&list).contains("acme.import  being deleted"));
    other.refused(
        &["admin", "tenant", "resume", "acme.import"],
        "is being deleted",
    );
    let server = other.start();
    assert_eq!(signs_in(&server).await, 401);
    let key = Client::at(server.address, &tenant.ben.key);
    assert_eq!(key.get("/api/auth/me").await.status, 401);
    // A gateway deletes an unfinished import in the same way as a tenant that was given up.
    other.done(&["admin", "tenant", "delete", "acme.import", "--yes"]);
    gone(&other).await;
    server.stop();
    other.import(&file);
    let server = other.start();
    is_whole(&other, &server, &tenant, &before).await;
    server.stop();
}
