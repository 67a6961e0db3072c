//! Tries a waiting call in a copy of the workspace: in its own sandboxes, with its own servers, and leaves
//! nothing but the result.

mod comparing;
pub(super) mod taking;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::comparing::{Change, Contents, WorkspaceScan};
use self::taking::{DryRunResult, keep};
use super::workspace::Workspace;
use super::{SessionTools, called, tasks};
use crate::domain::{CallId, Digest, NoCopy, ToolRef};
use crate::mcp::{CallNews, Connection, ToolAnswer};
use crate::sandbox::cloning::WorkspaceClone;
use crate::servers::{BUNDLED, Opened, ServerEntry, Source, open_for};
use crate::session::{Call, DryRunReport, DryRunStatus, NoResult, Unseen};

/// The time limit of a dry run: shorter than the time for which the janitor leaves unowned sandboxes alone.
const LIMIT: Duration = Duration::from_mins(8);
/// The most bytes shown of the tool's output.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// The servers that run in the copy. They end on drop, and [`Self::end`] waits for that.
#[derive(Default)]
struct Apart {
    /// The server that reads files; if the call is one of its own, it also runs the call.
    own: OnceLock<Opened>,
    /// The call's server, if it is another.
    server: OnceLock<Opened>,
}

impl Apart {
    async fn end(&self) {
        for opened in [self.own.get(), self.server.get()].into_iter().flatten() {
            opened.kill().await;
        }
    }
}

/// Runs the call as it was shown in a copy of the workspace; `None` = it was stopped.
pub(in crate::agent::effects) async fn run(
    tools: &SessionTools,
    call: &Call,
    stop: &CancellationToken,
) -> Option<DryRunReport> {
    let begun = Instant::now();
    let (before, clone) = tokio::select! {
        prepared = prepare(tools) => prepared,
        () = stop.cancelled() => return None,
    };
    let clone = match clone {
        Ok(clone) => clone,
        Err(reason) => return Some(not_run(no_copy(reason))),
    };
    let apart = Apart::default();
    let trying = tokio::time::timeout(LIMIT, try_out(tools, call, &clone, &apart, begun, before));
    let tried = tokio::select! {
        tried = trying => Some(tried.unwrap_or_else(|_| {
            let minutes = LIMIT.as_secs() / 60;
            (not_run(&format!("it took longer than {minutes} minutes")), None)
        })),
        () = stop.cancelled() => None,
    };
    apart.end().await;
    clone.discard().await;
    let (mut report, whole) = tried?;
    if let Some(whole) = whole {
        let keeping = async { keep(tools, call, whole?).await };
        let kept = tokio::select! {
            kept = keeping => kept,
            () = stop.cancelled() => return None,
        };
        report.no_result = kept.as_ref().err().copied();
        report.result = kept.ok();
    }
    Some(report)
}

/// Scans the workspace and then copies it: if a later scan shows the same, the copy was the same too. A file
/// that changes at that very moment has an unknown earlier content.
async fn prepare(tools: &SessionTools) -> (Option<WorkspaceScan>, Result<WorkspaceClone, NoCopy>) {
    let scan = scan(tools).await;
    (scan, tools.assignment.clone_workspace().await)
}

async fn scan(tools: &SessionTools) -> Option<WorkspaceScan> {
    if tools.assignment.is_unclaimed().await {
        return Some(WorkspaceScan::default());
    }
    let workspace = Workspace::of(tools)?;
    WorkspaceScan::of_live(&tools.checkpoints, workspace.open().await).await
}

/// The report of a dry run, and, if the tool ran, the complete result for a call that takes it.
type DryRunTrial = (DryRunReport, Option<Result<DryRunResult, NoResult>>);

