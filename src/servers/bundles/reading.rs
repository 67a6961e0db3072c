//! A manifest beside the files of its bundle: what is started on this kind of machine, and what is in its
//! way.

use std::collections::{BTreeMap, BTreeSet};

use super::archive::Archive;
use super::manifest::{MAX_VALUES, Manifest, McpConfig, ServerKind, Wanted};
use super::path::shown;
use super::project::{self, Start};
use super::template::{self, FOLDER, Part};
use crate::mcp::config::EntryProblem;

/// Programs that the sandboxes of packages have.
const PROGRAMS: [&str; 5] = ["node", "python3", "python", "sh", "bash"];
/// Programs that fetch what they start.
const RUNNERS: [&str; 8] = ["npx", "npm", "pnpm", "yarn", "bun", "bunx", "uvx", "pipx"];

/// Problems that are named.
const MAX_PROBLEMS: usize = 20;

/// What is read so far.
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

    /// How it is started on Linux.
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

    /// How it is started here, and what has to be installed for that.
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

    /// An entry keeps so many answers, and each secret under a name of its own.
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

    /// The file that is started, which has to be one that runs here.
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

    /// Command, words and variables with all that needs no person, and whether they name folders of one.
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

/// How uv starts a bundle that does not say it.
fn of_uv(manifest: &Manifest) -> Option<McpConfig> {
    (manifest.server.kind == ServerKind::Uv).then(|| McpConfig {
        command: "uv".to_owned(),
        args: vec!["run".to_owned(), manifest.server.entry_point.clone()],
        env: BTreeMap::new(),
        platform_overrides: BTreeMap::new(),
    })
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
