//! Reads a file instead of a registry, for machines without internet access: one answer of `GET
//! /v0.1/servers`, a list of answers, or a list of `server.json`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::Value;

use super::format::{Item, Page, readable};
use super::{Listing, RegistryError, RegistrySearch, published};

/// The largest file in bytes: all servers of the official registry take a third of it.
const MOST_BYTES: u64 = 64 << 20;

/// The servers that were read last, valid until the file changes.
#[derive(Default)]
pub(super) struct Mirror {
    read: Mutex<Option<(Stamp, Arc<[Item]>)>>,
}

#[derive(Clone, PartialEq, Eq)]
struct Stamp {
    changed: SystemTime,
    bytes: u64,
}

impl Mirror {
    pub(super) async fn search(
        &self,
        file: &Path,
        search: &RegistrySearch,
    ) -> Result<Listing, RegistryError> {
        let items = self.items(file).await?;
        let start = match search.cursor.as_deref() {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .map_err(|_| RegistryError::NotFound("page of that cursor".to_owned()))?,
        };
        let text = search
            .text
            .as_deref()
            .unwrap_or_default()
            .trim()
            .to_lowercase();
        let mut found = items.iter().filter(|item| fits(item, &text)).skip(start);
        let servers: Vec<_> = found.by_ref().take(search.limit).map(published).collect();
        let cursor = found.next().map(|_| (start + servers.len()).to_string());
        Ok(Listing { servers, cursor })
    }

    pub(super) async fn find(
        &self,
        file: &Path,
        name: &str,
        version: &str,
    ) -> Result<Option<Item>, RegistryError> {
        let items = self.items(file).await?;
        let found = items.iter().find(|item| {
            let server = item.server();
            server.name == name && server.version == version
        });
        Ok(found.cloned())
    }

    async fn items(&self, file: &Path) -> Result<Arc<[Item]>, RegistryError> {
        let away = |words: String| {
            RegistryError::Away(format!("cannot be read from `{}`: {words}", file.display()))
        };
        let about = tokio::fs::metadata(file)
            .await
            .map_err(|e| away(e.to_string()))?;
        let changed = about.modified().map_err(|e| away(e.to_string()))?;
        let stamp = Stamp {
            changed,
            bytes: about.len(),
        };
        if let Some((read, items)) = &*self.read.lock().unwrap_or_else(PoisonError::into_inner)
            && *read == stamp
        {
            return Ok(Arc::clone(items));
        }
        if stamp.bytes > MOST_BYTES {
            return Err(away("it has more than 64 MiB".to_owned()));
        }
        let bytes = tokio::fs::read(file)
            .await
            .map_err(|e| away(e.to_string()))?;
        let contents = serde_json::from_slice(&bytes)
            .map_err(|error| away(format!("it is no JSON ({error})")))?;
        let items = servers(contents).into_iter();
        let items: Arc<[Item]> = items.filter(|item| !item.is_outdated()).collect();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        *read = Some((stamp, Arc::clone(&items)));
        Ok(items)
    }
}

/// Returns the servers of a file of any supported form; none if it has another form.
fn servers(contents: Value) -> Vec<Item> {
    if let Value::Array(parts) = contents {
        return parts.into_iter().flat_map(servers_of).collect();
    }
    servers_of(contents)
}

/// Returns the servers of an answer, or that of a `server.json`.
fn servers_of(part: Value) -> Vec<Item> {
    if part.get("servers").is_none() {
        return readable(vec![part]);
    }
    serde_json::from_value::<Page>(part).map_or_else(|_| Vec::new(), Page::items)
}

/// Returns true if a server's name, title or description contains the lowercase text.
fn fits(item: &Item, text: &str) -> bool {
    let server = item.server();
    let parts = [
        Some(&server.name),
        server.title.as_ref(),
        Some(&server.description),
    ];
    let mut parts = parts.into_iter().flatten();
    text.is_empty() || parts.any(|part| part.to_lowercase().contains(text))
}
