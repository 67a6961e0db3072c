//! Looks up published servers in a registry with the format of the official MCP registry, and turns them into
//! entries.
//!
//! Nothing from a registry is trusted: its texts are bounded, and the entry that it proposes is shown to a
//! person, who adds it like one that they typed.

mod format;
mod mirror;
mod question;
mod way;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Client, Url};
use serde_json::Value;

pub use self::question::Question;
pub use self::way::Way;

use self::format::{Item, Page};
use self::mirror::Mirror;
use super::error::Error;
use super::permission::adds_servers;
use sepal_core::domain::{AddingRoles, Caller};
use sepal_mcp::config::EntryProblem;

/// The most servers of one answer.
pub const MOST_LISTED: usize = 50;
/// The most bytes of an answer of a registry: servers with long descriptions take some kilobytes each.
const MOST_BYTES: usize = 8 << 20;
/// The time limit of a whole answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// The settings of the registry.
#[derive(Debug, Clone, Default)]
pub struct RegistrySettings {
    /// The registry's address, without `/v0.1`; `None` if no registry is used.
    pub url: Option<Url>,
    /// A file with answers of a registry, which is read instead.
    pub file: Option<PathBuf>,
}

/// The client of a registry of published servers.
pub struct McpRegistry {
    settings: RegistrySettings,
    client: Client,
    /// The roles that may add servers, and so search for some.
    roles: AddingRoles,
    mirror: Mirror,
}

/// A search for servers.
#[derive(Debug, Clone, Default)]
pub struct RegistrySearch {
    /// A part of the name; `None` for all servers.
    pub text: Option<String>,
    /// The cursor that the answer before returned.
    pub cursor: Option<String>,
    /// The number of servers, 1 to [`MOST_LISTED`].
    pub limit: usize,
}

/// A page of search results.
#[derive(Debug)]
pub struct Listing {
    pub servers: Vec<PublishedServer>,
    /// The cursor of the next page; `None` on the last one.
    pub cursor: Option<String>,
}

/// A published server in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedServer {
    /// Reverse DNS with one slash, such as `io.github.user/weather`.
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub version: String,
    pub website: Option<String>,
    pub repository: Option<String>,
    /// True if its status in the registry is another than `active`.
    pub is_deprecated: bool,
    pub ways: Vec<Way>,
}

/// The result of filling in a way: an entry, a proposed name, and the values of its secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledEntry {
    pub name: String,
    /// The configuration, as `POST /api/mcp/add` takes it.
    pub config: Value,
    pub secrets: BTreeMap<String, String>,
}

/// Errors of a registry lookup.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Lookups are switched off.
    #[error(
        "looking up MCP servers is off here: an operator switches it on with \
         `agent.mcp_registry.enabled`"
    )]
    Off,
    /// The registry cannot be reached, or its answer is not valid.
    #[error("the MCP registry {0}")]
    Away(String),
    /// The server, the version or the way does not exist.
    #[error("the MCP registry has no {0}")]
    NotFound(String),
    /// Values are invalid; all of them are named.
    #[error("some values are not right")]
    Invalid(Vec<EntryProblem>),
    /// The caller may not add servers.
    #[error(transparent)]
    Servers(#[from] Error),
}

impl McpRegistry {
    /// Makes a client; `client` may reach any address, because the operator chose the registry.
    pub fn new(settings: RegistrySettings, client: Client, roles: AddingRoles) -> Self {
        let mirror = Mirror::default();
        Self {
            settings,
            client,
            roles,
            mirror,
        }
    }

