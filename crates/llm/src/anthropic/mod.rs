//! The provider for the Messages API: Anthropic itself and compatible servers.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::StreamExt as _;
use reqwest::{Client, RequestBuilder, Response, Url};

use self::asking::Answering;
use self::assembler::{Assembler, Pause};
use self::request::thinking::Part;
use super::catalogue::{self, Vendor};
use super::compaction::ANTHROPIC_LEAST;
use super::request::learned::Learned;
use super::request::names::Names;
use super::stream::payloads::payloads;
use super::transport::endpoint::Endpoint;
use super::{
    CacheTtl, CompactedBy, CompactionSetting, Compactor, Error, ModelListing, ModelStream,
    Provider, ProviderKind, Request, Settings, stream, transport,
};

mod asking;
mod assembler;
mod fault;
#[cfg(test)]
pub(super) mod fuzz;
mod listing;
mod request;
mod searched;
mod usage;
mod wire;

/// The vendor's base URL.
const VENDOR_URL: &str = "https://api.anthropic.com";
/// The vendor's host.
const VENDOR_HOST: &str = "api.anthropic.com";
/// The API version, which every request names.
const VERSION: &str = "2023-06-01";
/// Models per page of the list.
const PAGE: &str = "1000";
/// The most pages that are read.
const MAX_PAGES: usize = 20;

/// A provider that speaks the Messages API.
pub struct Messages(Arc<Service>);

/// State that a request shares with the continuations of its answer.
struct Service {
    endpoint: Endpoint,
    family: String,
    vendor: Vendor,
    /// The parts that each model refused.
    learned: Learned<Part>,
    /// The lifetime of cache entries; `None` = the vendor's default.
    cache_ttl: Option<&'static str>,
    /// The setting that decides who compacts the context.
    compaction: CompactionSetting,
}

impl Messages {
    /// Creates the provider; the vendor's own address needs a key (S2.22).
    pub fn new(settings: Settings, http: Client) -> Result<Self, Error> {
        let (cache_ttl, compaction) = (settings.cache_ttl, settings.compaction);
        let vendor = Vendor::of(settings.kind, settings.base_url.as_deref());
        let endpoint =
            Endpoint::new(settings, Some(VENDOR_URL), http)?.with_vendor_host(VENDOR_HOST)?;
        Ok(Self(Arc::new(Service {
            family: endpoint.family(),
            endpoint,
            vendor,
            learned: Learned::default(),
            compaction,
            cache_ttl: match cache_ttl {
                CacheTtl::FiveMinutes => None,
                CacheTtl::Hour => Some(cache_ttl.as_str()),
            },
        })))
    }
}

impl Service {
    /// The URL of a path below the base URL, which may already contain the version.
    fn url(&self, path: &str) -> Url {
        self.endpoint.url(|base| {
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

    /// The model's output limit in tokens, if the request or the catalogue knows it.
    fn longest(&self, request: &Request) -> Option<u32> {
        let known = || {
            let known = catalogue::find(self.vendor, &request.model)?;
            let longest = (!known.is_output_assumed).then_some(known.max_output)?;
            u32::try_from(longest).ok()
        };
        request.max_output.or_else(known)
    }

    /// Adds a page of the list, and returns the id after which the next one begins.
    async fn page(
        &self,
        after: Option<&str>,
        listing: &mut ModelListing,
    ) -> Result<Option<String>, Error> {
        let mut url = self.url("models");
        url.query_pairs_mut().append_pair("limit", PAGE);
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after_id", after);
        }
        let response = self.send(self.endpoint.http.get(url)).await?;
        let body = transport::read_whole(&self.endpoint.id, response).await?;
        listing::read(&body, listing).map_err(|_| self.endpoint.no_model_list())
    }
}

#[async_trait]
impl Provider for Messages {
    fn id(&self) -> &str {
        &self.0.endpoint.id
    }

    fn kind(&self) -> ProviderKind {
        self.0.endpoint.kind
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let service = Arc::clone(&self.0);
        let (response, left_out) = service.ask(&request, None).await?;
        let told = service.learned.tell(&request.model, left_out);
        let names = Names::of_all(request.all_tools());
        let pause = Pause::default();
        let assembler = Assembler::new(service.endpoint.owner(), names, service.family.clone());
        let assembler = assembler.pausing(Arc::clone(&pause));
        let answering = Answering {
            payloads: payloads(&service.endpoint.id, response).boxed(),
            service,
            request: Arc::new(request),
            pause,
            asking: None,
        };
        let events = stream::events(answering.boxed(), assembler);
        Ok(stream::telling(told, events))
    }

    async fn models(&self) -> Result<ModelListing, Error> {
        let mut listing = ModelListing::default();
        let mut after: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let next = self.0.page(after.as_deref(), &mut listing).await?;
            // An id that repeats would give the same page again.
            if next.is_none() || next == after {
                break;
            }
            after = next;
        }
        Ok(listing)
    }

    fn compactor(&self, model: &str) -> Option<Compactor> {
        let Service {
            compaction,
            learned,
            family,
            ..
        } = &*self.0;
        let is_set = compaction.by == CompactedBy::Vendor;
        (is_set && !learned.refuses(model, Part::Compaction)).then(|| Compactor {
            family: family.clone(),
            threshold: compaction.threshold,
            least: ANTHROPIC_LEAST,
        })
    }
}

#[cfg(test)]
mod tests;
