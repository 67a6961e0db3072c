//! Validates and normalizes a given value by the kind of its setting.

pub(super) mod pairs;

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use serde_json::{Value, json};
use url::Url;

use super::table::{Kind, Word, provider_kind};
use sepal_core::domain::{AllowedHost, MAX_ALLOWED_HOSTS};

/// A value as it was given.
#[derive(Debug, Clone)]
pub(super) enum Raw {
    /// A text that may represent any kind: from the environment, the command line, or an expanded variable.
    Text(String),
    /// A typed value from the file.
    Json(Value),
}

/// Describes the accepted values, as a phrase for people.
pub(super) fn accepts(kind: Kind) -> String {
    match kind {
        Kind::Text | Kind::Secret => "a text that is not empty".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Whole(min, max) => format!("a whole number from {min} to {max}"),
        Kind::Number(min, max) => format!("a number from {min} to {max}"),
        Kind::OneOf(words) => format!("one of {}", listed(words)),
        Kind::ListOf(words) => format!("{}, as a list or with commas", listed(words)),
        Kind::Provider => format!(
            "{}, or a name of `agent.llm.providers`",
            accepts(Kind::PROVIDER_KIND)
        ),
        Kind::Model => "`provider/model`".to_owned(),
        Kind::Template => "a Jinja2 template".to_owned(),
        Kind::Host => "a host name or an IP address, without scheme and port".to_owned(),
        Kind::Listen => "an IP address with a port, like `127.0.0.1:9464` or `[::]:9464`".to_owned(),
        Kind::Url => "an address like `https://example.org/path`, without user and `#`".to_owned(),
        Kind::Origins => "origins like `https://example.org`, as a list or with commas".to_owned(),
        Kind::Networks => {
            "addresses or networks like `10.0.0.0/8`, as a list or with commas".to_owned()
        }
        Kind::Hosts => "`none`, or hosts like `api.example.com`, `*.example.com` or `db.example.com:5432`, as a list or with commas".to_owned(),
        Kind::Database => {
            "`sqlite://` and the path of a file, `sqlite::memory:`, or an address like `postgres://user@host/name`"
                .to_owned()
        }
        Kind::Redis => "an address like `redis://host:6379/0`, `rediss://…` or `unix:///path`".to_owned(),
        Kind::Smtp => "an address like `smtps://user:password@host` or `smtp://host:587`".to_owned(),
        Kind::Headers | Kind::Attributes => {
            "`name=value` with commas; values may be percent-encoded".to_owned()
        }
        Kind::PublicKeys => {
            "public keys, each in base64url, as PEM or as a file with it, as a list or with commas"
                .to_owned()
        }
        Kind::Texts => "texts, as a list or with commas".to_owned(),
        Kind::NamedUrls => "`none`, or `name=address` with commas, like `ollama=http://localhost:11434/v1`".to_owned(),
    }
}

