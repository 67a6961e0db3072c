//! Responses, the vendor's newer interface. Nothing is kept there: every request holds the whole
//! conversation, with what the model thought, encrypted.

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
    Compactor, Deferral, Error, ListedModel, ModelStream, Provider, ProviderKind, Request,
};
use sepal_core::domain::Tool;

pub(super) mod assembler;
mod request;
mod searched;
mod wire;

/// What a server may refuse by name and do without. What stands within another comes first.
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

/// A service that speaks Responses.
pub(super) struct Responses {
    server: Server,
    tools: WrittenTools,
    /// The same where the vendor searches. What it searches belongs to the tools of the request.
    searched_tools: WrittenTools,
}

impl Responses {
    /// Speaks to that server.
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

    async fn models(&self) -> Result<Vec<ListedModel>, Error> {
        self.server.models().await
    }

    fn compactor(&self, model: &str) -> Option<Compactor> {
        self.server.compactor(model)
    }
}
