//! What is known of a bundle: what its manifest says, as it was checked against its files and made ready
//! for this kind of machine.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::archive::Archive;
use super::manifest::{Manifest, McpConfig, Named, ServerKind, Wanted, WantedKind};
use super::path::shown;
use super::template::{self, FOLDER, Part};
use crate::domain::visible_line;
use crate::mcp::config::EntryProblem;

/// Letters of a name, and of a longer text, that are kept.
const NAME: usize = 200;
const TEXT: usize = 1_000;
/// Tools, prompts and values of one bundle.
const MOST: usize = 200;
/// Programs that the sandboxes of packages have.
const PROGRAMS: [&str; 5] = ["node", "python3", "python", "sh", "bash"];
/// Programs that fetch what they start.
const RUNNERS: [&str; 9] = [
    "npx", "npm", "pnpm", "yarn", "bun", "bunx", "uv", "uvx", "pipx",
];

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
    let config = reading.config(&manifest);
    reading.check_platform(&manifest);
    let entry_point = reading.entry_point(&manifest);
    let values: Vec<WantedValue> = manifest.user_config.iter().take(MOST).map(value).collect();
    reading.check_secrets(&values);
    let started = config.map(|config| reading.started(&config, &values));
    let Reading { archive, problems } = reading;
    let Some((command, args, env, names_folders)) = started.filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    let (files, unpacked_bytes) = archive.size();
    let kind = kind_name(manifest.server.kind);
    let named = |parts: Vec<Named>| parts.into_iter().take(MOST).map(named_part).collect();
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
        runtime: manifest.compatibility.runtimes.get(kind).cloned(),
        kind: kind.to_owned(),
        command,
        args,
        env,
        entry_point,
        tools: named(manifest.tools),
        prompts: named(manifest.prompts),
        has_more_tools: manifest.tools_generated,
        values,
        names_folders,
        files: files as u64,
        unpacked_bytes,
    })
}

/// What is read so far.
struct Reading<'r, 'f> {
    archive: &'r mut Archive<'f>,
    problems: Vec<EntryProblem>,
}

impl Reading<'_, '_> {
    fn refuse(&mut self, field: &str, text: impl Into<String>) {
        let field = format!("manifest.{field}");
        self.problems.push(EntryProblem::new(field, text));
    }

    /// How it is started on Linux.
    fn config(&mut self, manifest: &Manifest) -> Option<McpConfig> {
        if manifest.server.kind == ServerKind::Uv {
            self.refuse(
                "server.type",
                "bundles of type `uv` fetch their packages when they start, which nothing here does: \
                 add the server by its package instead (`uvx NAME`), or use a bundle of type `python` \
                 that brings its packages along",
            );
            return None;
        }
        let Some(mut config) = manifest.server.mcp_config.clone() else {
            self.refuse(
                "server.mcp_config",
                "it is missing: the manifest has to say the command",
            );
            return None;
        };
        if let Some(own) = config.platform_overrides.remove("linux") {
            config.command = own.command.unwrap_or(config.command);
            config.args = own.args.unwrap_or(config.args);
            config.env = own.env.unwrap_or(config.env);
        }
        Some(config)
    }

    /// Each secret is kept under a name of its own.
    fn check_secrets(&mut self, values: &[WantedValue]) {
        let mut names = BTreeSet::new();
        for value in values.iter().filter(|value| value.is_secret) {
            if !names.insert(template::secret_name(&value.key)) {
                let text = "another secret has the same name but for capitals and signs: rename it";
                self.refuse(&format!("user_config.{}", shown(&value.key)), text);
            }
        }
    }

    fn check_platform(&mut self, manifest: &Manifest) {
        let platforms = manifest.compatibility.platforms.as_deref();
        if let Some(platforms) = platforms.filter(|it| !it.iter().any(|name| name == "linux")) {
            let text = format!(
                "it is made for {} alone, and sandboxes run Linux: ask its author for one for `linux`",
                shown(&platforms.join(", "))
            );
            self.refuse("compatibility.platforms", text);
        }
    }

    /// The file that is started, which has to be one that runs here.
    fn entry_point(&mut self, manifest: &Manifest) -> String {
        let path = template::resolved(&manifest.server.entry_point);
        let path = path.strip_prefix(&format!("{FOLDER}/")).unwrap_or(&path);
        let path = path.strip_prefix("./").unwrap_or(path).to_owned();
        if !self.archive.has_file(&path) {
            let text = format!(
                "the bundle has no file `{}`: pack the folder again, after it was built",
                shown(&path)
            );
            self.refuse("server.entry_point", text);
        } else if manifest.server.kind == ServerKind::Binary {
            match self.archive.head(&path, 20) {
                Ok(head) => {
                    if let Some(text) = binary_problem(&head) {
                        self.refuse("server.entry_point", text);
                    }
                }
                Err(problem) => self.problems.push(problem),
            }
        }
        path
    }

