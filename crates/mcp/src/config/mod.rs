//! Validates entries of MCP servers, expands their references, and reads and writes the file with the
//! installation's own entries.

mod bundle;
mod check;
mod docker_run;
mod expand;
mod file;
#[cfg(test)]
mod fuzz;
mod given;
mod network;
mod oauth;
mod package;
mod pasted;
mod problem;

pub use check::{Author, entry_problems, name_problem};
pub use docker_run::as_image;
pub use expand::{
    Expanded, Missing, Reference, References, as_written, expand, expand_text, references,
};
pub use file::{ConfigFile, FileError, FileState, Looks};
pub use package::{PackageCommand, package_of};
pub use package::{Word, Words, named_packages, normal_name};
pub use pasted::{Pasted, PastedKind, PastedServer, read_pasted};
pub use problem::EntryProblem;