async fn try_out(
    tools: &SessionTools,
    call: &Call,
    clone: &WorkspaceClone,
    apart: &Apart,
    begun: Instant,
    live: Option<WorkspaceScan>,
) -> DryRunTrial {
    let ready = open(tools, call, clone, apart).await;
    let (tool, server, opened) = match ready {
        Ok(ready) => ready,
        Err(report) => return (*report, None),
    };
    let mut unseen = Vec::new();
    let before = match apart.own.get() {
        _ if clone.is_on_write() => live.clone(),
        Some(own) => WorkspaceScan::at(&own.connection).await,
        None => None,
    };
    if knows_apart(tools, &server) {
        unseen.push(Unseen::LiveProcess);
    }
    let prepared_ms = elapsed(begun);
    let sent = Instant::now();
    let mut has_asked = false;
    let request = tasks::plain(tools, call, tool, &server);
    // Never cancelled: stopping the dry run drops this future.
    let cancel = CancellationToken::new();
    let answer = opened.call(request, &cancel, |news| {
        has_asked |= matches!(news, CallNews::Question(_));
    });
    let answer = answer.await;
    let duration_ms = elapsed(sent);
    let (mut report, answer) = match answer {
        Ok(mut answer) => {
            if let Some(tool) = called(&tools.offering(), call) {
                tool.check_answer(&mut answer);
            }
            if answer.blocks.iter().any(is_file) {
                unseen.push(Unseen::Attachments);
            }
            (answered(&answer), Some(answer))
        }
        Err(error) => (failed(opened, error.to_string()).await, None),
    };
    if has_asked {
        unseen.push(Unseen::Questions);
    }
    (report.duration_ms, report.prepared_ms) = (duration_ms, prepared_ms);
    if clone.is_on_write() && apart.own.get().is_none() {
        // Only one sandbox at a time sees the copy.
        opened.kill().await;
        open_reader(tools, clone, apart).await;
    }
    let reader = apart.own.get().map(|own| &own.connection);

    let seen = compare(
        tools,
        &mut report,
        reader,
        clone.is_on_write(),
        live.as_ref(),
        before,
    )
    .await;
    let seen = seen.inspect_err(|_| unseen.push(Unseen::Files));
    if report.counts.total() > report.files.len() as u64 {
        unseen.push(Unseen::MoreFiles);
    }
    let whole = DryRunResult::of(answer, server.name.clone(), seen, live.as_ref(), &unseen);
    report.unseen = unseen;
    (report, Some(whole))
}

/// Returns true if a process of the server runs in the session: its state and that of the copy's process may
/// differ. The bundled server has no state.
fn knows_apart(tools: &SessionTools, server: &ServerEntry) -> bool {
    let link = tools.link(&server.name);
    server.source != Source::Bundled && link.is_some_and(|link| link.is_live())
}

/// Returns the changes in the copy and the new contents, or the reason they are unknown.
async fn compare(
    tools: &SessionTools,
    report: &mut DryRunReport,
    reader: Option<&Connection>,
    is_on_write: bool,
    live: Option<&WorkspaceScan>,
    before: Option<WorkspaceScan>,
) -> Result<(Vec<Change>, Arc<Contents>), NoResult> {
    let scanned = async {
        let connection = reader?;
        Some((connection, before?, WorkspaceScan::at(connection).await?))
    };
    let Some((connection, before, after)) = scanned.await else {
        return Err(NoResult::Files);
    };
    let own = tools.link(BUNDLED).and_then(|link| link.live());
    let own = own.as_ref().map(|held| &held.connection);
    let changes = before.changes(after);
    let after = Arc::new(comparing::contents_after(&changes, connection).await);
    if is_on_write && !is_still(tools, live).await {
        // The copy also showed the writes of others.
        return Err(NoResult::Changing);
    }
    let nothing = WorkspaceScan::default();
    let live = (live.unwrap_or(&nothing), own);
    let (counts, files) = comparing::told(&changes, live, &after).await;
    (report.counts, report.files) = (counts, files);
    Ok((changes, after))
}

/// Returns true if the session's workspace is unchanged.
async fn is_still(tools: &SessionTools, live: Option<&WorkspaceScan>) -> bool {
    let (Some(was), Some(workspace)) = (live, Workspace::of(tools)) else {
        return false;
    };
    let now = WorkspaceScan::of_live(&tools.checkpoints, workspace.open().await).await;
    now.is_some_and(|now| now.digest() == was.digest())
}

/// Starts the server that reads the copy, after another one ran in it.
async fn open_reader(tools: &SessionTools, clone: &WorkspaceClone, apart: &Apart) {
    let offering = tools.refresh().await;
    let reader = offering.entry(BUNDLED);
    let Some(reader) = reader.filter(|entry| entry.source == Source::Bundled) else {
        return;
    };
    let holder = tools.assignment.holder();
    match open_for(&tools.servers, reader, (&holder, clone.sandbox()), None).await {
        Ok(opened) => drop(apart.own.set(opened)),
        Err(failure) => tracing::warn!(error = failure.text, "A dry run does not see files"),
    }
}

