//! What is decided: one call of a tool.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Says that a tool runs a command line of bash, and in which of its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellTool {
    /// The argument that is the command line.
    pub argument: String,
    /// Arguments that change nothing of what runs, such as a time limit. Any other one beside the
    /// command line keeps rules about commands from allowing the call.
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
    /// The hash of the tool's definition; `None` = unknown, which no rule that names one fits.
    pub definition: Option<&'a str>,
    pub arguments: &'a Value,
    /// Set for a tool that runs command lines.
    pub shell: Option<&'a ShellTool>,
    /// The folder in which relative paths of the tool begin, absolute and without `..`; `None` = rules
    /// about paths take absolute paths for unknown.
    pub workspace: Option<&'a str>,
    /// What the call is expected to cost, in millionths of a dollar; `None` = unknown.
    pub cost_micros: Option<u64>,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

impl<'a> Call<'a> {
    /// A call of which only the names and the arguments are known.
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

    /// The command line, if the tool runs one and the argument is text.
    pub(crate) fn command(&self) -> Option<&'a str> {
        self.arguments.get(&self.shell?.argument)?.as_str()
    }

    /// Whether the call has nothing beside its command line that could change what runs.
    pub(crate) fn has_only_its_command(&self) -> bool {
        let (Some(shell), Some(arguments)) = (self.shell, self.arguments.as_object()) else {
            return false;
        };
        arguments
            .keys()
            .all(|name| *name == shell.argument || shell.harmless.contains(name))
    }
}

/// One argument: a name, or a JSON pointer when it begins with `/`.
pub(crate) fn argument<'a>(arguments: &'a Value, name: &str) -> Option<&'a Value> {
    if name.starts_with('/') {
        arguments.pointer(name)
    } else {
        arguments.get(name)
    }
}
