//! Expands references in `env`, `headers` and `url`: `${VAR}` from the gateway's environment, for operators,
//! and `${secret:NAME}` from the entry's own secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::given;
use sepal_core::domain::{AllowedHosts, McpServerConfig};
use sepal_net::EdgeSecret;

/// A reference in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// `${NAME}`.
    Variable(String),
    /// `${secret:NAME}`.
    Secret(String),
}

/// Returns the references of a text, in order.
pub fn references(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let walked = walk(text, |reference| {
        found.push(reference);
        Ok::<String, std::convert::Infallible>(String::new())
    });
    // Only the references that the walk collects matter, not its text.
    drop(walked);
    found
}

/// A reference without a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The environment variable is not set.
    #[error("the environment variable `{0}` is not set")]
    Variable(String),
    /// The secret is not set.
    #[error("the secret `{0}` is not set")]
    Secret(String),
    /// Only operators' entries may read the environment.
    #[error("`${{{0}}}` is possible in the operator's files only")]
    NotAllowed(String),
}

/// The values that references expand to.
#[derive(Default)]
pub struct References<'a> {
    /// The gateway's environment; `None` for entries that must not read it.
    pub environment: Option<&'a BTreeMap<String, String>>,
    /// The entry's own secrets.
    pub secrets: BTreeMap<String, String>,
}

/// The expanded texts of an entry.
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
    /// The secrets that are masked in everything that the server says.
    pub secrets: BTreeSet<String>,
    /// Secrets for which the environment holds a stand-in; the proxy replaces the stand-in on the way out.
    pub edge: Vec<EdgeSecret>,
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

/// Expands the references of an entry.
pub fn expand(config: &McpServerConfig, from: &References<'_>) -> Result<Expanded, Missing> {
    let mut filling = Filling {
        from,
        secrets: BTreeSet::new(),
        edge: BTreeMap::new(),
    };
    let mut expanded = Expanded::default();
    for (name, value) in config.env.iter().chain(&config.container_env) {
        let value = filling.text(value, &config.secret_hosts)?;
        expanded.environment.insert(name.clone(), value);
    }
    let nowhere = BTreeMap::new();
    for (name, value) in &config.headers {
        let value = filling.text(value, &nowhere)?;
        expanded.headers.insert(name.clone(), value);
    }
    if let Some(url) = &config.url {
        expanded.url = Some(filling.text(url, &nowhere)?);
    }
    if let Some(secret) = client_secret(config) {
        expanded.client_secret = Some(filling.text(secret, &nowhere)?);
    }
    expanded.secrets = filling.secrets;
    let is_stand_in = |secret: &EdgeSecret| secret.stand_in.clone();
    let stand_ins: BTreeSet<_> = filling.edge.values().map(is_stand_in).collect();
    expanded.edge = filling.edge.into_values().collect();
    let mut expanded = expanded.with_secrets();
    // Stand-ins are not secret, and showing one tells which secret it stands for.
    let says_nothing = |text: &String| stand_ins.iter().any(|stand_in| text.contains(stand_in));
    expanded.secrets.retain(|text| !says_nothing(text));
    Ok(expanded)
}

/// Collects the secrets and stand-ins while one entry is expanded.
struct Filling<'a> {
    from: &'a References<'a>,
    secrets: BTreeSet<String>,
    /// Stand-ins by reference, so that a reference has the same stand-in wherever it occurs. A secret and a
    /// variable of the same name have separate stand-ins.
    edge: BTreeMap<Reference, EdgeSecret>,
}

