//! Reads the process: its environment, `.env`, and the settings file. No other module does.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use crate::{Problem, Problems};

/// The accepted content of `.env`.
const ACCEPTED: &str = "lines of the form `NAME=value`";

/// Everything that [`crate::load`] reads. It is collected beforehand, so that tests can pass their own.
#[derive(Clone, Default)]
pub struct Sources {
    /// Values from the command line.
    pub flags: Vec<Flag>,
    /// The environment, which overrides `.env`.
    pub env: BTreeMap<String, String>,
    /// The file of `--config`.
    pub file: Option<SourceFile>,
    /// The purpose of the process; some defaults depend on it.
    pub preset: Preset,
    /// True if the process runs in a container, where a loopback listener is unreachable from outside.
    pub in_container: bool,
}

/// The purpose of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preset {
    /// Serves people in the page.
    #[default]
    Gateway,
    /// Serves the agent as an MCP server: a session is one question, and its history may fill the window.
    Agent,
    /// Like [`Self::Agent`] over HTTP, where standard output is free for the log (S0.57).
    Daemon,
}

/// A value from the command line.
#[derive(Clone)]
pub struct Flag {
    /// The flag as typed, for example `--port`.
    pub name: &'static str,
    /// The key in the table that the flag sets.
    pub key: &'static str,
    /// The value as typed.
    pub value: String,
}

/// A settings file that has been read but not parsed.
#[derive(Clone)]
pub struct SourceFile {
    /// The path as typed; its extension selects the format.
    pub name: String,
    pub text: String,
}

impl Sources {
    /// Collects the sources of this process; `.env` is read from the current folder.
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

/// The variables for `${VAR}` in files that are read at run time: the environment, which overrides `.env`.
pub fn environment() -> BTreeMap<String, String> {
    // Problems with `.env` were reported at the start.
    let mut env = dot_env(Path::new(".env"), &mut Vec::new());
    env.extend(process_env());
    env
}

/// The environment. Skips names and values that are not UTF-8, because none of ours are.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
fn process_env() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The variables of a `.env` file; empty if the file does not exist.
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

/// The variables in the lines of a `.env` file; `path` is used in error messages.
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
            // The line may hold a secret, so only the position is reported.
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

/// Returns true if a container engine left its marker file.
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