    /// Returns servers in their newest version, by name.
    pub async fn search(
        &self,
        caller: &Caller,
        search: &RegistrySearch,
    ) -> Result<Listing, RegistryError> {
        adds_servers(caller, self.roles)?;
        if let Some(file) = &self.settings.file {
            return self.mirror.search(file, search).await;
        }
        let limit = search.limit.to_string();
        let mut query = vec![("version", "latest"), ("limit", limit.as_str())];
        let text = search.text.as_deref().map(str::trim);
        query.extend(
            text.filter(|text| !text.is_empty())
                .map(|text| ("search", text)),
        );
        query.extend(search.cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page: Page = self.ask(&["servers"], &query).await?;
        let cursor = page.metadata.next_cursor.clone();
        Ok(Listing {
            servers: page
                .items()
                .iter()
                .take(MOST_LISTED)
                .map(published)
                .collect(),
            cursor: cursor.filter(|cursor| !cursor.is_empty()),
        })
    }

    /// Returns the entry for one way of a server, filled in with a person's answers.
    pub async fn entry(
        &self,
        caller: &Caller,
        name: &str,
        version: &str,
        way: &str,
        answers: &BTreeMap<String, String>,
    ) -> Result<FilledEntry, RegistryError> {
        adds_servers(caller, self.roles)?;
        let missing = || RegistryError::NotFound(format!("server `{name}` {version}"));
        let item = if let Some(file) = &self.settings.file {
            self.mirror.find(file, name, version).await?
        } else {
            let path = ["servers", name, "versions", version];
            Some(self.ask::<Item>(&path, &[]).await?)
        };
        let item = item.ok_or_else(missing)?;
        let lack = way::ways(item.server())
            .into_iter()
            .find(|known| known.id == way);
        if let Some(lack) = lack.and_then(|way| way.lack) {
            return Err(RegistryError::Invalid(vec![EntryProblem {
                field: "way".to_owned(),
                message: format!("this cannot be added: {lack}"),
            }]));
        }
        let filled = way::fill(item.server(), way, answers);
        let filled = filled.ok_or_else(|| RegistryError::NotFound(format!("way `{way}`")))?;
        filled.map_err(RegistryError::Invalid)
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<T, RegistryError> {
        let mut url = self.settings.url.clone().ok_or(RegistryError::Off)?;
        let away = |words: &str| RegistryError::Away(words.to_owned());
        url.path_segments_mut()
            .map_err(|()| away("has an address that has no paths"))?
            .pop_if_empty()
            .push("v0.1")
            .extend(path);
        url.query_pairs_mut().extend_pairs(query);
        let request = self.client.get(url).timeout(PATIENCE);
        let silent = |error: reqwest::Error| {
            RegistryError::Away(if error.is_timeout() {
                format!("did not answer within {} s", PATIENCE.as_secs())
            } else {
                format!("cannot be reached: {}", sepal_net::below(&error))
            })
        };
        let mut response = request.send().await.map_err(silent)?;
        let status = response.status();
        if let (404, Some(name)) = (status.as_u16(), path.get(1)) {
            return Err(RegistryError::NotFound(format!("`{name}`")));
        }
        if !status.is_success() {
            return Err(RegistryError::Away(format!("answered {status}")));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(silent)? {
            if bytes.len() + piece.len() > MOST_BYTES {
                return Err(away("answered with more than 8 MiB"));
            }
            bytes.extend_from_slice(&piece);
        }
        serde_json::from_slice(&bytes)
            .map_err(|_| away("does not answer in the format of a registry (`/v0.1/servers`)"))
    }
}

/// Makes the published server that people choose from.
fn published(item: &Item) -> PublishedServer {
    let server = item.server();
    let link = |url: &str| url.starts_with("https://").then(|| clip(url, 400));
    PublishedServer {
        name: clip(&server.name, 200),
        title: server.title.as_deref().map(|title| clip(title, 200)),
        description: clip(&server.description, 1000),
        version: clip(&server.version, 255),
        website: server.website_url.as_deref().and_then(link),
        repository: server.repository.as_ref().and_then(|at| link(&at.url)),
        is_deprecated: item.status().is_some_and(|status| status != "active"),
        ways: way::ways(server),
    }
}

/// Cuts a foreign text to `most` characters.
fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
