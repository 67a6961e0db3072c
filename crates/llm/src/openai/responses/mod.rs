//! The provider for the Responses API, the vendor's newer one. The vendor stores nothing: every request holds
//! the whole conversation, with the model's encrypted reasoning.

use async_trait::async_trait;
use futures::stream::StreamExt;

use self::assembler::Assembler;
use super::omitted::{Omitted, Part};
use super::server::Server;
use super::tools::{Strictness, Written, WrittenTools};
use crate::request::names::Names;
use crate::stream;
use crate::stream::payloads;
use crate::{
    Compactor, Deferral, Error, ModelListing, ModelStream, Provider, ProviderKind, Request,
};
use sepal_core::domain::Tool;

pub(super) mod assembler;
mod request;
mod searched;
mod wire;

/// The parts of a request that a server may refuse by name and that can be omitted. A part nested in another
/// comes before it.
const PARTS: &[Part] = &[
    Part::ToolSearch,
    Part::Compaction,
    Part::Summary,
    Part::Encrypted,
    Part::Effort,
    Part::Temperature,
    Part::Thoughts,
    Part::CacheKey,
    Part::ToolChoice,
    Part::Strict,
];

/// A provider that speaks Responses.
pub(super) struct Responses {
    server: Server,
    tools: WrittenTools,
    /// The cache for requests whose vendor searches tools; the searchable tools are determined by the
    /// request's tools.
    searched_tools: WrittenTools,
}

impl Responses {
    /// Creates the provider for a server.
    pub(super) fn new(server: Server) -> Self {
        Self {
            server,
            tools: WrittenTools::default(),
            searched_tools: WrittenTools::default(),
        }
    }

    fn tools(&self, request: &Request, omitted: &Omitted) -> Result<Written, Error> {
        let strictness = Strictness::possible_if(!omitted.has(Part::Strict));
        let deferral = request.deferral.as_ref();
        let tools = match deferral.filter(|_| !omitted.has(Part::ToolSearch)) {
            Some(Deferral { searchable, .. }) => {
                let write = |_: &[Tool], strictness| request::search::tools(searchable, strictness);
                self.searched_tools.get(&request.tools, strictness, write)
            }
            None => self.tools.get(&request.tools, strictness, request::tools),
        };
        tools.map_err(|error| self.server.unwritable(&error))
    }
}

#[async_trait]
impl Provider for Responses {
    fn id(&self) -> &str {
        &self.server.endpoint.id
    }

    fn kind(&self) -> ProviderKind {
        self.server.endpoint.kind
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let server = &self.server;
        let build = |omitted: &Omitted| {
            let tools = self.tools(&request, omitted)?;
            let body = request::body(&request, tools.as_deref(), (&server.family, omitted));
            let url = server.url("responses");
            Ok(server.endpoint.http.post(url).json(&body))
        };
        let opened = server.open(&request, PARTS, build).await?;
        let (response, told) = opened.into_parts();
        let payloads = payloads::payloads(&server.endpoint.id, response).boxed();
        let names = Names::of_all(request.all_tools());
        let assembler = Assembler::new(server.endpoint.owner(), names, server.family.clone());
        Ok(stream::telling(told, stream::events(payloads, assembler)))
    }

    async fn models(&self) -> Result<ModelListing, Error> {
        self.server.models().await
    }

    fn found_address(&self) -> Option<String> {
        self.server.found_address()
    }

    fn compactor(&self, model: &str) -> Option<Compactor> {
        self.server.compactor(model)
    }
}
