//! The provider for the `generateContent` API: Google's Gemini itself and compatible servers.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures::stream::StreamExt as _;
use reqwest::{Client, RequestBuilder, Response, Url};

use self::assembler::Assembler;
use self::request::thinking::{Part, plan, refused_part};
use super::request::learned::Learned;
use super::request::names::Names;
use super::transport::endpoint::Endpoint;
use super::{
    Error, ModelListing, ModelStream, Provider, ProviderKind, Request, Settings, stream, transport,
};

mod assembler;
mod fault;
#[cfg(test)]
pub(super) mod fuzz;
mod listing;
mod request;
mod schema;
mod wire;

/// The vendor's base URL.
const VENDOR_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
/// The vendor's host.
const VENDOR_HOST: &str = "generativelanguage.googleapis.com";
/// The API version that is used if the base URL names none.
const VERSION: &str = "v1beta";
/// Models per page of the list.
const PAGE: &str = "1000";
/// The most pages that are read.
const MAX_PAGES: usize = 20;

/// A provider that speaks the `generateContent` API.
pub struct GenerateContent {
    endpoint: Endpoint,
    family: String,
    /// The parts that each model refused.
    learned: Learned<Part>,
}

impl GenerateContent {
    /// Creates the provider; the vendor's own address needs a key (S2.22).
    pub fn new(settings: Settings, http: Client) -> Result<Self, Error> {
        let endpoint =
            Endpoint::new(settings, Some(VENDOR_URL), http)?.with_vendor_host(VENDOR_HOST)?;
        Ok(Self {
            family: endpoint.family(),
            endpoint,
            learned: Learned::default(),
        })
    }

    /// The URL of the model list below the base URL, which may already contain the version.
    fn models_url(&self) -> Url {
        self.endpoint.url(|base| {
            let base = base.strip_suffix("/models").unwrap_or(base);
            let last = base.rsplit('/').next().unwrap_or_default();
            if last.starts_with("v1") {
                format!("{base}/models")
            } else {
                format!("{base}/{VERSION}/models")
            }
        })
    }

    /// The URL at which a model streams. The model's name comes from people, so it is added as one path
    /// segment.
    fn stream_url(&self, model: &str) -> Url {
        let model = model.strip_prefix("models/").unwrap_or(model);
        let mut url = self.models_url();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(&format!("{model}:streamGenerateContent"));
        }
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    /// Sends a request. The key goes into a header, because URLs are written to logs.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let request = match self.endpoint.key_header("")? {
            Some(key) => request.header("x-goog-api-key", key),
            None => request,
        };
        transport::send(&self.endpoint.id, request)
            .await?
            .map_err(|refused| fault::refused(self.endpoint.origin(), &refused))
    }

    /// Sends the request, and sends it again without each part that the model refuses. Returns the response
    /// and the omitted parts, each with a message for people.
    async fn ask(&self, request: &Request) -> Result<(Response, Vec<(Part, String)>), Error> {
        let attempt = |refused: BTreeSet<Part>| async move {
            let plan = plan(request, &refused);
            let body = request::body(request, &plan, &self.family);
            let url = self.stream_url(&request.model);
            match self.send(self.endpoint.http.post(url).json(&body)).await {
                Ok(response) => Ok((response, plan.left_out)),
                Err(error) => {
                    let said = error.refused_request();
                    let part = said.and_then(|said| refused_part(said, &plan));
                    Err((error, part))
                }
            }
        };
        self.learned.ask(&request.model, attempt).await
    }

    /// Adds a page of the list, and returns the token of the next one.
    async fn page(
        &self,
        token: Option<&str>,
        listing: &mut ModelListing,
    ) -> Result<Option<String>, Error> {
        let mut url = self.models_url();
        url.query_pairs_mut().append_pair("pageSize", PAGE);
        if let Some(token) = token {
            url.query_pairs_mut().append_pair("pageToken", token);
        }
        let response = self.send(self.endpoint.http.get(url)).await?;
        let body = transport::read_whole(&self.endpoint.id, response).await?;
        listing::read(&body, listing).map_err(|_| self.endpoint.no_model_list())
    }
}

#[async_trait]
impl Provider for GenerateContent {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn kind(&self) -> ProviderKind {
        self.endpoint.kind
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let (response, left_out) = self.ask(&request).await?;
        let told = self.learned.tell(&request.model, left_out);
        let payloads = super::stream::payloads::payloads(&self.endpoint.id, response).boxed();
        let names = Names::of(&request.tools);
        let assembler = Assembler::new(self.endpoint.owner(), names, self.family.clone());
        let events = stream::events(payloads, assembler);
        Ok(stream::telling(told, events))
    }

    async fn models(&self) -> Result<ModelListing, Error> {
        let mut listing = ModelListing::default();
        let mut token: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let next = self.page(token.as_deref(), &mut listing).await?;
            // A token that repeats would give the same page again.
            if next.is_none() || next == token {
                break;
            }
            token = next;
        }
        Ok(listing)
    }
}

#[cfg(test)]
mod tests;
