//! The REST door and the page over real HTTP.

mod description;
mod doors;
mod keys;
mod models;
mod parity;
mod people;
mod refusals;
mod sessions;
mod sign_in;
mod stream;
mod tenants;
mod versions;

use std::net::SocketAddr;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;

use crate::support::TestApp;

/// Somebody who asks: with a key, with a cookie, or as nobody.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    headers: Vec<(&'static str, String)>,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Client {
    pub(crate) fn nobody(app: &TestApp) -> Self {
        Self {
            http: TestApp::http(),
            base: app.url(""),
            headers: Vec::new(),
        }
    }

    pub(crate) fn with_key(app: &TestApp, key: &str) -> Self {
        Self::nobody(app).and("authorization", format!("Bearer {key}"))
    }

    /// With a key, at a server that is a process of its own.
    pub(crate) fn at(address: SocketAddr, key: &str) -> Self {
        Self::nobody_at(address).and("authorization", format!("Bearer {key}"))
    }

    /// As nobody, at a server that is a process of its own.
    pub(crate) fn nobody_at(address: SocketAddr) -> Self {
        Self {
            http: TestApp::http(),
            base: format!("http://{address}"),
            headers: Vec::new(),
        }
    }

    /// The same with one more header on every request.
    pub(crate) fn and(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let request = self.request(method.clone(), path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = Answer::of(request.send().await.unwrap()).await;
        description::check(&method, path, &answer);
        answer
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        let headers = self.headers.iter();
        headers.fold(request, |request, (name, value)| {
            request.header(*name, value)
        })
    }
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }

    /// It was done, and there is nothing to tell.
    #[track_caller]
    pub(crate) fn done(&self) {
        assert_eq!(self.status, 204, "{}", self.text);
    }

    /// The code of a problem.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// A problem document with that code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let problem = self.ok(status);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(
            problem["requestId"],
            self.header("x-request-id"),
            "{problem}"
        );
        assert_eq!(problem["error"], problem["detail"], "{problem}");
        problem
    }
}