/// The accepted words, without aliases.
fn listed(words: &[Word]) -> String {
    let words = words.iter().filter_map(|word| match word {
        Word::Is(name) => Some(format!("`{name}`")),
        Word::Alias(..) | Word::Later(_) => None,
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Checks a value; the error is a message that says what is wrong with it.
pub(super) fn check(kind: Kind, raw: &Raw) -> Result<Value, String> {
    match kind {
        Kind::Flag => flag(raw),
        Kind::Whole(min, max) => whole(raw, min, max),
        Kind::Number(min, max) => number(raw, min, max),
        Kind::Origins => list(raw, origin),
        Kind::Networks => list(raw, network),
        // Public keys are read where the audit is opened.
        Kind::PublicKeys | Kind::Texts => list(raw, |text| Ok(text.to_owned())),
        Kind::Hosts => hosts(raw),
        Kind::ListOf(words) => words_of(raw, words),
        Kind::Provider => provider(text(raw)?.trim()),
        Kind::Text => text(raw).map(|text| json!(text)),
        Kind::Secret => match text(raw) {
            Ok(text) => Ok(json!(text.trim())),
            Err(_) => Err("the value is empty or not a text".to_owned()),
        },
        Kind::OneOf(words) => one_of(text(raw)?.trim(), words),
        Kind::Model => model(text(raw)?.trim()),
        Kind::Template => template(text(raw)?),
        Kind::Host => host(text(raw)?.trim()),
        Kind::Listen => listen(text(raw)?.trim()),
        Kind::Url => address(text(raw)?.trim()),
        Kind::Database => database(text(raw)?.trim()),
        Kind::Redis => redis(text(raw)?.trim()),
        Kind::Smtp => smtp(text(raw)?.trim()),
        Kind::Headers => pairs::headers(text(raw)?),
        Kind::Attributes => pairs::attributes(text(raw)?),
        Kind::NamedUrls => named_urls(text(raw)?),
    }
}

/// A value as quoted in error messages.
pub(super) fn quote(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => return "a mapping".to_owned(),
        Value::Array(_) => return "a list".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    let short: String = text.chars().take(60).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("`{short}{dots}`")
}

fn text(raw: &Raw) -> Result<&str, String> {
    match raw {
        Raw::Text(text) | Raw::Json(Value::String(text)) if text.trim().is_empty() => {
            Err("the value is empty".to_owned())
        }
        Raw::Text(text) | Raw::Json(Value::String(text)) => Ok(text),
        Raw::Json(value @ (Value::Number(_) | Value::Bool(_))) => {
            Err(format!("{} is not a text; put it in quotes", quote(value)))
        }
        Raw::Json(value) => Err(format!("{} is not a text", quote(value))),
    }
}

fn flag(raw: &Raw) -> Result<Value, String> {
    match raw {
        Raw::Json(Value::Bool(value)) => Ok(json!(value)),
        Raw::Json(value) => Err(format!("{} is neither", quote(value))),
        Raw::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(json!(true)),
            "false" | "0" => Ok(json!(false)),
            _ => Err(format!("{} is neither", quote(&json!(text)))),
        },
    }
}

fn whole(raw: &Raw, min: u64, max: u64) -> Result<Value, String> {
    let (number, quoted) = match raw {
        Raw::Json(value) => (value.as_u64(), quote(value)),
        Raw::Text(text) => (text.trim().parse().ok(), quote(&json!(text))),
    };
    match number {
        Some(number) if (min..=max).contains(&number) => Ok(json!(number)),
        Some(_) => Err(format!("{quoted} is out of range")),
        None => Err(format!("{quoted} is not a whole number of that range")),
    }
}

fn number(raw: &Raw, min: f64, max: f64) -> Result<Value, String> {
    let (number, quoted) = match raw {
        Raw::Json(value) => (value.as_f64(), quote(value)),
        Raw::Text(text) => (text.trim().parse().ok(), quote(&json!(text))),
    };
    match number {
        Some(number) if (min..=max).contains(&number) => Ok(json!(number)),
        Some(_) => Err(format!("{quoted} is out of range")),
        None => Err(format!("{quoted} is not a number")),
    }
}

/// Returns true if the text may be the name of a provider or a server.
pub(super) fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(is_letter)
}

/// Checks a provider: a kind, with aliases resolved, or a valid name of an entry.
fn provider(text: &str) -> Result<Value, String> {
    match provider_kind(text) {
        Some(kind) => Ok(json!(kind)),
        None if is_name(text) => Ok(json!(text)),
        None => Err(format!("{} is no name of a provider", quote(&json!(text)))),
    }
}

fn model(text: &str) -> Result<Value, String> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(json!(text)),
        Some(_) | None => Err(format!(
            "{} is no provider with a model",
            quote(&json!(text))
        )),
    }
}

fn words_of(raw: &Raw, words: &'static [Word]) -> Result<Value, String> {
    let given = list(raw, |text| Ok(text.to_owned()))?;
    let given = given.as_array().map(Vec::as_slice).unwrap_or_default();
    if given.is_empty() {
        return Err("the list is empty".to_owned());
    }
    let mut checked = Vec::new();
    for word in given {
        let word = one_of(word.as_str().unwrap_or_default(), words)?;
        if checked.contains(&word) {
            return Err(format!("{} stands twice", quote(&word)));
        }
        checked.push(word);
    }
    Ok(json!(checked))
}

fn one_of(text: &str, words: &[Word]) -> Result<Value, String> {
    let given = text.to_ascii_lowercase();
    let found = words.iter().find_map(|word| match word {
        Word::Is(name) => (*name == given).then(|| Ok(json!(name))),
        Word::Alias(alias, name) => (*alias == given).then(|| Ok(json!(name))),
        Word::Later(name) => {
            (*name == given).then(|| Err(format!("`{name}` is not in this version yet")))
        }
    });
    found.unwrap_or_else(|| Err(format!("{} is not known", quote(&json!(text)))))
}

fn template(text: &str) -> Result<Value, String> {
    match minijinja::Environment::new().template_from_str(text) {
        Ok(_) => Ok(json!(text)),
        Err(error) => Err(format!("the template cannot be read: {error}")),
    }
}

fn host(text: &str) -> Result<Value, String> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let is_name = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
    };
    if bare.parse::<IpAddr>().is_ok() || is_name(text) {
        Ok(json!(bare))
    } else {
        Err(format!("{} is neither", quote(&json!(text))))
    }
}

fn listen(text: &str) -> Result<Value, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) => Ok(json!(address.to_string())),
        Err(_) => Err(format!("{} is not both", quote(&json!(text)))),
    }
}

