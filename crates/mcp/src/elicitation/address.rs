//! Validates the address of a page that a server wants opened (URL mode).

use serde::Deserialize;
use serde_json::Value;
use url::{Host, Url};

use super::form::MAX_MESSAGE;

/// The longest address, in bytes.
const MAX_URL: usize = 4096;
/// The most pages that one call may need first.
const MAX_REQUIRED: usize = 4;

/// A page that a server wants its person to open. We do not see what the person does there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The server's words.
    pub message: String,
    /// The address: `https`, or `http` on loopback; without a user name, in ASCII only.
    pub url: String,
    /// The server's id of the question, with which it reports completion; empty if it does not report it.
    pub(super) id: String,
}

/// An entry in the error that asks to open pages first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Required {
    message: String,
    url: String,
    #[serde(default)]
    elicitation_id: String,
}

impl Address {
    /// Validates an address; the error says what is wrong with it.
    pub(super) fn read(message: String, url: &str, id: String) -> Result<Self, String> {
        if message.len() > MAX_MESSAGE {
            return Err(format!("`message` may have {MAX_MESSAGE} bytes"));
        }
        if url.len() > MAX_URL || id.len() > MAX_URL {
            return Err(format!("`url` may have {MAX_URL} bytes"));
        }
        let url = Url::parse(url).map_err(|error| format!("`url` is no address: {error}"))?;
        // A reader of `https://bank.example@other.example` takes the user name for the host.
        if !url.username().is_empty() || url.password().is_some() {
            return Err("`url` may not have a user or a password".to_owned());
        }
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
            return Err("`url` must be `https://…`, or `http://` on loopback".to_owned());
        }
        Ok(Self {
            message,
            url: url.into(),
            id,
        })
    }

    /// Reads the pages that a call needs first from the data of the error.
    pub(crate) fn required(data: Option<&Value>) -> Result<Vec<Self>, String> {
        let asked = data.and_then(|data| data.get("elicitations"));
        let asked = asked.ok_or("it names no page to open")?;
        let asked = Vec::<Required>::deserialize(asked)
            .map_err(|error| format!("the pages to open cannot be read: {error}"))?;
        if asked.is_empty() || asked.len() > MAX_REQUIRED {
            return Err(format!("a call may need 1 to {MAX_REQUIRED} pages"));
        }
        let read = asked
            .into_iter()
            .map(|it| Self::read(it.message, &it.url, it.elicitation_id));
        read.collect()
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_pages_that_a_person_can_judge_are_opened() {
        let check = |url: &str, expected: Result<&str, &str>| {
            let read = Address::read("Go".to_owned(), url, "1".to_owned());
            match (read, expected) {
                (Ok(address), Ok(expected)) => assert_eq!(address.url, expected),
                (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{reason}"),
                (read, expected) => panic!("{url}: {read:?}, not {expected:?}"),
            }
        };
        check("https://a.example/x?y=1#z", Ok("https://a.example/x?y=1#z"));
        check("https://A.EXAMPLE:443", Ok("https://a.example/"));
        check(
            "https://p\u{430}ypal.example",
            Ok("https://xn--pypal-4ve.example/"),
        );
        check(
            "https://a.example/\u{202e}b",
            Ok("https://a.example/%E2%80%AEb"),
        );
        check("http://127.0.0.1:1/x", Ok("http://127.0.0.1:1/x"));
        check("http://[::1]/", Ok("http://[::1]/"));
        check("http://localhost/", Ok("http://localhost/"));
        check("http://a.example/", Err("https"));
        check("http://localhost.a.example/", Err("https"));
        check("https://bank.example@other.example", Err("user"));
        check("https://:word@other.example", Err("user"));
        check("javascript:alert(1)", Err("https"));
        check("data:text/html,x", Err("https"));
        check("file:///etc/passwd", Err("https"));
        check("/x", Err("no address"));
        check(
            &format!("https://a.example/{}", "x".repeat(MAX_URL)),
            Err("bytes"),
        );
    }

    #[test]
    fn a_call_names_the_pages_that_it_needs_first() {
        let page =
            |url: &str| json!({"mode": "url", "message": "Go", "url": url, "elicitationId": "1"});
        let check = |data: Value, expected: Result<usize, &str>| match (
            Address::required(Some(&data)),
            expected,
        ) {
            (Ok(addresses), Ok(expected)) => assert_eq!(addresses.len(), expected),
            (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{reason}"),
            (read, expected) => panic!("{data}: {read:?}, not {expected:?}"),
        };
        let good = page("https://a.example");
        check(json!({"elicitations": [good, good]}), Ok(2));
        check(json!({"elicitations": []}), Err("1 to"));
        check(json!({"elicitations": vec![good.clone(); 5]}), Err("1 to"));
        check(json!({"elicitations": [{"url": 1}]}), Err("cannot be read"));
        check(
            json!({"elicitations": [page("http://a.example")]}),
            Err("https"),
        );
        check(json!({}), Err("no page"));
        assert!(Address::required(None).is_err());
    }
}
