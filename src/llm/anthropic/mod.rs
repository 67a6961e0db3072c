//! Messages: Anthropic itself, and every server that speaks like it.

use async_trait::async_trait;
use futures::stream::StreamExt;
use reqwest::{Client, RequestBuilder, Response, Url};

use self::assembler::Assembler;
use super::catalogue::{Catalogue, Vendor};
use super::request::names::Names;
use super::transport::endpoint::Endpoint;
use super::{
    Error, ListedModel, ModelStream, Provider, ProviderKind, Request, Settings, stream, transport,
};

mod assembler;
mod fault;
#[cfg(test)]
pub(super) mod fuzz;
mod listing;
mod request;
mod wire;

/// The vendor's own address.
const VENDOR_URL: &str = "https://api.anthropic.com";
/// The vendor's host.
const VENDOR_HOST: &str = "api.anthropic.com";
/// The version of the wire form, which every request names.
const VERSION: &str = "2023-06-01";
/// The vendor insists on a limit of the answer; this one holds where none is set (D16).
const DEFAULT_MAX_TOKENS: u32 = 8_192;
/// Models of one page of the list.
const PAGE: &str = "1000";
/// Pages that are read at most.
const MAX_PAGES: usize = 20;

/// A service that speaks Messages.
pub struct Messages {
    endpoint: Endpoint,
    family: String,
    catalogue: Catalogue,
    vendor: Vendor,
}

impl Messages {
    /// Makes the provider; the vendor's own address needs a key (S2.22).
    pub fn new(settings: Settings, http: Client) -> Result<Self, Error> {
        let vendor = Vendor::of(settings.kind, settings.base_url.as_deref());
        let endpoint =
            Endpoint::new(settings, Some(VENDOR_URL), http)?.with_vendor_host(VENDOR_HOST)?;
        Ok(Self {
            family: endpoint.family(),
            endpoint,
            catalogue: Catalogue::built_in(),
            vendor,
        })
    }

    /// A path below the base, which may name the version or not.
    fn url(&self, path: &str) -> Url {
        self.endpoint.url(|base| {
            let base = base.strip_suffix("/messages").unwrap_or(base);
            let version = if base.ends_with("/v1") { "" } else { "/v1" };
            format!("{base}{version}/{path}")
        })
    }

    fn authorized(&self, request: RequestBuilder) -> Result<RequestBuilder, Error> {
        let request = request.header("anthropic-version", VERSION);
        Ok(match self.endpoint.key_header("")? {
            Some(key) => request.header("x-api-key", key),
            None => request,
        })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        transport::send(&self.endpoint.id, self.authorized(request)?)
            .await?
            .map_err(|refused| fault::refused(self.endpoint.origin(), &refused))
    }

    /// The longest answer that is asked for: a known model refuses more than it can say.
    fn max_tokens(&self, request: &Request) -> u32 {
        let wanted = request.max_tokens.filter(|&limit| limit > 0);
        let known = || {
            let known = self.catalogue.find(self.vendor, &request.model)?;
            let longest = (!known.is_output_assumed).then_some(known.max_output)?;
            u32::try_from(longest).ok()
        };
        let longest = request.max_output.or_else(known);
        let wanted = wanted.unwrap_or(DEFAULT_MAX_TOKENS);
        longest.map_or(wanted, |longest| wanted.min(longest))
    }

    async fn page(&self, after: Option<&str>) -> Result<listing::ModelList, Error> {
        let mut url = self.url("models");
        url.query_pairs_mut().append_pair("limit", PAGE);
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after_id", after);
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
impl Provider for Messages {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn kind(&self) -> ProviderKind {
        self.endpoint.kind
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let body = request::body(&request, self.max_tokens(&request), &self.family);
        let post = self.endpoint.http.post(self.url("messages")).json(&body);
        let response = self.send(post).await?;
        let payloads = super::stream::payloads::payloads(&self.endpoint.id, response).boxed();
        let names = Names::of(&request.tools);
        let assembler = Assembler::new(self.endpoint.owner(), names, self.family.clone());
        Ok(stream::events(payloads, assembler))
    }

    async fn models(&self) -> Result<Vec<ListedModel>, Error> {
        let mut listed = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = self.page(after.as_deref()).await?;
            let living = page.data.into_iter().filter(|model| !model.is_retired());
            listed.extend(living.map(listing::ListedForm::model));
            after = page.last_id.filter(|_| page.has_more);
            if after.is_none() {
                break;
            }
        }
        Ok(listed)
    }
}

#[cfg(test)]
mod tests;
