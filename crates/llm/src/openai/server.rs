//! The state that both APIs share: the server's address, its earlier refusals, its models.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::header::AUTHORIZATION;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};

use super::models;
use super::omitted::{Lesson, Omitted, Part};
use super::tools::has_tool_search;
use super::{fault, lesson};
use crate::compaction::OPENAI_LEAST;
use crate::request::learned::Learned;
use crate::transport::endpoint::Endpoint;
use crate::transport::{self, Refused};
use crate::{
    CompactedBy, CompactionSetting, Compactor, Error, ModelListing, ProviderKind, Request, Settings,
};

/// The vendor's base URL.
const VENDOR_URL: &str = "https://api.openai.com/v1";
/// The version that people leave out of an address.
const VERSION: &str = "/v1";
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
    /// True if the server answered below `/v1`, which the base URL lacks.
    is_below_v1: AtomicBool,
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
            is_below_v1: AtomicBool::new(false),
        })
    }

    /// The URL of a path below the base URL.
    pub(super) fn url(&self, path: &str) -> Url {
        let version = if self.is_below_v1.load(Ordering::Relaxed) {
            VERSION
        } else {
            ""
        };
        self.endpoint.url(|base| format!("{base}{version}/{path}"))
    }

    /// The base URL with `/v1`, if the server answered there and not at the configured one.
    pub(super) fn found_address(&self) -> Option<String> {
        let is_found = self.is_below_v1.load(Ordering::Relaxed);
        is_found.then(|| self.endpoint.url(|base| format!("{base}{VERSION}")).into())
    }

    /// The URL with `/v1` after the base URL; `None` if that has a version, or `/v1` was found before.
    fn url_below_v1(&self, url: &Url) -> Option<Url> {
        let base = self.endpoint.url(str::to_owned);
        let base = base.path().trim_end_matches('/');
        let last = base.rsplit('/').next().unwrap_or_default();
        let number = last.strip_prefix('v').unwrap_or_default();
        let has_version = number.starts_with(|letter: char| letter.is_ascii_digit());
        if has_version || self.is_below_v1.load(Ordering::Relaxed) {
            return None;
        }
        let operation = url.path().strip_prefix(base)?.to_owned();
        let mut below = url.clone();
        below.set_path(&format!("{base}{VERSION}{operation}"));
        Some(below)
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
                    let lesson = lesson::of(&refused, request, parts, &omitted);
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
    pub(super) async fn models(&self) -> Result<ModelListing, Error> {
        let url = self.url("models");
        let below = self.url_below_v1(&url);
        let listed = self.models_at(url).await;
        // Some servers answer an unknown address with a page.
        if let (Err(Error::BadAnswer { .. }), Some(below)) = (&listed, below)
            && let Ok(found) = self.models_at(below).await
        {
            self.is_below_v1.store(true, Ordering::Relaxed);
            return Ok(found);
        }
        listed
    }

    async fn models_at(&self, url: Url) -> Result<ModelListing, Error> {
        let response = self
            .send(self.endpoint.http.get(url))
            .await?
            .map_err(|refused| fault::refused(self.endpoint.origin(), &refused))?;
        let body = transport::read_whole(&self.endpoint.id, response).await?;
        models::listed(&body).map_err(|_| self.endpoint.no_model_list())
    }

    /// The error for tools that cannot be serialized as JSON.
    pub(super) fn unwritable(&self, error: &serde_json::Error) -> Error {
        Error::Misconfigured {
            provider: self.endpoint.id.clone(),
            problem: format!("the tools cannot be written ({error})"),
        }
    }

    /// Sends a request. If its address does not exist, the same address below `/v1` is tried, which people often
    /// leave out; where it exists, it is used from then on.
    async fn send(&self, request: RequestBuilder) -> Result<Result<Response, Refused>, Error> {
        let request = match self.endpoint.key_header("Bearer ")? {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        };
        let again = request.try_clone();
        let answer = transport::send(&self.endpoint.id, request).await?;
        let Err(refused) = &answer else {
            return Ok(answer);
        };
        let Some(again) = again.filter(|_| is_unknown_address(refused.status)) else {
            return Ok(answer);
        };
        let (client, Ok(mut again)) = again.build_split() else {
            return Ok(answer);
        };
        let Some(below) = self.url_below_v1(again.url()) else {
            return Ok(answer);
        };
        *again.url_mut() = below;
        let again = RequestBuilder::from_parts(client, again);
        match transport::send(&self.endpoint.id, again).await {
            Ok(Err(refused)) if is_unknown_address(refused.status) => Ok(answer),
            Ok(found) => {
                self.is_below_v1.store(true, Ordering::Relaxed);
                Ok(found)
            }
            Err(_) => Ok(answer),
        }
    }
}

/// Returns true for the statuses of an address that does not exist.
fn is_unknown_address(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
    )
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

    #[test]
    fn a_base_without_a_version_may_lack_v1() {
        for (base, expected) in [
            ("http://h", Some("http://h/v1/models")),
            ("http://h/", Some("http://h/v1/models")),
            ("http://h/openai", Some("http://h/openai/v1/models")),
            ("http://h/x?a=1", Some("http://h/x/v1/models?a=1")),
            ("http://h/vllm", Some("http://h/vllm/v1/models")),
            ("http://h/v1", None),
            ("http://h/api/paas/v4", None),
            ("http://h/v1beta", None),
        ] {
            let provider = connect(ProviderKind::OpenAiCompatible, "", base).unwrap();
            let below = provider.url_below_v1(&provider.url("models"));
            assert_eq!(below.as_ref().map(reqwest::Url::as_str), expected, "{base}");
        }
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
