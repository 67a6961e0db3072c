//! All that came of a dry run, kept so that its call can have it without running again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::SessionTools;
use super::super::outcome;
use super::comparing::{self, Change, Contents, Look, MAX_KEPT_BYTES};
use crate::agent::checkpoints::steps;
use crate::domain::{ContentHash, Digest, FileChange, FileKind, FileState};
use crate::mcp::{Found, RestoreStep, ToolAnswer};
use crate::session::{Call, NoResult, Outcome, Unseen};
use crate::store::clock::now;

/// What a dry run came to, before it is kept.
pub(super) struct Whole {
    answer: ToolAnswer,
    server: String,
    /// Of the workspace that was copied.
    base: Digest,
    changes: Vec<Change>,
    after: Arc<Contents>,
}

/// The same as it is kept.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptResult {
    /// Names the state of the workspace that was copied ([`Look::digest`]).
    pub(super) base: Digest,
    /// What brings the workspace from there to where the dry run left the copy.
    pub(super) steps: Vec<RestoreStep>,
    /// What the tool gave.
    pub(super) outcome: Outcome,
}

impl Whole {
    /// All of it, or why a call cannot have it.
    pub(super) fn of(
        (answer, server): (Option<ToolAnswer>, String),
        seen: Result<(Vec<Change>, Arc<Contents>), NoResult>,
        live: Option<&Look>,
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
        let base = live.filter(|look| look.is_settled());
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

/// Keeps it for as long as its call waits; what names it.
pub(super) async fn keep(
    tools: &SessionTools,
    call: &Call,
    whole: Whole,
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

/// Contents are named by their paths here: each is taken once.
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
