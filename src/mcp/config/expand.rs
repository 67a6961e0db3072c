//! References in `env`, `headers` and `url`: `${VAR}` of the gateway's environment, for operators,
//! and `${secret:NAME}` of the entry's own secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::given;
use crate::domain::McpServerConfig;

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `${NAME}`.
    Variable(String),
    /// `${secret:NAME}`.
    Secret(String),
}

/// The references of a text, in order.
pub fn references(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let walked = walk(text, |reference| {
        found.push(reference);
        Ok::<String, std::convert::Infallible>(String::new())
    });
    // Only the walk matters.
    drop(walked);
    found
}

/// A reference that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No such variable.
    #[error("the environment variable `{0}` is not set")]
    Variable(String),
    /// No such secret.
    #[error("the secret `{0}` is not set")]
    Secret(String),
    /// Only operators' entries read the environment.
    #[error("`${{{0}}}` is possible in the operator's files only")]
    NotAllowed(String),
}

/// What references may stand for.
#[derive(Default)]
pub struct References<'a> {
    /// The gateway's environment; `None` for entries that must not read it.
    pub environment: Option<&'a BTreeMap<String, String>>,
    /// The entry's own secrets.
    pub secrets: BTreeMap<String, String>,
}

/// The texts of an entry, ready for use.
#[derive(Default)]
pub struct Expanded {
    /// `env` and `containerEnv` together.
    pub environment: BTreeMap<String, String>,
    /// `headers`.
    pub headers: BTreeMap<String, String>,
    /// `url`.
    pub url: Option<String>,
    /// `oauth.clientSecret`.
    pub client_secret: Option<String>,
    /// What must not be read in anything that the server says.
    pub secrets: BTreeSet<String>,
}

impl Expanded {
    fn with_secrets(mut self) -> Self {
        let url = self.url.as_deref();
        let found = given::secrets(&self.environment, &self.headers, url);
        self.secrets.extend(found);
        self.secrets.extend(self.client_secret.clone());
        self
    }
}

/// Replaces the references of an entry.
pub fn expand(config: &McpServerConfig, from: &References<'_>) -> Result<Expanded, Missing> {
    let mut expanded = Expanded::default();
    let mut secrets = BTreeSet::new();
    let mut text = |text: &str| {
        let value = walk(text, |reference| {
            let value = look_up(from, &reference)?;
            match reference {
                Reference::Secret(_) => secrets.extend([value.clone()]),
                Reference::Variable(name) => secrets.extend(given::variable(&name, &value)),
            }
            Ok(value)
        })?;
        Ok::<String, Missing>(value)
    };
    for (name, value) in config.env.iter().chain(&config.container_env) {
        expanded.environment.insert(name.clone(), text(value)?);
    }
    for (name, value) in &config.headers {
        expanded.headers.insert(name.clone(), text(value)?);
    }
    if let Some(url) = &config.url {
        expanded.url = Some(text(url)?);
    }
    if let Some(secret) = client_secret(config) {
        expanded.client_secret = Some(text(secret)?);
    }
    expanded.secrets = secrets;
    Ok(expanded.with_secrets())
}

/// The texts of an entry that has no references left: what looks like one is text.
pub fn as_written(config: &McpServerConfig) -> Expanded {
    let environment = config.env.iter().chain(&config.container_env);
    let expanded = Expanded {
        environment: environment
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        headers: config.headers.clone(),
        url: config.url.clone(),
        client_secret: client_secret(config).map(ToOwned::to_owned),
        secrets: BTreeSet::new(),
    };
    expanded.with_secrets()
}

fn client_secret(config: &McpServerConfig) -> Option<&str> {
    config.oauth.as_ref()?.client_secret.as_deref()
}

/// Replaces the references of one text.
pub fn expand_text(text: &str, from: &References<'_>) -> Result<String, Missing> {
    walk(text, |reference| look_up(from, &reference))
}

fn look_up(from: &References<'_>, reference: &Reference) -> Result<String, Missing> {
    match reference {
        Reference::Secret(name) => match from.secrets.get(name) {
            Some(value) => Ok(value.clone()),
            None => Err(Missing::Secret(name.clone())),
        },
        Reference::Variable(name) => match from.environment {
            None => Err(Missing::NotAllowed(name.clone())),
            Some(environment) => match environment.get(name) {
                Some(value) => Ok(value.clone()),
                None => Err(Missing::Variable(name.clone())),
            },
        },
    }
}

/// Copies a text, with every reference replaced. What is no reference stays as it is.
fn walk<E>(
    text: &str,
    mut replace: impl FnMut(Reference) -> Result<String, E>,
) -> Result<String, E> {
    let mut copied = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else {
            break;
        };
        copied.push_str(before);
        let reference = match inside.strip_prefix("secret:") {
            Some(name) if is_name(name) => Some(Reference::Secret(name.to_owned())),
            None if is_name(inside) => Some(Reference::Variable(inside.to_owned())),
            Some(_) | None => None,
        };
        if let Some(reference) = reference {
            copied.push_str(&replace(reference)?);
            rest = behind;
        } else {
            copied.push_str("${");
            rest = after;
        }
    }
    copied.push_str(rest);
    Ok(copied)
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{Missing, Reference, References, expand, references};

    #[test]
    fn references_are_found_and_other_text_stays() {
        let check = |text: &str, expected: &[Reference]| {
            assert_eq!(references(text), expected, "{text}");
        };
        check("plain $HOME $(x) ${", &[]);
        check("${a b}${secret:}", &[]);
        check(
            "x${A}y${secret:B_1}z",
            &[
                Reference::Variable("A".into()),
                Reference::Secret("B_1".into()),
            ],
        );
    }

    #[test]
    fn values_are_filled_in_and_known_as_secrets() {
        let config = serde_json::from_value(json!({
            "url": "https://e.test/${PATH_PART}",
            "headers": {"Authorization": "Bearer ${secret:TOKEN}"},
            "env": {"A": "${odd text}"},
        }))
        .unwrap();
        let environment = BTreeMap::from([("PATH_PART".to_owned(), "mcp".to_owned())]);
        let secrets = BTreeMap::from([("TOKEN".to_owned(), "swordfish".to_owned())]);
        let from = References {
            environment: Some(&environment),
            secrets,
        };
        let expanded = expand(&config, &from).unwrap();
        assert_eq!(expanded.url.as_deref(), Some("https://e.test/mcp"));
        assert_eq!(expanded.headers["Authorization"], "Bearer swordfish");
        assert_eq!(expanded.environment["A"], "${odd text}");
        assert!(expanded.secrets.contains("swordfish"));
        assert!(!expanded.secrets.contains("mcp"), "no secret at all");

        let person = References::default();
        let refused = expand(&config, &person).err().unwrap();
        assert_eq!(refused, Missing::Secret("TOKEN".into()));
        let person = References {
            environment: None,
            ..from
        };
        let refused = expand(&config, &person).err().unwrap();
        assert_eq!(refused, Missing::NotAllowed("PATH_PART".into()));
    }
}
