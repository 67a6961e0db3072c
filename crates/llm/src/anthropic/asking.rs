//! Sends requests to the vendor: retries without parts that the model refuses, and continues paused answers.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::stream::{BoxStream, Stream, StreamExt};
use reqwest::Response;

use super::Service;
use super::assembler::{Pause, Said};
use super::request::thinking::{Part, Sent, has_tool_search, plan, refused_part};
use super::request::{self, Terms};
use crate::stream::payloads::payloads;
use crate::{Error, Request};

/// The beta header that lets a fourth-generation model think between its calls.
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";
/// The beta header that compaction and returned compaction blocks require.
const COMPACT: &str = "compact-2026-01-12";

impl Service {
    /// Sends the request, and sends it again without each part that the model refuses. Returns the response
    /// and the omitted parts, each with a message for people.
    pub(super) async fn ask(
        &self,
        request: &Request,
        said: Option<&Said>,
    ) -> Result<(Response, Vec<(Part, String)>), Error> {
        let attempt = |refused: BTreeSet<Part>| async move {
            let mut plan = plan(request, self.longest(request), &refused);
            let is_refused = refused.contains(&Part::Compaction);
            let compacting = request.compacting_unless(is_refused);
            if compacting.is_none() && request.compacting.is_some() {
                let told = request.not_compacted();
                plan.left_out.push((Part::Compaction, told));
            }
            let ttl = self
                .cache_ttl
                .filter(|_| !refused.contains(&Part::CacheTtl));
            let is_searching = !refused.contains(&Part::ToolSearch) && self.searches(request);
            let terms = Terms {
                plan: &plan,
                family: &self.family,
                cache_ttl: ttl,
                is_searching,
                compact_from: compacting.map(|it| it.threshold),
            };
            match self.post(request, terms, said).await {
                Ok(response) => Ok((response, plan.left_out)),
                Err(error) => {
                    let said = error.refused_request();
                    let sent = Sent {
                        has_ttl: ttl.is_some(),
                        is_searching,
                        is_compacting: compacting.is_some_and(|it| !it.resumes),
                    };
                    let part = said.and_then(|said| refused_part(said, &plan, sent));
                    Err((error, part))
                }
            }
        };
        self.learned.ask(&request.model, attempt).await
    }

    /// Returns true if the vendor searches the request's tools.
    fn searches(&self, request: &Request) -> bool {
        let is_vendor = self.endpoint.is_vendor;
        request
            .searched_by_vendor(is_vendor, has_tool_search)
            .is_some()
    }

    async fn post(
        &self,
        request: &Request,
        terms: Terms<'_>,
        said: Option<&Said>,
    ) -> Result<Response, Error> {
        let mut body = request::body(request, terms);
        if let Some(said) = said {
            request::push_said(&mut body, said);
        }
        let mut post = self.endpoint.http.post(self.url("messages"));
        let betas = [
            (terms.plan.is_interleaved, INTERLEAVED),
            (terms.compact_from.is_some(), COMPACT),
        ];
        for (_, beta) in betas.into_iter().filter(|(is_used, _)| *is_used) {
            post = post.header("anthropic-beta", beta);
        }
        self.send(post.json(&body)).await
    }
}

/// The payloads of one answer, which spans as many requests as the vendor pauses it.
pub(super) struct Answering {
    pub(super) service: Arc<Service>,
    pub(super) request: Arc<Request>,
    /// The slot in which the assembler reports a pause.
    pub(super) pause: Pause,
    pub(super) payloads: BoxStream<'static, Result<String, Error>>,
    /// The pending request that continues a paused answer.
    pub(super) asking: Option<BoxFuture<'static, Result<Response, Error>>>,
}

/// Implemented by hand, because it is polled for every token.
impl Stream for Answering {
    type Item = Result<String, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(asking) = &mut this.asking {
                let answered = ready!(asking.as_mut().poll(cx));
                this.asking = None;
                match answered {
                    Ok(response) => {
                        this.payloads = payloads(&this.service.endpoint.id, response).boxed();
                    }
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            let paused = this
                .pause
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let Some(said) = paused else {
                return this.payloads.poll_next_unpin(cx);
            };
            let (service, request) = (Arc::clone(&this.service), Arc::clone(&this.request));
            this.asking = Some(Box::pin(async move {
                let asked = service.ask(&request, Some(&said)).await;
                asked.map(|(response, _)| response)
            }));
        }
    }
}
