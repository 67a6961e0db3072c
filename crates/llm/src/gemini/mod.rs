//! `generateContent`: Google's Gemini itself, and every server that speaks like it.

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
    Error, ListedModel, ModelStream, Provider, ProviderKind, Request, Settings, stream, transport,
};

mod assembler;
mod fault;
#[cfg(test)]
pub(super) mod fuzz;
mod request;
mod schema;
mod wire;

/// The vendor's own address.
const VENDOR_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
/// The vendor's host.
const VENDOR_HOST: &str = "generativelanguage.googleapis.com";
/// The version of the wire form where the address names none.
const VERSION: &str = "v1beta";
/// Models of one page of the list.
const PAGE: &str = "1000";
/// Pages that are read at most.
const MAX_PAGES: usize = 20;
/// What a listed model must be able to do.
const METHOD: &str = "generateContent";

/// A service that speaks `generateContent`.
pub struct GenerateContent {
    endpoint: Endpoint,
    family: String,
    /// What its models refused.
    learned: Learned<Part>,
}

impl GenerateContent {
    /// Makes the provider; the vendor's own address needs a key (S2.22).
    pub fn new(settings: Settings, http: Client) -> Result<Self, Error> {
        let endpoint =
            Endpoint::new(settings, Some(VENDOR_URL), http)?.with_vendor_host(VENDOR_HOST)?;
        Ok(Self {
            family: endpoint.family(),
            endpoint,
            learned: Learned::default(),
        })
    }

    /// The list of models below the base, which may name the version or not.
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

    /// Where a model streams. Its name comes from people, so it stays one segment of the path.
    fn stream_url(&self, model: &str) -> Url {
        let model = model.strip_prefix("models/").unwrap_or(model);
        let mut url = self.models_url();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(&format!("{model}:streamGenerateContent"));
        }
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    /// The key goes into a header: an address is written into logs.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let request = match self.endpoint.key_header("")? {
            Some(key) => request.header("x-goog-api-key", key),
            None => request,
        };
        transport::send(&self.endpoint.id, request)
            .await?
            .map_err(|refused| fault::refused(self.endpoint.origin(), &refused))
    }

    /// Asks, and asks once more without each part that the model turns out to take none of; gives the
    /// answer and what was left out, in words.
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

    async fn page(&self, token: Option<&str>) -> Result<wire::ModelList, Error> {
        let mut url = self.models_url();
        url.query_pairs_mut().append_pair("pageSize", PAGE);
        if let Some(token) = token {
            url.query_pairs_mut().append_pair("pageToken", token);
        }
        let response = self.send(self.endpoint.http.get(url)).await?;
        let body = transport::read_whole(&self.endpoint.id, response).await?;
        serde_json::from_slice(&body).map_err(|error| Error::BadAnswer {
            provider: self.endpoint.id.clone(),
            problem: format!("a list of models that is none ({error})"),
        })
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

    async fn models(&self) -> Result<Vec<ListedModel>, Error> {
        let mut listed = Vec::new();
        let mut token: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = self.page(token.as_deref()).await?;
            let chats = page.models.into_iter().filter(wire::ListedForm::can_chat);
            listed.extend(chats.map(|model| ListedModel {
                id: match model.name.strip_prefix("models/") {
                    Some(id) => id.to_owned(),
                    None => model.name,
                },
                name: model.display_name,
                context_window: model.input_token_limit,
                max_output: model.output_token_limit,
                ..ListedModel::default()
            }));
            token = page.next_page_token.filter(|token| !token.is_empty());
            if token.is_none() {
                break;
            }
        }
        Ok(listed)
    }
}

#[cfg(test)]
mod tests;
