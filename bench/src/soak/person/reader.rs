//! Whoever reads and deletes sessions over REST, at one gateway after the other.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;

use crate::soak::check::audit::is_at_rest;
use crate::soak::installation::Person;
use crate::soak::installation::gateway::Gateway;
use crate::soak::world::World;

/// Events of a page.
const PAGE: &str = "500";
/// How long a turn that goes on behind a closed connection may take, a store may be away, or files of
/// a deleted session may stay: somebody looks for those every minute.
const PATIENCE: Duration = Duration::from_mins(2);
/// When a gateway must have heard of what another one did, also if Redis was away for a moment.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// The reader, who is one of the people.
pub(crate) struct Reader<'a> {
    pub(crate) world: &'a World,
    pub(crate) person: &'a Person,
}

impl Reader<'_> {
    /// The whole transcript, once no turn runs.
    pub(crate) async fn at_rest(&self, session: &str) -> Result<Vec<Value>> {
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

    /// The whole transcript, each page from another gateway if there are several.
    pub(crate) async fn read(&self, session: &str) -> Result<Vec<Value>> {
        let (mut items, mut after) = (Vec::new(), "0".to_owned());
        loop {
            let path = format!("/api/sessions/{session}/events?after={after}&limit={PAGE}");
            let (status, body) = self
                .persist(|at, client| client.get(url(at, &path)))
                .await?;
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

    /// Deletes a session, and waits until it is gone at every gateway, and its files with it.
    pub(crate) async fn delete(&self, session: &str, name: &str) -> Result<()> {
        let path = format!("/api/sessions/{session}");
        let delete = |at: &Gateway, client: &Client| client.delete(url(at, &path));
        let first = self.world.installation.next();
        let (status, body) = self.persist_at(|| first, delete).await?;
        // It may have been deleted by an attempt whose answer said that the store is away, or whose
        // gateway was killed.
        if status != StatusCode::NO_CONTENT && status != StatusCode::NOT_FOUND {
            bail!("{status}: {body}");
        }
        let gateways = &self.world.installation.gateways;
        // The others hear of it; a change of its row that was on its way there is taken off again.
        let patience = if gateways.len() > 1 {
            HEARD_WITHIN
        } else {
            Duration::ZERO
        };
        for gateway in gateways {
            self.wait_until_gone(gateway, &path, patience).await?;
        }
        let began = Instant::now();
        let has_files =
            || tokio::task::block_in_place(|| self.world.installation.workspaces_of(name));
        while let Some(workspace) = has_files().first() {
            if began.elapsed() > PATIENCE {
                bail!("its files are still in {}", workspace.display());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn wait_until_gone(
        &self,
        gateway: &Gateway,
        path: &str,
        patience: Duration,
    ) -> Result<()> {
        let began = Instant::now();
        loop {
            let status = self.look(gateway, path).await?;
            if status == StatusCode::NOT_FOUND {
                return Ok(());
            }
            if began.elapsed() >= patience {
                let name = &gateway.name;
                bail!("it was deleted and is still there at {name}: {status}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// How that path is answered at this gateway.
    pub(crate) async fn look(&self, gateway: &Gateway, path: &str) -> Result<StatusCode> {
        let asked = |at: &Gateway, client: &Client| client.get(url(at, path));
        let choose = || Some(gateway);
        let (status, _) = self.persist_at(choose, asked).await?;
        Ok(status)
    }

    /// Asks one gateway after the other until one of them and the store are there.
    async fn persist(
        &self,
        request: impl Fn(&Gateway, &Client) -> RequestBuilder,
    ) -> Result<(StatusCode, String)> {
        self.persist_at(|| self.world.installation.next(), request)
            .await
    }

    async fn persist_at<'g>(
        &self,
        choose: impl Fn() -> Option<&'g Gateway>,
        request: impl Fn(&Gateway, &Client) -> RequestBuilder,
    ) -> Result<(StatusCode, String)> {
        let began = Instant::now();
        loop {
            let gateway = choose().context("a gateway is there")?;
            let era = gateway.era();
            let asked = request(gateway, &self.world.client);
            let answer = self.answer(asked).await;
            let is_late = began.elapsed() > PATIENCE;
            match answer {
                Err(_) if gateway.was_killed_since(era) && !is_late => {}
                Ok((StatusCode::SERVICE_UNAVAILABLE, _)) if !is_late => {}
                answer => return answer,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn answer(&self, request: RequestBuilder) -> Result<(StatusCode, String)> {
        let asked = request.bearer_auth(&self.person.key).timeout(PATIENCE);
        let answer = asked.send().await?;
        let status = answer.status();
        Ok((status, answer.text().await?))
    }
}

fn url(gateway: &Gateway, path: &str) -> String {
    format!("http://{}{path}", gateway.address)
}
