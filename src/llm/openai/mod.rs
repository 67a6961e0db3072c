//! Chat Completions: OpenAI itself, and every server that speaks it (Ollama, vLLM, llama.cpp, …).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::stream::StreamExt;
use reqwest::header::AUTHORIZATION;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde_json::value::RawValue;
use tracing::info;

use self::assembler::{Assembler, Context};
use self::request::Dialect;
use super::request::names::Names;
use super::stream;
use super::stream::payloads;
use super::transport::endpoint::Endpoint;
use super::transport::{self, Refused};
use super::{
    Error, ListedModel, ModelStream, Provider, ProviderKind, Request, RequestCache, Settings,
};

mod assembler;
mod calls;
mod fault;
#[cfg(test)]
pub(super) mod fuzz;
mod request;
mod wire;

/// The vendor's own address.
const VENDOR_URL: &str = "https://api.openai.com/v1";
/// The vendor's host.
const VENDOR_HOST: &str = "api.openai.com";

/// A service that speaks Chat Completions.
pub struct ChatCompletions {
    endpoint: Endpoint,
    family: String,
    /// Some servers refuse the field; once one did, it is left out.
    has_stream_options: AtomicBool,
    /// Tools as requests carry them: they are most of a short one.
    tools: RequestCache<Option<Arc<RawValue>>>,
}

impl ChatCompletions {
    /// Makes the provider; the vendor's own address needs a key (S2.22).
    pub fn new(settings: Settings, http: Client) -> Result<Self, Error> {
        let vendor = (settings.kind == ProviderKind::OpenAi).then_some(VENDOR_URL);
        let endpoint = Endpoint::new(settings, vendor, http)?.with_vendor_host(VENDOR_HOST)?;
        Ok(Self {
            family: endpoint.family(),
            endpoint,
            has_stream_options: AtomicBool::new(true),
            tools: RequestCache::default(),
        })
    }

    /// A path below the base.
    fn url(&self, path: &str) -> Url {
        self.endpoint.url(|base| {
            let base = base.strip_suffix("/chat/completions").unwrap_or(base);
            format!("{base}/{path}")
        })
    }

    fn authorized(&self, request: RequestBuilder) -> Result<RequestBuilder, Error> {
        Ok(match self.endpoint.key_header("Bearer ")? {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        })
    }

    async fn post(
        &self,
        request: &Request,
        has_stream_options: bool,
    ) -> Result<Result<Response, Refused>, Error> {
        let dialect = Dialect {
            is_vendor: self.endpoint.is_vendor,
            has_stream_options,
            family: &self.family,
        };
        let tools = self.tools.get(&request.tools, request::tools);
        let tools = tools.map_err(|error| Error::Misconfigured {
            provider: self.endpoint.id.clone(),
            problem: format!("the tools cannot be written ({error})"),
        })?;
        let body = request::body(request, tools.as_deref(), dialect);
        let http = &self.endpoint.http;
        let post = http.post(self.url("chat/completions")).json(&body);
        transport::send(&self.endpoint.id, self.authorized(post)?).await
    }

    async fn open(&self, request: &Request) -> Result<Response, Error> {
        let has_stream_options = self.has_stream_options.load(Ordering::Relaxed);
        let mut reply = self.post(request, has_stream_options).await?;
        if let Err(refused) = &reply
            && has_stream_options
            && blames_stream_options(refused)
        {
            let id = &self.endpoint.id;
            info!(llm.provider = %id, "Provider `{id}` takes no `stream_options`");
            reply = self.post(request, false).await?;
            if reply.is_ok() {
                self.has_stream_options.store(false, Ordering::Relaxed);
            }
        }
        reply.map_err(|refused| fault::refused(self.endpoint.origin(), &refused))
    }
}