/// Starts the servers that the call needs in the copy, and checks twice that the call is what was shown,
/// because the start may show another definition.
async fn open<'a>(
    tools: &SessionTools,
    call: &Call,
    clone: &WorkspaceClone,
    apart: &'a Apart,
) -> Result<(ToolRef, Arc<ServerEntry>, &'a Opened), Box<DryRunReport>> {
    let refused = |text: String| Box::new(not_run(&text));
    let offering = tools.refresh().await;
    let image = tools.look_up_image(&offering, call).await;
    let checked = tools.check(&offering, call, image.as_ref());
    let (_, server) = checked.map_err(|outcome| refused(outcome.text()))?;
    let holder = tools.assignment.holder();
    let place = (&holder, clone.sandbox());
    let is_bundled = server.source == Source::Bundled;
    let reader = offering.entry(BUNDLED);
    let reader = reader.filter(|entry| entry.source == Source::Bundled);
    // If only one sandbox can see the copy, the call's own comes first.
    let reader = reader.filter(|_| is_bundled || !clone.is_on_write());
    if let Some(reader) = reader {
        match open_for(&tools.servers, reader, place, None).await {
            Ok(opened) => drop(apart.own.set(opened)),
            Err(failure) if is_bundled => return Err(refused(failure.text)),
            Err(failure) => {
                tracing::warn!(error = failure.text, "A dry run does not see files");
            }
        }
    }
    let opened = if is_bundled {
        apart.own.get()
    } else {
        let opened = open_for(&tools.servers, &server, place, None).await;
        let opened = opened.map_err(|failure| refused(failure.told()))?;
        Some(apart.server.get_or_init(|| opened))
    };
    let opened = opened.ok_or_else(|| refused("its server is switched off".to_owned()))?;
    let offering = tools.refresh().await;
    let checked = tools.check(&offering, call, opened.image.as_ref());
    let (tool, server) = checked.map_err(|outcome| refused(outcome.text()))?;
    Ok((tool, server, opened))
}

/// Deletes results that no call can take any more. Results that cannot be deleted now go with the session.
pub(in crate::agent::effects) async fn forget(tools: &SessionTools, results: &[(CallId, Digest)]) {
    let rows = tools.place.records.dry_run_results();
    for (call, digest) in results {
        if let Err(error) = rows.forget(tools.assignment.key(), call, digest).await {
            tracing::warn!(call.id = %call, ?error, "The result of a dry run is not forgotten");
        }
    }
}

fn is_file(block: &crate::mcp::AnswerBlock) -> bool {
    matches!(block.content, crate::mcp::AnswerContent::File(_))
}

fn answered(answer: &ToolAnswer) -> DryRunReport {
    let exit_code = answer.structured.as_ref();
    let exit_code = exit_code.and_then(|value| value.get("exit_code")?.as_i64());
    let status = if answer.is_error {
        DryRunStatus::Failed
    } else {
        DryRunStatus::Completed
    };
    let mut report = with_text(status, &answer.text);
    report.cut_bytes += answer.truncated_bytes.unwrap_or_default();
    report.exit_code = exit_code;
    report
}

/// Reports that the call got no answer, perhaps because its server ended.
async fn failed(opened: &Opened, mut text: String) -> DryRunReport {
    if opened.connection.is_closed()
        && let Some(ended) = opened.ended().await
    {
        text = format!("{text}; {ended}");
    }
    with_text(DryRunStatus::Failed, &text)
}

fn not_run(text: &str) -> DryRunReport {
    let text = text.strip_prefix("not run: ").unwrap_or(text);
    with_text(DryRunStatus::NotRun, text)
}

fn with_text(status: DryRunStatus, text: &str) -> DryRunReport {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    DryRunReport {
        status,
        text: text.get(..end).unwrap_or_default().to_owned(),
        cut_bytes: (text.len() - end) as u64,
        exit_code: None,
        duration_ms: 0,
        prepared_ms: 0,
        counts: crate::domain::ChangeCounts::default(),
        files: Vec::new(),
        unseen: Vec::new(),
        result: None,
        no_result: None,
    }
}

fn no_copy(reason: NoCopy) -> &'static str {
    match reason {
        NoCopy::Gone | NoCopy::Failed => {
            "the workspace could not be copied; the gateway's log says why"
        }
        NoCopy::TooLarge => "the workspace is larger than a copy may be; delete files first",
        NoCopy::Elsewhere => {
            "the files of this session are kept by another engine than this gateway uses"
        }
        NoCopy::DiskFull => "the disk is nearly full, and there is no room for a copy",
        NoCopy::TooSlow => "the copy of the workspace took too long",
        NoCopy::NoSandbox => "there are no sandboxes now",
    }
}

fn elapsed(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
