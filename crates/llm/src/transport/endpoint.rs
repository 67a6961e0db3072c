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
        let key = api_key.as_ref().map(|key| bare_key(key.expose_secret()));
        let key = key.filter(|key| !key.is_empty()).map(SecretString::from);
        let address = base_url.map(|url| base_address(&url));
        let address = address.filter(|url| !url.is_empty());
        let Some(address) = address.or(vendor.map(ToOwned::to_owned)) else {
            return Err(misconfigured(&id, "it needs a `base_url`".to_owned()));
        };
        let base = Url::parse(&address)
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

    /// The error of an answer that is no list of models.
    pub(crate) fn no_model_list(&self) -> Error {
        Error::BadAnswer {
            provider: self.id.clone(),
            problem: "an invalid model list".to_owned(),
        }
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

/// The operations whose addresses people paste instead of the base URL.
const OPERATIONS: [&str; 6] = [
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/models",
    "/embeddings",
];

/// Returns a base URL without what people paste around it: spaces, quotes, and the operation at its end. Its
/// query stays.
pub fn base_address(address: &str) -> String {
    let address = without_quotes(address);
    let (path, query) = address.split_at(address.find('?').unwrap_or(address.len()));
    let path = path.trim_end_matches('/');
    let base = OPERATIONS.iter().find_map(|it| path.strip_suffix(it));
    format!("{}{query}", base.unwrap_or(path))
}

/// Returns a key without what people paste around it: spaces, line ends, invisible characters, quotes, and the
/// scheme of its header.
pub fn bare_key(key: &str) -> String {
    let is_visible = |c: &char| !matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}');
    let key: String = key.chars().filter(is_visible).collect();
    let mut key = without_quotes(&key);
    for scheme in ["Authorization:", "x-api-key:", "Bearer"] {
        let (begin, rest) = key.split_at_checked(scheme.len()).unwrap_or(("", key));
        let ends =
            scheme.ends_with(':') || rest.is_empty() || rest.starts_with(char::is_whitespace);
        if ends && begin.eq_ignore_ascii_case(scheme) {
            key = without_quotes(rest);
        }
    }
    key.to_owned()
}

/// Returns a text without the spaces and quotes around it.
fn without_quotes(text: &str) -> &str {
    let is_around =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '“' | '”' | '‘' | '’');
    text.trim_matches(is_around)
}

fn misconfigured(provider: &str, problem: String) -> Error {
    Error::Misconfigured {
        provider: provider.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::{bare_key, base_address};

    #[test]
    fn an_address_is_taken_without_what_is_around_it() {
        for address in [
            "http://h/v1",
            "http://h/v1/",
            " http://h/v1\n",
            "\"http://h/v1\"",
            "`http://h/v1/`",
            "http://h/v1/chat/completions",
            "http://h/v1/chat/completions/",
            "http://h/v1/completions",
            "http://h/v1/responses",
            "http://h/v1/messages",
            "http://h/v1/models",
            "http://h/v1/embeddings",
        ] {
            assert_eq!(base_address(address), "http://h/v1", "{address}");
        }
        for (address, expected) in [
            ("http://h/x?api-version=1", "http://h/x?api-version=1"),
            (
                "http://h/x/models?api-version=1",
                "http://h/x?api-version=1",
            ),
            ("http://h", "http://h"),
            ("http://h/", "http://h"),
            ("", ""),
            (" ", ""),
        ] {
            assert_eq!(base_address(address), expected, "{address}");
        }
    }

    #[test]
    fn a_key_is_taken_without_what_is_around_it() {
        for key in [
            "sk-a1",
            " sk-a1 ",
            "sk-a1\n",
            "sk-a1\r\n",
            "\tsk-a1",
            "\"sk-a1\"",
            "'sk-a1'",
            "`sk-a1`",
            "“sk-a1”",
            "\u{feff}sk-a1",
            "sk-\u{200b}a1",
            "\u{a0}sk-a1",
            "Bearer sk-a1",
            "bearer  sk-a1",
            "\"Bearer sk-a1\"",
            "Authorization: Bearer sk-a1",
            "x-api-key: sk-a1",
        ] {
            assert_eq!(bare_key(key), "sk-a1", "{key:?}");
        }
        for (key, expected) in [
            ("", ""),
            ("  ", ""),
            ("\"\"", ""),
            ("Bearer ", ""),
            ("a b", "a b"),
        ] {
            assert_eq!(bare_key(key), expected, "{key:?}");
        }
    }
}