fn address(text: &str) -> Result<Value, String> {
    let url = Url::parse(text).map_err(|error| format!("the address cannot be read: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the address holds a user or password".to_owned());
    }
    let is_web = matches!(url.scheme(), "http" | "https") && url.host().is_some();
    if is_web && url.fragment().is_none() {
        Ok(json!(url.as_str()))
    } else {
        Err(format!("{} is not such an address", quote(&json!(text))))
    }
}

/// Checks `name=address` pairs; `none` are no pairs.
fn named_urls(text: &str) -> Result<Value, String> {
    if text.trim() == "none" {
        return Ok(json!({}));
    }
    let pieces = text.split(',').map(str::trim);
    let pairs = pieces.filter(|piece| !piece.is_empty()).map(|piece| {
        let (name, url) = piece.split_once('=').unwrap_or_default();
        let name = name.trim();
        if !is_name(name) {
            return Err(format!("{} has no name before a `=`", quote(&json!(piece))));
        }
        Ok((name.to_ascii_lowercase(), address(url.trim())?))
    });
    Ok(Value::Object(pairs.collect::<Result<_, _>>()?))
}

fn database(text: &str) -> Result<Value, String> {
    let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
    match scheme {
        "sqlite" if !rest.trim_start_matches('/').is_empty() => Ok(json!(text)),
        "sqlite" => Err("the path is missing".to_owned()),
        "postgres" | "postgresql" if has_host(text) => Ok(json!(text)),
        "postgres" | "postgresql" => Err("the address of the server cannot be read".to_owned()),
        _ => Err("the kind of database is not known".to_owned()),
    }
}

/// Returns true if the URL names a server, which `postgres://` may also do in its query.
fn has_host(text: &str) -> bool {
    Url::parse(text)
        .is_ok_and(|url| url.has_host() || url.query_pairs().any(|(name, _)| name == "host"))
}

/// Checks the address of a Redis server, with TLS (`rediss`) or without, or of its socket.
fn redis(text: &str) -> Result<Value, String> {
    match Url::parse(text) {
        Ok(url) if url.scheme() == "unix" && url.path().len() > 1 => Ok(json!(text)),
        Ok(url) if !matches!(url.scheme(), "redis" | "rediss") => {
            Err("the scheme is not known".to_owned())
        }
        Ok(url) if url.has_host() => Ok(json!(text)),
        Ok(_) | Err(_) => Err("the address cannot be read".to_owned()),
    }
}

fn smtp(text: &str) -> Result<Value, String> {
    match Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "smtp" | "smtps") => {
            Err("the scheme is not known".to_owned())
        }
        Ok(url) if url.has_host() => Ok(json!(text)),
        Ok(_) | Err(_) => Err("the address cannot be read".to_owned()),
    }
}

fn list(raw: &Raw, check: fn(&str) -> Result<String, String>) -> Result<Value, String> {
    let items: Vec<&str> = match raw {
        Raw::Text(text) | Raw::Json(Value::String(text)) => text.split(',').collect(),
        Raw::Json(Value::Array(items)) => {
            let texts = items.iter().map(|item| {
                item.as_str()
                    .ok_or_else(|| format!("{} is not a text", quote(item)))
            });
            texts.collect::<Result<_, _>>()?
        }
        Raw::Json(value) => return Err(format!("{} is not a list", quote(value))),
    };
    let items = items.into_iter().map(str::trim);
    let checked = items.filter(|item| !item.is_empty()).map(check);
    Ok(json!(checked.collect::<Result<Vec<_>, _>>()?))
}

fn origin(text: &str) -> Result<String, String> {
    let refused = || format!("{} is not an origin", quote(&json!(text)));
    let url = Url::parse(text).map_err(|_| refused())?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_web = matches!(url.scheme(), "http" | "https") && url.username().is_empty();
    if is_bare && is_web {
        Ok(url.origin().ascii_serialization())
    } else {
        Err(refused())
    }
}

fn hosts(raw: &Raw) -> Result<Value, String> {
    match raw {
        Raw::Text(text) | Raw::Json(Value::String(text)) if text.trim() == "none" => {
            return Ok(json!("none"));
        }
        Raw::Text(_) | Raw::Json(_) => {}
    }
    let listed = list(raw, |text| match text.parse::<AllowedHost>() {
        Ok(host) => Ok(host.to_string()),
        Err(problem) => Err(format!("{}: {problem}", quote(&json!(text)))),
    })?;
    let count = listed.as_array().map_or(0, Vec::len);
    if count > MAX_ALLOWED_HOSTS {
        return Err(format!("at most {MAX_ALLOWED_HOSTS} hosts are possible"));
    }
    Ok(listed)
}

fn network(text: &str) -> Result<String, String> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let network = address.or_else(|_| text.parse::<IpNet>());
    network
        .map(|network| network.trunc().to_string())
        .map_err(|_| format!("{} is neither", quote(&json!(text))))
}
