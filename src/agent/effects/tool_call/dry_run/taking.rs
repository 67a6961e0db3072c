//! Stores the complete result of a dry run, and gives it to its call: the same files and the same output,
//! without running again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::SessionTools;
use super::super::outcome::{self, failed, fenced};
use super::super::tasks::CallStop;
use super::super::workspace::Workspace;
use super::comparing::{self, ANSWER_LIMIT, Change, Contents, MAX_KEPT_BYTES, WorkspaceScan};
use super::knows_apart;
use crate::agent::checkpoints::{Restoring, steps};
use crate::agent::journal::fence::{Fence, FenceError};
use crate::domain::{Code, ContentHash, Digest, FileChange, FileKind, FileState};
use crate::mcp::{FileAccess, FileError, Found, RestoreStep, ToolAnswer, Unrestored};
use crate::servers::LiveConnection;
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
        answer: Option<ToolAnswer>,
        server: String,
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

    let outcome = outcome::kept(whole.answer, key, whole.server.as_str(), &tools.attachments).await;
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
    let put = rows.put(key, &call.id, &digest, content, now()).await;
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

/// The most paths named that could not be changed.
const MAX_NAMED: usize = 5;

/// The reason nothing was changed.
enum TakeError {
    /// The workspace differs from the one that was copied.
    Changed,
    /// The workspace cannot be scanned.
    Unseen,
    /// Another gateway runs the session.
    Fenced(FenceError),
}

/// Gives the call the result of its dry run, if the workspace is unchanged. Stopping the call leaves nothing
/// half done: files are changed completely, or not at all.
pub(in crate::agent::effects::tool_call) async fn take(
    tools: &SessionTools,
    call: &Call,
    result: &Digest,
    fence: Option<&Fence>,
    stop: &CallStop,
) -> Outcome {
    let ready = tokio::select! {
        ready = ready(tools, call, result) => ready,
        () = stop.cancel.cancelled() => return Outcome::Cancelled,
    };
    let (kept, own) = match ready {
        Ok(ready) => ready,
        Err(outcome) => return *outcome,
    };
    let KeptResult {
        base,
        steps,
        outcome,
    } = kept;
    let connection = &own.connection;
    let changing = async {
        let access = FileAccess::new(connection, ANSWER_LIMIT);
        let scan = WorkspaceScan::at(connection)
            .await
            .ok_or(TakeError::Unseen)?;
        if scan.digest() != base {
            return Err(TakeError::Changed);
        }
        if let Some(fence) = fence {
            fence.check().await.map_err(TakeError::Fenced)?;
        }
        Ok(change(steps, access).await)
    };
    match tools
        .checkpoints
        .by_call(&call.id, connection, changing)
        .await
    {
        None => not_run("other calls were changing files, and the dry run knew nothing of them"),
        Some(Err(TakeError::Changed)) => {
            not_run("files of the workspace have changed since the dry run")
        }
        Some(Err(TakeError::Unseen)) => not_run("the files cannot be looked at"),
        Some(Err(TakeError::Fenced(error))) => fenced(&error),
        Some(Ok(Ok(unchanged))) if unchanged.is_empty() => outcome,
        Some(Ok(Ok(unchanged))) => failed(Code::ToolFailed, in_part(&unchanged)),
        Some(Ok(Err(error))) => Outcome::Unknown {
            cause: Some(format!(
                "the result of the dry run was being taken over when the sandbox gave no answer any more: \
                 {error}"
            )),
        },
    }
}

/// Returns the stored result, and the server that changes files, after checking once more what would run.
async fn ready(
    tools: &SessionTools,
    call: &Call,
    result: &Digest,
) -> Result<(KeptResult, LiveConnection), Box<Outcome>> {
    let offering = tools.refresh().await;
    let image = tools.look_up_image(&offering, call).await;
    let (_, server) = tools.check(&offering, call, image.as_ref())?;
    if knows_apart(tools, &server) {
        return Err(Box::new(not_run(
            "its server runs in this session by now, and would know nothing of the result",
        )));
    }
    let rows = tools.place.records.dry_run_results();
    let kept = rows.get(tools.assignment.key(), &call.id, result).await;
    let kept = kept.map_err(|error| {
        tracing::warn!(?error, "The result of a dry run cannot be read");
        let text = "not run: the result of the dry run cannot be read now; ask for the call again";
        Box::new(failed(Code::StoreUnavailable, text.to_owned()))
    })?;
    let kept = kept.and_then(|content| serde_json::from_slice(&content).ok());
    let kept =
        kept.ok_or_else(|| Box::new(not_run("the result of the dry run is not kept any more")))?;
    let opened = match Workspace::of(tools) {
        Some(workspace) => workspace.open().await,
        None => Err("the sandbox that looks at files is switched off".to_owned()),
    };
    let opened = opened
        .map_err(|text| Box::new(failed(Code::SandboxUnavailable, format!("not run: {text}"))))?;
    Ok((kept, opened))
}

async fn change(
    steps: Vec<RestoreStep>,
    access: FileAccess<'_>,
) -> Result<Vec<Unrestored>, FileError> {
    let mut restoring = Restoring::by(access);
    for step in steps {
        restoring.take(step).await?;
    }
    restoring.end().await
}

fn not_run(why: &str) -> Outcome {
    let text = format!(
        "not run: {why}. Nothing was changed; ask for the call again, and a person decides about it as \
         things are now"
    );
    failed(Code::ChangedSinceShown, text)
}

fn in_part(unchanged: &[Unrestored]) -> String {
    let named = unchanged.iter().take(MAX_NAMED);
    let named: Vec<String> = named
        .map(|it| format!("`{}`: {}", it.path, it.text))
        .collect();
    let more = unchanged.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "the result of the dry run was taken over in part: {}{more}. The other changes are done, and the \
         history of the files has them",
        named.join("; ")
    )
}
