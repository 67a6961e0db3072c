//! Tries a call that waits in a copy of the workspace: in sandboxes of its own, with servers of its own, and
//! with nothing left of it but what came of it.

mod comparing;

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::comparing::Look;
use super::workspace::Workspace;
use super::{SessionTools, called, tasks};
use crate::domain::{NoCopy, ToolRef};
use crate::mcp::{CallNews, Connection, ToolAnswer};
use crate::sandbox::cloning::WorkspaceClone;
use crate::servers::{BUNDLED, Opened, ServerEntry, Source, open_for};
use crate::session::{Call, DryRunReport, DryRunStatus, Unseen};

/// How long a dry run may take in all: less than the janitor leaves alone what belongs to nobody.
const LIMIT: Duration = Duration::from_mins(8);
/// Bytes of what the tool gave that are kept.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// What runs in the copy. It ends when this is dropped, and [`Self::end`] waits for that.
#[derive(Default)]
struct Apart {
    /// The server that looks at files; where the call is one of its own, it runs the call too.
    own: OnceLock<Opened>,
    /// The server of the call, where it is another.
    server: OnceLock<Opened>,
}

impl Apart {
    async fn end(&self) {
        for opened in [self.own.get(), self.server.get()].into_iter().flatten() {
            opened.kill().await;
        }
    }
}

/// Runs the call as it was shown in a copy of the workspace; none = it was stopped.
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
    let trying = tokio::time::timeout(
        LIMIT,
        try_out(tools, call, ((&clone, &apart), begun), before),
    );
    let report = tokio::select! {
        report = trying => Some(report.unwrap_or_else(|_| {
            let minutes = LIMIT.as_secs() / 60;
            not_run(&format!("it took longer than {minutes} minutes"))
        })),
        () = stop.cancelled() => None,
    };
    apart.end().await;
    clone.discard().await;
    report
}

/// Looks at the workspace as it is, and copies it meanwhile. What is changed at that very moment shows as
/// a file whose content before is not known.
async fn prepare(tools: &SessionTools) -> (Option<Look>, Result<WorkspaceClone, NoCopy>) {
    let look = async {
        if tools.assignment.is_unclaimed().await {
            return Some(Look::default());
        }
        let workspace = Workspace::of(tools)?;
        Look::of_live(workspace.open().await).await
    };
    tokio::join!(look, tools.assignment.clone_workspace())
}

async fn try_out(
    tools: &SessionTools,
    call: &Call,
    ((clone, apart), begun): ((&WorkspaceClone, &Apart), Instant),
    live: Option<Look>,
) -> DryRunReport {
    let ready = open(tools, call, clone, apart).await;
    let (tool, server, opened) = match ready {
        Ok(ready) => ready,
        Err(report) => return *report,
    };
    let looks_at = apart.own.get().map(|own| &own.connection);
    let mut unseen = Vec::new();
    let before = match looks_at {
        Some(connection) => Look::at(connection).await,
        None => None,
    };
    let is_live = tools.link(&server.name).is_some_and(|link| link.is_live());
    if server.source != Source::Bundled && is_live {
        unseen.push(Unseen::LiveProcess);
    }
    let prepared_ms = elapsed(begun);
    let sent = Instant::now();
    let mut has_asked = false;
    let request = tasks::plain(tools, (call, tool, &server));
    // The stop of the dry run drops this.
    let cancel = CancellationToken::new();
    let answer = opened.call(request, &cancel, |news| {
        has_asked |= matches!(news, CallNews::Question(_));
    });
    let answer = answer.await;
    let duration_ms = elapsed(sent);
    let mut report = match answer {
        Ok(mut answer) => {
            if let Some(tool) = called(&tools.view(), call) {
                tool.check_answer(&mut answer);
            }
            if answer.blocks.iter().any(is_file) {
                unseen.push(Unseen::Attachments);
            }
            answered(&answer)
        }
        Err(error) => {
            let mut text = error.to_string();
            if opened.connection.is_closed()
                && let Some(ended) = opened.ended().await
            {
                text = format!("{text}; {ended}");
            }
            let status = DryRunStatus::Failed;
            with_text(status, &text)
        }
    };
    if has_asked {
        unseen.push(Unseen::Questions);
    }
    (report.duration_ms, report.prepared_ms) = (duration_ms, prepared_ms);
    let with = (live, before);
    compare(tools, &mut report, (looks_at, with), &mut unseen).await;
    report.unseen = unseen;
    report
}

/// What changed in the copy, as far as it can be seen.
async fn compare(
    tools: &SessionTools,
    report: &mut DryRunReport,
    (looks_at, (live, before)): (Option<&Connection>, (Option<Look>, Option<Look>)),
    unseen: &mut Vec<Unseen>,
) {
    let (Some(connection), Some(before)) = (looks_at, before) else {
        unseen.push(Unseen::Files);
        return;
    };
    let Some(after) = Look::at(connection).await else {
        unseen.push(Unseen::Files);
        return;
    };
    let own = tools.link(BUNDLED).and_then(|link| link.held());
    let own = own.as_ref().map(|held| &held.connection);
    let changes = before.changes(after);
    let live = (live.unwrap_or_default(), own);
    let (counts, files) = comparing::told(changes, live, connection).await;
    if counts.total() > files.len() as u64 {
        unseen.push(Unseen::MoreFiles);
    }
    (report.counts, report.files) = (counts, files);
}

/// Starts what the call needs in the copy, and checks twice that it is what was shown: the start may have
/// shown another definition.
async fn open<'a>(
    tools: &SessionTools,
    call: &Call,
    clone: &WorkspaceClone,
    apart: &'a Apart,
) -> Result<(ToolRef, std::sync::Arc<ServerEntry>, &'a Opened), Box<DryRunReport>> {
    let refused = |text: String| Box::new(not_run(&text));
    let view = tools.refresh().await;
    let image = tools.look_up_image(&view, call).await;
    let checked = tools.check(&view, call, image.as_ref());
    let (_, server) = checked.map_err(|outcome| refused(outcome.text()))?;
    let holder = tools.assignment.holder();
    let place = (&holder, clone.sandbox());
    let is_bundled = server.source == Source::Bundled;
    let looker = view.entry(BUNDLED);
    let looker = looker.filter(|entry| entry.source == Source::Bundled);
    if let Some(looker) = looker {
        match open_for(&tools.servers, looker, place, None).await {
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
    let view = tools.refresh().await;
    let checked = tools.check(&view, call, opened.image.as_ref());
    let (tool, server) = checked.map_err(|outcome| refused(outcome.text()))?;
    Ok((tool, server, opened))
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
