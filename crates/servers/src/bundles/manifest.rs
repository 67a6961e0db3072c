//! Parses `manifest.json` of a bundle, versions 0.1 to 0.4 of its format. Fields that we do not use are
//! ignored.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

use super::path::shown;
use sepal_mcp::config::EntryProblem;

/// The supported versions of the format.
const VERSIONS: [&str; 4] = ["0.1", "0.2", "0.3", "0.4"];
/// The most values that a bundle may ask for.
pub(super) const MAX_VALUES: usize = 100;

#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    /// The version of the format.
    #[serde(default, rename = "manifest_version")]
    format: Option<String>,
    /// The former name of `manifest_version`.
    #[serde(default, rename = "dxt_version")]
    old_format: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) display_name: Option<String>,
    pub(super) version: String,
    pub(super) description: String,
    pub(super) author: Author,
    #[serde(default)]
    pub(super) homepage: Option<String>,
    #[serde(default)]
    pub(super) license: Option<String>,
    pub(super) server: Server,
    #[serde(default)]
    pub(super) tools: Vec<Named>,
    #[serde(default)]
    pub(super) prompts: Vec<Named>,
    #[serde(default)]
    pub(super) tools_generated: bool,
    #[serde(default)]
    pub(super) compatibility: Compatibility,
    #[serde(default, deserialize_with = "in_order")]
    pub(super) user_config: Vec<(String, Wanted)>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Author {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Server {
    #[serde(rename = "type")]
    pub(super) kind: ServerKind,
    #[serde(default)]
    pub(super) entry_point: String,
    #[serde(default)]
    pub(super) mcp_config: Option<McpConfig>,
}

/// The kind of a bundle's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ServerKind {
    Node,
    Python,
    Binary,
    Uv,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct McpConfig {
    pub(super) command: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) platform_overrides: BTreeMap<String, Override>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Override {
    #[serde(default)]
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) args: Option<Vec<String>>,
    #[serde(default)]
    pub(super) env: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Compatibility {
    #[serde(default)]
    pub(super) platforms: Option<Vec<String>>,
    #[serde(default)]
    pub(super) runtimes: BTreeMap<String, String>,
}

/// A value that a person is asked for.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Wanted {
    #[serde(rename = "type")]
    pub(super) kind: WantedKind,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) default: Option<Value>,
    #[serde(default)]
    pub(super) multiple: bool,
    #[serde(default)]
    pub(super) sensitive: bool,
    #[serde(default)]
    pub(super) min: Option<Number>,
    #[serde(default)]
    pub(super) max: Option<Number>,
}

impl WantedModel {
    /// Returns true if the value is a secret. Only strings can be.
    pub(super) fn is_secret(&self) -> bool {
        self.sensitive && self.kind == WantedKind::String
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WantedKind {
    String,
    Number,
    Boolean,
    Directory,
    File,
}

/// Parses a manifest, or returns the first problem with its place.
pub(super) fn read(text: &[u8]) -> Result<Manifest, EntryProblem> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut from = serde_json::Deserializer::from_slice(text);
    let manifest: Manifest = serde_path_to_error::deserialize(&mut from).map_err(|error| {
        let path = match error.path().to_string() {
            path if path == "." || path == "?" => "manifest".to_owned(),
            path => format!("manifest.{}", shown(&path)),
        };
        let said = shown(&error.inner().to_string());
        EntryProblem::new(
            &path,
            format!("{said}: correct the manifest, and pack it again"),
        )
    })?;
    let format = manifest.format.as_deref();
    match format.or(manifest.old_format.as_deref()) {
        Some(version) if VERSIONS.contains(&version) => Ok(manifest),
        Some(version) => Err(EntryProblem::new(
            "manifest.manifest_version",
            format!(
                "version `{}` of the format is not known here, which knows {}: use a newer Sepal, or \
                 pack the server for one of these",
                shown(version),
                VERSIONS.join(", ")
            ),
        )),
        None => Err(EntryProblem::new(
            "manifest.manifest_version",
            "it is missing: the manifest has to say which version of the format it has, for example \
             `0.3`",
        )),
    }
}

/// Parses the members of an object in their order in the file.
fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Wanted)>, D::Error> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, Wanted)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            // One more than the limit, so that the excess is detected; the rest is skipped.
            let mut members: BTreeMap<String, (usize, Wanted)> = BTreeMap::new();
            let mut place = 0;
            while members.len() <= MAX_VALUES {
                let Some((key, wanted)) = map.next_entry::<String, Wanted>()? else {
                    break;
                };
                members.insert(key, (place, wanted));
                place += 1;
            }
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by_key(|(_, (place, _))| *place);
            let members = members.into_iter();
            Ok(members.map(|(key, (_, wanted))| (key, wanted)).collect())
        }
    }
    from.deserialize_map(Members)
}
