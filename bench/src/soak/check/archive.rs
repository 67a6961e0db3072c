//! The archive of ended sessions: each transcript is read and audited, and then either kept to be read
//! again, or deleted.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::{Context as _, Result, bail};
use fastrand::Rng;
use futures::{StreamExt as _, stream};
use reqwest::StatusCode;
use serde_json::Value;

use super::audit::{Account, Findings, Times, audit, is_at_rest, unlike, wrong_marks};
use super::ledger::Place;
use crate::soak::installation::Person;
use crate::soak::person::reader::Reader;
use crate::soak::person::talk::Talk;
use crate::soak::world::World;

/// The id of a session that does not exist.
const NOBODYS: &str = "ses_00000000000000000000000000000000";
/// The number of sessions that are read at the same time.
const READERS: usize = 8;

/// An ended session that is not deleted.
#[derive(Debug, Clone)]
pub(crate) struct ArchivedSession {
    person: Person,
    session: String,
    /// The name of its marks.
    name: String,
    digest: u64,
    events: usize,
    /// True if a call still waits for the person, who left for good; it may be asked about again.
    is_forgotten: bool,
}

/// The state of a session after its person left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// A turn runs.
    Turn,
    /// No turn runs any more; the number is the `seq` of its last event.
    At(u64),
    /// The transcript cannot be read; the audit reports the error.
    Unreadable,
}

/// Reads the transcript, and returns whether a turn runs.
pub(crate) async fn rest(talk: &Talk) -> Rest {
    let Some(session) = &talk.session else {
        return Rest::Unreadable;
    };
    match reader(talk).read(session).await {
        Ok(items) if is_at_rest(&items) => {
            let last = items.last().and_then(|item| item["seq"].as_u64());
            Rest::At(last.unwrap_or(0))
        }
        Ok(_) => Rest::Turn,
        Err(_) => Rest::Unreadable,
    }
}

fn reader(talk: &Talk) -> Reader<'_> {
    Reader {
        world: &talk.world,
        person: &talk.person,
    }
}

/// Audits the session, also against the events that a second tab was shown; deletes some of them afterwards.
pub(crate) async fn close(talk: &Talk, tab: Option<&Talk>, account: &Account, rng: &mut Rng) {
    let Some(session) = &talk.session else { return };
    let (world, reader) = (&talk.world, reader(talk));
    let read = if account.is_forgotten {
        world.ledger.count("sessions forgotten with a card");
        reader.read(session).await
    } else {
        reader.at_rest(session).await
    };
    let items = match read {
        Ok(items) => items,
        Err(error) => return talk.fail(format!("its transcript cannot be read: {error:#}")),
    };
    let Findings {
        problems,
        marks,
        statuses,
    } = audit(&items, account, talk.witness.seen());
    for problem in problems {
        talk.fail(problem);
    }
    for status in statuses {
        world.ledger.count(&format!("calls {status}"));
    }
    world.compared(talk.witness.compared(), talk.witness.incomplete());
    if let Some(tab) = tab {
        for problem in unlike(&items, tab.witness.seen()) {
            tab.fail(problem);
        }
        world.compared(tab.witness.compared(), tab.witness.incomplete());
        world.ledger.count("second tabs audited");
    }
    look_at_files(talk, &marks);
    world.ledger.count("sessions audited");
    let name = &talk.name;
    if !account.is_forgotten && rng.u32(0..3) == 0 {
        if let Err(error) = reader.delete(session, name).await {
            talk.fail(format!("it cannot be deleted: {error:#}"));
        }
        world.ledger.count("sessions deleted");
        return;
    }
    let kept = ArchivedSession {
        person: talk.person.clone(),
        session: session.clone(),
        name: name.clone(),
        digest: digest(&items),
        events: items.len(),
        is_forgotten: account.is_forgotten,
    };
    world.keep(kept);
}

/// Checks that each call left its mark the expected number of times, all in one workspace.
fn look_at_files(talk: &Talk, marks: &BTreeMap<String, Times>) {
    let (installation, name) = (&talk.world.installation, &talk.name);
    let look = || (installation.marks(name), installation.workspaces_of(name));
    let (found, workspaces) = tokio::task::block_in_place(look);
    for problem in wrong_marks(marks, &found) {
        talk.fail(problem);
    }
    if workspaces.len() > 1 {
        talk.fail(format!("its files are parted: {workspaces:?}"));
    }
}

/// Asks each gateway for a session that does not exist, so that the gateway opens everything that it opens
/// at first use.
pub(crate) async fn look_for_nothing(world: &World) -> Result<()> {
    let person = world
        .installation
        .people
        .first()
        .context("somebody is there")?;
    let reader = Reader { world, person };
    let path = format!("/api/sessions/{NOBODYS}/events");
    for gateway in &world.installation.gateways {
        let status = reader.look(gateway, &path).await?;
        if status != StatusCode::NOT_FOUND {
            bail!("{}: a session that there is not: {status}", gateway.name);
        }
    }
    Ok(())
}

/// Reads all remaining sessions again; they must be unchanged.
pub(crate) async fn read_again(world: &World) {
    stream::iter(world.all_kept())
        .for_each_concurrent(READERS, |kept| async move {
            if let Err(error) = compare(world, &kept).await {
                let place = Place {
                    installation: world.installation.name,
                    session: &kept.session,
                    seq: 0,
                };
                let what = format!("after the restart: {error:#}");
                world.ledger.fail(place, what);
            }
            world.ledger.count("sessions read again");
        })
        .await;
}

async fn compare(world: &World, kept: &ArchivedSession) -> Result<()> {
    let reader = Reader {
        world,
        person: &kept.person,
    };
    let items = reader.read(&kept.session).await?;
    let before = items.get(..kept.events).unwrap_or(&items);
    let is_longer = items.len() > kept.events && !kept.is_forgotten;
    if is_longer || digest(before) != kept.digest {
        bail!("it had {} events, now {}", kept.events, items.len());
    }
    let found = tokio::task::block_in_place(|| world.installation.marks(&kept.name));
    if let Some((mark, count)) = found.iter().find(|(_, count)| **count > 1) {
        bail!("{mark} ran {count} times");
    }
    Ok(())
}

fn digest(items: &[Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for item in items {
        item.to_string().hash(&mut hasher);
    }
    hasher.finish()
}
