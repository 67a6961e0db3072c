//! Defines a call of a tool, on which rules decide.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Marks a tool that runs a bash command line, and names its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellTool {
    /// The argument that holds the command line.
    pub argument: String,
    /// Arguments without effect on what runs, such as a time limit. With any other argument beside the
    /// command line, rules about commands do not allow the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harmless: Vec<String>,
}

/// One call, as it would run.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The server's name in the registry.
    pub server: &'a str,
    /// The server's own name of the tool.
    pub tool: &'a str,
    /// The hash of the tool's definition; `None` = unknown, which matches no rule that names a definition.
    pub definition: Option<&'a str>,
    pub arguments: &'a Value,
    /// Set for a tool that runs command lines.
    pub shell: Option<&'a ShellTool>,
    /// The folder to which relative paths of the tool refer, absolute and without `..`; `None` = rules about
    /// paths treat absolute paths as unknown.
    pub workspace: Option<&'a str>,
    /// The expected cost of the call, in millionths of a dollar; `None` = unknown.
    pub cost_micros: Option<u64>,
    /// The current time, in milliseconds since 1970.
    pub now_ms: u64,
}

impl<'a> Call<'a> {
    /// Creates a call from its names and arguments only.
    pub fn new(server: &'a str, tool: &'a str, arguments: &'a Value) -> Self {
        Self {
            server,
            tool,
            definition: None,
            arguments,
            shell: None,
            workspace: None,
            cost_micros: None,
            now_ms: 0,
        }
    }

    /// Returns the command line, if the tool runs one and the argument is text.
    pub(crate) fn command(&self) -> Option<&'a str> {
        self.arguments.get(&self.shell?.argument)?.as_str()
    }

    /// Returns true if no argument beside the command line could change what runs.
    pub(crate) fn has_only_its_command(&self) -> bool {
        let (Some(shell), Some(arguments)) = (self.shell, self.arguments.as_object()) else {
            return false;
        };
        arguments
            .keys()
            .all(|name| *name == shell.argument || shell.harmless.contains(name))
    }
}

/// Returns the argument with that name, or at that JSON pointer if `name` begins with `/`.
pub(crate) fn argument<'a>(arguments: &'a Value, name: &str) -> Option<&'a Value> {
    if name.starts_with('/') {
        arguments.pointer(name)
    } else {
        arguments.get(name)
    }
}
