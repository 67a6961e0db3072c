//! A company from nothing, on one gateway with SQLite and on two with PostgreSQL and Redis. Between any two steps
//! the gateway that was asked last is killed (`kill -9`), and the next step is asked of the other or of a new one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use reqwest::Method;
use reqwest::header::{LOCATION, SET_COOKIE};
use sepal::domain::TenantId;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent_mode::ask_at;
use crate::gestures::Authenticator;
use crate::model_stub::ModelStub;
use crate::oidc::{CLIENT, Provider, SECRET};
use crate::rest::{Answer, Client};
use crate::servers::{StandIn, asking};
use crate::support::postgres::new_database;
use crate::support::{DEADLINE, Person, RedisServer, Server, TestApp, TestSocket};

const PASSWORD: &str = "another long password";

/// The address that people have of all gateways, as browsers and a load balancer pass it on.
const PUBLIC: &str = "http://localhost:8080";
const HOST: &str = "localhost:8080";

/// The gateways of an installation, what they use, and the one that is asked.
struct Company {
    servers: Vec<Option<Server>>,
    asked: usize,
    model: ModelStub,
    provider: Provider,
    /// The MCP server of the installation, with the tool `pay`.
    bank: StandIn,
    more: Vec<(&'static str, String)>,
    folder: TempDir,
    _redis: Option<RedisServer>,
}

impl Company {
    async fn on_sqlite() -> Self {
        Self::start(1, Vec::new(), None).await
    }

    async fn on_postgres() -> Self {
        let redis = RedisServer::start();
        let more = vec![
            ("SPL_REDIS_URL", redis.url()),
            ("DATABASE_URL", new_database().await),
        ];
        Self::start(2, more, Some(redis)).await
    }

    async fn start(
        gateways: usize,
        more: Vec<(&'static str, String)>,
        redis: Option<RedisServer>,
    ) -> Self {
        let tool =
            json!({ "name": "pay", "description": "Pays", "inputSchema": { "type": "object" } });
        let bank = StandIn::start(json!({ "tools": {} }), move |method, _| match method {
            "tools/list" => Ok(json!({ "tools": [tool] })),
            "tools/call" => Ok(json!({ "content": [{ "type": "text", "text": "Paid." }] })),
            _ => Err((-32_601, "no such method")),
        });
        let mut company = Self {
            servers: (0..gateways).map(|_| None).collect(),
            asked: 0,
            model: ModelStub::start().await,
            provider: Provider::start().await,
            bank: bank.await,
            more,
            folder: TempDir::new().unwrap(),
            _redis: redis,
        };
        for index in 0..gateways {
            company.launch(index);
        }
        company
    }

    fn data(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("data-{index}"))
    }

    fn launch(&mut self, index: usize) {
        let mut env = vec![
            ("SPL_SANDBOX", "none"),
            ("SPL_SECRET_KEY", "a key of thirty-two characters or more"),
            ("SPL_MCPS_0_ID", "post"),
            ("SPL_MCPS_0_URL", self.bank.url.as_str()),
            ("SPL_OIDC_ISSUER", self.provider.issuer.as_str()),
            ("SPL_OIDC_CLIENT_ID", CLIENT),
            ("SPL_OIDC_CLIENT_SECRET", SECRET),
            ("SPL_OIDC_GROUPS", "audit=Auditors"),
        ];
        let more = self.more.iter();
        env.extend(more.map(|(name, value)| (*name, value.as_str())));
        let server = Server::start_with(&self.data(index), &self.model, &env);
        self.servers[index] = Some(server);
    }

    /// Kills the gateway that was asked last and starts it again; the next one is asked meanwhile.
    fn strike(&mut self) {
        let victim = self.asked;
        self.servers[victim].take().unwrap().kill();
        self.launch(victim);
        self.asked = (victim + 1) % self.servers.len();
    }

    fn address(&self) -> SocketAddr {
        self.servers[self.asked].as_ref().unwrap().address
    }

