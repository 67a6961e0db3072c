//! Chat Completions: OpenAI itself, and every server that speaks it (Ollama, vLLM, llama.cpp, …).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use tracing::info;

use self::assembler::{Assembler, Context};
use self::fault::Origin;
use self::request::Dialect;
use super::http::{self, Refused};
use super::names::Names;
use super::{
    Error, KeyFault, ListedModel, ModelEvent, ModelStream, PLACEHOLDER_KEY, Provider, ProviderKind,
    Request, Settings,
};

mod assembler;
mod calls;
mod fault;
mod request;
mod surrogates;
mod wire;

/// The vendor's own address.
const VENDOR_URL: &str = "https://api.openai.com/v1";
/// How long the end of a body is waited for after the model has finished.
const DRAIN: Duration = Duration::from_millis(10);

/// A service that speaks Chat Completions.
pub struct ChatCompletions {
    id: String,
    kind: ProviderKind,
    key: Option<SecretString>,
    base: Url,
    is_vendor: bool,
    family: String,
    /// Some servers refuse the field; once one did, it is left out.
    has_stream_options: AtomicBool,
    http: Client,
}

impl ChatCompletions {
    /// Makes the provider; the vendor's own address needs a key (S2.22).
    pub fn new(settings: Settings, http: Client) -> Result<Self, Error> {
        let Settings {
            id,
            kind,
            api_key,
            base_url,
            ..
        } = settings;
        let key = api_key.filter(|key| !key.expose_secret().trim().is_empty());
        let address = base_url
            .as_deref()
            .map(str::trim)
            .filter(|url| !url.is_empty());
        let address = match (address, kind) {
            (Some(address), _) => address,
            (None, ProviderKind::OpenAi) => VENDOR_URL,
            (None, _) => return Err(misconfigured(&id, "it needs a `base_url`".to_owned())),
        };
        let base = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                misconfigured(&id, "`base_url` is no http or https address".to_owned())
            })?;
        let is_vendor = base.host_str() == Some("api.openai.com");
        if is_vendor && key.is_none() {
            return Err(Error::Key {
                provider: id,
                key: KeyFault::Missing,
            });
        }
        // What one compatible server gave must not go to another one.
        let family = if is_vendor {
            kind.family().to_owned()
        } else {
            format!("{}/{id}", kind.family())
        };
        Ok(Self {
            id,
            kind,
            key,
            base,
            is_vendor,
            family,
            has_stream_options: AtomicBool::new(true),
            http,
        })
    }

    /// A path below the base; its query (Azure's `api-version`) stays.
    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/');
        let base = base.strip_suffix("/chat/completions").unwrap_or(base);
        let whole = format!("{base}/{path}");
        url.set_path(&whole);
        url
    }

    fn authorized(&self, request: RequestBuilder) -> Result<RequestBuilder, Error> {
        let Some(key) = &self.key else {
            return Ok(request);
        };
        let key = key.expose_secret().trim();
        if key == PLACEHOLDER_KEY {
            return Err(Error::Key {
                provider: self.id.clone(),
                key: KeyFault::Placeholder,
            });
        }
        let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
            let problem = "its key holds characters that no header takes";
            misconfigured(&self.id, problem.to_owned())
        })?;
        value.set_sensitive(true);
        Ok(request.header(AUTHORIZATION, value))
    }

    async fn post(
        &self,
        request: &Request,
        has_stream_options: bool,
    ) -> Result<Result<Response, Refused>, Error> {
        let dialect = Dialect {
            is_vendor: self.is_vendor,
            has_stream_options,
            family: &self.family,
        };
        let body = request::body(request, dialect);
        let post = self.http.post(self.url("chat/completions")).json(&body);
        http::send(&self.id, self.authorized(post)?).await
    }

    async fn open(&self, request: &Request) -> Result<Response, Error> {
        let has_stream_options = self.has_stream_options.load(Ordering::Relaxed);
        let mut reply = self.post(request, has_stream_options).await?;
        if let Err(refused) = &reply
            && has_stream_options
            && blames_stream_options(refused)
        {
            info!(llm.provider = %self.id, "Provider `{}` takes no `stream_options`", self.id);
            reply = self.post(request, false).await?;
            if reply.is_ok() {
                self.has_stream_options.store(false, Ordering::Relaxed);
            }
        }
        reply.map_err(|refused| fault::refused(self.origin(), &refused))
    }

    fn origin(&self) -> Origin<'_> {
        Origin {
            provider: &self.id,
            key: self.key.as_ref().map(|key| key.expose_secret().trim()),
        }
    }
}

