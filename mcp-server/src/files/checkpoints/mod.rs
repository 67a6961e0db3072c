//! What the gateway needs to remember the states of a workspace, and to bring an earlier one back: requests
//! that are no tools.
//!
//! The model's commands may have made anything of the folder, and may change it meanwhile. So no symbolic
//! link is ever followed here, only files are read, and what is told of a file is of one content or of none.

mod contents;
mod restore;
mod scan;

pub(crate) use self::{
    contents::read_contents,
    restore::restore_files,
    scan::{Scans, scan_workspace},
};
