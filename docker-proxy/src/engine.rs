//! Sends our own requests to the engine: one connection per request, so that no part of one request can be
//! taken for the beginning of another.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    client::conn::http1::handshake,
    header::{CONNECTION, CONTENT_TYPE, HOST, UPGRADE},
    upgrade::{self, Upgraded},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};
use tokio_util::task::TaskTracker;
use tracing::debug;

use crate::{address::Address, refusal::Refusal};

/// The largest answer: more than a list of many thousand containers.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The time limit of an answer; removing a container takes longest.
const ANSWER_LIMIT: Duration = Duration::from_mins(2);
/// The time for which the engine's version is cached.
const KNOWN_FOR: Duration = Duration::from_mins(1);
/// The newest minor version of the API for which the template was written (`1.` precedes it).
const NEWEST: u16 = 51;
/// The oldest minor version that supports everything in the template.
const OLDEST: u16 = 41;

/// A container engine.
#[derive(Debug)]
pub(crate) struct Engine {
    address: Address,
    /// The minor API version after `1.`, and when the engine reported it: the engine may return with another
    /// one.
    version: Mutex<Option<(u16, Instant)>>,
    connections: TaskTracker,
}

/// A request to the engine.
#[derive(Debug)]
pub(crate) struct Question<'q> {
    method: Method,
    path: String,
    query: Vec<(&'q str, String)>,
    body: Option<&'q Value>,
}

impl<'q> Question<'q> {
    /// Creates a request. The path is our own; names in it must have been checked.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn with(mut self, name: &'q str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn body(self, body: &'q Value) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    fn request(&self, version: Option<u16>) -> Result<Request<Full<Bytes>>, Refusal> {
        let version = version.map_or_else(String::new, |minor| format!("/v1.{minor}"));
        let mut uri = format!("{version}{}", self.path);
        if !self.query.is_empty() {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(&self.query);
            uri = format!("{uri}?{}", query.finish());
        }
        let request = Request::builder()
            .method(self.method.clone())
            .uri(uri)
            .header(HOST, "docker");
        let request = match self.body {
            Some(body) => request
                .header(CONTENT_TYPE, "application/json")
                .body(Full::from(body.to_string())),
            None => request.body(Full::default()),
        };
        request.map_err(|error| Refusal::Odd(error.to_string()))
    }
}

impl Engine {
    pub(crate) fn new(address: Address) -> Self {
        Self {
            address,
            version: Mutex::default(),
            connections: TaskTracker::new(),
        }
    }

    /// Waits until no connection is open.
    pub(crate) async fn close(&self) {
        self.connections.close();
        self.connections.wait().await;
    }

    fn away(&self, error: impl std::fmt::Display) -> Refusal {
        Refusal::Away {
            address: self.address.to_string(),
            said: error.to_string(),
        }
    }

    /// Returns the minor API version to speak, without `1.`.
    pub(crate) async fn version(&self) -> Result<u16, Refusal> {
        // Locked during the request: others would ask the same.
        let mut known = self.version.lock().await;
        if let Some((minor, told)) = *known
            && told.elapsed() < KNOWN_FOR
        {
            return Ok(minor);
        }
        let request = Question::get("/version").request(None)?;
        let response = self.send(request, Some(ANSWER_LIMIT)).await?;
        let told: Value = answer(response).await?;
        let told = told.get("ApiVersion").and_then(Value::as_str);
        let minor = told.and_then(|it| it.strip_prefix("1.")?.parse::<u16>().ok());
        let Some(minor) = minor.filter(|minor| *minor >= OLDEST) else {
            let told = told.unwrap_or("none");
            return Err(Refusal::Odd(format!(
                "API version `{told}`; an engine with 1.{OLDEST} or later is needed"
            )));
        };
        let minor = minor.min(NEWEST);
        *known = Some((minor, Instant::now()));
        Ok(minor)
    }

    /// Sends a request and returns the JSON answer; an engine's error becomes our refusal.
    pub(crate) async fn ask(&self, question: &Question<'_>) -> Result<Value, Refusal> {
        answer(self.open(question, Some(ANSWER_LIMIT)).await?).await
    }

    /// Sends a request and returns only the status code.
    pub(crate) async fn tell(&self, question: &Question<'_>) -> Result<StatusCode, Refusal> {
        let response = self.open(question, Some(ANSWER_LIMIT)).await?;
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(refusal(response).await);
        }
        Ok(status)
    }

    /// Sends a request whose answer may take any time, such as the end of a container.
    pub(crate) async fn follow(
        &self,
        question: &Question<'_>,
    ) -> Result<Response<Incoming>, Refusal> {
        let response = self.open(question, None).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refusal(response).await)
    }

    /// Sends a request that turns the connection into a stream.
    pub(crate) async fn stream(&self, question: &Question<'_>) -> Result<Upgraded, Refusal> {
        let mut request = question.request(Some(self.version().await?))?;
        let headers = request.headers_mut();
        headers.insert(CONNECTION, "Upgrade".parse().map_err(odd)?);
        headers.insert(UPGRADE, "tcp".parse().map_err(odd)?);
        let response = self.send(request, Some(ANSWER_LIMIT)).await?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => upgrade::on(response).await.map_err(odd),
            status if status.is_success() => Err(odd("no stream")),
            _ => Err(refusal(response).await),
        }
    }

    async fn open(
        &self,
        question: &Question<'_>,
        limit: Option<Duration>,
    ) -> Result<Response<Incoming>, Refusal> {
        let version = self.version().await?;
        self.send(question.request(Some(version))?, limit).await
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: Option<Duration>,
    ) -> Result<Response<Incoming>, Refusal> {
        let stream = self.address.connect().await;
        let stream = TokioIo::new(stream.map_err(|error| self.away(error))?);
        let (mut sender, connection) = handshake(stream).await.map_err(|error| self.away(error))?;
        self.connections.spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                debug!(%error, "A connection to the engine broke");
            }
        });
        let sending = sender.send_request(request);
        let sent = match limit {
            Some(limit) => timeout(limit, sending)
                .await
                .map_err(|_| self.away("it takes too long"))?,
            None => sending.await,
        };
        sent.map_err(|error| self.away(error))
    }
}

fn odd(what: impl std::fmt::Display) -> Refusal {
    Refusal::Odd(what.to_string())
}

/// Reads a whole answer.
async fn read(response: Response<Incoming>) -> Result<Bytes, Refusal> {
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect();
    let read = timeout(ANSWER_LIMIT, body).await.map_err(odd)?;
    Ok(read.map_err(odd)?.to_bytes())
}

async fn answer(response: Response<Incoming>) -> Result<Value, Refusal> {
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    serde_json::from_slice(&read(response).await?).map_err(odd)
}

/// Converts the engine's error, with its own message.
async fn refusal(response: Response<Incoming>) -> Refusal {
    let status = response.status();
    let told = read(response).await.unwrap_or_default();
    let told: Option<Value> = serde_json::from_slice(&told).ok();
    let message = told
        .as_ref()
        .and_then(|it| it.get("message")?.as_str())
        .unwrap_or("the engine gave no reason");
    Refusal::Engine {
        status,
        message: message.to_owned(),
    }
}
