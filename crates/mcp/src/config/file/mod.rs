//! Reads, watches and edits `mcp-config.json`: the installation's own servers, in the format that other
//! programs use too.
//!
//! Edits by hand load without a restart. If the file is broken, the last good state stays and the problem is
//! reported. Our own changes are written to a temporary file beside it and renamed over it, so a kill leaves
//! either the old file or the new one; unknown members are preserved.

mod settings;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use tokio::sync::{Mutex, watch};
use tokio::time::MissedTickBehavior;

use super::check::{Author, entry_problems, name_problem};
use super::pasted::{self, config_of};
use crate::tools::toolbox::Naming;
use sepal_core::domain::McpServerConfig;
use sepal_jobs::Pool;

pub use settings::Looks;

/// Limits how many threads read or write the file at the same time.
static FILES: LazyLock<Pool> = LazyLock::new(|| Pool::new("configuration files", 4));

/// The name of the file in the data folder (S2.12).
const NAME: &str = "mcp-config.json";
/// The member that holds the servers.
const SERVERS: &str = "mcpServers";
/// The interval at which the file is checked for edits by hand.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The coarsest resolution of file system clocks.
const FRESH: Duration = Duration::from_secs(2);
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The parsed content of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileState {
    /// The valid entries.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// `settings.toolNamespacing`.
    pub naming: Naming,
    /// `settings.autoConnect`: true if sessions connect to their servers before the first call.
    pub connects_ahead: bool,
    /// `settings.healthCheckInterval`: how often remote servers are checked.
    pub looks: Looks,
    /// Problems of the whole file, or of entries that were left out.
    pub problems: Vec<String>,
}

/// The configuration file with its last state.
pub struct ConfigFile {
    path: PathBuf,
    state: watch::Sender<Arc<FileState>>,
    /// Locked while the file is read or changed. Held across awaits by design.
    turn: Mutex<()>,
}

/// The size and time of a file, seen without reading it; `None` for a missing file.
#[derive(PartialEq, Eq)]
struct Look(Option<(u64, SystemTime)>);

impl Look {
    fn at(path: &Path) -> Self {
        let seen = std::fs::metadata(path).and_then(|known| Ok((known.len(), known.modified()?)));
        Self(seen.ok())
    }

    /// Returns true if the file was written within [`FRESH`], so that another edit may have the same time.
    fn is_fresh(&self) -> bool {
        self.0
            .is_some_and(|(_, at)| at.elapsed().is_ok_and(|age| age < FRESH))
    }
}

/// The reason that the file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file is broken: a change would lose its content.
    #[error("`mcp-config.json` cannot be read, mend it first: {0}")]
    Broken(String),
    /// The file already has an entry of that name.
    #[error("there is a server `{0}` in `mcp-config.json` already")]
    Taken(String),
    /// The file has no entry of that name.
    #[error("there is no server `{0}` in `mcp-config.json`")]
    Missing(String),
    /// Writing the file failed.
    #[error("`mcp-config.json` cannot be written")]
    Io(#[from] io::Error),
}

/// A change to one entry.
enum Change {
    Add(Value),
    Put(Value),
    Remove,
}

impl ConfigFile {
    /// Reads the file in a data folder; a missing file counts as empty.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join(NAME);
        let (state, _) = watch::channel(Arc::default());
        let file = Self {
            path,
            state,
            turn: Mutex::default(),
        };
        file.take(read(&file.path));
        file
    }

    /// Returns the current state.
    pub fn state(&self) -> Arc<FileState> {
        Arc::clone(&self.state.borrow())
    }

    /// Subscribes to changes, by hand or by us.
    pub fn changes(&self) -> watch::Receiver<Arc<FileState>> {
        self.state.subscribe()
    }

    /// Reads the file again.
    pub async fn reload(&self) {
        let _turn = self.turn.lock().await;
        let path = self.path.clone();
        match FILES.run(move || read(&path)).await {
            Ok(text) => self.take(text),
            Err(error) => tracing::error!(%error, "Reading `mcp-config.json` ended badly"),
        }
    }

    /// Reloads the file whenever it changes. Polls the file instead of subscribing to events of its folder:
    /// the database lies in the same folder and would cause an event with every write, and edits from outside
    /// of a container cause no events.
    pub async fn watch(&self) -> Infallible {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick reads the file again, for changes since it was opened.
        let mut read = None;
        loop {
            ticks.tick().await;
            let look = Look::at(&self.path);
            if read.as_ref() != Some(&look) {
                self.reload().await;
                // A second edit at the same instant would have the same size and time.
                read = (!look.is_fresh()).then_some(look);
            }
        }
    }

    /// Adds an entry.
    pub async fn add(&self, name: &str, config: &McpServerConfig) -> Result<(), FileError> {
        self.change(name, Change::Add(entry(config)?)).await
    }

    /// Replaces an entry. Its unknown members are preserved.
    pub async fn put(&self, name: &str, config: &McpServerConfig) -> Result<(), FileError> {
        self.change(name, Change::Put(entry(config)?)).await
    }

    /// Removes an entry.
    pub async fn remove(&self, name: &str) -> Result<(), FileError> {
        self.change(name, Change::Remove).await
    }

    async fn change(&self, name: &str, change: Change) -> Result<(), FileError> {
        let _turn = self.turn.lock().await;
        let (path, name) = (self.path.clone(), name.to_owned());
        let changed = FILES.run(move || {
            let text = read(&path)?.unwrap_or_default();
            let mut root = changeable(&text)?;
            apply(&mut root, &name, change)?;
            let text = serde_json::to_string_pretty(&root).map_err(io::Error::other)? + "\n";
            replace(&path, text.as_bytes())?;
            Ok::<String, FileError>(text)
        });
        let text = changed.await.map_err(io::Error::other)??;
        self.take(Ok(Some(text)));
        Ok(())
    }

    fn take(&self, text: io::Result<Option<String>>) {
        let root = match text {
            Ok(None) => Ok(Map::new()),
            Ok(Some(text)) => parse(&text),
            Err(error) => Err(error.to_string()),
        };
        let state = match root {
            Ok(root) => state_of(&root),
            Err(problem) => {
                let mut last = FileState::clone(&self.state.borrow());
                let problem = format!("`{NAME}` is ignored until it can be read: {problem}");
                last.problems = vec![problem];
                last
            }
        };
        self.state.send_if_modified(|kept| {
            let is_new = **kept != state;
            if is_new {
                for problem in &state.problems {
                    tracing::warn!("{problem}");
                }
                *kept = Arc::new(state);
            }
            is_new
        });
    }
}

