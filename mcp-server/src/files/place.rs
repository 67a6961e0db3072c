//! Puts a file that a person attached into the workspace, in parts that each fit a message.
//!
//! The model's commands may have made anything of the folder: it is entered only where it is a folder
//! itself, no file is ever replaced, and a name is given to a file in one step, once it is whole.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Component, Path},
    sync::{Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cap_std::fs::{Dir, MetadataExt, OpenOptions};
use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};
use serde::Deserialize;

use super::Workspace;
use crate::failure::Failure;

/// Where attachments are put, in the workspace.
const FOLDER: &str = "attachments";
/// The name of a file that is not whole yet.
const UNFINISHED: &str = ".sepal-attachment.tmp";
/// The longest name, in bytes, with room for a number within what file systems take.
const MAX_NAME_BYTES: usize = 200;
/// Names that are tried until a free one is found.
const MOST_NAMES: u32 = 1000;
/// Bytes that are compared at once.
const COMPARED: usize = 64 * 1024;

/// One part of a file.
#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    /// What the file is to be called, without a folder.
    name: String,
    /// Bytes of the whole file.
    bytes: u64,
    /// Where this part begins; the part at 0 begins a file anew.
    offset: u64,
    /// The content of this part, as base64.
    data: String,
}

/// The file that comes in now; there is one at a time.
#[derive(Default)]
pub(crate) struct Incoming(Mutex<Option<UnfinishedFile>>);

pub(super) struct UnfinishedFile {
    folder: Dir,
    file: File,
    written: u64,
}

/// Takes a part. With the last one the file gets its name, which is the answer; a file of the same
/// content that is there already is as good.
pub(crate) fn place(
    workspace: &Workspace,
    incoming: &Incoming,
    part: &Part,
) -> Result<Option<String>, Failure> {
    let name = part.name.as_str();
    check_name(name)?;
    let data = STANDARD
        .decode(&part.data)
        .map_err(|_| Failure::new("The data is no base64."))?;
    let failed = |error: io::Error| Failure::of(&format!("{FOLDER}/{name}"), &error);
    let begin = || begin(&workspace.root).map_err(failed);
    let whole = incoming.take(part.offset, part.bytes, &data, begin);
    match whole.map_err(|wrong| wrong.of(&format!("{FOLDER}/{name}")))? {
        Some(whole) => whole.name(name).map_err(failed).map(Some),
        None => Ok(None),
    }
}

/// Why a part is not taken.
pub(super) enum NotTaken {
    Refused(Failure),
    Broken(io::Error),
}

impl NotTaken {
    /// In words, of that file.
    pub(super) fn of(self, file: &str) -> Failure {
        match self {
            Self::Refused(failure) => failure,
            Self::Broken(error) => Failure::of(file, &error),
        }
    }
}

impl Incoming {
    /// Adds a part to the file that comes in: the one at 0 begins a file anew. The file, once it is whole.
    pub(super) fn take(
        &self,
        offset: u64,
        bytes: u64,
        data: &[u8],
        begin: impl FnOnce() -> Result<UnfinishedFile, Failure>,
    ) -> Result<Option<UnfinishedFile>, NotTaken> {
        let refused = |words: &str| NotTaken::Refused(Failure::new(words));
        let mut incoming = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == 0 {
            // What was begun before and is not whole has no use.
            *incoming = None;
            *incoming = Some(begin().map_err(NotTaken::Refused)?);
        }
        let mut unfinished = incoming
            .take()
            .filter(|unfinished| unfinished.written == offset)
            .ok_or_else(|| refused("The part does not follow the one before."))?;
        let written = unfinished.written.saturating_add(data.len() as u64);
        if written > bytes {
            return Err(refused("There is more content than was announced."));
        }
        unfinished.file.write_all(data).map_err(NotTaken::Broken)?;
        unfinished.written = written;
        if written < bytes {
            *incoming = Some(unfinished);
            return Ok(None);
        }
        Ok(Some(unfinished))
    }
}

