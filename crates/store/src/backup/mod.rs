//! Backs up one installation into one file while it runs, and restores the file while it is stopped.
//!
//! A backup covers the durability promise of installations that store everything in the data folder: the
//! database, the key that seals secrets, and the operator's files. Workspaces belong to the sandboxes: a caller
//! who can reach them adds an archive of each workspace to a [`BackupDraft`], and unpacks the archives of a
//! [`StagedRestore`] before that is put in place. Nothing here looks into such an archive.

#[cfg(test)]
mod fuzz;
mod manifest;
mod reading;
mod writing;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub use super::db::{MovedSandbox, StoredSandbox};
pub use manifest::{KeyPlace, Manifest, Part};

use super::db::{self, DATABASE_FILE, DatabaseLocation, StagedDatabase};
use super::{DataDir, Settings};
use sepal_core::domain::{EngineId, SandboxId};
use sepal_jobs::Pool;
use writing::{Content, Source};

/// The archive name and the data folder name of each file in a backup.
const KEPT: [(&str, &str); 3] = [
    (manifest::DATABASE, DATABASE_FILE),
    (manifest::SECRET_KEY, "secret.key"),
    (manifest::SERVERS, "mcp-config.json"),
];

/// Other files that belong to a database and must not be combined with another database, the most dangerous
/// first.
const BESIDE: [&str; 3] = ["sepal.db-wal", "sepal.db-shm", "setup-link"];

/// The reason a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Part of the installation is outside the data folder, so a backup would be incomplete.
    #[error("{what}, so this command would give half a backup; {remedy}")]
    Elsewhere {
        what: &'static str,
        /// The way to back up such an installation.
        remedy: &'static str,
    },
    /// There is no database to back up.
    #[error("there is no database at `{0}`; is `store.data_dir` (SPL_DATA_DIR, --data-dir) right?")]
    NoDatabase(PathBuf),
    /// An existing file, folder or database is in the way of the backup or restore.
    #[error("`{path}` {reason}; {remedy}")]
    InTheWay {
        /// The path that is in the way.
        path: PathBuf,
        reason: &'static str,
        remedy: &'static str,
    },
    /// A file that the operator wrote is too large for a backup.
    #[error(
        "`{path}` is larger than {limit_mib} MiB, the most that a backup keeps of such a file; nothing \
         was written: look whether it is the right file, and make it smaller"
    )]
    TooLarge {
        path: PathBuf,
        /// The limit in MiB.
        limit_mib: u64,
    },
    /// There are more files than a manifest can name.
    #[error(
        "a backup cannot name {files} files; nothing was written: leave the workspaces out, and keep \
         them by other means"
    )]
    TooMany {
        /// The number of files.
        files: usize,
    },
    /// The file is not a backup, or contains files that no backup has.
    #[error("`{path}` is not a backup that `sepal backup` made: {reason}; nothing was changed")]
    Foreign {
        path: PathBuf,
        /// The reason the file is not accepted as a backup.
        reason: String,
    },
    /// The file is a backup that was damaged after it was made.
    #[error("`{path}` is damaged: {reason}; nothing was changed, take another copy of it")]
    Damaged {
        path: PathBuf,
        /// The mismatch that was found.
        reason: String,
    },
    /// A newer version of Sepal made the backup.
    #[error(
        "the backup was made by Sepal {program}, which is newer than this one; restore it with that \
         version"
    )]
    Newer {
        /// The version that made the backup.
        program: String,
    },
    /// A file operation failed.
    #[error("`{path}` {reason}")]
    Disk {
        /// The file or folder concerned.
        path: PathBuf,
        reason: &'static str,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The database or the data folder returned an error.
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

/// The parts of an installation to back up.
#[derive(Debug, Clone, Copy)]
pub struct BackupScope<'a> {
    pub settings: &'a Settings,
    /// True if the key that seals secrets comes from the settings and not from the data folder.
    pub has_own_key: bool,
    /// The settings file that the installation runs with.
    pub settings_file: Option<&'a Path>,
}

