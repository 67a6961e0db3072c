//! Validates what people submit, and reports all problems at once.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::catalogue::entry::ServerEntry;
use crate::catalogue::installations::Unavailable;
use crate::error::Error;
use crate::permission::ServerAudience;
use sepal_core::domain::{McpServerConfig, Scope};
use sepal_mcp::config::{Author, EntryProblem, entry_problems, name_problem, package_of};
use sepal_net::Guard;
use sepal_sandbox::host::SandboxHost;

/// The most bytes of a secret.
const MAX_SECRET: usize = 16 * 1024;

/// Server names that are reserved, because they are paths below `/api/mcp`.
const RESERVED: [&str; 5] = ["add", "health", "package", "read", "test"];

/// A server to add or to try.
#[derive(Clone)]
pub struct NewServer {
    pub name: String,
    pub config: McpServerConfig,
    /// The values of its `${secret:NAME}` references.
    pub secrets: BTreeMap<String, SecretString>,
    /// Its audience; `None` for the widest that the caller administers.
    pub audience: Option<ServerAudience>,
}

pub(crate) fn check(new: &NewServer) -> Result<(), Error> {
    let reserved = RESERVED.contains(&new.name.as_str());
    let reserved =
        reserved.then(|| "this name has a meaning of its own below `/api/mcp`".to_owned());
    let name = name_problem(&new.name).or(reserved);
    let name = name.map(|message| EntryProblem {
        field: "name".to_owned(),
        message,
    });
    let mut problems: Vec<EntryProblem> = name.into_iter().collect();
    problems.extend(
        entry_problems(&new.config, Author::Person)
            .into_iter()
            .map(|problem| EntryProblem {
                field: format!("config.{}", problem.field),
                ..problem
            }),
    );
    for (name, value) in &new.secrets {
        if let Err(Error::Invalid(wrong)) = check_secret(name, value) {
            problems.extend(wrong);
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(problems))
}

/// Refuses an enabled entry that starts a package if this installation cannot install or run packages.
pub(crate) fn check_package(place: &SandboxHost, config: &McpServerConfig) -> Result<(), Error> {
    let starts_package = package_of(config).is_ok_and(|command| command.is_some());
    if !config.enabled || !starts_package {
        return Ok(());
    }
    if !place.packages.is_on {
        return Err(Error::invalid(
            "config.command",
            Unavailable::Off.to_string(),
        ));
    }
    if !place.is_on() {
        let text = "its package is installed and run in a sandbox, and this installation has none \
                    (`sandbox.driver`): use the address of a remote server, or turn sandboxes on";
        return Err(Error::invalid("config.command", text));
    }
    Ok(())
}

/// Checks a stored entry of a tenant or person against the current rules, so that a trial reports a problem
/// at once instead of timing out.
pub(crate) fn still_fits(entry: &ServerEntry) -> Result<(), Error> {
    if entry.source.is_of_operators() {
        return Ok(());
    }
    let problems = entry_problems(&entry.config, Author::Person);
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(problems))
}

pub(crate) fn check_secret(name: &str, value: &SecretString) -> Result<(), Error> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.len() > 128 || !name.chars().all(is_name) {
        let text = "a secret's name has 1 to 128 letters, digits and `_`";
        return Err(Error::invalid(&format!("secrets.{name}"), text));
    }
    let length = value.expose_secret().len();
    if length == 0 || length > MAX_SECRET {
        let text = "a secret has 1 to 16384 bytes";
        return Err(Error::invalid(&format!("secrets.{name}"), text));
    }
    Ok(())
}

/// Applies a JSON merge patch (RFC 7396): maps such as `env` are merged, lists replaced.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let (Value::Object(target), Value::Object(patch)) = (target, patch) else {
        return;
    };
    for (name, value) in patch {
        match (target.get_mut(name), value) {
            (_, Value::Null) => drop(target.remove(name)),
            (Some(inner @ Value::Object(_)), Value::Object(_)) => merge(inner, value),
            (_, value) => drop(target.insert(name.clone(), value.clone())),
        }
    }
}
/// Refuses a private address in a tenant's entry with a clear message; the check that protects our networks
/// is that of the HTTP client.
pub(super) async fn check_address(
    guard: &Guard,
    scope: &Scope,
    config: &McpServerConfig,
) -> Result<(), Error> {
    let url = config
        .url
        .as_deref()
        .and_then(|url| url::Url::parse(url).ok());
    match (scope, url) {
        (Scope::Tenant(_), Some(url)) => {
            let checked = guard.check(&url).await;
            checked.map_err(|blocked| Error::invalid("config.url", blocked.to_string()))
        }
        (Scope::Installation | Scope::Tenant(_), _) => Ok(()),
    }
}
