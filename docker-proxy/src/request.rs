//! Parses a request into checked values. The rest of the request is not used.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::{
    HeaderMap, Request, Uri,
    body::Incoming,
    header::{CONNECTION, CONTENT_LENGTH, HOST, ORIGIN, TRANSFER_ENCODING, UPGRADE},
    http::uri::Authority,
};
use tokio::time::timeout;

use crate::refusal::Refusal;

/// The largest body: more than any environment that a kernel accepts.
const MAX_BODY_BYTES: usize = 1 << 20;
/// The time limit of a body.
const BODY_LIMIT: Duration = Duration::from_secs(30);
/// The longest path with its query.
const MAX_URI_BYTES: usize = 8 << 10;

/// Returns the path without its version.
pub(crate) fn path(uri: &Uri) -> Result<&str, Refusal> {
    let odd = |what: &str| Refusal::Malformed(format!("the address of the request {what}"));
    if uri.authority().is_some() || uri.scheme().is_some() {
        return Err(odd("has to be a path alone, without scheme and host"));
    }
    let path = uri.path();
    let length = path.len() + uri.query().map_or(0, str::len);
    if length > MAX_URI_BYTES {
        return Err(odd("is too long"));
    }
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"/._-:@".contains(&it);
    if !path.starts_with('/') || !path.bytes().all(is_plain) {
        return Err(odd(
            "has letters that no name of Docker has, or an encoded one",
        ));
    }
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !path.split('/').skip(1).all(is_part) {
        return Err(odd("has an empty part, `.` or `..`"));
    }
    Ok(without_version(path))
}

/// Removes the version: `/v1.41/info` becomes `/info`. The proxy speaks its own version to the engine.
fn without_version(path: &str) -> &str {
    let rest = path.strip_prefix("/v1.");
    let found = rest.and_then(|rest| {
        let (minor, _) = rest.split_once('/')?;
        let is_version =
            (1..=3).contains(&minor.len()) && minor.bytes().all(|it| it.is_ascii_digit());
        is_version.then(|| rest.get(minor.len()..))?
    });
    found.unwrap_or(path)
}

/// The query parameters of a request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses the `known` parameters. Others are refused unless they have no effect (empty, `0`, `false`),
    /// because clients send parameters at their defaults.
    pub(crate) fn parse(uri: &Uri, known: &[&str]) -> Result<Self, Refusal> {
        let mut found = BTreeMap::new();
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        for (name, value) in pairs {
            if known.contains(&name.as_ref()) {
                if found.insert(name.to_string(), value.into_owned()).is_some() {
                    return Err(Refusal::Malformed(format!("`?{name}` is there twice")));
                }
            } else if !matches!(value.as_ref(), "" | "0" | "false") {
                let remedy = "leave the parameter out";
                return Err(Refusal::field(format!("?{name}"), remedy));
            }
        }
        Ok(Self(found))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| matches!(value, "1" | "true" | "True"))
    }
}

/// Refuses requests of a page in a browser, which may reach a loopback port.
pub(crate) fn check_sender(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site") {
        let text = "requests of a browser are not answered here";
        return Err(Refusal::Malformed(text.to_owned()));
    }
    Ok(())
}

/// Refuses requests for another host name than the one in `--listen`. Otherwise the author of a page in a
/// browser could point a name of their own at the proxy, and read the answers as their own (DNS rebinding).
pub(crate) fn check_host(headers: &HeaderMap, own: &str) -> Result<(), Refusal> {
    for asked in headers.get_all(HOST) {
        let asked = asked.to_str().unwrap_or_default();
        let name = asked.parse::<Authority>();
        let name = name.as_ref().map_or("", Authority::host);
        let address = name.trim_start_matches('[').trim_end_matches(']');
        let is_known = address.parse::<IpAddr>().is_ok()
            || [own, "localhost"]
                .iter()
                .any(|it| name.eq_ignore_ascii_case(it));
        if !is_known {
            let text = format!(
                "the request asks `{asked}`; ask by an IP address, or by the name in `--listen`"
            );
            return Err(Refusal::Malformed(text));
        }
    }
    Ok(())
}