fn entry(config: &McpServerConfig) -> Result<Value, FileError> {
    Ok(serde_json::to_value(config).map_err(io::Error::other)?)
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match std::fs::metadata(path) {
        Ok(known) if known.len() > MAX_BYTES => Err(io::Error::other("it is larger than 4 MiB")),
        Ok(_) => std::fs::read_to_string(path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let Value::Object(root) = pasted::parse(text)? else {
        return Err("it has to be an object".to_owned());
    };
    match root.get(SERVERS) {
        None | Some(Value::Object(_)) => Ok(root),
        Some(_) => Err(format!("`{SERVERS}` has to be an object")),
    }
}

/// Parses the file for a change, which writes it as plain JSON.
fn changeable(text: &str) -> Result<Map<String, Value>, FileError> {
    let root = parse(text).map_err(FileError::Broken)?;
    let plain = text.trim_start_matches('\u{feff}');
    if !plain.trim().is_empty() && serde_json::from_str::<Map<String, Value>>(plain).is_err() {
        let text = "it has comments or other things that a change would lose; change it by hand";
        return Err(FileError::Broken(text.to_owned()));
    }
    Ok(root)
}

pub(super) fn state_of(root: &Map<String, Value>) -> FileState {
    let mut state = FileState::default();
    let read = settings::read(root, &mut state.problems);
    (state.naming, state.connects_ahead, state.looks) = read;
    let Some((_, servers)) = pasted::servers_of(root) else {
        return state;
    };
    for (name, entry) in servers {
        match usable(name, entry) {
            Ok(config) => drop(state.servers.insert(name.clone(), config)),
            Err(problem) => {
                let problem = format!("`{NAME}`: server `{name}` is left out: {problem}");
                state.problems.push(problem);
            }
        }
    }
    state
}

/// Parses an entry of any program, and checks it.
fn usable(name: &str, entry: &Value) -> Result<McpServerConfig, String> {
    if let Some(problem) = name_problem(name) {
        return Err(problem);
    }
    let config = config_of(entry)?;
    let problems = entry_problems(&config, Author::Operator);
    if problems.is_empty() {
        return Ok(config);
    }
    let problems = problems
        .iter()
        .map(|problem| format!("`{}`: {}", problem.field, problem.message));
    Err(problems.collect::<Vec<String>>().join("; "))
}

fn apply(root: &mut Map<String, Value>, name: &str, change: Change) -> Result<(), FileError> {
    let path = pasted::servers_of(root).map_or(vec![SERVERS.to_owned()], |(path, _)| path);
    let mut servers = root;
    for member in &path {
        let inner = servers
            .entry(member.as_str())
            .or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner) = inner else {
            return Err(FileError::Broken(format!("`{member}` has to be an object")));
        };
        servers = inner;
    }
    let old = servers.get(name).cloned();
    match (change, old) {
        (Change::Add(_), Some(_)) => return Err(FileError::Taken(name.to_owned())),
        (Change::Put(_) | Change::Remove, None) => {
            return Err(FileError::Missing(name.to_owned()));
        }
        (Change::Add(entry), None) => drop(servers.insert(name.to_owned(), entry)),
        (Change::Remove, Some(_)) => drop(servers.remove(name)),
        (Change::Put(entry), Some(old)) => {
            let mut merged = old.as_object().cloned().unwrap_or_default();
            merged.retain(|member, _| !pasted::is_ours(member));
            if let Value::Object(entry) = entry {
                merged.extend(entry);
            }
            servers.insert(name.to_owned(), Value::Object(merged));
        }
    }
    Ok(())
}

/// Writes to a temporary file beside `path` and renames it over `path`.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let beside = folder.join(format!(".{NAME}.{}", std::process::id()));
    let written = write_private(&beside, content).and_then(|()| std::fs::rename(&beside, path));
    if let Err(error) = written {
        // A temporary file that stays behind does no harm.
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    std::fs::File::open(folder)?.sync_all()
}

fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).write(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
