//! Stores the complete result of a dry run, so that its call can take it without running again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::SessionTools;
use super::super::outcome;
use super::comparing::{self, Change, Contents, MAX_KEPT_BYTES, WorkspaceScan};
use crate::agent::checkpoints::steps;
use crate::domain::{ContentHash, Digest, FileChange, FileKind, FileState};
use crate::mcp::{Found, RestoreStep, ToolAnswer};
use crate::session::{Call, NoResult, Outcome, Unseen};
use crate::store::clock::now;

/// The result of a dry run before it is stored.
pub(super) struct DryRunResult {
    answer: ToolAnswer,
    server: String,
    /// The digest of the copied workspace.
    base: Digest,
    changes: Vec<Change>,
    after: Arc<Contents>,
}

/// The stored result.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptResult {
    /// Identifies the state of the workspace that was copied ([`WorkspaceScan::digest`]).
    pub(super) base: Digest,
    /// The steps from that state to the one in which the dry run left the copy.
    pub(super) steps: Vec<RestoreStep>,
    /// The outcome of the tool.
    pub(super) outcome: Outcome,
}

impl DryRunResult {
    /// Makes the result, or returns the reason a call cannot take it.
    pub(super) fn of(
        (answer, server): (Option<ToolAnswer>, String),
        seen: Result<(Vec<Change>, Arc<Contents>), NoResult>,
        live: Option<&WorkspaceScan>,
        unseen: &[Unseen],
    ) -> Result<Self, NoResult> {
        let answer = answer.ok_or(NoResult::NoAnswer)?;
        let gaps = [
            (Unseen::Questions, NoResult::Questions),
            (Unseen::Attachments, NoResult::Attachments),
            (Unseen::LiveProcess, NoResult::LiveProcess),
        ];
        for (gap, why) in gaps {
            if unseen.contains(&gap) {
                return Err(why);
            }
        }
        let (changes, after) = seen?;
        let files = changes.iter().filter_map(|change| change.after.as_ref());
        let mut files = files.filter(|found| found.kind == FileKind::File);
        if comparing::bytes_of(&changes) > MAX_KEPT_BYTES
            || files.clone().any(|found| !comparing::is_comparable(found))
        {
            return Err(NoResult::TooLarge);
        }
        if files.any(|found| !after.contains_key(&found.path)) {
            return Err(NoResult::Files);
        }
        let base = live.filter(|scan| scan.is_settled());
        let base = base.ok_or(NoResult::Changing)?.digest();
        Ok(Self {
            answer,
            server,
            base,
            changes,
            after,
        })
    }
}

/// Stores the result for as long as its call waits, and returns its digest.
pub(super) async fn keep(
    tools: &SessionTools,
    call: &Call,
    whole: DryRunResult,
) -> Result<Digest, NoResult> {
    let key = tools.assignment.key();
    let steps = steps_of(&whole.changes, &whole.after);
    let by = (key, whole.server.as_str());
    let outcome = outcome::kept(whole.answer, by, &tools.attachments).await;
    let kept = KeptResult {
        base: whole.base,
        steps,
        outcome,
    };
    let not_kept = |error: &dyn std::fmt::Display| {
        tracing::warn!(session.id = %key.session, call.id = %call.id, %error, "What came of a dry run is not kept");
        NoResult::Store
    };
    let content = serde_json::to_vec(&kept).map_err(|error| not_kept(&error))?;
    let digest = Digest::of_bytes(&content);
    let rows = tools.place.records.dry_run_results();
    let put = rows.put(key, (&call.id, &digest), content, now()).await;
    put.map_err(|error| not_kept(&error))?;
    Ok(digest)
}

/// Returns the steps of the changes. Contents are looked up by path, so each is taken once.
fn steps_of(changes: &[Change], after: &Contents) -> Vec<RestoreStep> {
    let changes: Vec<FileChange> = changes
        .iter()
        .map(|change| FileChange {
            path: change.path.clone(),
            before: change.before.as_ref().map(state),
            after: change.after.as_ref().map(state),
        })
        .collect();
    let steps = steps(&changes).into_iter();
    steps
        .filter_map(|step| step.with(|path| after.get(path).cloned()))
        .collect()
}

fn state(found: &Found) -> FileState {
    FileState {
        kind: found.kind,
        mode: found.mode,
        bytes: found.bytes,
        version: String::new(),
        content: Some(ContentHash::from_stored(found.path.clone())),
        target: found.target.clone(),
    }
}
