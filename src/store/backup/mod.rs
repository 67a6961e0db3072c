//! A backup of one installation as one file, taken while it runs, and put back while it does not.
//!
//! It holds what an acknowledgement promises where everything is in the data folder: the database,
//! the key of its secrets, and the operator's files. Workspaces are the sandboxes' and stay out.

#[cfg(test)]
mod fuzz;
mod manifest;
mod reading;
mod writing;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub use manifest::{KeyPlace, Manifest, Part};

use super::db::{self, DATABASE_FILE, DatabaseLocation};
use super::{DataDir, Settings};
use crate::jobs::Pool;
use writing::{Content, Source};

/// Where things lie in the data folder, and what they are called in the archive.
const KEPT: [(&str, &str); 3] = [
    (manifest::DATABASE, DATABASE_FILE),
    (manifest::SECRET_KEY, "secret.key"),
    (manifest::SERVERS, "mcp-config.json"),
];

/// What else belongs to a database and must not meet another one, the most dangerous first.
const BESIDE: [&str; 3] = ["sepal.db-wal", "sepal.db-shm", "setup-link"];

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something of it is not in the data folder; half a backup would be none.
    #[error("{what}, so this command would give half a backup; {remedy}")]
    Elsewhere {
        what: &'static str,
        /// How a backup is made there.
        remedy: &'static str,
    },
    /// There is nothing to keep.
    #[error("there is no database at `{0}`; is `store.data_dir` (SPL_DATA_DIR, --data-dir) right?")]
    NoDatabase(PathBuf),
    /// Something is there that would be lost.
    #[error("`{path}` {reason}; {remedy}")]
    InTheWay {
        /// What is in the way.
        path: PathBuf,
        reason: &'static str,
        remedy: &'static str,
    },
    /// The file is no backup, or one with things that no backup has.
    #[error("`{path}` is not a backup that `sepal backup` made: {reason}; nothing was changed")]
    Foreign {
        path: PathBuf,
        /// What gives it away.
        reason: String,
    },
    /// It was one, and something happened to it.
    #[error("`{path}` is damaged: {reason}; nothing was changed, take another copy of it")]
    Damaged {
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A newer Sepal made it.
    #[error(
        "the backup was made by Sepal {program}, which is newer than this one; restore it with that \
         version"
    )]
    Newer {
        /// The version that made it.
        program: String,
    },
    /// The disk said no.
    #[error("`{path}` {reason}")]
    Disk {
        /// Which file or folder.
        path: PathBuf,
        reason: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The database or the data folder said no.
    #[error(transparent)]
    Store(#[from] super::Error),
}

impl Error {
    fn disk(path: &Path, reason: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Disk {
            path,
            reason,
            source,
        }
    }
}

/// What is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub settings: &'a Settings,
    /// Whether the key of the secrets comes from the settings and not from the data folder.
    pub has_own_key: bool,
    /// The settings file that the installation runs with.
    pub settings_file: Option<&'a Path>,
}

/// Writes a backup to `target`, a file that does not exist yet. A gateway may run meanwhile: the
/// copy is of one moment, and everything that was acknowledged before the call is in it.
pub async fn back_up(wanted: Wanted<'_>, target: &Path) -> Result<Manifest, Error> {
    let database = database_file(wanted.settings)?;
    if !database.is_file() {
        return Err(Error::NoDatabase(database));
    }
    if target.exists() {
        return Err(Error::InTheWay {
            path: target.to_owned(),
            reason: "exists",
            remedy: "give another name",
        });
    }
    // Beside the archive, where the room is that the operator chose.
    let stage = Stage::new(parent(target), "backup")?;
    let copy = stage.0.join(DATABASE_FILE);
    let schema = db::copy(&database, &copy).await?;
    let mut sources = vec![Source {
        name: manifest::DATABASE,
        content: Content::File(copy),
    }];
    let folder = &wanted.settings.data_dir;
    let mut others: Vec<(&'static str, PathBuf)> = KEPT
        .iter()
        .skip(1)
        .map(|(name, file)| (*name, folder.join(file)))
        .collect();
    if let Some(file) = wanted.settings_file {
        others.push((manifest::settings_name(file), file.to_owned()));
    }
    for (name, file) in others {
        sources.extend(writing::read(name, &file)?);
    }
    let key = if wanted.has_own_key {
        KeyPlace::Settings
    } else {
        KeyPlace::File
    };
    let target = target.to_owned();
    blocking(move || writing::write(&target, (schema, key), &sources)).await
}

/// What a restore did.
#[derive(Debug, Clone)]
pub struct Restored {
    /// What the archive says of itself.
    pub manifest: Manifest,
    /// Where what was there before lies now.
    pub aside: Option<PathBuf>,
    /// Where the settings file of the backup lies now; it is not used from there.
    pub settings_file: Option<PathBuf>,
}

/// What to do with a data folder that is in use already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Nothing: refuse.
    Refuse,
    /// Move what is there aside, into a folder of its own.
    MoveAside,
}