#[async_trait]
impl Provider for ChatCompletions {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn kind(&self) -> ProviderKind {
        self.endpoint.kind
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let response = self.open(&request).await?;
        let payloads = payloads::payloads(&self.endpoint.id, response).boxed();
        let assembler = Assembler::new(Context {
            owner: self.endpoint.owner(),
            names: Names::of(&request.tools),
            family: (!self.endpoint.is_vendor).then(|| self.family.clone()),
        });
        Ok(stream::events(payloads, assembler))
    }

    async fn models(&self) -> Result<Vec<ListedModel>, Error> {
        let get = self.authorized(self.endpoint.http.get(self.url("models")))?;
        let response = transport::send(&self.endpoint.id, get)
            .await?
            .map_err(|refused| fault::refused(self.endpoint.origin(), &refused))?;
        let body = transport::read_whole(&self.endpoint.id, response).await?;
        let list = serde_json::from_slice(&body).map_err(|error| Error::BadAnswer {
            provider: self.endpoint.id.clone(),
            problem: format!("a list of models that is none ({error})"),
        })?;
        let (wire::ModelList::Object { data } | wire::ModelList::Bare(data)) = list;
        let listed = data.into_iter().map(|model| ListedModel {
            id: model.id,
            name: model.name,
            context_window: model.context_length,
            ..ListedModel::default()
        });
        Ok(listed.collect())
    }
}

/// The field's name in a refusal is the only sign that servers give.
fn blames_stream_options(refused: &Refused) -> bool {
    matches!(
        refused.status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
    ) && (refused.body.contains("stream_options") || refused.body.contains("include_usage"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use secrecy::SecretString;

    use super::ChatCompletions;
    use crate::llm::{Error, KeyFault, Provider, ProviderKind, Settings};
    use crate::net;

    fn connect(kind: ProviderKind, key: &str, base_url: &str) -> Result<ChatCompletions, Error> {
        net::install_tls();
        let settings = Settings {
            id: "p".to_owned(),
            kind,
            api_key: Some(SecretString::from(key.to_owned())),
            base_url: Some(base_url.to_owned()),
            pace: Duration::ZERO,
        };
        ChatCompletions::new(settings, net::client(&net::Settings::default()).unwrap())
    }

    /// Asserts S3.3.
    #[test]
    fn the_vendor_needs_a_key_and_others_need_an_address() {
        use ProviderKind::{OpenAi, OpenAiCompatible};
        let missing = |result| {
            matches!(
                result,
                Err(Error::Key {
                    key: KeyFault::Missing,
                    ..
                })
            )
        };
        assert!(missing(connect(OpenAi, "", "")));
        assert!(missing(connect(
            OpenAi,
            " \n",
            "https://api.openai.com/v1/"
        )));
        assert!(connect(OpenAi, "sk", "").is_ok());
        assert!(connect(OpenAi, "", "http://localhost:1/v1").is_ok());
        for address in ["", "localhost:11434", "file:///etc", "nonsense"] {
            let result = connect(OpenAiCompatible, "", address);
            assert!(
                matches!(result, Err(Error::Misconfigured { .. })),
                "{address}"
            );
        }
    }

    #[test]
    fn paths_hang_below_the_base_and_its_query_stays() {
        fn check(base: &str, expected: &str) {
            let provider = connect(ProviderKind::OpenAiCompatible, "", base).unwrap();
            assert_eq!(provider.url("models").as_str(), expected);
        }
        check("http://h/v1", "http://h/v1/models");
        check("http://h/v1/", "http://h/v1/models");
        check("http://h", "http://h/models");
        check("http://h/v1/chat/completions", "http://h/v1/models");
        check(
            "http://h/x?api-version=1",
            "http://h/x/models?api-version=1",
        );
    }

    /// Asserts S0.25.
    #[tokio::test]
    async fn the_placeholder_key_starts_but_asks_nobody() {
        let provider = connect(ProviderKind::OpenAi, "dummy-api-key", "").unwrap();
        let error = provider.models().await.unwrap_err();
        assert!(error.to_string().contains("dummy-api-key"), "{error}");
        assert_eq!(error.code(), crate::domain::Code::MissingApiKey);
    }
}