#[async_trait]
impl Provider for ChatCompletions {
    fn id(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> ProviderKind {
        self.kind
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, Error> {
        let response = self.open(&request).await?;
        let payloads = http::payloads(&self.id, response).boxed();
        let assembler = Assembler::new(Context {
            provider: self.id.clone(),
            key: self.key.clone(),
            names: Names::of(&request.tools),
            family: (!self.is_vendor).then(|| self.family.clone()),
        });
        Ok(events(payloads, assembler))
    }

    async fn models(&self) -> Result<Vec<ListedModel>, Error> {
        let get = self.authorized(self.http.get(self.url("models")))?;
        let response = http::send(&self.id, get)
            .await?
            .map_err(|refused| fault::refused(self.origin(), &refused))?;
        let body = http::read_whole(&self.id, response).await?;
        let list = serde_json::from_slice(&body).map_err(|error| Error::BadAnswer {
            provider: self.id.clone(),
            problem: format!("a list of models that is none ({error})"),
        })?;
        let (wire::ModelList::Object { data } | wire::ModelList::Bare(data)) = list;
        let listed = data.into_iter().map(|model| ListedModel {
            id: model.id,
            name: model.name,
            context_window: model.context_length,
        });
        Ok(listed.collect())
    }
}

struct Streaming {
    payloads: BoxStream<'static, Result<String, Error>>,
    assembler: Assembler,
    ready: VecDeque<ModelEvent>,
    is_over: bool,
}

fn events(
    payloads: BoxStream<'static, Result<String, Error>>,
    assembler: Assembler,
) -> ModelStream {
    let streaming = Streaming {
        payloads,
        assembler,
        ready: VecDeque::new(),
        is_over: false,
    };
    stream::unfold(streaming, |mut streaming| async move {
        let event = streaming.next().await?;
        Some((event, streaming))
    })
    .boxed()
}

impl Streaming {
    async fn next(&mut self) -> Option<Result<ModelEvent, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            let ended = match self.payloads.next().await {
                Some(Ok(payload)) => match self.assembler.push(&payload, &mut self.ready) {
                    Ok(is_last) => is_last,
                    Err(error) => return Some(Err(self.failed(error))),
                },
                Some(Err(error)) if !self.assembler.is_finished() => {
                    return Some(Err(self.failed(error)));
                }
                Some(Err(_)) => true,
                None if self.assembler.is_finished() => true,
                None => return Some(Err(self.failed_short())),
            };
            if ended {
                self.drain().await;
                self.is_over = true;
                self.assembler.end(&mut self.ready);
            }
        }
    }

    /// Reads the end of the body: only then can its connection carry the next request.
    async fn drain(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.payloads.next().await {} };
        // A server that does not close its answer loses the connection, no more.
        let _ = tokio::time::timeout(DRAIN, rest).await;
    }

    fn failed(&mut self, error: Error) -> Error {
        self.is_over = true;
        self.ready.clear();
        error
    }

    fn failed_short(&mut self) -> Error {
        let cut = self.assembler.short();
        self.failed(cut)
    }
}

/// The field's name in a refusal is the only sign that servers give.
fn blames_stream_options(refused: &Refused) -> bool {
    matches!(
        refused.status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
    ) && (refused.body.contains("stream_options") || refused.body.contains("include_usage"))
}

fn misconfigured(provider: &str, problem: String) -> Error {
    Error::Misconfigured {
        provider: provider.to_owned(),
        problem,
    }
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

    #[tokio::test]
    async fn the_placeholder_key_starts_but_asks_nobody() {
        let provider = connect(ProviderKind::OpenAi, "dummy-api-key", "").unwrap();
        let error = provider.models().await.unwrap_err();
        assert!(error.to_string().contains("dummy-api-key"), "{error}");
        assert_eq!(error.code(), crate::domain::Code::MissingApiKey);
    }
}
