//! The file tools. The workspace is a capability: an open folder handle below which every path is
//! resolved by the kernel or by cap-std, so that `..`, absolute paths, symbolic links and races
//! cannot lead out of it.

pub(crate) mod checkpoints;
mod encoding;
mod facts;
#[cfg(test)]
mod fuzz;
mod instructions;
mod list;
mod name;
pub(crate) mod people;
mod place;
mod read;
mod skills;
mod write;

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};

pub(crate) use self::{
    facts::facts,
    instructions::{InstructionsParams, instructions},
    list::list,
    place::{Incoming, Part, place},
    read::read,
    skills::{SkillPart, SkillsParams, place_skill, skills},
    write::write,
};
use crate::failure::Failure;

/// The longest path, in the letters of [`name`]: longer than any that the kernel takes. Answers repeat
/// what was asked for.
const MAX_PATH_BYTES: usize = 20 * 1024;

/// Links that are followed on one path, as many as the kernel does.
const MAX_LINKS: usize = 40;

/// Where a path leads.
pub(crate) struct ResolvedPath {
    /// A path for `root`.
    pub(crate) path: PathBuf,
    /// Whether its last part is where an absolute link leads.
    pub(crate) ends_in_link: bool,
}

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

    /// What the model wrote, as a path for `root`. Absolute links that lead below the workspace are
    /// followed here, as the kernel does it for commands: for `root` each of them leads out. It is
    /// `root` that holds the line: where something changes meanwhile, the path that was made here is
    /// refused like any other that leads out.
    fn resolve(&self, path: &str) -> Result<ResolvedPath, Failure> {
        let named = self.named(path)?;
        let resolved = self.without_absolute_links(&named);
        Ok(resolved.unwrap_or(ResolvedPath {
            path: named,
            ends_in_link: false,
        }))
    }

    /// The path with every link on it replaced by where it leads. `None` if none of them is absolute,
    /// or if the path leads out or nowhere: then `root` says what is wrong with it.
    fn without_absolute_links(&self, named: &Path) -> Option<ResolvedPath> {
        let mut left: VecDeque<OsString> = parts(named).collect();
        let mut path = PathBuf::new();
        let (mut links, mut is_absolute, mut ends_in_link) = (0, false, false);
        while let Some(part) = left.pop_front() {
            if part == ".." {
                if !path.pop() {
                    return None;
                }
                continue;
            }
            path.push(&part);
            // What is no link, or not there, stays as it is.
            let Ok(to) = self.root.read_link_contents(&path) else {
                continue;
            };
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            path.pop();
            ends_in_link |= left.is_empty();
            let below = if to.is_absolute() {
                is_absolute = true;
                path.clear();
                to.strip_prefix(&self.folder).ok()?
            } else {
                &to
            };
            for part in parts(below).collect::<Vec<_>>().into_iter().rev() {
                left.push_front(part);
            }
        }
        if path.as_os_str().is_empty() {
            path.push(".");
        }
        is_absolute.then_some(ResolvedPath { path, ends_in_link })
    }

    /// What the model wrote, relative to the workspace. This only tidies.
    fn named(&self, path: &str) -> Result<PathBuf, Failure> {
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

/// The parts of a path that say something.
fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| part.as_os_str().to_owned())
}
