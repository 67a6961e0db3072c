//! `sepal replay`: decides a session again from its journal, and compares two conversations.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use similar::TextDiff;

use super::{Beside, say};
use crate::config::LoadedSettings;
use crate::domain::{SessionId, SessionKey, TenantId};
use crate::session::{Commit, Difference, Event, Replay, ReplayReport};
use crate::store::LiveStore;
use crate::tenancy::DEFAULT_TENANT;

/// The number of commits in one read.
const PAGE: usize = 500;
/// The number of context lines around a difference.
const CONTEXT: usize = 2;

#[derive(Args)]
pub(super) struct ReplayArgs {
    /// The session, as its address names it (`ses_…`).
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    session: Option<String>,
    /// Its tenant.
    #[arg(long, default_value = DEFAULT_TENANT)]
    tenant: String,
    /// Show what is said otherwise in this session, for example in a fork with another model.
    #[arg(long, value_name = "SESSION", conflicts_with = "all")]
    against: Option<String>,
    /// Every session of every tenant.
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(args: ReplayArgs, loaded: &LoadedSettings) -> anyhow::Result<ExitCode> {
    let beside = Beside::open(loaded).await?;
    let done = match &args.session {
        Some(session) => replay_one(session, &args, &beside).await,
        None => replay_all(&beside).await,
    };
    beside.close().await;
    done
}

async fn replay_one(session: &str, args: &ReplayArgs, beside: &Beside) -> anyhow::Result<ExitCode> {
    let tenant = beside
        .tenancy
        .administration()
        .find_tenant(&args.tenant)
        .await?
        .id;
    let live = beside.store.live();
    let key = key(&tenant, session)?;
    let commits = read(&live, &key).await?;
    let replayed = match replayed(&commits) {
        Ok(replayed) => replayed,
        Err(difference) => {
            say(&format!("DIFFERS: {difference}"));
            return Ok(ExitCode::FAILURE);
        }
    };
    let figures = replayed.figures;
    say(&format!(
        "{} commits with {} events were decided again, {} of them taken from another session.",
        figures.commits, figures.events, figures.taken
    ));
    say(&format!("recorded       {}", replayed.recorded.as_str()));
    say(&format!("decided again  {}", replayed.replayed.as_str()));
    let is_same = replayed.recorded == replayed.replayed;
    say(if is_same { "The same." } else { "DIFFERS" });
    if let Some(other) = &args.against {
        let against = read(&live, &self::key(&tenant, other)?).await?;
        say(&compared(session, &commits, other, &against));
    }
    Ok(if is_same {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints each session that differs, then the totals.
async fn replay_all(beside: &Beside) -> anyhow::Result<ExitCode> {
    let (live, records) = (beside.store.live(), beside.store.records());
    let (mut sessions, mut different, mut last) = (0_u64, 0_u64, None);
    loop {
        let page = records.usage().all_progress(last.as_ref()).await?;
        let Some(end) = page.last() else { break };
        last = Some(end.key.clone());
        for key in page.into_iter().map(|progress| progress.key) {
            let commits = commits_of(&live, &key).await?;
            if commits.is_empty() {
                // Deleted since it was listed, or listed without any commit.
                continue;
            }
            sessions += 1;
            let difference = match replayed(&commits) {
                Ok(replayed) if replayed.recorded == replayed.replayed => continue,
                Ok(_) => "the states are not the same".to_owned(),
                Err(difference) => difference.to_string(),
            };
            different += 1;
            say(&format!("DIFFERS: {}: {difference}", key.session));
        }
    }
    say(&format!(
        "{sessions} sessions were decided again, {different} of them otherwise."
    ));
    Ok(if different == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn replayed(commits: &[Commit]) -> Result<ReplayReport, Difference> {
    let mut replay = Replay::default();
    for commit in commits {
        replay.step(commit)?;
    }
    Ok(replay.finish())
}

fn key(tenant: &TenantId, session: &str) -> anyhow::Result<SessionKey> {
    let id = SessionId::parse(session);
    let id = id.with_context(|| format!("`{session}` is no id of a session (`ses_…`)"))?;
    Ok(SessionKey {
        tenant: tenant.clone(),
        session: id,
    })
}

/// Reads all commits of a session; an error if there are none.
async fn read(live: &Arc<dyn LiveStore>, key: &SessionKey) -> anyhow::Result<Vec<Commit>> {
    let commits = commits_of(live, key).await?;
    if commits.is_empty() {
        bail!(
            "the tenant has no session `{}` with anything in it",
            key.session
        );
    }
    Ok(commits)
}

async fn commits_of(live: &Arc<dyn LiveStore>, key: &SessionKey) -> anyhow::Result<Vec<Commit>> {
    let mut commits: Vec<Commit> = Vec::new();
    loop {
        let after = commits.last().map_or(0, |commit| commit.version);
        let records = live.read_after_version(key, after, PAGE).await?;
        if records.is_empty() {
            return Ok(commits);
        }
        for record in records {
            commits.push(Commit::from_bytes(&record.body)?);
        }
    }
}

/// Returns a diff of two conversations.
fn compared(name: &str, commits: &[Commit], other: &str, against: &[Commit]) -> String {
    let (text, against) = (conversation(commits), conversation(against));
    if text == against {
        return "They say the same.".to_owned();
    }
    let diff = TextDiff::from_lines(&text, &against);
    let mut unified = diff.unified_diff();
    unified
        .context_radius(CONTEXT)
        .header(name, other)
        .to_string()
}

/// Returns the messages, calls and outcomes of a conversation, one per line, without ids and times.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the rest says nothing about the conversation"
)]
fn conversation(commits: &[Commit]) -> String {
    let mut lines = Vec::new();
    for event in commits.iter().flat_map(|commit| &commit.events) {
        match event {
            Event::UserMessage { text, .. } => push(&mut lines, "person", text),
            Event::Thinking { model, .. } => lines.push(format!("asked {model}")),
            Event::Said { text, calls, .. } => {
                push(&mut lines, "model", text);
                for call in calls {
                    lines.push(format!("call {} {}", call.name, call.args));
                }
            }
            Event::Answered { text, .. } => push(&mut lines, "model", text),
            Event::Ended { name, outcome, .. } => {
                push(
                    &mut lines,
                    &format!("{name} {}", outcome.status()),
                    &outcome.text(),
                );
            }
            Event::TurnFailed { code, .. } => lines.push(format!("failed {}", code.as_str())),
            Event::Cancelled { .. } => lines.push("stopped".to_owned()),
            _ => {}
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn push(lines: &mut Vec<String>, who: &str, text: &str) {
    let said = text.lines().map(|line| format!("{who}: {line}"));
    lines.extend(said);
}
