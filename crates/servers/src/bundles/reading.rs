//! Checks a manifest against the files of its bundle: how it is started on this kind of machine, and which
//! problems prevent that.

use std::collections::{BTreeMap, BTreeSet};

use super::archive::Archive;
use super::manifest::{MAX_VALUES, Manifest, McpConfig, ServerKind, Wanted};
use super::path::shown;
use super::project::{self, Start};
use super::template::{self, FOLDER, Part};
use sepal_mcp::config::EntryProblem;

/// The programs that package sandboxes have.
const PROGRAMS: [&str; 5] = ["node", "python3", "python", "sh", "bash"];
/// The programs that download what they start.
const RUNNERS: [&str; 8] = ["npx", "npm", "pnpm", "yarn", "bun", "bunx", "uvx", "pipx"];

/// The most problems that are reported.
const MAX_PROBLEMS: usize = 20;

/// The state of checking a manifest.
pub(super) struct Reading<'r, 'f> {
    pub(super) archive: &'r mut Archive<'f>,
    pub(super) problems: Vec<EntryProblem>,
}

impl Reading<'_, '_> {
    fn refuse(&mut self, field: &str, text: impl Into<String>) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let field = format!("manifest.{field}");
        self.problems.push(EntryProblem::new(field, text));
    }

    /// Returns the start configuration for Linux.
    fn config(&mut self, manifest: &Manifest) -> Option<McpConfig> {
        let Some(mut config) = manifest
            .server
            .mcp_config
            .clone()
            .or_else(|| of_uv(manifest))
        else {
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

    /// Returns the start configuration for our sandboxes, and the packages that have to be installed for it.
    pub(super) fn start(&mut self, manifest: &Manifest) -> Option<Start> {
        let config = self.config(manifest)?;
        if manifest.server.kind != ServerKind::Uv && !project::is_uv(&config.command) {
            return Some(Start {
                config,
                dependencies: None,
                python: None,
            });
        }
        let read = project::without_uv(self.archive, config);
        read.map_err(|problems| self.problems.extend(problems)).ok()
    }

    /// Checks that there are not too many values, and that each secret gets a name of its own.
    pub(super) fn check_values(&mut self, values: &[(String, Wanted)]) {
        if values.len() > MAX_VALUES {
            let text = format!("it asks for more than {MAX_VALUES} values: leave some of them out");
            self.refuse("user_config", text);
        }
        let mut names = BTreeSet::new();
        for (key, _) in values.iter().filter(|(_, wanted)| wanted.is_secret()) {
            if !names.insert(template::secret_name(key)) {
                let text = "another secret has the same name but for capitals and signs: rename it";
                self.refuse(&format!("user_config.{}", shown(key)), text);
            }
        }
    }

    pub(super) fn check_platform(&mut self, manifest: &Manifest) {
        let platforms = manifest.compatibility.platforms.as_deref();
        if let Some(platforms) = platforms.filter(|it| !it.iter().any(|name| name == "linux")) {
            let text = format!(
                "it is made for {} alone, and sandboxes run Linux: ask its author for one for `linux`",
                shown(&platforms.join(", "))
            );
            self.refuse("compatibility.platforms", text);
        }
    }

    /// Returns the file that is started; refuses one that is missing or made for another kind of machine.
    pub(super) fn entry_point(&mut self, manifest: &Manifest) -> String {
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

    /// Returns the command, the arguments and the variables with the known names resolved, and true if they
    /// name folders of a person.
    pub(super) fn started(
        &mut self,
        config: &McpConfig,
        values: &[(String, Wanted)],
    ) -> (String, Vec<String>, BTreeMap<String, String>, bool) {
        let texts = config.args.iter().chain(config.env.values());
        let texts: Vec<&str> = texts.chain([&config.command]).map(String::as_str).collect();
        let is_declared = |key: &str| values.iter().any(|(known, _)| known == key);
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

    /// Returns the program, which has to be in the bundle or in every package sandbox.
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
            // Most systems without Python 2 have no `python`.
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

    /// Returns a word of the command line; the name of a file of the bundle becomes its full path.
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

/// Returns the default start configuration of a uv bundle.
fn of_uv(manifest: &Manifest) -> Option<McpConfig> {
    (manifest.server.kind == ServerKind::Uv).then(|| McpConfig {
        command: "uv".to_owned(),
        args: vec!["run".to_owned(), manifest.server.entry_point.clone()],
        env: BTreeMap::new(),
        platform_overrides: BTreeMap::new(),
    })
}

/// Returns the reason why a file does not run on this kind of machine, if any.
fn binary_problem(head: &[u8]) -> Option<String> {
    // The machine number in the header of ELF files.
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
