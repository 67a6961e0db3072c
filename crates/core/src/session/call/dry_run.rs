//! A call that waits, tried in a copy of the workspace: what came of it, for whoever decides.

use serde::{Deserialize, Serialize};

use super::ToolFacts;
use crate::domain::{Actor, ChangeCounts, Digest, RunsInKind, Timestamp};

/// A dry run of a call. It is no execution of it: the call goes on waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRun {
    /// Who asked for it.
    pub by: Actor,
    pub since: Timestamp,
    /// What it runs: that of the call at that moment.
    pub digest: Digest,
    /// What came of it; none = it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<DryRunReport>,
}

/// How a dry run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DryRunStatus {
    /// The tool answered.
    Completed,
    /// The tool answered that it failed, or could not be called.
    Failed,
    /// It could not be begun, or not be seen to its end: the text says why.
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

/// What came of a dry run. It is bounded, because a queue tells it with every change of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRunReport {
    pub status: DryRunStatus,
    /// The beginning of what the tool gave, or why it gave nothing.
    pub text: String,
    /// Bytes that are missing of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_bytes: u64,
    /// Of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// From the request to the answer, without the copy of the workspace.
    pub duration_ms: u64,
    /// How long the copy of the workspace and the start took.
    pub prepared_ms: u64,
    /// How many paths changed.
    #[serde(default)]
    pub counts: ChangeCounts,
    /// The first of them, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DryRunFile>,
    /// What it could not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Unseen>,
    /// Hash of all that came of it, which is kept: a yes may name it, and the call has it then without
    /// running again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Digest>,
    /// Why nothing is kept, where the tool was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_result: Option<NoResult>,
}

/// Why a dry run shows what a call would do, and cannot become its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoResult {
    /// The tool gave no answer.
    NoAnswer,
    /// What changed in files is not known whole.
    Files,
    /// The tool returned pictures or other files.
    Attachments,
    /// Its server asked something, and nobody could answer.
    Questions,
    /// Its server runs in the session, and would know nothing of it.
    LiveProcess,
    /// More was changed than is kept.
    TooLarge,
    /// Files were being changed while they were copied.
    Changing,
    /// The records are away.
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

/// What changed of a path.
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
    /// From the workspace down, in bash's form where it is no plain text.
    pub path: String,
    pub change: DryRunChange,
    /// The unified diff of a text; none where there is nothing to compare, or not enough room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why there is no diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<NoDiff>,
}

/// Why a change is told without a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoDiff {
    /// It is a folder, a link, or only its mode changed.
    NoContent,
    /// It is no text.
    Binary,
    /// It is too large, or others took the room.
    TooLarge,
    /// What was there before, or is there now, could not be read.
    Unread,
}

/// What a dry run could not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unseen {
    /// More paths changed than are told.
    MoreFiles,
    /// What changed in files: the copy could not be looked at.
    Files,
    /// Pictures and other files that the tool returned.
    Attachments,
    /// A question of the server to the person, which was cancelled.
    Questions,
    /// What a process would do that the live server keeps running: a dry run has one of its own.
    LiveProcess,
}

/// Why a call has no dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoDryRun {
    /// It runs at a remote server.
    Remote,
    /// It may reach hosts: what it does there cannot be taken back.
    Network,
    /// Its server says that it deals with the world outside.
    OpenWorld,
    /// It does not see the workspace.
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

    /// Why, in words.
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
    /// Why a call of this tool has no dry run; none = it has one.
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

/// What is left out of stored forms.
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