/// A backup that is staged beside its archive, and not written yet.
pub struct BackupDraft {
    target: PathBuf,
    stage: Stage,
    schema: i64,
    key: KeyPlace,
    sources: Vec<Source>,
}

impl BackupDraft {
    /// Stages everything but workspaces for a backup at `target`, a file that must not exist yet. A gateway may
    /// run at the same time: the backup is a consistent snapshot of everything that was acknowledged before.
    pub async fn begin(wanted: BackupScope<'_>, target: &Path) -> Result<Self, Error> {
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
        // Stages beside the archive, because the operator chose a disk with enough space for it.
        let stage = Stage::new(parent(target), "backup")?;
        let copy = stage.0.join(DATABASE_FILE);
        let schema = db::copy(&database, &copy).await?;
        let mut sources = vec![Source {
            name: manifest::DATABASE.to_owned(),
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
        Ok(Self {
            target: target.to_owned(),
            stage,
            schema,
            key,
            sources,
        })
    }

    /// Returns the installation's id and the sandboxes of all sessions that the backup has.
    pub async fn sandboxes(&self) -> Result<(String, Vec<StoredSandbox>), Error> {
        read_sandboxes(&self.stage.0.join(DATABASE_FILE)).await
    }

    /// Returns the private file into which the caller writes the archive of a workspace, before
    /// [`Self::keep_workspace`].
    pub fn workspace_file(&self, sandbox: &SandboxId) -> PathBuf {
        self.stage.0.join(workspace_file(sandbox))
    }

    /// Adds the archive of a workspace, which is complete.
    pub fn keep_workspace(&mut self, sandbox: &SandboxId) {
        let content = Content::File(self.workspace_file(sandbox));
        let name = manifest::workspace_name(sandbox);
        self.sources.push(Source { name, content });
    }

    /// Writes the archive.
    pub async fn finish(self) -> Result<Manifest, Error> {
        let Self {
            target,
            stage,
            schema,
            key,
            sources,
        } = self;
        blocking(move || {
            let written = writing::write(&target, schema, key, &sources);
            drop(stage);
            written
        })
        .await
    }
}

/// The file name of a workspace's archive in a staging folder.
fn workspace_file(sandbox: &SandboxId) -> String {
    manifest::file_name(&manifest::workspace_name(sandbox)).to_owned()
}

/// Returns the installation's id and all sandboxes of a staged database.
async fn read_sandboxes(file: &Path) -> Result<(String, Vec<StoredSandbox>), Error> {
    let mut database = StagedDatabase::open(file).await?;
    let installation = database.installation().await?;
    let sandboxes = database.sandboxes().await?;
    database.close().await?;
    Ok((installation, sandboxes))
}

/// The result of a restore.
#[derive(Debug, Clone)]
pub struct RestoreResult {
    /// The manifest of the restored backup.
    pub manifest: Manifest,
    /// The folder to which the previous installation was moved, if there was one.
    pub aside: Option<PathBuf>,
    /// The file that holds the settings from the backup, if it had any; the gateway does not read it from
    /// there.
    pub settings_file: Option<PathBuf>,
}

/// The action to take if the data folder is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Refuse to restore.
    Refuse,
    /// Move the existing installation into a new folder.
    MoveAside,
}

/// A verified backup in a staging folder within the data folder, in which nothing else has changed. No gateway
/// can start on the data folder until this is finished or dropped.
pub struct StagedRestore {
    content: StagedContent,
    dir: DataDir,
}

/// A workspace in a staged backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedWorkspace {
    /// The session whose workspace it is.
    pub stored: StoredSandbox,
    /// The tar archive of the workspace, whose content is untrusted.
    pub file: PathBuf,
    /// The size of the archive.
    pub bytes: u64,
}

