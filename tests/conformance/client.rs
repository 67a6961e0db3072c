//! The client of the official conformance suite: our own [`sepal::mcp::Connection`] and
//! [`sepal::mcp::authorization`], driven by the name of a scenario. What stands in the product between
//! the two, a person with a browser and the store, is here a request that follows one redirect, and memory.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::Client;
use reqwest::header::LOCATION;
use secrecy::SecretString;
use sepal::domain::Tool;
use sepal::mcp::authorization::{
    Authorization, AuthorizationAnswer, AuthorizationError, Challenge, ClientIdentity,
    ClientRegistration, Discovered, Grant, KnownClient, ScopeWish, discover,
};
use sepal::mcp::{Authorizer, ClientOffer, Connection, Refused, RefusedRequest, Remote, ToolCall};
use sepal::net;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use url::Url;

/// What the suite knows us as where a server reads that from an address.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// Where people are sent back to. Nobody listens: the redirect is read, not followed.
const CALLBACK: &str = "http://127.0.0.1:3119/callback";
/// How often one run authorises: the product asks a person each time.
const MOST: usize = 3;

/// Allows everything at once, as the person in the suite does.
struct Driver {
    client: Client,
    url: Url,
    known: Option<KnownClient>,
    is_of_client: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    grant: Option<Grant>,
    /// With the issuer that it is registered at.
    registered: Option<(Option<String>, ClientIdentity)>,
    authorised: usize,
}

impl Driver {
    async fn authorise(&self, challenge: &Challenge) -> Result<SecretString, String> {
        let mut state = self.state.lock().await;
        state.authorised += 1;
        if state.authorised > MOST {
            return Err("a person would not be asked so often".to_owned());
        }
        let text = |error: AuthorizationError| error.to_string();
        let found = discover(&self.client, &self.url, challenge, &[])
            .await
            .map_err(text)?;
        if let (true, Some(known)) = (self.is_of_client, &self.known) {
            let grant = self.client_grant(known, &found, challenge).await;
            return Ok(state
                .grant
                .insert(grant.map_err(text)?)
                .tokens
                .access()
                .into());
        }
        let (redirect, metadata) = (address(CALLBACK)?, address(METADATA)?);
        let issuer = found.issuer().map(str::to_owned);
        let registered = state.registered.take().filter(|(of, _)| *of == issuer);
        let registration = ClientRegistration {
            known: self.known.as_ref(),
            metadata_url: Some(&metadata),
            registered: registered.map(|(_, client)| client),
            redirect: &redirect,
        };
        let (identity, _) = registration
            .client(&self.client, &found)
            .await
            .map_err(text)?;
        state.registered = Some((issuer, identity.clone()));
        let granted = state
            .grant
            .as_ref()
            .map(|grant| grant.tokens.scopes().to_vec());
        let wish = ScopeWish {
            challenge: challenge.scope.as_deref(),
            entry: None,
            granted: granted.as_deref().unwrap_or_default(),
        };

        let (url, begun) =
            Authorization::begin(&found, identity, &redirect, "state-of-the-suite", &wish)
                .map_err(text)?;
        let answer = self.visit(url).await?;
        let grant = begun
            .finish(&self.client, answer, now())
            .await
            .map_err(text)?;
        Ok(state.grant.insert(grant).tokens.access().into())
    }

    /// The client's own grant, without a person.
    async fn client_grant(
        &self,
        known: &KnownClient,
        found: &Discovered,
        challenge: &Challenge,
    ) -> Result<Grant, AuthorizationError> {
        let identity = ClientIdentity::known(known, found)?;
        let scope = challenge.scope.clone().unwrap_or_default();
        let scopes: Vec<String> = scope.split_whitespace().map(str::to_owned).collect();

        Grant::of_client(&self.client, found, identity, scopes.as_slice(), now()).await
    }

