//! Models dry runs: a waiting call is tried in a copy of the workspace, so that its approver sees the
//! effects.

use serde::{Deserialize, Serialize};

use super::ToolFacts;
use crate::domain::{Actor, ChangeCounts, Digest, RunsInKind, Timestamp};

/// A dry run of a call. It is not an execution: the call keeps waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRun {
    /// The person who requested it.
    pub by: Actor,
    pub since: Timestamp,
    /// Digest of what the dry run runs: the call's digest when the dry run began.
    pub digest: Digest,
    /// The report; `None` = still running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<DryRunReport>,
}

/// The end of a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DryRunStatus {
    /// The tool answered.
    Completed,
    /// The tool reported a failure, or could not be called.
    Failed,
    /// The dry run could not start or finish; the text gives the reason.
    NotRun,
}

impl DryRunStatus {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::NotRun => "not_run",
        }
    }
}

/// The report of a dry run. Its size is bounded, because it is sent again with every change of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRunReport {
    pub status: DryRunStatus,
    /// The beginning of the tool's result, or the error.
    pub text: String,
    /// Bytes cut from the end of `text`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_bytes: u64,
    /// The exit code, if the tool ran a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Time from the request to the answer, without copying the workspace.
    pub duration_ms: u64,
    /// Time for copying the workspace and starting sandbox and server.
    pub prepared_ms: u64,
    /// Number of changed paths.
    #[serde(default)]
    pub counts: ChangeCounts,
    /// The first changed paths, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DryRunFile>,
    /// The effects that the dry run could not observe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Unseen>,
    /// Digest of the stored result: an approval that names it gives the call this result without running it
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Digest>,
    /// The reason no result was stored although the tool ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_result: Option<NoResult>,
}

/// The reason a dry run's result cannot become the result of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoResult {
    /// The tool gave no answer.
    NoAnswer,
    /// The changes of files are not fully known.
    Files,
    /// The tool returned pictures or other files.
    Attachments,
    /// The server asked a question, which nobody could answer.
    Questions,
    /// The server runs in the session and would not know of the effects.
    LiveProcess,
    /// The changes exceed the storage limit.
    TooLarge,
    /// Files changed while they were copied.
    Changing,
    /// The record store is unavailable.
    Store,
}

impl NoResult {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoAnswer => "no_answer",
            Self::Files => "files",
            Self::Attachments => "attachments",
            Self::Questions => "questions",
            Self::LiveProcess => "live_process",
            Self::TooLarge => "too_large",
            Self::Changing => "changing",
            Self::Store => "store",
        }
    }
}

/// The kind of a path's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DryRunChange {
    Created,
    Modified,
    Deleted,
}

/// A path that a dry run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DryRunFile {
    /// Path relative to the workspace, quoted for bash if it is not plain text.
    pub path: String,
    pub change: DryRunChange,
    /// The unified diff of a text file; `None` if there is nothing to compare, or not enough room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The reason there is no diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<NoDiff>,
}

/// The reason a change has no diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoDiff {
    /// The path is a folder or a link, or only its mode changed.
    NoContent,
    /// The content is not text.
    Binary,
    /// The diff is too large, or other diffs used up the room.
    TooLarge,
    /// The old or the new content could not be read.
    Unread,
}

/// An effect that a dry run could not observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unseen {
    /// More paths changed than the report lists.
    MoreFiles,
    /// Changes of files: the copy could not be inspected.
    Files,
    /// Pictures and other files that the tool returned.
    Attachments,
    /// A question of the server to the person, which was cancelled.
    Questions,
    /// Effects through a process that the live server keeps running: a dry run starts its own server.
    LiveProcess,
}

/// The reason a call cannot have a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoDryRun {
    /// The tool runs at a remote server.
    Remote,
    /// The tool may reach hosts, where effects cannot be undone.
    Network,
    /// The server declares that the tool acts on the outside world.
    OpenWorld,
    /// The tool does not see the workspace.
    NoWorkspace,
    /// There is no such tool.
    NoTool,
}

impl NoDryRun {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remote => "remote",
            Self::Network => "network",
            Self::OpenWorld => "open_world",
            Self::NoWorkspace => "no_workspace",
            Self::NoTool => "no_tool",
        }
    }

    /// The reason as text for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Remote => {
                "the tool runs at a remote server, where nothing can be tried without being done"
            }
            Self::Network => {
                "the tool may reach hosts, and what it does there could not be dropped"
            }
            Self::OpenWorld => {
                "the tool's server says that it acts on the world outside, which has no copy"
            }
            Self::NoWorkspace => {
                "the tool does not see the workspace, so a copy of it would show nothing"
            }
            Self::NoTool => "there is no such tool",
        }
    }
}

impl ToolFacts {
    /// The reason a call of this tool cannot have a dry run; `None` = it can.
    pub fn no_dry_run(&self) -> Option<NoDryRun> {
        if self.runs_in.kind == RunsInKind::Remote {
            Some(NoDryRun::Remote)
        } else if !self.runs_in.hosts.is_empty() {
            Some(NoDryRun::Network)
        } else if self.annotations.open_world_hint == Some(true) {
            Some(NoDryRun::OpenWorld)
        } else if self.is_without_workspace {
            Some(NoDryRun::NoWorkspace)
        } else {
            None
        }
    }
}

/// Returns true for zero; serde skips such fields.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
pub(in crate::session) fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{NoDryRun, ToolFacts};

    #[test]
    fn only_what_stays_in_the_sandbox_has_a_dry_run() {
        let check = |kind: &str, hosts: &[&str], open: Option<bool>, blind: bool, expected| {
            let facts: ToolFacts = serde_json::from_value(json!({
                "tool": { "server": "s", "tool": "t" }, "title": null, "description": "",
                "schema": {}, "annotations": { "openWorldHint": open }, "is_trusted": false,
                "runs_in": { "kind": kind, "hosts": hosts }, "is_without_workspace": blind,
                "digest": "d", "equal": "e",
            }))
            .unwrap();
            assert_eq!(facts.no_dry_run(), expected, "{kind} {hosts:?}");
        };
        check("sandbox", &[], Some(false), false, None);
        check("container", &[], None, false, None);
        check(
            "remote",
            &["a.example"],
            None,
            false,
            Some(NoDryRun::Remote),
        );
        check(
            "sandbox",
            &["a.example"],
            None,
            false,
            Some(NoDryRun::Network),
        );
        check(
            "container",
            &[],
            Some(true),
            false,
            Some(NoDryRun::OpenWorld),
        );
        check("container", &[], None, true, Some(NoDryRun::NoWorkspace));
    }
}