impl StagedRestore {
    /// Unpacks and verifies the archive in a staging folder; an error changes nothing. Fails if a gateway uses
    /// the data folder.
    pub async fn begin(
        settings: &Settings,
        archive: &Path,
        existing: Existing,
    ) -> Result<Self, Error> {
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
        let content = blocking(move || StagedContent::unpack(&folder, &archive, existing)).await?;
        Ok(Self { content, dir })
    }

    /// Returns the manifest of the backup.
    pub fn manifest(&self) -> &Manifest {
        &self.content.manifest
    }

    /// Returns true if the backup has workspaces.
    pub fn has_workspaces(&self) -> bool {
        let mut files = self.content.manifest.files.iter();
        files.any(Part::is_workspace)
    }

    /// Returns the staging folder, which is removed in the end.
    pub fn stage(&self) -> &Path {
        &self.content.stage.0
    }

    /// Returns the installation's id and the workspaces of the backup, each of which belongs to a session of
    /// its database.
    pub async fn workspaces(&self) -> Result<(String, Vec<StagedWorkspace>), Error> {
        let (installation, stored) = read_sandboxes(&self.content.database()).await?;
        let mut stored: BTreeMap<_, _> = stored
            .into_iter()
            .map(|stored| (stored.sandbox.clone(), stored))
            .collect();
        let mut found = Vec::new();
        for part in &self.content.manifest.files {
            let Some(sandbox) = manifest::workspace_of(&part.name) else {
                continue;
            };
            let stored = stored.remove(&sandbox).ok_or_else(|| Error::Foreign {
                path: self.content.archive.clone(),
                reason: format!("no session of its database has `{}`", part.name),
            })?;
            found.push(StagedWorkspace {
                file: self.stage().join(workspace_file(&sandbox)),
                stored,
                bytes: part.bytes,
            });
        }
        Ok((installation, found))
    }

    /// Records in the staged database that `engine` keeps these workspaces under their new ids.
    pub async fn move_sandboxes(
        &self,
        moved: &[MovedSandbox],
        engine: &EngineId,
    ) -> Result<(), Error> {
        let mut database = StagedDatabase::open(&self.content.database()).await?;
        database.move_sandboxes(moved, engine).await?;
        Ok(database.close().await?)
    }

    /// Puts the files in place, the database last.
    pub async fn finish(self) -> Result<RestoreResult, Error> {
        let Self { content, dir } = self;
        let restored = blocking(move || content.put_in_place()).await;
        drop(dir);
        restored
    }
}

/// The files of a restore.
struct StagedContent {
    archive: PathBuf,
    folder: PathBuf,
    stage: Stage,
    manifest: Manifest,
    /// True if the data folder holds something that has to be moved aside.
    is_used: bool,
}

impl StagedContent {
    fn unpack(folder: &Path, archive: &Path, existing: Existing) -> Result<Self, Error> {
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
        Ok(Self {
            archive: archive.to_owned(),
            folder: folder.to_owned(),
            stage,
            manifest,
            is_used,
        })
    }

    fn database(&self) -> PathBuf {
        self.stage.0.join(DATABASE_FILE)
    }

    fn put_in_place(self) -> Result<RestoreResult, Error> {
        let folder = &self.folder;
        let aside = if self.is_used {
            Some(move_aside(folder)?)
        } else {
            None
        };
        let mut settings_file = None;
        // The database comes last: without it, the folder holds no installation.
        for part in self.manifest.files.iter().rev() {
            if part.is_workspace() {
                continue;
            }
            let to = folder.join(name_in_folder(&part.name));
            fs::rename(self.stage.0.join(manifest::file_name(&part.name)), &to)
                .map_err(Error::disk(&to, "cannot be put in place"))?;
            if manifest::is_settings(&part.name) {
                settings_file = Some(to);
            }
        }
        sync_folder(folder)?;
        Ok(RestoreResult {
            manifest: self.manifest,
            aside,
            settings_file,
        })
    }
}

