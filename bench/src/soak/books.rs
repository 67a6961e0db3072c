//! The books of a session that is over: its transcript is read and audited, and it is kept to be
//! read again, or deleted.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use fastrand::Rng;
use futures::{StreamExt as _, stream};
use reqwest::{Client, StatusCode};
use serde_json::Value;

use super::audit::{Account, Findings, audit, is_at_rest, wrong_marks};
use super::house::{House, Person};
use super::ledger::Place;
use super::talk::{Talk, World};

/// Events of a page.
const PAGE: &str = "500";
/// How long a turn that goes on behind a closed connection may take, and a store may be away.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// A session that there is not.
const NOBODYS: &str = "ses_00000000000000000000000000000000";
/// Sessions that are read at the same time.
const READERS: usize = 8;

/// A session that is over and stays.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    person: Person,
    session: String,
    /// The name of its marks.
    name: String,
    digest: u64,
    events: usize,
    /// A turn still waits for its person, and may be asked about again.
    is_forgotten: bool,
}

/// Whether no turn runs any more. A session that cannot be read is over: its audit says so.
pub(crate) async fn is_over(talk: &Talk) -> bool {
    let Some(session) = &talk.session else {
        return true;
    };
    let reader = Reader {
        client: &talk.world.client,
        house: &talk.world.house,
        person: &talk.person,
    };
    let items = reader.read(session).await;
    items.map_or(true, |items| is_at_rest(&items))
}

/// Audits the session; some are deleted then.
pub(crate) async fn close(talk: &Talk, account: &Account, rng: &mut Rng) {
    let Some(session) = &talk.session else { return };
    let world = &talk.world;
    let reader = Reader {
        client: &world.client,
        house: &world.house,
        person: &talk.person,
    };
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
    let (house, name) = (&world.house, &talk.name);
    let found = tokio::task::block_in_place(|| house.gateway.marks(name));
    for problem in wrong_marks(&marks, &found) {
        talk.fail(problem);
    }
    world.ledger.count("sessions audited");
    if !account.is_forgotten && rng.u32(0..3) == 0 {
        if let Err(error) = delete(&reader, session, name).await {
            talk.fail(format!("it cannot be deleted: {error:#}"));
        }
        world.ledger.count("sessions deleted");
        return;
    }
    let kept = Kept {
        person: talk.person.clone(),
        session: session.clone(),
        name: name.clone(),
        digest: digest(&items),
        events: items.len(),
        is_forgotten: account.is_forgotten,
    };
    world.keep(kept);
}

/// Asks for a session that there is not, so that the gateway has opened whatever it opens at its
/// first use.
pub(crate) async fn look_for_nothing(world: &World) -> Result<()> {
    let person = world.house.people.first().context("somebody is there")?;
    let reader = Reader {
        client: &world.client,
        house: &world.house,
        person,
    };
    let url = format!("{}/events", reader.url(NOBODYS));
    let (status, body) = reader.persist(|| reader.client.get(&url)).await?;
    if status != StatusCode::NOT_FOUND {
        bail!("a session that there is not: {status}: {body}");
    }
    Ok(())
}

/// Reads all sessions that stayed; they must be as they were.
pub(crate) async fn read_again(world: &World) {
    stream::iter(world.all_kept())
        .for_each_concurrent(READERS, |kept| async move {
            if let Err(error) = compare(world, &kept).await {
                let place = Place {
                    house: world.house.name,
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

async fn compare(world: &World, kept: &Kept) -> Result<()> {
    let reader = Reader {
        client: &world.client,
        house: &world.house,
        person: &kept.person,
    };
    let items = reader.read(&kept.session).await?;
    let before = items.get(..kept.events).unwrap_or(&items);
    let is_longer = items.len() > kept.events && !kept.is_forgotten;
    if is_longer || digest(before) != kept.digest {
        bail!("it had {} events, now {}", kept.events, items.len());
    }
    let found = tokio::task::block_in_place(|| world.house.gateway.marks(&kept.name));
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

/// Whoever reads a session over REST.
struct Reader<'a> {
    client: &'a Client,
    house: &'a House,
    person: &'a Person,
}

impl Reader<'_> {
    fn url(&self, session: &str) -> String {
        format!(
            "http://{}/api/sessions/{session}",
            self.house.gateway.address
        )
    }

    /// The whole transcript, once no turn runs.
    async fn at_rest(&self, session: &str) -> Result<Vec<Value>> {
        let began = Instant::now();
        loop {
            let items = self.read(session).await?;
            if is_at_rest(&items) {
                return Ok(items);
            }
            if began.elapsed() > PATIENCE {
                let last = items.last().map(|item| (&item["seq"], &item["event"]));
                bail!("a turn still runs, at {last:?}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn read(&self, session: &str) -> Result<Vec<Value>> {
        let (mut items, mut after) = (Vec::new(), "0".to_owned());
        loop {
            let path = format!("{}/events", self.url(session));
            let query = format!("?after={after}&limit={PAGE}");
            let asked = || self.client.get(format!("{path}{query}"));
            let (status, body) = self.persist(asked).await?;
            if status != StatusCode::OK {
                bail!("{status}: {body}");
            }
            let mut page: Value = serde_json::from_str(&body)?;
            let found = page["items"].as_array_mut().context("a page has items")?;
            items.append(found);
            match page["nextCursor"].as_str() {
                Some(next) => next.clone_into(&mut after),
                None => return Ok(items),
            }
        }
    }

    /// Asks until the store is there.
    async fn persist(
        &self,
        request: impl Fn() -> reqwest::RequestBuilder,
    ) -> Result<(StatusCode, String)> {
        let began = Instant::now();
        loop {
            let asked = request().bearer_auth(&self.person.key).timeout(PATIENCE);
            let answer = asked.send().await?;
            let status = answer.status();
            let body = answer.text().await?;
            if status != StatusCode::SERVICE_UNAVAILABLE || began.elapsed() > PATIENCE {
                return Ok((status, body));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Deletes a session, and waits until its files are gone.
async fn delete(reader: &Reader<'_>, session: &str, name: &str) -> Result<()> {
    let url = reader.url(session);
    let (status, body) = reader.persist(|| reader.client.delete(&url)).await?;
    // It may have been deleted by an attempt whose answer said that the store is away.
    if status != StatusCode::NO_CONTENT && status != StatusCode::NOT_FOUND {
        bail!("{status}: {body}");
    }
    let (status, _) = reader.persist(|| reader.client.get(&url)).await?;
    if status != StatusCode::NOT_FOUND {
        bail!("it was deleted and is still there: {status}");
    }
    let began = Instant::now();
    let has_files = || tokio::task::block_in_place(|| reader.house.gateway.workspace_of(name));
    while let Some(workspace) = has_files() {
        if began.elapsed() > PATIENCE {
            bail!("its files are still in {}", workspace.display());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