impl Filling<'_> {
    /// Expands the references of a text; a reference that is limited to hosts becomes a stand-in.
    fn text(
        &mut self,
        text: &str,
        hosts: &BTreeMap<String, Vec<String>>,
    ) -> Result<String, Missing> {
        walk(text, |reference| {
            let value = look_up(self.from, &reference)?;
            let (Reference::Secret(name) | Reference::Variable(name)) = &reference;
            if let Some(hosts) = hosts.get(name) {
                self.secrets.insert(value.clone());
                let secret = self.edge.entry(reference.clone());
                let secret = secret.or_insert_with(|| stood_for(value, hosts));
                return Ok(secret.stand_in.clone());
            }
            match reference {
                Reference::Secret(_) => self.secrets.extend([value.clone()]),
                Reference::Variable(name) => self.secrets.extend(given::variable(&name, &value)),
            }
            Ok(value)
        })
    }
}

fn stood_for(value: String, hosts: &[String]) -> EdgeSecret {
    EdgeSecret {
        stand_in: format!("sepal-secret-{:032x}", rand::random::<u128>()),
        value: value.into(),
        // The entry check already refuses invalid hosts; here they would allow no host.
        hosts: AllowedHosts::parse(hosts).unwrap_or_default(),
    }
}

/// Returns the texts of an entry unexpanded: anything that looks like a reference is plain text.
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
        edge: Vec::new(),
    };
    expanded.with_secrets()
}

fn client_secret(config: &McpServerConfig) -> Option<&str> {
    config.oauth.as_ref()?.client_secret.as_deref()
}

/// Expands the references of one text.
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

/// Copies a text with every reference replaced; the rest stays unchanged.
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

    use secrecy::ExposeSecret as _;
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
    fn what_has_hosts_is_stood_for_in_the_environment() {
        let config = serde_json::from_value(json!({
            "command": "x",
            "env": {
                "TOKEN": "${secret:TOKEN}", "HEADER": "Bearer ${secret:TOKEN}", "B": "${secret:B}",
            },
            "network": ["api.example.com"],
            "secretHosts": { "TOKEN": ["api.example.com"] },
        }))
        .unwrap();
        let secrets = [("TOKEN", "swordfish-1"), ("B", "swordfish-2")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let from = References {
            environment: None,
            secrets: secrets.into(),
        };
        let expanded = expand(&config, &from).unwrap();
        let [edge] = expanded.edge.as_slice() else {
            panic!("one secret is stood for");
        };
        assert_eq!(edge.value.expose_secret(), "swordfish-1");
        assert!(edge.hosts.find("api.example.com", 443).is_some());
        let environment = &expanded.environment;
        assert_eq!(environment["TOKEN"], edge.stand_in);
        assert_eq!(environment["HEADER"], format!("Bearer {}", edge.stand_in));
        assert_eq!(environment["B"], "swordfish-2");
        let hidden: Vec<_> = expanded.secrets.iter().map(String::as_str).collect();
        assert_eq!(hidden, ["swordfish-1", "swordfish-2"]);
        // Each expansion creates a new stand-in.
        let again = expand(&config, &from).unwrap();
        assert_ne!(again.environment["TOKEN"], edge.stand_in);
    }

    #[test]
    fn a_secret_and_a_variable_of_one_name_are_stood_for_apart() {
        let config = serde_json::from_value(json!({
            "command": "x", "env": { "A": "${secret:TOKEN}", "B": "${TOKEN}" },
            "network": ["api.example.com"], "secretHosts": { "TOKEN": ["api.example.com"] },
        }))
        .unwrap();
        let environment = BTreeMap::from([("TOKEN".to_owned(), "swordfish-2".to_owned())]);
        let from = References {
            environment: Some(&environment),
            secrets: BTreeMap::from([("TOKEN".to_owned(), "swordfish-1".to_owned())]),
        };
        let expanded = expand(&config, &from).unwrap();
        let check = |variable: &str, expected: &str| {
            let stand_in = &expanded.environment[variable];
            let mut all = expanded.edge.iter();
            let found = all.find(|it| it.stand_in == *stand_in).unwrap();
            assert_eq!(found.value.expose_secret(), expected);
        };
        check("A", "swordfish-1");
        check("B", "swordfish-2");
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
