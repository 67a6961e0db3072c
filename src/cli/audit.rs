//! `sepal audit`: the key, the signatures and the check of the audit, beside a running server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;

use super::{Beside, complain, say};
use crate::agent::{AuditCheck, ExportLine, check_all, check_lines};
use crate::app;
use crate::config::LoadedSettings;
use crate::domain::{Scope, Timestamp};
use crate::gateway::wire::audit::{record_line, seal_line};
use crate::store::Records;
use crate::store::audit::PublicKey;

#[derive(Subcommand)]
pub(super) enum AuditCommand {
    /// Print the public key that checks the signatures.
    Key,
    /// Sign what was added since the last signature.
    Seal,
    /// Check every record, signature and journal; or an export, which needs the public key alone.
    Verify {
        /// The file that `sepal audit export` or the page wrote (`-` = standard input), instead of the store.
        file: Option<PathBuf>,
        /// A public key whose signatures count: PEM, a file with it, or base64url. Without it, the key of this
        /// installation, and those of `audit.trusted_keys`.
        #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
        key: Vec<String>,
    },
    /// Write the whole audit with its signatures, one line each.
    Export {
        /// The tenant; without it, the installation and all tenants.
        #[arg(long)]
        tenant: Option<String>,
    },
}

pub(super) async fn run(
    command: AuditCommand,
    loaded: &LoadedSettings,
) -> anyhow::Result<ExitCode> {
    if let AuditCommand::Verify {
        file: Some(file),
        key,
    } = &command
        && !key.is_empty()
    {
        // Nothing of this installation is needed.
        return verify_file(file, &keys(key)?);
    }
    let beside = Beside::open(loaded).await?;
    let done = run_beside(&command, loaded, &beside).await;
    beside.close().await;
    done
}

async fn run_beside(
    command: &AuditCommand,
    loaded: &LoadedSettings,
    beside: &Beside,
) -> anyhow::Result<ExitCode> {
    let trail = app::open_audit(&loaded.settings, &beside.store, None).await?;
    match command {
        AuditCommand::Key => say(trail.key().public().to_pem().trim_end()),
        AuditCommand::Seal => match trail.seal().await? {
            0 => say("Everything is signed already."),
            1 => say("1 signature was added."),
            signed => say(&format!("{signed} signatures were added.")),
        },
        AuditCommand::Verify { file, key } => {
            let trusted = if key.is_empty() {
                trail.trusted_keys()
            } else {
                keys(key)?
            };
            return match file {
                Some(file) => verify_file(file, &trusted),
                None => verify_store(beside, &trusted).await,
            };
        }
        AuditCommand::Export { tenant } => {
            let records = beside.store.records();
            for chain in chains(beside, tenant.as_deref()).await? {
                export(&records, &chain).await?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn keys(texts: &[String]) -> anyhow::Result<Vec<PublicKey>> {
    let key = |text: &String| app::read_public_key(text).context("`--key`");
    texts.iter().map(key).collect()
}

async fn chains(beside: &Beside, tenant: Option<&str>) -> anyhow::Result<Vec<Scope>> {
    let Some(name) = tenant else {
        return Ok(beside.store.records().audit().chains().await?);
    };
    let found = beside.tenancy.administration().find_tenant(name).await?;
    Ok(vec![Scope::Tenant(found.id)])
}

async fn export(records: &Records, chain: &Scope) -> anyhow::Result<()> {
    let audit = records.audit();
    let mut after = 0;
    loop {
        let page = audit.records(chain, after).await?;
        let Some(last) = page.last().map(|record| record.n) else {
            return Ok(());
        };
        let mut seals = audit.seals(chain, after).await?;
        seals.retain(|seal| seal.n <= last);
        let mut seals = seals.into_iter().peekable();
        for record in page {
            let n = record.n;
            write_line(&record_line(chain, record))?;
            while let Some(seal) = seals.next_if(|seal| seal.n <= n) {
                write_line(&seal_line(chain, &seal))?;
            }
        }
        after = last;
    }
}

/// Writes a line of an export. Unlike words for people, a lost line is an error.
fn write_line(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("the export cannot be written")
}

async fn verify_store(beside: &Beside, trusted: &[PublicKey]) -> anyhow::Result<ExitCode> {
    let (records, live) = (beside.store.records(), beside.store.live());
    let mut checks = Vec::new();
    for chain in chains(beside, None).await? {
        checks.push(check_all((&records, &live), &chain, trusted, usize::MAX).await?);
    }
    Ok(tell(&checks))
}

fn verify_file(file: &Path, trusted: &[PublicKey]) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    let reader: Box<dyn std::io::BufRead> = if file == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = std::fs::File::open(file);
        Box::new(BufReader::new(
            opened.with_context(|| file.display().to_string())?,
        ))
    };
    for (at, line) in reader.lines().enumerate() {
        let number = at.saturating_add(1);
        let line = line.with_context(|| format!("line {number} cannot be read"))?;
        let Some(line) = ExportLine::parse(&line) else {
            complain(&format!("BROKEN line {number} is no line of an export"));
            return Ok(ExitCode::FAILURE);
        };
        lines.push(line);
    }
    let decisions = lines.iter().filter(|line| **line == ExportLine::Decision);
    let decisions = decisions.count();
    if decisions > 0 {
        say(&format!(
            "{decisions} decisions of sessions are not proven by this file; export those sessions' decisions"
        ));
    }
    Ok(tell(&check_lines(lines.into_iter(), trusted)))
}

/// Says what was found, and fails if anything is wrong.
fn tell(checks: &[AuditCheck]) -> ExitCode {
    let rfc3339 = |at: i64| Timestamp(at).to_rfc3339();
    for check in checks {
        let chain = &check.chain;
        let proven = match check.report.proven {
            Some((n, at)) => format!("proven up to record {n}, signed at {}", rfc3339(at)),
            None => "nothing is signed".to_owned(),
        };
        let anchored = check
            .anchored
            .as_ref()
            .map_or_else(String::new, |(n, at, anchor)| {
                format!("; record {n} anchored at {} ({anchor})", rfc3339(*at))
            });
        let records = check.report.records;
        match (&check.report.broken, &check.broken_session) {
            (Some(broken), _) => complain(&format!("BROKEN {chain}: {broken}; {proven}{anchored}")),
            (None, Some(broken)) => complain(&format!(
                "BROKEN {chain}: commit {} of session {} is not the one that record {} names; {proven}{anchored}",
                broken.version, broken.session, broken.n
            )),
            (None, None) => say(&format!(
                "ok     {chain}: {records} records, {} sessions; {proven}{anchored}",
                check.sessions
            )),
        }
    }
    if checks.iter().all(AuditCheck::is_whole) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