/// The data folder name of a file in a backup. A settings file gets another name than its own, because the
/// gateway does not read it from there.
fn name_in_folder(part: &str) -> String {
    match KEPT.iter().find(|(name, _)| *name == part) {
        Some((_, file)) => (*file).to_owned(),
        None => format!("restored-{}", manifest::file_name(part)),
    }
}

/// Returns true if the folder contains anything other than a lock file and `lost+found`.
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

/// Moves the files of the old installation, and the settings file of an earlier restore, into a new folder.
/// The database's write-ahead log goes first: SQLite would apply it to any other database placed beside it.
fn move_aside(folder: &Path) -> Result<PathBuf, Error> {
    let at = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let aside = folder.join(format!("before-restore-{at}"));
    private_folder(&aside)?;
    let parts = KEPT.iter().map(|(name, _)| *name);
    let restored = parts.chain(manifest::SETTINGS).map(name_in_folder);
    for name in BESIDE.map(str::to_owned).into_iter().chain(restored) {
        let from = folder.join(&name);
        if from.exists() {
            fs::rename(&from, aside.join(&name))
                .map_err(Error::disk(&from, "cannot be moved aside"))?;
        }
    }
    sync_folder(&aside)?;
    Ok(aside)
}

/// The path of the database file. Returns an error if part of the installation is outside the data folder.
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

/// A private staging folder, removed on drop.
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

/// Runs the file operations of backups and restores on a pool of threads.
static FILES: LazyLock<Pool> = LazyLock::new(|| Pool::new("backup", 4));

