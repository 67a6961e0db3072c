//! Gives a call the result of its dry run: the same files and the same output, without running again.

use super::super::SessionTools;
use super::super::outcome::{failed, fenced};
use super::super::tasks::CallStop;
use super::super::workspace::Workspace;
use super::comparing::{ANSWER_LIMIT, WorkspaceScan};
use super::kept::KeptResult;
use super::knows_apart;
use crate::agent::checkpoints::Restoring;
use crate::agent::journal::fence::{Fence, FenceError};
use crate::domain::{Code, Digest};
use crate::mcp::{FileAccess, FileError, RestoreStep, Unrestored};
use crate::servers::LiveConnection;
use crate::session::{Call, Outcome};

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
    (call, result): (&Call, &Digest),
    (fence, stop): (Option<&Fence>, &CallStop),
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
    let kept = rows.get(tools.assignment.key(), (&call.id, result)).await;
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
