//! What is counted of the commands of a socket until they are answered.

use crate::domain::Share;

/// What is counted of one command.
#[derive(Clone, Copy)]
pub(in crate::gateway::socket) struct Noted {
    /// Whether it counts against the unanswered commands of its socket.
    pub(in crate::gateway::socket) is_counted: bool,
    /// Bytes that it takes while it waits.
    pub(in crate::gateway::socket) bytes: usize,
}

/// A command that waits or is being answered.
pub(in crate::gateway::socket) struct Waiting {
    pub(in crate::gateway::socket) noted: Noted,
    /// Given back when the command is answered, or its socket is gone.
    pub(in crate::gateway::socket) _share: Share,
}