/// Runs blocking file operations on [`FILES`], off the async tasks that serve clients.
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use zeroize::Zeroizing;

    use super::writing::{self, Content, Source};
    use super::{
        BackupDraft, BackupScope, Existing, KeyPlace, MovedSandbox, RestoreResult, StagedContent,
        StagedRestore, StoredSandbox, manifest,
    };
    use crate::Settings;
    use crate::db::{Db, SqliteDb, args};
    use sepal_core::domain::{SandboxId, SessionId};

    /// A backup of a database that was never opened, and of a settings file.
    fn archive(folder: &Path, settings: &str) -> PathBuf {
        let source = |name, text: &str| Source {
            name,
            content: Content::Bytes(Zeroizing::new(text.as_bytes().to_vec())),
        };
        let [yaml, _] = manifest::SETTINGS;
        let workspace = manifest::workspace_name(&SandboxId::from_bits(7));
        let sources = [
            source(manifest::DATABASE.to_owned(), "db"),
            source(yaml.to_owned(), settings),
            source(workspace, "tar"),
        ];
        let target = folder.join(format!("{settings}.tar.gz"));
        writing::write(&target, 1, KeyPlace::Settings, &sources).unwrap();
        target
    }

    fn put_back(folder: &Path, archive: &Path, existing: Existing) -> RestoreResult {
        let staged = StagedContent::unpack(folder, archive, existing).unwrap();
        staged.put_in_place().unwrap()
    }

    /// A database with two sessions, each of which has a sandbox.
    async fn database(data: &Path) -> [StoredSandbox; 2] {
        fs::create_dir(data).unwrap();
        let db = SqliteDb::open(&data.join("sepal.db")).await.unwrap();
        let db = Db::Sqlite(db);
        let stored = [1, 2].map(|number| StoredSandbox {
            session: SessionId::from_bits(number),
            sandbox: SandboxId::from_bits(number),
            engine: "docker/old".into(),
        });
        for of in &stored {
            let sql = "INSERT INTO sandboxes (tenant, session, id, keeper) \
                       VALUES ('acme', $1, $2, $3)";
            let args = args![of.session.as_str(), of.sandbox.as_str(), of.engine.as_str()];
            db.execute(sql, args).await.unwrap();
        }
        stored
    }

    async fn draft(settings: &Settings, target: &Path) -> BackupDraft {
        let wanted = BackupScope {
            settings,
            has_own_key: false,
            settings_file: None,
        };
        BackupDraft::begin(wanted, target).await.unwrap()
    }

    #[tokio::test]
    async fn only_the_sessions_whose_workspaces_were_unpacked_get_the_new_ones() {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings::in_folder(root.path().join("data"));
        let stored = database(&settings.data_dir).await;
        let target = root.path().join("sepal.tar.gz");
        let mut draft = draft(&settings, &target).await;
        assert_eq!(draft.sandboxes().await.unwrap().1, stored);
        let [kept, left] = stored;
        fs::write(draft.workspace_file(&kept.sandbox), "any bytes").unwrap();
        draft.keep_workspace(&kept.sandbox);
        let manifest = draft.finish().await.unwrap();
        assert!(manifest.files.last().unwrap().is_workspace());

        let other = Settings::in_folder(root.path().join("other"));
        let staged = StagedRestore::begin(&other, &target, Existing::Refuse);
        let staged = staged.await.unwrap();
        let (installation, workspaces) = staged.workspaces().await.unwrap();
        let [workspace] = workspaces.as_slice() else {
            panic!("{workspaces:?}");
        };
        assert_eq!((&workspace.stored, workspace.bytes), (&kept, 9));
        assert_eq!(fs::read(&workspace.file).unwrap(), b"any bytes");
        let moved = MovedSandbox {
            from: kept.sandbox.clone(),
            to: SandboxId::from_bits(9),
        };
        let (to, engine) = (moved.to.clone(), "bubblewrap/new".into());
        staged.move_sandboxes(&[moved], &engine).await.unwrap();
        staged.finish().await.unwrap();
        let restored = super::read_sandboxes(&other.data_dir.join("sepal.db")).await;
        let moved = StoredSandbox {
            sandbox: to,
            engine,
            ..kept
        };
        assert_eq!(restored.unwrap(), (installation, vec![moved, left]));
        assert!(!other.data_dir.join("sepal.db-wal").exists());
    }

    #[tokio::test]
    async fn a_workspace_of_no_session_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings::in_folder(root.path().join("data"));
        database(&settings.data_dir).await;
        let target = root.path().join("sepal.tar.gz");
        let mut draft = draft(&settings, &target).await;
        let nobodys = SandboxId::from_bits(3);
        fs::write(draft.workspace_file(&nobodys), "any bytes").unwrap();
        draft.keep_workspace(&nobodys);
        draft.finish().await.unwrap();
        let other = Settings::in_folder(root.path().join("other"));
        let staged = StagedRestore::begin(&other, &target, Existing::Refuse);
        let staged = staged.await.unwrap();
        let refused = staged.workspaces().await.unwrap_err().to_string();
        let name = manifest::workspace_name(&nobodys);
        assert!(refused.contains(&name), "{refused}");
    }

    #[test]
    fn a_second_restore_moves_the_settings_file_of_the_first_one_aside() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir(&data).unwrap();
        let first = archive(root.path(), "first");
        let restored = put_back(&data, &first, Existing::MoveAside);
        assert_eq!(restored.aside, None);
        let settings = restored.settings_file.unwrap();
        assert_eq!(settings, data.join("restored-settings.yaml"));
        // The operator goes on with it where it lies.
        fs::write(&settings, "edited").unwrap();
        let json = data.join("restored-settings.json");
        fs::write(&json, "older").unwrap();

        let second = archive(root.path(), "second");
        let restored = put_back(&data, &second, Existing::MoveAside);
        let aside = restored.aside.unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(settings), "second");
        assert_eq!(read(aside.join("restored-settings.yaml")), "edited");
        assert_eq!(read(aside.join("restored-settings.json")), "older");
        assert!(!json.exists());
        // Archives of workspaces are for the sandboxes only.
        let mut left = fs::read_dir(&data).unwrap();
        assert!(!left.any(|entry| entry.unwrap().path().extension() == Some("tar".as_ref())));
    }
}
