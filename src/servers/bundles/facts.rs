//! What is known of a bundle: what its manifest says, as it was checked against its files and made ready
//! for this kind of machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::archive::Archive;
use super::manifest::{Manifest, Named, ServerKind, Wanted, WantedKind};
use super::project::Dependencies;
use super::reading::Reading;
use super::template;
use crate::domain::visible_line;
use crate::mcp::config::EntryProblem;

/// Letters of a name, and of a longer text, that are kept.
const NAME: usize = 200;
const TEXT: usize = 1_000;
/// Tools and prompts of one bundle that are shown.
const MOST: usize = 200;

/// A bundle, as people are shown it and as it is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleFacts {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: String,
    pub version: String,
    pub description: String,
    pub author: String,
    /// An https address.
    #[serde(default)]
    pub homepage: Option<String>,
    #[serde(default)]
    pub license: Option<String>,
    /// `node`, `python` or `binary`.
    pub kind: String,
    /// What is started, `${user_config.KEY}` and all.
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// The file that is started, below the bundle's folder.
    pub entry_point: String,
    /// Which versions of `node` or `python` it runs with; `None` = any.
    #[serde(default)]
    pub runtime: Option<String>,
    /// What is installed from the Python package index; `None` for one that brings everything along.
    #[serde(default)]
    pub dependencies: Option<Dependencies>,
    pub tools: Vec<NamedPart>,
    pub prompts: Vec<NamedPart>,
    /// Whether it may have more tools than it names.
    pub has_more_tools: bool,
    pub values: Vec<WantedValue>,
    /// Whether it names folders of a person, whose place the session's files take.
    pub names_folders: bool,
    pub files: u64,
    /// Bytes of all files together.
    pub unpacked_bytes: u64,
}

/// A tool or a prompt, as the manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPart {
    pub name: String,
    pub description: String,
}

/// A value that a person is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedValue {
    pub key: String,
    pub title: String,
    pub description: String,
    /// `string`, `number`, `boolean`, `directory` or `file`.
    pub kind: String,
    pub is_required: bool,
    pub is_secret: bool,
    /// Each line is a value of its own.
    pub is_repeated: bool,
    /// What is taken where nothing is answered.
    #[serde(default)]
    pub default: Option<String>,
    #[serde(default)]
    pub min: Option<Number>,
    #[serde(default)]
    pub max: Option<Number>,
}

impl WantedValue {
    /// Whether it is a path, which lies in the workspace here.
    pub(super) fn is_path(&self) -> bool {
        matches!(self.kind.as_str(), "directory" | "file")
    }
}

/// The facts of a bundle, or everything that is in its way.
pub(super) fn facts(
    manifest: Manifest,
    archive: &mut Archive<'_>,
) -> Result<BundleFacts, Vec<EntryProblem>> {
    let mut reading = Reading {
        archive,
        problems: Vec::new(),
    };
    let start = reading.start(&manifest);
    reading.check_platform(&manifest);
    let entry_point = reading.entry_point(&manifest);
    reading.check_values(&manifest.user_config);
    let started = start.map(|start| {
        let words = reading.started(&start.config, &manifest.user_config);
        (words, start.dependencies, start.python)
    });
    let Reading { archive, problems } = reading;
    let Some((words, dependencies, python)) = started.filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    let (command, args, env, names_folders) = words;
    let values: Vec<WantedValue> = manifest.user_config.iter().map(value).collect();
    let (files, unpacked_bytes) = archive.size();
    let kind = kind_name(manifest.server.kind);
    let named = |parts: &[Named]| parts.iter().take(MOST).map(named_part).collect();
    let is_path_default = |value: &WantedValue| value.is_path() && value.default.is_some();
    let names_folders = names_folders || values.iter().any(is_path_default);
    Ok(BundleFacts {
        title: clip(
            manifest.display_name.as_deref().unwrap_or(&manifest.name),
            NAME,
        ),
        name: clip(&manifest.name, NAME),
        version: clip(&manifest.version, NAME),
        description: clip(&manifest.description, TEXT),
        author: clip(&manifest.author.name, NAME),
        homepage: manifest
            .homepage
            .filter(|it| it.starts_with("https://") && it.len() <= 400),
        license: manifest.license.as_deref().map(|it| clip(it, NAME)),
        runtime: manifest
            .compatibility
            .runtimes
            .get(kind)
            .cloned()
            .or(python),
        kind: kind.to_owned(),
        dependencies,
        command,
        args,
        env,
        entry_point,
        tools: named(&manifest.tools),
        prompts: named(&manifest.prompts),
        has_more_tools: manifest.tools_generated,
        values,
        names_folders,
        files: files as u64,
        unpacked_bytes,
    })
}

fn value((key, wanted): &(String, Wanted)) -> WantedValue {
    let kind = match wanted.kind {
        WantedKind::String => "string",
        WantedKind::Number => "number",
        WantedKind::Boolean => "boolean",
        WantedKind::Directory => "directory",
        WantedKind::File => "file",
    };
    let is_path = matches!(wanted.kind, WantedKind::Directory | WantedKind::File);
    let is_secret = wanted.is_secret();
    let mut defaults: Vec<String> = match &wanted.default {
        Some(Value::Array(several)) => several.iter().filter_map(text_of).collect(),
        Some(one) => text_of(one).into_iter().collect(),
        None => Vec::new(),
    };
    if is_path {
        // Folders of a person do not exist here, nor what is in them.
        for text in &mut defaults {
            template::WORKSPACE.clone_into(text);
        }
        defaults.dedup();
    }
    WantedValue {
        key: key.clone(),
        title: clip(wanted.title.as_deref().unwrap_or(key), NAME),
        description: clip(wanted.description.as_deref().unwrap_or_default(), TEXT),
        kind: kind.to_owned(),
        is_required: wanted.required,
        is_secret,
        is_repeated: wanted.multiple,
        // A secret that everybody has is none, and would stand in what people are shown.
        default: Some(defaults.join("\n")).filter(|text| !text.is_empty() && !is_secret),
        min: wanted.min.clone(),
        max: wanted.max.clone(),
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(template::resolved(text)),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn named_part(named: &Named) -> NamedPart {
    NamedPart {
        name: clip(&named.name, NAME),
        description: clip(named.description.as_deref().unwrap_or_default(), TEXT),
    }
}

fn kind_name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Node => "node",
        // uv is one way to start Python.
        ServerKind::Python | ServerKind::Uv => "python",
        ServerKind::Binary => "binary",
    }
}

/// The beginning of a text that others wrote, in visible signs.
fn clip(text: &str, most: usize) -> String {
    let text = visible_line(text.trim());
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