    /// Command, words and variables with all that needs no person, and whether they name folders of one.
    fn started(
        &mut self,
        config: &McpConfig,
        values: &[WantedValue],
    ) -> (String, Vec<String>, BTreeMap<String, String>, bool) {
        let texts = config.args.iter().chain(config.env.values());
        let texts: Vec<&str> = texts.chain([&config.command]).map(String::as_str).collect();
        let is_declared = |key: &str| values.iter().any(|value| value.key == key);
        for key in texts.iter().flat_map(|text| template::keys(text)) {
            if !is_declared(key) {
                let text = format!("`${{user_config.{}}}` is not declared there", shown(key));
                self.refuse("user_config", text);
            }
        }
        for (name, text) in &config.env {
            for part in template::parts(text) {
                if let Part::Name(unknown) = part
                    && template::known(unknown).is_none()
                    && !unknown.starts_with("user_config.")
                {
                    let text = format!("nothing here stands for `${{{}}}`", shown(unknown));
                    self.refuse(&format!("server.mcp_config.env.{}", shown(name)), text);
                }
            }
        }
        let is_folder = |part: &Part<'_>| {
            let Part::Name(name) = part else { return false };
            template::known(name) == Some(template::WORKSPACE)
        };
        let mut parts = texts.iter().flat_map(|text| template::parts(text));
        let names_folders = parts.any(|part| is_folder(&part));
        let command = self.command(&config.command);
        let args = config.args.iter().map(|word| self.word(word)).collect();
        let env = config.env.iter();
        let env = env.map(|(name, text)| (name.clone(), template::resolved(text)));
        (command, args, env.collect(), names_folders)
    }

    /// The program, which is in the bundle or in every sandbox that runs packages.
    fn command(&mut self, written: &str) -> String {
        let command = self.word(written);
        let name = command.trim_end_matches(".exe");
        if let Some(path) = command.strip_prefix(&format!("{FOLDER}/")) {
            if !self.archive.has_file(path) {
                let text = format!("the bundle has no file `{}`: pack it again", shown(path));
                self.refuse("server.mcp_config.command", text);
            }
            return command;
        }
        if PROGRAMS.contains(&name) {
            // Where there is no Python 2, mostly nothing is called `python`.
            return if name == "python" { "python3" } else { name }.to_owned();
        }
        let text = if RUNNERS.contains(&name) {
            format!(
                "`{name}` fetches packages when it starts, and a bundle has to bring them along: add \
                 the server by that command instead, and its packages are installed once"
            )
        } else {
            format!(
                "the command `{}` is neither in the bundle nor in the sandboxes, which have `node`, \
                 `python3`, `sh` and `bash`",
                shown(written)
            )
        };
        self.refuse("server.mcp_config.command", text);
        command
    }

    /// A word of the command line; one that names a file of the bundle becomes its path.
    fn word(&self, written: &str) -> String {
        let word = template::resolved(written);
        let below = word.strip_prefix("./").unwrap_or(&word);
        let is_folder = || below.contains('/') && self.archive.has_folder(below);
        if self.archive.has_file(below) || is_folder() {
            return format!("{FOLDER}/{below}");
        }
        word
    }
}

/// Why a file does not run on this kind of machine.
fn binary_problem(head: &[u8]) -> Option<String> {
    // The number of a machine in the header of ELF files.
    let own: u8 = match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        _ => return None,
    };
    let is_elf = head.starts_with(b"\x7fELF");
    if head.starts_with(b"#!") || (is_elf && head.get(18) == Some(&own)) {
        return None;
    }
    let what = if is_elf {
        "made for another processor"
    } else {
        "no program for Linux"
    };
    Some(format!(
        "it is {what}, and sandboxes run Linux on {}: ask its author for a bundle for that",
        std::env::consts::ARCH
    ))
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
    let is_secret = wanted.sensitive && wanted.kind == WantedKind::String;
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

fn named_part(named: Named) -> NamedPart {
    NamedPart {
        name: clip(&named.name, NAME),
        description: clip(named.description.as_deref().unwrap_or_default(), TEXT),
    }
}

fn kind_name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Node => "node",
        ServerKind::Python => "python",
        ServerKind::Binary => "binary",
        ServerKind::Uv => "uv",
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
