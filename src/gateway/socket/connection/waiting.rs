//! Counts the commands of a socket until they are answered.

use crate::domain::Share;

/// The counted properties of one command.
#[derive(Clone, Copy)]
pub(in crate::gateway::socket) struct CommandCost {
    /// True if the command counts against its socket's limit on unanswered commands.
    pub(in crate::gateway::socket) is_counted: bool,
    /// The number of bytes that the command takes while it waits.
    pub(in crate::gateway::socket) bytes: usize,
}

/// A command that waits or is being answered.
pub(in crate::gateway::socket) struct Waiting {
    pub(in crate::gateway::socket) noted: CommandCost,
    /// Released when the command is answered or its socket is gone.
    pub(in crate::gateway::socket) _share: Share,
}
