//! The file tools. The workspace is a capability: an open folder handle below which every path is
//! resolved by the kernel or by cap-std, so that `..`, absolute paths, symbolic links and races
//! cannot lead out of it.

#[cfg(test)]
mod fuzz;
mod list;
mod name;
mod read;
mod write;

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};

pub(crate) use self::{list::list, read::read, write::write};
use crate::failure::Failure;

/// The longest path, in the letters of [`name`]: longer than any that the kernel takes. Answers repeat
/// what was asked for.
const MAX_PATH_BYTES: usize = 20 * 1024;

/// The one folder that exists for the model.
pub(crate) struct Workspace {
    root: Dir,
    /// The name by which commands know it; accepted as a prefix of paths.
    folder: PathBuf,
}

impl Workspace {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let root = Dir::open_ambient_dir(folder, ambient_authority()).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!(
                    "the workspace `{}` cannot be opened: {error}",
                    folder.display()
                ),
            )
        })?;
        Ok(Self {
            root,
            folder: folder.to_owned(),
        })
    }

    /// What the model wrote, as a path for `root`. This tidies; it is `root` that holds the line.
    fn relative(&self, path: &str) -> Result<PathBuf, Failure> {
        if path.is_empty() {
            return Err(Failure::new(
                "The path is empty. Use `.` for the workspace itself.",
            ));
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(Failure::new(format!(
                "The path is longer than {MAX_PATH_BYTES} bytes. Use a shorter one."
            )));
        }
        if path.contains('\0') {
            return Err(Failure::new(
                "The path holds a NUL character. Leave it out.",
            ));
        }
        let named = name::parse(path);
        if !named.is_absolute() {
            return Ok(named);
        }
        let below = named.strip_prefix(&self.folder).map_err(|_| {
            Failure::new(format!(
                "`{path}` leads out of the workspace. Use a path relative to it, or below `{}`.",
                self.folder.display()
            ))
        })?;
        Ok(
            if below.components().any(|part| part != Component::CurDir) {
                below.to_owned()
            } else {
                PathBuf::from(".")
            },
        )
    }
}
