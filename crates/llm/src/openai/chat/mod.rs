//! The provider for the Chat Completions API, which most servers support.

use async_trait::async_trait;
use futures::stream::StreamExt;

use self::assembler::{Assembler, Context};
use self::host::Host;
use self::request::Dialect;
use super::omitted::{Omitted, Part};
use super::server::Server;
use super::tools::{Strictness, Written, WrittenTools};
use crate::request::names::Names;
use crate::stream;
use crate::stream::payloads;
use crate::{Error, ModelListing, ModelStream, Provider, ProviderKind, Request};

pub(super) mod assembler;
mod calls;
mod details;
mod host;
mod request;
mod wire;

/// The parts of a request that a server may refuse by name and that can be omitted.
const PARTS: &[Part] = &[
    Part::StreamOptions,
    Part::Effort,
    Part::Temperature,
    Part::Thoughts,
    Part::ToolChoice,
    Part::Strict,
    Part::MaxTokens,
];

/// A provider that speaks Chat Completions.
pub(super) struct ChatCompletions {
    server: Server,
    host: Host,
    tools: WrittenTools,
}

impl ChatCompletions {
    /// Creates the provider for a server.
    pub(super) fn new(server: Server) -> Self {
        Self {
            host: Host::of(&server.endpoint),
            server,
            tools: WrittenTools::default(),
        }
    }

    /// The tools in their wire form. Strict schemas go only to the vendor, because other servers may not know
    /// them.
    fn tools(&self, request: &Request, omitted: &Omitted) -> Result<Written, Error> {
        let strictness =
            Strictness::possible_if(self.server.endpoint.is_vendor && !omitted.has(Part::Strict));
        let tools = self.tools.get(&request.tools, strictness, request::tools);
        tools.map_err(|error| self.server.unwritable(&error))
    }
}

#[async_trait]
impl Provider for ChatCompletions {
    fn id(&self) -> &str {
        &self.server.endpoint.id
    }

    fn kind(&self) -> ProviderKind {
        self.server.endpoint.kind
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let server = &self.server;
        let build = |omitted: &Omitted| {
            let dialect = Dialect {
                is_vendor: server.endpoint.is_vendor,
                host: self.host,
                family: &server.family,
                omitted,
            };
            let tools = self.tools(&request, omitted)?;
            let body = request::body(&request, tools.as_deref(), dialect);
            let url = server.url("chat/completions");
            Ok(server.endpoint.http.post(url).json(&body))
        };
        let opened = server.open(&request, PARTS, build).await?;
        let (response, told) = opened.into_parts();
        let payloads = payloads::payloads(&server.endpoint.id, response).boxed();
        let assembler = Assembler::new(Context {
            owner: server.endpoint.owner(),
            names: Names::of(&request.tools),
            family: (!server.endpoint.is_vendor).then(|| server.family.clone()),
        });
        Ok(stream::telling(told, stream::events(payloads, assembler)))
    }

    async fn models(&self) -> Result<ModelListing, Error> {
        self.server.models().await
    }

    fn found_address(&self) -> Option<String> {
        self.server.found_address()
    }
}
