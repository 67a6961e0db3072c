//! Reads and writes the manifest of a backup, which is the first entry of its archive.
//!
//! A restore unpacks only the files that the manifest names, and accepts only a fixed set of names, and those of
//! workspaces.

use std::collections::BTreeSet;
use std::path::Path;

use sepal_core::domain::SandboxId;
use serde::{Deserialize, Serialize};

/// The name of the archive's first entry.
pub(super) const NAME: &str = "manifest.json";
/// The archive name of the database, in SQLite's file format.
pub(super) const DATABASE: &str = "data/sepal.db";
/// The archive name of the key that seals secrets.
pub(super) const SECRET_KEY: &str = "data/secret.key";
/// The archive name of the configuration of the installation's MCP servers.
pub(super) const SERVERS: &str = "data/mcp-config.json";
/// The possible archive names of the settings file, for YAML and JSON.
pub(super) const SETTINGS: [&str; 2] = ["settings/settings.yaml", "settings/settings.json"];
/// The archive names of workspaces are a sandbox id between these.
const WORKSPACE: (&str, &str) = ("workspaces/", ".tar");
/// The largest manifest, in bytes: enough for eighty thousand workspaces.
pub(super) const MAX_MANIFEST: u64 = 16 << 20;

/// The value of `format` that distinguishes a backup from any other archive.
const FORMAT: &str = "sepal-backup";
/// The version of the archive and manifest format that this program writes.
const VERSION: u32 = 1;

/// The location of the key that seals the secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyPlace {
    /// The key is the file `secret.key`, which is in the backup if it exists.
    File,
    /// The key is the operator's own (`auth.secret_key`), which is not in the backup.
    Settings,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The file's name in the archive.
    pub name: String,
    pub bytes: u64,
    /// The SHA-256 digest of the file's content, in hex.
    pub sha256: String,
}

impl Part {
    /// Returns true if the file is the archive of a workspace.
    pub fn is_workspace(&self) -> bool {
        workspace_of(&self.name).is_some()
    }
}

/// The manifest of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    format: String,
    version: u32,
    /// The version of Sepal that made the backup.
    pub program: String,
    /// The newest migration of the database in the backup.
    pub schema: i64,
    /// The time at which the backup was made, as RFC 3339.
    pub created_at: String,
    /// The location of the key that seals the secrets.
    pub secret_key: KeyPlace,
    /// The files that follow the manifest in the archive, in this order.
    pub files: Vec<Part>,
}

/// The reason a manifest is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ManifestError {
    /// The manifest is invalid, or names a file that no backup contains.
    Foreign(String),
    /// A newer version of Sepal made the backup.
    Newer(String),
}

impl Manifest {
    pub(super) fn new(schema: i64, secret_key: KeyPlace, files: Vec<Part>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            schema,
            created_at: jiff::Timestamp::now().to_string(),
            secret_key,
            files,
        }
    }

    /// Parses a manifest. `newest` is the newest migration that this program knows.
    pub(super) fn read(text: &[u8], newest: i64) -> Result<Self, ManifestError> {
        /// The fields that every version of the manifest has.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
            program: String,
        }
        let foreign = |reason: &str| ManifestError::Foreign(reason.to_owned());
        let head: Head =
            serde_json::from_slice(text).map_err(|_| foreign("its manifest cannot be read"))?;
        if head.format != FORMAT {
            return Err(foreign("its manifest is another program's"));
        }
        if head.version > VERSION {
            return Err(ManifestError::Newer(head.program));
        }
        let manifest: Self =
            serde_json::from_slice(text).map_err(|_| foreign("its manifest cannot be read"))?;
        if manifest.schema > newest {
            return Err(ManifestError::Newer(manifest.program));
        }
        let mut names = BTreeSet::new();
        for part in &manifest.files {
            let name = part.name.as_str();
            let is_known = [DATABASE, SECRET_KEY, SERVERS].contains(&name)
                || is_settings(name)
                || workspace_of(name).is_some();
            if !is_known || !names.insert(name) {
                let reason = format!("its manifest names `{}`", name.escape_debug());
                return Err(ManifestError::Foreign(reason));
            }
        }
        if manifest.files.first().map(|part| part.name.as_str()) != Some(DATABASE) {
            return Err(foreign("its manifest names no database"));
        }
        Ok(manifest)
    }
}

