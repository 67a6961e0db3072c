//! What is counted of the commands of a socket until they are answered.

use crate::domain::Share;

/// What is counted of one command.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    /// Whether it counts against the unanswered commands of its socket.
    pub(super) is_counted: bool,
    /// Bytes that it takes while it waits.
    pub(super) bytes: usize,
}

/// A command that waits or is being answered.
pub(super) struct Waiting {
    pub(super) noted: Noted,
    /// Given back when the command is answered, or its socket is gone.
    pub(super) _share: Share,
}
