//! The facts of a bundle: its manifest, checked against its files and prepared for this kind of machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::archive::Archive;
use super::manifest::{Manifest, Named, ServerKind, Wanted, WantedKind};
use super::project::Dependencies;
use super::reading::Reading;
use super::template;
use sepal_core::domain::visible_line;
use sepal_mcp::config::EntryProblem;

/// The most characters that are stored of a name, and of a longer text.
const NAME: usize = 200;
const TEXT: usize = 1_000;
/// The most tools, and the most prompts, of a bundle that are shown.
const MOST: usize = 200;

/// The facts about a bundle that people are shown and that its start needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleFacts {
    /// Its name for programs.
    pub name: String,
    /// Its name for people.
    pub title: String,
    pub version: String,
    pub description: String,
    pub author: String,
    /// The address of its homepage, with `https`.
    #[serde(default)]
    pub homepage: Option<String>,
    #[serde(default)]
    pub license: Option<String>,
    /// `node`, `python` or `binary`.
    pub kind: String,
    /// The command, with `${user_config.KEY}` unresolved.
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// The file that is started, below the bundle's folder.
    pub entry_point: String,
    /// The range of versions of `node` or `python` that it supports; `None` for any.
    #[serde(default)]
    pub runtime: Option<String>,
    /// The packages that are installed from the Python package index; `None` if it contains everything it
    /// needs.
    #[serde(default)]
    pub dependencies: Option<Dependencies>,
    pub tools: Vec<NamedPart>,
    pub prompts: Vec<NamedPart>,
    /// True if it may have more tools than the manifest names.
    pub has_more_tools: bool,
    pub values: Vec<WantedValue>,
    /// True if it names folders of a person, which the session's files replace.
    pub names_folders: bool,
    pub files: u64,
    /// The total size of all files in bytes.
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
    /// True if each line of the answer is a separate value.
    pub is_repeated: bool,
    /// The value that is used if nothing is answered.
    #[serde(default)]
    pub default: Option<String>,
    #[serde(default)]
    pub min: Option<Number>,
    #[serde(default)]
    pub max: Option<Number>,
}

impl WantedValue {
    /// Returns true if it is a path, which lies in the workspace here.
    pub(super) fn is_path(&self) -> bool {
        matches!(self.kind.as_str(), "directory" | "file")
    }
}

/// Returns the facts of a bundle, or all its problems.
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
        // The folders of a person, and files in them, do not exist here.
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
        // A default that everybody knows is not secret, and would be shown to people.
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
        // uv is a way to start Python.
        ServerKind::Python | ServerKind::Uv => "python",
        ServerKind::Binary => "binary",
    }
}

/// Cuts a foreign text to `most` characters, all of them visible.
fn clip(text: &str, most: usize) -> String {
    let text = visible_line(text.trim());
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