/// Puts a backup into the data folder. Everything is unpacked and checked beside it first; what
/// fails until then changes nothing. No gateway may use the folder, and none can start meanwhile.
pub async fn restore(
    settings: &Settings,
    archive: &Path,
    existing: Existing,
) -> Result<Restored, Error> {
    let (file, folder) = (database_file(settings)?, settings.data_dir.clone());
    let usual = folder.join(DATABASE_FILE);
    if std::path::absolute(&file).ok() != std::path::absolute(&usual).ok() {
        return Err(Error::InTheWay {
            path: file,
            reason: "is the database of these settings, and a backup goes into the data folder",
            remedy: "restore without `store.database_url` (SPL_DATABASE_URL, DATABASE_URL), then \
                     move `sepal.db` there",
        });
    }
    let dir = DataDir::lock(&folder)?;
    let archive = archive.to_owned();
    let restored = blocking(move || put_back(&folder, &archive, existing)).await;
    drop(dir);
    restored
}

fn put_back(folder: &Path, archive: &Path, existing: Existing) -> Result<Restored, Error> {
    let is_used = check_used(folder)?;
    if is_used && existing == Existing::Refuse {
        return Err(Error::InTheWay {
            path: folder.to_owned(),
            reason: "is not empty",
            remedy: "name an empty folder (--data-dir), or move what is there aside with --force",
        });
    }
    let stage = Stage::new(folder, "restore")?;
    let manifest = reading::unpack(archive, &stage.0)?;
    let aside = if is_used {
        Some(move_aside(folder)?)
    } else {
        None
    };
    let mut settings_file = None;
    // The database comes last: until it is there, the folder holds no installation.
    for part in manifest.files.iter().rev() {
        let name = match KEPT.iter().find(|(name, _)| *name == part.name) {
            Some((_, file)) => (*file).to_owned(),
            None => format!("restored-{}", manifest::file_name(&part.name)),
        };
        let to = folder.join(name);
        fs::rename(stage.0.join(manifest::file_name(&part.name)), &to)
            .map_err(Error::disk(&to, "cannot be put in place"))?;
        if manifest::is_settings(&part.name) {
            settings_file = Some(to);
        }
    }
    sync_folder(folder)?;
    Ok(Restored {
        manifest,
        aside,
        settings_file,
    })
}

/// Whether the folder holds more than a lock and what file systems put there.
fn check_used(folder: &Path) -> Result<bool, Error> {
    let unreadable = || Error::disk(folder, "cannot be read");
    for entry in fs::read_dir(folder).map_err(unreadable())? {
        let name = entry.map_err(unreadable())?.file_name();
        if name != "lock" && name != "lost+found" {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Moves what makes the old installation into a folder of its own. A log of the database goes first:
/// beside another database it would be taken for that one's.
fn move_aside(folder: &Path) -> Result<PathBuf, Error> {
    let at = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let aside = folder.join(format!("before-restore-{at}"));
    private_folder(&aside)?;
    let kept = KEPT.iter().map(|(_, file)| *file);
    for name in BESIDE.into_iter().chain(kept) {
        let from = folder.join(name);
        if from.exists() {
            fs::rename(&from, aside.join(name))
                .map_err(Error::disk(&from, "cannot be moved aside"))?;
        }
    }
    sync_folder(&aside)?;
    Ok(aside)
}

/// The file of the database, where nothing of the installation is anywhere else.
fn database_file(settings: &Settings) -> Result<PathBuf, Error> {
    match db::place(settings.database_url.as_deref(), &settings.data_dir)? {
        DatabaseLocation::Server => Err(Error::Elsewhere {
            what: "the database is on a PostgreSQL server (`store.database_url`)",
            remedy: "use `pg_dump --format=custom` and `pg_restore` there, and keep `secret.key` of \
                     the data folder (or SPL_SECRET_KEY); with Redis, also its AOF or RDB files",
        }),
        DatabaseLocation::File(_) if settings.redis_url.is_some() => Err(Error::Elsewhere {
            what: "the sessions are in Redis (`store.redis_url`)",
            remedy: "stop the gateways, keep the AOF or RDB files of that Redis (`BGSAVE`), and run \
                     `sepal backup` or `sepal restore` without SPL_REDIS_URL for the rest",
        }),
        DatabaseLocation::File(file) => Ok(file),
    }
}

/// A private folder beside what is made, gone when dropped.
struct Stage(PathBuf);

impl Stage {
    fn new(beside: &Path, purpose: &str) -> Result<Self, Error> {
        let path = beside.join(format!(".sepal-{purpose}-{:016x}", rand::random::<u64>()));
        private_folder(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, "`{}` is left over and may be removed", self.0.display());
        }
    }
}

fn private_folder(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(Error::disk(path, "cannot be made"))
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(Error::disk(folder, "cannot be written"))
}

fn parent(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Pieces of a backup that are worked on at the same time.
static FILES: LazyLock<Pool> = LazyLock::new(|| Pool::new("backup", 4));

/// Work on files, off the tasks that answer people.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match FILES.run(work).await {
        Ok(done) => done,
        Err(error) => Err(Error::Disk {
            path: PathBuf::from("the work on files"),
            reason: "ended badly",
            source: io::Error::other(error),
        }),
    }
}
