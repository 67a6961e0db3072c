//! The provider for OpenAI's two APIs, and compatible servers (Ollama, vLLM, llama.cpp, …).

use std::sync::Arc;

use reqwest::Client;

use self::chat::ChatCompletions;
use self::responses::Responses;
use self::server::Server;
use super::{Api, Error, Provider, ProviderKind, Settings};

mod chat;
mod effort;
mod fault;
#[cfg(test)]
pub(super) mod fuzz;
mod lesson;
mod models;
mod omitted;
mod responses;
mod server;
mod tools;

/// Returns true if a provider of OpenAI's kinds uses the Responses API.
pub(super) fn speaks_responses(kind: ProviderKind, api: Api, base_url: Option<&str>) -> bool {
    is_responses(api, server::is_vendor(kind, base_url))
}

/// Creates the provider for the API that its settings choose; the vendor's own address needs a key (S2.22).
pub fn connect(settings: Settings, http: Client) -> Result<Arc<dyn Provider>, Error> {
    let api = settings.api;
    let server = Server::new(settings, http)?;
    Ok(if is_responses(api, server.endpoint.is_vendor) {
        Arc::new(Responses::new(server))
    } else {
        Arc::new(ChatCompletions::new(server))
    })
}

fn is_responses(api: Api, is_vendor: bool) -> bool {
    match api {
        Api::Auto => is_vendor,
        Api::Responses => true,
        Api::ChatCompletions => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_responses;
    use crate::Api;

    #[test]
    fn the_vendor_is_asked_in_its_newer_interface_unless_somebody_says_otherwise() {
        for (api, is_vendor, expected) in [
            (Api::Auto, true, true),
            (Api::Auto, false, false),
            (Api::Responses, false, true),
            (Api::ChatCompletions, true, false),
        ] {
            assert_eq!(is_responses(api, is_vendor), expected, "{api} {is_vendor}");
        }
    }
}
