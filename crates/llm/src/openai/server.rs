//! The state that both APIs share: the server's address, its earlier refusals, its models.

use std::collections::BTreeSet;

use reqwest::header::AUTHORIZATION;
use reqwest::{Client, RequestBuilder, Response, Url};

use super::models;
use super::omitted::{Lesson, Omitted, Part};
use super::tools::has_tool_search;
use super::{fault, lesson};
use crate::compaction::OPENAI_LEAST;
use crate::request::learned::Learned;
use crate::transport::endpoint::Endpoint;
use crate::transport::{self, Refused};
use crate::{
    CompactedBy, CompactionSetting, Compactor, Error, ListedModel, ProviderKind, Request, Settings,
};

/// The vendor's base URL.
const VENDOR_URL: &str = "https://api.openai.com/v1";
/// The vendor's host.
const VENDOR_HOST: &str = "api.openai.com";

/// OpenAI or a compatible server.
pub(super) struct Server {
    pub(super) endpoint: Endpoint,
    /// The provider family whose native blocks the server understands.
    pub(super) family: String,
    /// The parts that each model refused.
    learned: Learned<Lesson>,
    /// The setting that decides who compacts the context.
    compaction: CompactionSetting,
}

/// A response that has started, and the messages to show before it.
pub(super) struct Opened {
    pub(super) response: Response,
    told: Vec<String>,
}

/// Returns true if a provider of that kind is at the vendor's own address.
pub(super) fn is_vendor(kind: ProviderKind, base_url: Option<&str>) -> bool {
    let address = base_url.map(str::trim).filter(|url| !url.is_empty());
    let usual = (kind == ProviderKind::OpenAi).then_some(VENDOR_URL);
    let url = address.or(usual).and_then(|url| Url::parse(url).ok());
    url.is_some_and(|url| url.host_str() == Some(VENDOR_HOST))
}

impl Server {
    /// Creates the server from settings; the vendor's own address needs a key (S2.22).
    pub(super) fn new(settings: Settings, http: Client) -> Result<Self, Error> {
        let compaction = settings.compaction;
        let vendor = (settings.kind == ProviderKind::OpenAi).then_some(VENDOR_URL);
        let endpoint = Endpoint::new(settings, vendor, http)?.with_vendor_host(VENDOR_HOST)?;
        Ok(Self {
            family: endpoint.family(),
            endpoint,
            learned: Learned::default(),
            compaction,
        })
    }

    /// The URL of a path below the base URL.
    pub(super) fn url(&self, path: &str) -> Url {
        self.endpoint.url(|base| {
            // People paste the address of an operation, too.
            let operations = ["/chat/completions", "/completions", "/responses", "/models"];
            let base = operations
                .iter()
                .find_map(|it| base.strip_suffix(it))
                .unwrap_or(base);
            format!("{base}/{path}")
        })
    }

    /// Returns true if the server runs the vendor's models, whose names tell what they accept.
    pub(super) fn has_vendor_models(&self) -> bool {
        self.endpoint.is_vendor || self.endpoint.kind == ProviderKind::OpenAi
    }

    /// Sends a request, and sends it again without each of its `parts` that is refused by name. An omission
    /// is remembered once a request without the part was accepted.
    pub(super) async fn open(
        &self,
        request: &Request,
        parts: &[Part],
        build: impl Fn(&Omitted) -> Result<RequestBuilder, Error> + Send + Sync,
    ) -> Result<Opened, Error> {
        let build = &build;
        let is_searched = request.searched_by_vendor(self.endpoint.is_vendor, has_tool_search);
        let is_searched = is_searched.is_some();
        let attempt = |refused: BTreeSet<Lesson>| async move {
            let mut omitted = Omitted::known(request, self.has_vendor_models());
            if !is_searched {
                omitted.learn(Lesson::Part(Part::ToolSearch));
            }
            for lesson in refused {
                omitted.learn(lesson);
            }
            let sending = build(&omitted).map_err(|error| (error, None::<Lesson>))?;
            match self.send(sending).await {
                Ok(Ok(response)) => Ok((response, omitted.told(request))),
                Ok(Err(refused)) => {
                    let lesson = lesson::of(&refused, (request, parts), &omitted);
                    Err((fault::refused(self.endpoint.origin(), &refused), lesson))
                }
                Err(error) => Err((error, None)),
            }
        };
        let (response, left_out) = self.learned.ask(&request.model, attempt).await?;
        let told = self.learned.tell(&request.model, left_out);
        Ok(Opened { response, told })
    }

    /// The vendor's compaction for a model, if it is configured and the model accepts it.
    pub(super) fn compactor(&self, model: &str) -> Option<Compactor> {
        let is_set = self.compaction.by == CompactedBy::Vendor;
        let is_refused = || self.learned.refuses(model, Lesson::Part(Part::Compaction));
        (is_set && !is_refused()).then(|| Compactor {
            family: self.family.clone(),
            threshold: self.compaction.threshold,
            least: OPENAI_LEAST,
        })
    }

    /// The models that the server lists.
    pub(super) async fn models(&self) -> Result<Vec<ListedModel>, Error> {
        let get = self.endpoint.http.get(self.url("models"));
        let response = self
            .send(get)
            .await?
            .map_err(|refused| fault::refused(self.endpoint.origin(), &refused))?;
        let body = transport::read_whole(&self.endpoint.id, response).await?;
        models::listed(&body).ok_or_else(|| Error::BadAnswer {
            provider: self.endpoint.id.clone(),
            problem: "an invalid model list".to_owned(),
        })
    }

    /// The error for tools that cannot be serialized as JSON.
    pub(super) fn unwritable(&self, error: &serde_json::Error) -> Error {
        Error::Misconfigured {
            provider: self.endpoint.id.clone(),
            problem: format!("the tools cannot be written ({error})"),
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Result<Response, Refused>, Error> {
        let request = match self.endpoint.key_header("Bearer ")? {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        };
        transport::send(&self.endpoint.id, request).await
    }
}

impl Opened {
    /// The response, and the messages to show before it.
    pub(super) fn into_parts(self) -> (Response, Vec<String>) {
        (self.response, self.told)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use secrecy::SecretString;

    use super::Server;
    use crate::{Api, CacheTtl, CompactionSetting, Error, KeyFault, ProviderKind, Settings};
    use sepal_net as net;

    fn connect(kind: ProviderKind, key: &str, base_url: &str) -> Result<Server, Error> {
        net::install_tls();
        let settings = Settings {
            id: "p".to_owned(),
            kind,
            api_key: Some(SecretString::from(key.to_owned())),
            base_url: Some(base_url.to_owned()),
            api: Api::Auto,
            cache_ttl: CacheTtl::default(),
            compaction: CompactionSetting::default(),
            pace: Duration::ZERO,
        };
        Server::new(settings, net::client(&net::Settings::default()).unwrap())
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
        check("http://h/v1/responses", "http://h/v1/models");
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
        assert_eq!(error.code(), sepal_core::domain::Code::MissingApiKey);
    }
}
