//! People sign in with their company's account, at a stand-in for an OpenID provider that checks what it is sent
//! and lies where it is told to.

mod directory;
mod entering;
mod hostile;
mod logging_out;
mod provider;
mod stepping_up;

use std::collections::BTreeMap;

use reqwest::header::{LOCATION, SET_COOKIE};
use serde_json::{Value, json};
use url::Url;

use crate::rest::{Answer, Client};
use crate::support::{Person, TestApp};
pub(crate) use provider::{CLIENT, Provider, SECRET};
use sepal::domain::Role;

/// The parameters of the address to which the provider sent the browser, as the page reads them.
type Returned = BTreeMap<String, String>;

/// A gateway with a provider, and the owner of the tenant into which its people come.
struct House {
    provider: Provider,
    app: TestApp,
    owner: Person,
}

impl House {
    /// The provider's people come into the tenant `acme`; `more` has further variables.
    async fn open(more: &[(&str, &str)]) -> Self {
        let provider = Provider::start().await;
        let app = Self::gateway(&provider, more).await;
        let owner = app.person_with("acme", Role::Owner).await;
        Self {
            provider,
            app,
            owner,
        }
    }

    async fn gateway(provider: &Provider, more: &[(&str, &str)]) -> TestApp {
        let mut env = vec![
            ("SPL_SANDBOX", "none"),
            ("SPL_OIDC_ISSUER", provider.issuer.as_str()),
            ("SPL_OIDC_CLIENT_ID", CLIENT),
            ("SPL_OIDC_CLIENT_SECRET", SECRET),
        ];
        if !more.iter().any(|(name, _)| *name == "SPL_OIDC_TENANTS") {
            env.push(("SPL_OIDC_TENANT", "acme"));
        }
        env.extend(more);
        TestApp::start_with(&env).await
    }

    fn owner(&self) -> Client {
        Client::with_key(&self.app, &self.owner.key)
    }

    fn browser(&self) -> Browser<'_> {
        Browser {
            app: &self.app,
            cookies: BTreeMap::new(),
        }
    }

    /// Signs in, in a browser of its own.
    async fn sign_in(&self) -> Visitor<'_> {
        let mut browser = self.browser();
        let finished = browser.sign_in().await.ok(200);
        browser.visitor(&finished)
    }

    /// The last records of an act in the tenant, the newest first.
    async fn acts(&self, act: &str) -> Vec<Value> {
        let page = self.owner().get(&format!("/api/audit?act={act}")).await;
        let page = page.ok(200);
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["record"].clone()).collect()
    }
}

/// A browser that keeps its cookies.
struct Browser<'a> {
    app: &'a TestApp,
    cookies: BTreeMap<String, String>,
}

/// A browser in which somebody is signed in.
struct Visitor<'a> {
    client: Client,
    browser: Browser<'a>,
    me: Value,
    return_to: String,
}

impl<'a> Browser<'a> {
    fn client(&self) -> Client {
        let pairs = self.cookies.iter();
        let pairs: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Client::nobody(self.app).and("cookie", pairs.join("; "))
    }

    fn keep(&mut self, answer: &Answer) {
        for set in answer.headers.get_all(SET_COOKIE) {
            let set = set.to_str().unwrap();
            assert!(set.contains("HttpOnly; SameSite=Lax"), "{set}");
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    async fn start(&mut self, body: Value) -> Answer {
        let started = self
            .client()
            .post("/api/auth/oidc/company/start", body)
            .await;
        self.keep(&started);
        started
    }

    /// The address of the provider to which the page goes.
    async fn begin(&mut self) -> Url {
        let started = self.start(json!({ "returnTo": "/rules" })).await.ok(200);
        started["url"].as_str().unwrap().parse().unwrap()
    }

    /// Says yes at the provider, and comes back to our page.
    async fn visit(&self, url: Url) -> Returned {
        let answer = TestApp::http().get(url).send().await.unwrap();
        assert_eq!(answer.status(), 302, "{}", answer.text().await.unwrap());
        let back: Url = answer.headers()[LOCATION]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        let path = format!("{}?{}", back.path(), back.query().unwrap());
        let led = self.client().get(&path).await;
        assert_eq!(led.status, 303, "{}", led.text);
        assert_eq!(led.header("referrer-policy"), "no-referrer");
        let (page, fragment) = led.header("location").split_once('#').unwrap();
        assert_eq!(page, "/signed-in");
        url::form_urlencoded::parse(fragment.as_bytes())
            .into_owned()
            .collect()
    }

    async fn finish(&mut self, returned: &Returned) -> Answer {
        let path = format!("/api/auth/oidc/{}/finish", returned["at"]);
        let finished = self.client().post(&path, json!(returned)).await;
        self.keep(&finished);
        finished
    }

    async fn sign_in(&mut self) -> Answer {
        let url = self.begin().await;
        let returned = self.visit(url).await;
        self.finish(&returned).await
    }

    fn visitor(self, finished: &Value) -> Visitor<'a> {
        let token = finished["me"]["csrfToken"].as_str().unwrap();
        Visitor {
            client: self.client().and("x-csrf-token", token),
            browser: self,
            me: finished["me"].clone(),
            return_to: finished["returnTo"].as_str().unwrap().to_owned(),
        }
    }

    /// Fails if anybody is signed in.
    async fn check_nobody(&self) {
        let me = self.client().get("/api/auth/me").await;
        me.problem(401, "unauthorized");
    }
}

/// Checks that a sign-in was refused, and says why.
#[track_caller]
fn refused(answer: &Answer, status: u16, reason: &str) -> String {
    let problem = answer.ok(status);
    assert_eq!(problem["reason"], reason, "{problem}");
    assert!(!answer.text.contains("script"), "{problem}");
    problem["detail"].as_str().unwrap().to_owned()
}