    /// As a browser in which the person allows all, up to where it is sent back to.
    async fn visit(&self, url: Url) -> Result<AuthorizationAnswer, String> {
        let sent = self
            .client
            .get(url)
            .send()
            .await
            .map_err(|error| error.to_string())?;
        let location = sent.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let location = address(location.ok_or("the authorisation server sends nobody back")?)?;
        let word = |name: &str| {
            let mut pairs = location.query_pairs();
            pairs
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        Ok(AuthorizationAnswer {
            code: word("code"),
            issuer: word("iss"),
            error: word("error"),
            error_description: word("error_description"),
        })
    }
}

impl Authorizer for Driver {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, AuthorizationError>> {
        let token = async {
            let state = self.state.lock().await;
            let grant = state.grant.as_ref();
            Ok(grant.map(|grant| grant.tokens.access().into()))
        };
        token.boxed()
    }

    fn refused<'a>(&'a self, request: RefusedRequest<'a>) -> BoxFuture<'a, Refused> {
        let asked = async move {
            let challenge = request.challenge.cloned().unwrap_or_default();
            if request.is_second {
                return Refused::NeedsPerson(challenge.scope);
            }
            match self.authorise(&challenge).await {
                Ok(token) => Refused::Again(token),
                Err(reason) => {
                    tracing::warn!(reason, "Not authorised");
                    Refused::NeedsPerson(challenge.scope)
                }
            }
        };
        asked.boxed()
    }
}

fn address(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| format!("{text}: {error}"))
}

fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the suite tells its client by the environment what it is to do"
)]
fn environment(name: &str) -> String {
    let pair = std::env::vars_os().find(|(key, _)| key == name);
    pair.map(|(_, value)| value.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Connects, lists the tools, and calls each, as a session does.
async fn run(scenario: &str, url: &str) -> Result<(), String> {
    let client = net::client(&net::Settings::default()).map_err(|error| error.to_string())?;
    let context: Value =
        serde_json::from_str(&environment("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let word = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
    let known = word("client_id").map(|id| KnownClient {
        id,
        secret: word("client_secret"),
    });
    let driver = Driver {
        client: client.clone(),
        url: address(url)?,
        known,
        is_of_client: scenario.contains("client-credentials"),
        state: Mutex::default(),
    };
    let remote = Remote {
        url: url.to_owned(),
        headers: std::collections::BTreeMap::new(),
        authorizer: Some(Arc::new(driver)),
    };
    let opened = Connection::open_http("suite", client, &remote, ClientOffer::default()).await;
    let connection = opened.map_err(|error| error.to_string())?;
    let tools = connection
        .tools()
        .await
        .map_err(|error| error.to_string())?;
    for (tool, args) in calls(&context, &tools) {
        let call = ToolCall {
            args,
            tool,
            limit: Duration::from_secs(20),
            standstill: None,
            task: None,
        };
        let cancel = CancellationToken::new();
        connection
            .call(call, &cancel, |_| {})
            .await
            .map_err(|error| error.to_string())?;
    }
    connection.close().await;
    Ok(())
}

/// The calls that the suite names, else one of each tool.
fn calls(context: &Value, tools: &[Tool]) -> Vec<(String, Value)> {
    if let Some(named) = context.get("toolCalls").and_then(Value::as_array) {
        let call = |call: &Value| {
            let name = call.get("name")?.as_str()?.to_owned();
            Some((name, call.get("arguments").cloned().unwrap_or_default()))
        };
        return named.iter().filter_map(call).collect();
    }
    let arguments = |tool: &Tool| match tool.name.as_str() {
        "add_numbers" => json!({ "a": 5, "b": 3 }),
        // The suite wants to see what arrived of the other tool's schema.
        "json_schema_echo" => {
            let other = tools
                .iter()
                .find(|it| it.name == "json_schema_2020_12_tool");
            json!({ "schema": other.map(|it| &it.input_schema) })
        }
        _ => json!({}),
    };
    let call = |tool: &Tool| (tool.name.clone(), arguments(tool));
    tools.iter().map(call).collect()
}

#[tokio::main]
async fn main() -> ExitCode {
    net::install_tls();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let url = std::env::args().next_back().unwrap_or_default();
    match run(&environment("MCP_CONFORMANCE_SCENARIO"), &url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            tracing::error!(reason, "The scenario ended");
            ExitCode::FAILURE
        }
    }
}
