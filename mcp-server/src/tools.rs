//! What the model is told about the tools: names, descriptions, argument schemas, hints.
//!
//! The gateway compiles the same definitions in (`tools.json`), so that the first model request
//! need not wait for a sandbox.

use std::sync::Arc;

use rmcp::{
    handler::server::tool::schema_for_input,
    model::{JsonObject, Tool, ToolAnnotations},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Lines that `read_file` returns when no limit is given.
const DEFAULT_LINES: u32 = 2000;
/// Folder levels that `list_files` shows when no depth is given.
const DEFAULT_DEPTH: u32 = 2;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFile {
    /// The file, relative to the workspace: `src/main.rs`.
    pub(crate) path: String,
    /// The first line to return; lines count from 1.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    pub(crate) offset: u32,
    /// How many lines to return at most.
    #[serde(default = "default_lines")]
    #[schemars(range(min = 1))]
    pub(crate) limit: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// The file, relative to the workspace. Missing folders are made.
    pub(crate) path: String,
    /// The whole new content of the file.
    pub(crate) content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFiles {
    /// The folder, relative to the workspace; `.` is the workspace itself.
    #[serde(default = "workspace")]
    pub(crate) path: String,
    /// How many folder levels to show.
    #[serde(default = "default_depth")]
    #[schemars(range(min = 1, max = 16))]
    pub(crate) depth: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteCommand {
    /// The command line for bash, for example `ls -l | head`.
    pub(crate) command: String,
    /// Seconds until the command is stopped; default and maximum are the sandbox's (usually 30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1))]
    pub(crate) timeout_s: Option<u32>,
}

fn first_line() -> u32 {
    1
}

fn default_lines() -> u32 {
    DEFAULT_LINES
}

fn workspace() -> String {
    ".".to_owned()
}

fn default_depth() -> u32 {
    DEFAULT_DEPTH
}

/// All tools, sorted by name.
pub(crate) fn definitions() -> Result<Vec<Tool>, String> {
    Ok(vec![
        Tool::new(
            "execute_command",
            "Run a bash command line in the workspace folder and return its exit code, stdout and \
             stderr. There is no network and no terminal: do not start programs that ask \
             questions. Every process the command started is stopped when it ends, so servers do \
             not live on between calls. Long output keeps its beginning and its end; write it to \
             a file and read that when all of it matters.",
            input::<ExecuteCommand>()?,
        )
        .with_title("Run a command")
        .with_annotations(hints(false, true, false)),
        Tool::new(
            "list_files",
            "List files and folders of the workspace, sorted, hidden ones included, files with \
             their sizes. Symbolic links are shown, not followed. A name that is not \
             plain text is shown in bash's `$'...'` form, which every tool accepts as a path.",
            input::<ListFiles>()?,
        )
        .with_title("List files")
        .with_annotations(hints(true, false, true)),
        Tool::new(
            "read_file",
            "Read a text file of the workspace, by lines. A long file comes in parts: the answer \
             says with which offset to go on. Latin-1 and UTF-16 are read too, and the answer says \
             so. For a binary file only its type and size are told.",
            input::<ReadFile>()?,
        )
        .with_title("Read a file")
        .with_annotations(hints(true, false, true)),
        Tool::new(
            "write_file",
            "Write a text file of the workspace: make it, or replace all of its content. Missing \
             folders are made. To change a part of a file, read it first and write it whole.",
            input::<WriteFile>()?,
        )
        .with_title("Write a file")
        .with_annotations(hints(false, true, true)),
    ])
}

/// The definitions as `tools.json` holds them.
pub(crate) fn describe() -> Result<String, Box<dyn std::error::Error>> {
    let mut text = serde_json::to_string_pretty(&definitions()?)?;
    text.push('\n');
    Ok(text)
}

/// Nothing here reaches past the sandbox, so the world is always closed.
fn hints(read_only: bool, destructive: bool, idempotent: bool) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(read_only)
        .destructive(destructive)
        .idempotent(idempotent)
        .open_world(false)
}

/// The schema of `T` without what only Rust cares about (`format: uint32`) and some model providers
/// refuse.
fn input<T: JsonSchema + 'static>() -> Result<Arc<JsonObject>, String> {
    let mut schema = schema_for_input::<T>()?.as_ref().clone();
    schema.remove("$schema");
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.remove("format");
        }
    }
    Ok(Arc::new(schema))
}
