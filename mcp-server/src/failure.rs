//! A tool call that did not work, in words that tell the model what to do next.

use std::{fmt, io};

use rustix::io::Errno;

/// Becomes a tool result with `isError: true`.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What went wrong with the file or folder that the model calls `path`.
    pub(crate) fn of(path: &str, error: &io::Error) -> Self {
        Self(match Errno::from_io_error(error) {
            Some(Errno::NOENT) => {
                format!("`{path}` does not exist. Use list_files to see what is there.")
            }
            // cap-std's refusal carries no number of the operating system.
            None if error.kind() == io::ErrorKind::PermissionDenied => {
                format!("`{path}` leads out of the workspace. Use a path below it.")
            }
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
                format!("`{path}` may not be opened this way: {error}.")
            }
            Some(Errno::NOTDIR | Errno::EXIST) => {
                format!("A part of `{path}` is a file, not a folder. Use list_files to see which.")
            }
            Some(Errno::ISDIR) => {
                format!("`{path}` is a folder. Use list_files to see what is in it.")
            }
            Some(Errno::NXIO) => {
                format!("`{path}` is a pipe, socket or device, not a file. Only files can be used.")
            }
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => {
                format!("`{path}` does not fit: the workspace is full. Delete files first.")
            }
            _ => format!("`{path}` cannot be used: {error}."),
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
