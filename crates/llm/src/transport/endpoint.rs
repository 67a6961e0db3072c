//! Holds a provider's address and key: builds URLs and headers, and keeps the key out of errors.

use reqwest::header::HeaderValue;
use reqwest::{Client, Url};
use secrecy::{ExposeSecret, SecretString};

use super::quote;
use crate::{Error, KeyFault, PLACEHOLDER_KEY, ProviderKind, Settings};

/// The endpoint of a vendor, or of a compatible service.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: String,
    pub(crate) kind: ProviderKind,
    /// True for the vendor's own address.
    pub(crate) is_vendor: bool,
    /// The HTTP client, which the whole process shares.
    pub(crate) http: Client,
    key: Option<SecretString>,
    base: Url,
}

/// The provider of an error, and the key that the error must not contain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) provider: &'a str,
    pub(crate) key: Option<&'a str>,
}

/// An owned [`Origin`], which can outlive its provider.
#[derive(Debug, Clone)]
pub(crate) struct KeyOwner {
    pub(crate) provider: String,
    pub(crate) key: Option<SecretString>,
}

impl KeyOwner {
    pub(crate) fn origin(&self) -> Origin<'_> {
        Origin {
            provider: &self.provider,
            key: self.key.as_ref().map(|key| key.expose_secret().trim()),
        }
    }

    /// The error of an answer that ended too early.
    pub(crate) fn short(&self) -> Error {
        Error::Cut {
            provider: self.provider.clone(),
            source: None,
        }
    }

    /// The error of an invalid answer. The problem may quote the server, which may have returned our key.
    pub(crate) fn bad(&self, problem: impl AsRef<str>) -> Error {
        Error::BadAnswer {
            provider: self.provider.clone(),
            problem: quote(problem.as_ref(), self.origin().key),
        }
    }

    /// The error of an unreadable payload: truncated, or invalid.
    pub(crate) fn unreadable(&self, error: &serde_json::Error) -> Error {
        if error.is_eof() {
            return self.short();
        }
        self.bad(format!("a chunk that is no chunk ({error})"))
    }
}

impl Endpoint {
    /// Creates the endpoint from settings; the default address is the vendor's own.
    pub(crate) fn new(
        settings: Settings,
        vendor: Option<&str>,
        http: Client,
    ) -> Result<Self, Error> {
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
        let Some(address) = address.or(vendor) else {
            return Err(misconfigured(&id, "it needs a `base_url`".to_owned()));
        };
        let base = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                misconfigured(&id, "`base_url` is no http or https address".to_owned())
            })?;
        Ok(Self {
            id,
            kind,
            is_vendor: false,
            http,
            key,
            base,
        })
    }

    /// Sets `is_vendor` if the host is the vendor's, which requires a key (S2.22).
    pub(crate) fn with_vendor_host(mut self, host: &str) -> Result<Self, Error> {
        self.is_vendor = self.base.host_str() == Some(host);
        if self.is_vendor && self.key.is_none() {
            return Err(Error::Key {
                provider: self.id,
                key: KeyFault::Missing,
            });
        }
        Ok(self)
    }

    /// The base URL with another path; its query (Azure's `api-version`) stays.
    pub(crate) fn url(&self, path: impl FnOnce(&str) -> String) -> Url {
        let mut url = self.base.clone();
        let whole = path(url.path().trim_end_matches('/'));
        url.set_path(&whole);
        url
    }

    /// The key as a header value, after `scheme`; `None` if there is no key.
    pub(crate) fn key_header(&self, scheme: &str) -> Result<Option<HeaderValue>, Error> {
        let Some(key) = &self.key else {
            return Ok(None);
        };
        let key = key.expose_secret().trim();
        if key == PLACEHOLDER_KEY {
            return Err(Error::Key {
                provider: self.id.clone(),
                key: KeyFault::Placeholder,
            });
        }
        let mut value = HeaderValue::try_from(format!("{scheme}{key}")).map_err(|_| {
            let problem = "its key holds characters that no header takes";
            misconfigured(&self.id, problem.to_owned())
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// The provider family whose native blocks the endpoint understands: blocks of one server must not be
    /// sent to another.
    pub(crate) fn family(&self) -> String {
        if self.is_vendor {
            self.kind.as_str().to_owned()
        } else {
            format!("{}/{}", self.kind.as_str(), self.id)
        }
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        Origin {
            provider: &self.id,
            key: self.key.as_ref().map(|key| key.expose_secret().trim()),
        }
    }

    pub(crate) fn owner(&self) -> KeyOwner {
        KeyOwner {
            provider: self.id.clone(),
            key: self.key.clone(),
        }
    }
}

fn misconfigured(provider: &str, problem: String) -> Error {
    Error::Misconfigured {
        provider: provider.to_owned(),
        problem,
    }
}