impl UnfinishedFile {
    /// An empty file in that folder.
    pub(super) fn begin(folder: Dir) -> io::Result<Self> {
        match folder.remove_file(UNFINISHED) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = folder.open_with(UNFINISHED, &options)?.into_std();
        Ok(Self {
            folder,
            file,
            written: 0,
        })
    }

    /// Gives the whole file that name, or finds the same there; false where something else has it.
    pub(super) fn name_only(&self, name: &str, mode: u32) -> io::Result<bool> {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        self.file.set_permissions(permissions)?;
        match self.folder.hard_link(UNFINISHED, &self.folder, name) {
            Ok(()) => self.check_is_ours(name).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.is_equal(name),
            Err(error) => Err(error),
        }
    }

    /// Gives the whole file a name that is free, or finds it under one.
    fn name(&self, wanted: &str) -> io::Result<String> {
        // What the session's journal says to be there survives a crash of the machine.
        self.file.sync_all()?;
        for number in 1..=MOST_NAMES {
            let name = numbered(wanted, number);
            match self.folder.hard_link(UNFINISHED, &self.folder, &name) {
                Ok(()) => return self.check_is_ours(&name).map(|()| name),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if self.is_equal(&name)? {
                return Ok(name);
            }
        }
        Err(Errno::EXIST.into())
    }

    /// What was linked is what was written here: somebody may have put another file in its place.
    fn check_is_ours(&self, name: &str) -> io::Result<()> {
        let ours = std::os::unix::fs::MetadataExt::ino(&self.file.metadata()?);
        if self.folder.symlink_metadata(name)?.ino() == ours {
            return Ok(());
        }
        self.folder.remove_file(name)?;
        Err(Errno::STALE.into())
    }

    /// Whether a file of that name has the same content. What cannot be read has another.
    fn is_equal(&self, name: &str) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let Ok(found) = openat(&self.folder, name, flags | OFlags::CLOEXEC, Mode::empty()) else {
            return Ok(false);
        };
        let mut found = File::from(found);
        let facts = found.metadata()?;
        if !facts.is_file() || facts.len() != self.written {
            return Ok(false);
        }
        let mut ours = self.file.try_clone()?;
        io::Seek::rewind(&mut ours)?;
        is_same(&mut ours, &mut found)
    }
}

impl Drop for UnfinishedFile {
    /// The file has its name by now, or never gets one.
    fn drop(&mut self) {
        let _ = self.folder.remove_file(UNFINISHED);
    }
}

/// An empty file in the folder of attachments. Whatever has its name goes, and nothing is followed.
fn begin(root: &Dir) -> io::Result<UnfinishedFile> {
    UnfinishedFile::begin(folder(root, FOLDER)?)
}

/// The folder of that name, made where there is none; an error where the name is another thing's.
pub(super) fn folder(parent: &Dir, name: &str) -> io::Result<Dir> {
    match parent.create_dir(name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = openat(parent, name, flags, Mode::empty())?;
    Ok(Dir::from_std_file(File::from(folder)))
}

/// Only what names one file, and looks like no option and no hidden file.
fn check_name(name: &str) -> Result<(), Failure> {
    let mut parts = Path::new(name).components();
    let is_one = matches!(parts.next(), Some(Component::Normal(part)) if part == name)
        && parts.next().is_none();
    let is_plain = !name.starts_with(['.', '-']) && !name.chars().any(char::is_control);
    if is_one && is_plain && name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(Failure::new("The name is none for an attachment."))
}

/// The same name for another file: `report.pdf`, `report-2.pdf`.
fn numbered(name: &str, number: u32) -> String {
    if number == 1 {
        return name.to_owned();
    }
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}-{number}.{extension}"),
        None => format!("{name}-{number}"),
    }
}

fn is_same(one: &mut impl Read, other: &mut impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        one.by_ref().take(COMPARED as u64).read_to_end(&mut left)?;
        other
            .by_ref()
            .take(COMPARED as u64)
            .read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}
