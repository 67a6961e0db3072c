//! Sends a member's requests to the REST door, and times them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use reqwest::Client;
use serde_json::Value;

use crate::subject::Subject;

/// Returns the median of the times, in milliseconds.
pub(crate) fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    middle.as_secs_f64() * 1_000.0
}

/// A client with a member's key.
pub(crate) struct Rest<'s> {
    client: Client,
    subject: &'s Subject,
}

impl<'s> Rest<'s> {
    /// Creates a client with the key of the subject's member.
    pub(crate) fn new(subject: &'s Subject) -> Result<Self> {
        Ok(Self {
            client: Client::builder().build()?,
            subject,
        })
    }

    /// Sends a GET request; returns the body and the elapsed time.
    pub(crate) async fn get(&self, path: &str) -> Result<(Value, Duration)> {
        let url = format!("http://{}{path}", self.subject.program.address);
        let began = Instant::now();
        let asked = self.client.get(url).bearer_auth(self.subject.key());
        let answer = asked.send().await?.error_for_status()?.bytes().await?;
        let took = began.elapsed();
        let body = serde_json::from_slice(&answer).with_context(|| format!("GET {path}"))?;
        Ok((body, took))
    }

    /// Sends a POST request.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let url = format!("http://{}{path}", self.subject.program.address);
        let asked = self.client.post(url).bearer_auth(self.subject.key());
        let answer = asked.json(body).send().await?.error_for_status()?;
        Ok(answer.json().await?)
    }
}
