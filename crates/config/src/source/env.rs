//! The one place that looks at the process: its environment, `.env`, the settings file.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use crate::{Problem, Problems};

/// What `.env` has to hold.
const ACCEPTED: &str = "lines of the form `NAME=value`";

/// Everything that [`crate::load`] reads, collected beforehand so that tests can pass their own.
#[derive(Clone, Default)]
pub struct Sources {
    /// Values given on the command line.
    pub flags: Vec<Flag>,
    /// The environment, with `.env` below it.
    pub env: BTreeMap<String, String>,
    /// The file of `--config`.
    pub file: Option<SourceFile>,
    /// What the process is started for; some defaults follow from it.
    pub preset: Preset,
    /// Whether the process runs in a container, where listening on loopback reaches nobody.
    pub in_container: bool,
}

/// What the process is started for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preset {
    /// People in the page.
    #[default]
    Gateway,
    /// The agent as an MCP server: a session is one question, and its history may fill the window.
    Agent,
    /// The same over HTTP, where standard output is free for the log (S0.57).
    Daemon,
}

/// A value from the command line.
#[derive(Clone)]
pub struct Flag {
    /// As the person typed it, for example `--port`.
    pub name: &'static str,
    /// The key of the table that it sets.
    pub key: &'static str,
    /// The text that was given.
    pub value: String,
}

/// A settings file that has been read but not parsed.
#[derive(Clone)]
pub struct SourceFile {
    /// Its path as it was given; the extension decides the format.
    pub name: String,
    pub text: String,
}

impl Sources {
    /// Collects what this process was started with; `.env` is looked for in the current folder.
    pub fn of_process(config: Option<&Path>, flags: Vec<Flag>) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let mut env = dot_env(Path::new(".env"), &mut problems);
        env.extend(process_env());
        let file = config.and_then(|path| match std::fs::read_to_string(path) {
            Ok(text) => Some(SourceFile {
                name: path.display().to_string(),
                text,
            }),
            Err(error) => {
                problems.push(problem(path, &error, "a file that can be read"));
                None
            }
        });
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        Ok(Self {
            flags,
            env,
            file,
            preset: Preset::default(),
            in_container: is_in_container(),
        })
    }
}

/// What `${VAR}` stands for in files that are read while running: the environment, with `.env`
/// below it.
pub fn environment() -> BTreeMap<String, String> {
    // What is wrong with `.env` was said at the start.
    let mut env = dot_env(Path::new(".env"), &mut Vec::new());
    env.extend(process_env());
    env
}

/// The environment; names and values that are not UTF-8 belong to somebody else.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
fn process_env() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The variables of a `.env` file; none when there is no such file.
fn dot_env(path: &Path, problems: &mut Vec<Problem>) -> BTreeMap<String, String> {
    match dotenvy::from_path_iter(path) {
        Ok(lines) => of_lines(lines, path, problems),
        Err(error) if error.not_found() => BTreeMap::new(),
        Err(error) => {
            problems.push(problem(path, &error, ACCEPTED));
            BTreeMap::new()
        }
    }
}

/// What the lines of a `.env` file say; `path` is for the problems.
pub(crate) fn of_lines(
    lines: dotenvy::Iter<impl Read>,
    path: &Path,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for line in lines {
        match line {
            Ok((name, value)) => {
                env.insert(name, value);
            }
            // The line may hold a secret, so only its place is told.
            Err(dotenvy::Error::LineParse(_, column)) => {
                let what = format!("a line cannot be read, at its column {column}");
                problems.push(problem(path, &what, ACCEPTED));
            }
            Err(error) => problems.push(problem(path, &error, ACCEPTED)),
        }
    }
    env
}

fn problem(path: &Path, what: &impl ToString, accepted: &str) -> Problem {
    Problem {
        path: path.display().to_string(),
        source: None,
        what: what.to_string(),
        accepted: accepted.to_owned(),
    }
}

/// Whether a container engine left its mark.
fn is_in_container() -> bool {
    Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::dot_env;

    /// Asserts S3.37.
    #[test]
    fn a_dot_env_file_becomes_a_map_and_keeps_its_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        let mut problems = Vec::new();
        assert!(dot_env(&path, &mut problems).is_empty());
        fs::write(&path, "# a comment\nSPL_HTTP_PORT=4000\nexport B='x y'\n").unwrap();
        let env = dot_env(&path, &mut problems);
        assert_eq!(env["SPL_HTTP_PORT"], "4000");
        assert_eq!(env["B"], "x y");
        assert_eq!(problems, []);
        fs::write(&path, "OPENAI_API_KEY=sk-secret and more\n").unwrap();
        dot_env(&path, &mut problems);
        assert_eq!(problems.len(), 1);
        assert!(!problems[0].to_string().contains("sk-secret"));
    }
}