/// The archive name for a settings file, chosen by the file's extension.
pub(super) fn settings_name(file: &Path) -> &'static str {
    let [yaml, json] = SETTINGS;
    let is_json = file
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json { json } else { yaml }
}

pub(super) fn is_settings(name: &str) -> bool {
    SETTINGS.contains(&name)
}

/// The archive name of a sandbox's workspace.
pub(super) fn workspace_name(sandbox: &SandboxId) -> String {
    let (before, after) = WORKSPACE;
    format!("{before}{sandbox}{after}")
}

/// The sandbox whose workspace has that archive name; `None` for any other name.
pub(super) fn workspace_of(name: &str) -> Option<SandboxId> {
    let (before, after) = WORKSPACE;
    SandboxId::parse(name.strip_prefix(before)?.strip_suffix(after)?)
}

/// The last path component of a known archive name.
pub(super) fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{DATABASE, KeyPlace, Manifest, ManifestError, Part, SECRET_KEY, workspace_name};
    use sepal_core::domain::SandboxId;

    fn part(name: &str) -> Part {
        Part {
            name: name.to_owned(),
            bytes: 1,
            sha256: String::new(),
        }
    }

    #[test]
    fn only_known_names_of_this_and_older_versions_are_taken() {
        fn check(change: impl FnOnce(&mut Manifest), expected: &str) {
            let files = vec![part(DATABASE), part(SECRET_KEY)];
            let mut manifest = Manifest::new(5, KeyPlace::File, files);
            change(&mut manifest);
            let read = Manifest::read(&serde_json::to_vec(&manifest).unwrap(), 6);
            let said = match &read {
                Ok(read) => {
                    assert_eq!(*read, manifest);
                    "fits"
                }
                Err(ManifestError::Newer(_)) => "newer",
                Err(ManifestError::Foreign(reason)) => reason,
            };
            assert_eq!(said, expected);
        }
        check(|_| {}, "fits");
        check(|it| it.schema = 6, "fits");
        check(|it| it.schema = 7, "newer");
        check(|it| it.version = 2, "newer");
        check(
            |it| it.format = "zip".into(),
            "its manifest is another program's",
        );
        check(|it| it.files.clear(), "its manifest names no database");
        check(|it| it.files.reverse(), "its manifest names no database");
        check(
            |it| it.files.push(part("../evil")),
            "its manifest names `../evil`",
        );
        check(
            |it| it.files.push(part("data/a\n")),
            "its manifest names `data/a\\n`",
        );
        check(
            |it| it.files.push(part(SECRET_KEY)),
            "its manifest names `data/secret.key`",
        );
        let workspace = workspace_name(&SandboxId::from_bits(7));
        check(|it| it.files.push(part(&workspace)), "fits");
        check(
            |it| it.files.extend([part(&workspace), part(&workspace)]),
            &format!("its manifest names `{workspace}`"),
        );
        for foreign in [
            "workspaces/../evil.tar",
            "workspaces/sbx_7.tar",
            "workspaces/sbx_0000000000000000000000000000000G.tar",
            "workspaces//sbx_00000000000000000000000000000007.tar",
            "workspaces/sbx_00000000000000000000000000000007.tar/x",
            "workspaces/sbx_00000000000000000000000000000007",
            "data/sbx_00000000000000000000000000000007.tar",
            "workspaces/.tar",
        ] {
            check(
                |it| it.files.push(part(foreign)),
                &format!("its manifest names `{foreign}`"),
            );
        }
        assert_eq!(
            Manifest::read(b"{}", 6),
            Err(ManifestError::Foreign("its manifest cannot be read".into()))
        );
    }
}