/// Refuses a body if the call has none.
pub(crate) fn without_body(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_empty = headers.get(CONTENT_LENGTH).is_none_or(|it| it == "0");
    if !is_empty || headers.contains_key(TRANSFER_ENCODING) {
        let text = "this call has no body; send none";
        return Err(Refusal::Malformed(text.to_owned()));
    }
    Ok(())
}

/// Returns true if the client wants to turn the connection into a stream.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    let says = |name, word: &str| {
        let value = headers.get(name).and_then(|it| it.to_str().ok());
        value.is_some_and(|it| it.eq_ignore_ascii_case(word))
    };
    says(CONNECTION, "upgrade") && says(UPGRADE, "tcp")
}

/// Refuses an upgrade if the call does not become a stream.
pub(crate) fn without_upgrade(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(UPGRADE) {
        let text = "only `attach` becomes a stream; send no `Upgrade`";
        return Err(Refusal::Malformed(text.to_owned()));
    }
    Ok(())
}

/// Reads the whole body, which has to have a length.
pub(crate) async fn body(request: Request<Incoming>) -> Result<Bytes, Refusal> {
    let headers = request.headers();
    let length = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let length = length.and_then(|it| it.parse::<usize>().ok());
    let Some(length) = length.filter(|_| !headers.contains_key(TRANSFER_ENCODING)) else {
        return Err(Refusal::NoLength);
    };
    if length > MAX_BODY_BYTES {
        return Err(Refusal::TooLarge(MAX_BODY_BYTES));
    }
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
    let read = timeout(BODY_LIMIT, body)
        .await
        .map_err(|_| Refusal::TooSlow(BODY_LIMIT.as_secs()))?;
    let read = read.map_err(|_| Refusal::Malformed("the body broke off".to_owned()))?;
    Ok(read.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_is_read_without_its_version() {
        let check = |text: &str, expected: &str| assert_eq!(path(&uri(text)).unwrap(), expected);
        check("/info", "/info");
        check("/v1.41/info", "/info");
        check("/v1.99/containers/json?all=1", "/containers/json");
        // An invalid version, so the path matches no call.
        check("/v1.x/info", "/v1.x/info");
        check("/v1.1234/info", "/v1.1234/info");
        check("/v1.41/v1.41/info", "/v1.41/info");
        check("/v1.41", "/v1.41");
    }

    #[test]
    fn odd_paths_are_refused() {
        for text in [
            "/v1.41//containers/json",
            "//containers/json",
            "/containers/",
            "/containers/../info",
            "/./info",
            "/%2e%2e/info",
            "/containers%2fjson",
            "/containers/a%00/json",
            "/containers/a;b/json",
            "http://engine/info",
            "*",
        ] {
            assert!(path(&uri(text)).is_err(), "{text}");
        }
        assert!(path(&uri(&format!("/{}", "a".repeat(9000)))).is_err());
    }

    #[test]
    fn what_was_asked_at_a_strange_name_is_refused() {
        let check = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, host.parse().unwrap());
            }
            check_host(&headers, "proxy").map_err(|error| error.to_string())
        };
        for host in [
            "proxy",
            "Proxy:2375",
            "localhost:1",
            "127.0.0.1:2375",
            "10.1.2.3",
            "[::1]:2375",
        ] {
            assert_eq!(check(&[host]), Ok(()), "{host}");
        }
        // A client without a `Host` header is not a browser.
        assert_eq!(check(&[]), Ok(()));
        for host in [
            "",
            "page.example",
            "page.example:2375",
            "127.0.0.1.page.example",
            "a b",
        ] {
            let text = check(&[host]).unwrap_err();
            assert!(text.contains("`--listen`"), "{host}: {text}");
        }
        assert!(check(&["proxy", "page.example"]).is_err());
    }

    #[test]
    fn parameters_are_known_and_single_or_say_nothing() {
        let check = |text: &str| Query::parse(&uri(text), &["force", "v"]);
        let query = check("/x?force=true&v=false&link=false&platform=").unwrap();
        assert!(query.is_set("force") && !query.is_set("v") && !query.is_set("link"));
        assert_eq!(check("/x").unwrap(), Query::default());
        let text = check("/x?link=1").unwrap_err().to_string();
        assert!(text.contains("`?link`"), "{text}");
        assert!(check("/x?force=1&force=0").is_err());
        assert!(check("/x?f%6Frce=1&force=0").is_err());
    }
}