    /// The secret of the link that the operator finds beside the data.
    fn setup_secret(&self) -> String {
        // Each gateway makes one at its start, and the last one counts.
        let indices = (0..self.servers.len()).rev();
        let mut links = indices.map(|index| self.data(index).join("setup-link"));
        let link = links.find_map(|path| std::fs::read_to_string(path).ok());
        let link = link.unwrap();
        link.trim().rsplit_once('#').unwrap().1.to_owned()
    }

    /// A socket of a person with a key, on a session or on a new one.
    async fn socket(&self, person: &Person, session: Option<&str>) -> TestSocket {
        TestSocket::open(self.address(), person, session).await
    }
}

/// A browser with its cookies, and the token that its page got.
#[derive(Default)]
struct Browser {
    cookies: BTreeMap<String, String>,
    csrf: String,
}

impl Browser {
    async fn ask(&mut self, company: &Company, method: Method, path: &str, body: Value) -> Answer {
        let cookies = self.cookies.iter();
        let cookies: Vec<String> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let client = Client::nobody_at(company.address())
            .and("host", HOST)
            .and("origin", PUBLIC)
            .and("cookie", cookies.join("; "))
            .and("x-csrf-token", self.csrf.as_str());
        let body = (!body.is_null()).then_some(body);
        let answer = client.send(method, path, body).await;
        for set in answer.headers.get_all(SET_COOKIE) {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    async fn get(&mut self, company: &Company, path: &str) -> Answer {
        self.ask(company, Method::GET, path, Value::Null).await
    }

    async fn post(&mut self, company: &Company, path: &str, body: Value) -> Answer {
        self.ask(company, Method::POST, path, body).await
    }

    /// Comes in at one of the doors.
    async fn enter(&mut self, company: &Company, path: &str, body: Value) {
        let entered = self.post(company, path, body).await.ok(200);
        let me = entered.get("me").unwrap_or(&entered);
        self.csrf = text(&me["csrfToken"]);
    }

    /// Makes the link that lets one person in, and returns its secret.
    async fn invite(&mut self, company: &Company, role: &str) -> String {
        let body = json!({ "role": role });
        let made = self.post(company, "/api/invitations", body).await.ok(201);
        let link = text(&made["link"]);
        link.rsplit_once('#').unwrap().1.to_owned()
    }

    async fn join(company: &Company, secret: &str, name: &str) -> Self {
        let mut browser = Self::default();
        let body = json!({ "secret": secret, "name": name, "password": PASSWORD });
        browser.enter(company, "/api/auth/invitation", body).await;
        browser
    }

    async fn key(&mut self, company: &Company) -> Person {
        let made = self
            .post(company, "/api/keys", json!({ "name": "program" }))
            .await;
        Person {
            tenant: TenantId::from_bits(0),
            key: text(&made.ok(201)["secret"]),
        }
    }

    /// Adds a passkey, by the password.
    async fn add_passkey(&mut self, company: &Company) -> Authenticator {
        let body = json!({ "password": PASSWORD, "calls": [] });
        let made = self.post(company, "/api/gestures", body).await.ok(201);
        let body = json!({ "gesture": made["gestures"][0]["gesture"] });
        let asked = self.post(company, "/api/passkeys/challenge", body).await;
        let mut passkey = Authenticator::at(PUBLIC);
        let credential = passkey.create(&asked.ok(200)["publicKey"]);
        let body = json!({ "name": "phone", "credential": credential });
        self.post(company, "/api/passkeys", body).await.ok(201);
        passkey
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_company_begins_on_sqlite() {
    begins(Company::on_sqlite().await).await;
}

#[tokio::test]
async fn a_company_begins_on_two_gateways_with_postgres() {
    begins(Company::on_postgres().await).await;
}

async fn begins(mut company: Company) {
    let mut ana = Browser::default();
    let body = json!({ "secret": company.setup_secret(), "name": "ana", "password": PASSWORD });
    ana.enter(&company, "/api/auth/setup", body).await;
    company.strike();
    prepare(&company, &mut ana).await;
    let links = [
        ana.invite(&company, "member").await,
        ana.invite(&company, "admin").await,
    ];
    company.strike();
    let mut ben = Browser::join(&company, &links[0], "ben").await;
    company.strike();
    let mut dan = Browser::join(&company, &links[1], "dan").await;
    let mut cleo = by_account(&mut company).await;
    let key = ben.key(&company).await;
    company.strike();

    asks_the_assistant(&mut company, &mut ben, &key).await;
    let session = somebody_else_decides(&mut company, &key, &mut dan).await;
    reads(&mut company, &session, [&mut ben, &mut dan, &mut cleo]).await;

    company.strike();
    let begun = ana
        .get(&company, "/api/audit?act=session.reading_begun")
        .await;
    let record = begun.ok(200)["items"][0]["record"].clone();
    assert_eq!(record["on"]["id"], session, "{record}");
    let checked = ana
        .post(&company, "/api/audit/verify", json!({}))
        .await
        .ok(200);
    assert_eq!(checked["ok"], true, "{checked}");
}

/// Makes what the company has: a right for a group, an assistant of the team, and a rule for payments.
async fn prepare(company: &Company, ana: &mut Browser) {
    let role = json!({ "name": "Auditor", "rights": ["sessions.read_content"] });
    let role = ana.post(company, "/api/roles", role).await.ok(201);
    let group = ana
        .post(company, "/api/groups", json!({ "name": "Auditors" }))
        .await;
    let path = format!("/api/groups/{}", text(&group.ok(201)["group"]["id"]));
    let body = json!({ "roles": [role["id"]] });
    ana.ask(company, Method::PATCH, &path, body).await.ok(200);
    let writer = json!({ "name": "Writer", "instructions": "Speak like a pirate." });
    let made = ana
        .post(company, "/api/assistants?scope=team", writer)
        .await;
    made.ok(201);
    let payments = json!({
        "effect": "ask", "scope": "tenant", "tool": "pay", "approvers": "somebody_else",
        "freshGesture": true,
    });
    ana.post(company, "/api/rules", payments).await.ok(201);
}

/// Somebody comes in with the company's account. The gateway at which they began is killed before they are back.
async fn by_account(company: &mut Company) -> Browser {
    let mut cleo = Browser::default();
    company.provider.is(json!({
        "sub": "7", "preferred_username": "cleo", "groups": ["audit"],
    }));
    let start = "/api/auth/oidc/company/start";
    let body = json!({ "returnTo": "/" });
    let begun = cleo.post(company, start, body).await.ok(200);
    company.strike();
    let agreed = TestApp::http().get(text(&begun["url"])).send();
    let back = agreed.await.unwrap().headers()[LOCATION].clone();
    let back = url::Url::parse(back.to_str().unwrap()).unwrap();
    let path = format!("{}?{}", back.path(), back.query().unwrap());
    let led = cleo.get(company, &path).await;
    let (_, fragment) = led.header("location").split_once('#').unwrap();
    let returned: BTreeMap<String, String> = url::form_urlencoded::parse(fragment.as_bytes())
        .into_owned()
        .collect();
    company.strike();
    let finish = "/api/auth/oidc/company/finish";
    cleo.enter(company, finish, json!(returned)).await;
    let me = cleo.get(company, "/api/auth/me").await.ok(200);
    assert_eq!(me["user"]["name"], "cleo", "{me}");
    cleo
}

/// A member starts the team's assistant without its tools, and asks it over `/mcp` too.
async fn asks_the_assistant(company: &mut Company, ben: &mut Browser, key: &Person) {
    let listed = ben.get(company, "/api/assistants").await.ok(200);
    let writer = &listed["items"][0];
    assert_eq!(writer["level"], "use", "{writer}");
    let body = json!({ "assistant": writer["id"], "tools": [] });
    let begun = ben.post(company, "/api/sessions", body).await.ok(201);
    let session = text(&begun["id"]);
    company.strike();
    asking::is_listed(company.address(), key).await;
    company.model.will_say("Arr.");
    let mut socket = company.socket(key, Some(&session)).await;
    socket.say("hello").await;
    assert_eq!(socket.wait_for_answer().await, "Arr.");
    let asked = company.model.requests().pop().unwrap().body;
    assert!(asked["messages"][0].to_string().contains("pirate"));
    assert_eq!(asked.get("tools"), None, "{asked}");
    company.strike();
    company.model.will_say("Arr, by MCP.");
    let url = format!("http://{}/mcp", company.address());
    let arguments = json!({ "input": "hello", "assistant": "Writer" });
    let answer = ask_at(&url, &key.key, arguments).await;
    assert_eq!(answer, ("Arr, by MCP.".to_owned(), false));
    let asked = company.model.requests().pop().unwrap().body;
    assert!(asked["messages"][0].to_string().contains("pirate"));
}

/// A call waits for somebody else's yes, who gives it by a passkey. Returns the session.
async fn somebody_else_decides(company: &mut Company, key: &Person, dan: &mut Browser) -> String {
    let mut passkey = dan.add_passkey(company).await;
    company.strike();
    asking::is_listed(company.address(), key).await;
    let mut socket = company.socket(key, None).await;
    company.model.will_call("pay", json!({})).then_say("Done");
    socket.say("please pay").await;
    socket.wait_for_approval().await;
    let session = socket.session();
    company.strike();
    // The other gateway lists it once it has noticed that the first one is gone.
    let listed = async {
        loop {
            let inbox = dan.get(company, "/api/approvals").await.ok(200);
            if let Some(item) = inbox["items"].as_array().unwrap().first() {
                break item.clone();
            }
        }
    };
    let item = tokio::time::timeout(DEADLINE, listed).await.unwrap();
    let card = &item["queue"]["calls"][0];
    let [call, digest] = ["callId", "digest"].map(|name| card[name].clone());
    let calls = json!([{ "sessionId": session, "callId": call, "digest": digest }]);
    let path = "/api/gestures/challenge";
    let body = json!({ "calls": calls });
    let challenge = dan.post(company, path, body).await.ok(200);
    company.strike();
    passkey.count += 1;
    let body = json!({ "credential": passkey.get(&challenge["publicKey"]) });
    let made = dan.post(company, "/api/gestures", body).await.ok(201);
    company.strike();
    let mut socket = company.socket(key, Some(&session)).await;
    let body = json!({
        "callId": call, "approved": true, "digest": digest, "gesture": made["gestures"][0]["gesture"],
    });
    let path = format!("/api/sessions/{session}/approvals");
    dan.post(company, &path, body).await.ok(202);
    assert_eq!(socket.wait_for_answer().await, "Done");
    company.strike();
    let client = Client::at(company.address(), &key.key);
    let events = client.get(&format!("/api/sessions/{session}/events")).await;
    let events = events.ok(200);
    let outputs = events["items"].as_array().unwrap().iter();
    let outputs = outputs.filter(|item| item["event"] == "tool:output");
    assert_eq!(outputs.count(), 1, "{events}");
    assert_eq!(company.bank.asked("tools/call").len(), 1, "it is paid once");
    session
}

/// An admin without the right opens nothing of the session. Who has it reads, and its owner sees that.
async fn reads(company: &mut Company, session: &str, [ben, dan, cleo]: [&mut Browser; 3]) {
    let at = format!("/api/sessions/{session}");
    let readings = format!("{at}/readings");
    let reason = json!({ "reason": "case 7" });
    for path in [at.clone(), format!("{at}/events")] {
        let refused = dan.get(company, &path).await;
        refused.problem(404, "session_not_found");
    }
    let refused = dan.post(company, &readings, reason.clone()).await;
    refused.problem(404, "session_not_found");
    let begun = cleo.post(company, &readings, reason).await.ok(201);
    company.strike();
    let content = format!("/api/readings/{}/session?format=json", text(&begun["id"]));
    let read = cleo.get(company, &content).await.ok(200);
    assert!(read.to_string().contains("please pay"));
    dan.get(company, &content).await.problem(404, "not_found");
    let told = ben.get(company, "/api/readings").await.ok(200)["items"][0].clone();
    assert_eq!(told["reason"], "case 7", "{told}");
    assert_eq!(told["session"], session, "{told}");
}
