//! Reads and deletes sessions over REST, at the gateways in rotation.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;

use crate::soak::check::audit::is_at_rest;
use crate::soak::installation::Person;
use crate::soak::installation::gateway::Gateway;
use crate::soak::world::World;

/// The number of events of a page.
const PAGE: &str = "500";
/// The time limit for a turn that continues after its connection closed, for an unavailable store, and for
/// the files of a deleted session, which are cleaned up every minute.
const PATIENCE: Duration = Duration::from_mins(2);
/// The time within which a gateway must learn about the actions of another, even if Redis was away for a
/// moment.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// The REST client of one person.
pub(crate) struct Reader<'a> {
    pub(crate) world: &'a World,
    pub(crate) person: &'a Person,
}

impl Reader<'_> {
    /// Returns the whole transcript, after the last turn has ended.
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

    /// Returns the whole transcript; if there are several gateways, each page comes from another one.
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

    /// Deletes a session, and waits until it is gone at every gateway, together with its files.
    pub(crate) async fn delete(&self, session: &str, name: &str) -> Result<()> {
        let path = format!("/api/sessions/{session}");
        let delete = |at: &Gateway, client: &Client| client.delete(url(at, &path));
        let first = self.world.installation.next();
        let (status, body) = self.persist_at(|| first, delete).await?;
        // An earlier attempt may have deleted the session although its answer was that the store is
        // unavailable, or although its gateway was killed.
        if status != StatusCode::NO_CONTENT && status != StatusCode::NOT_FOUND {
            bail!("{status}: {body}");
        }
        let gateways = &self.world.installation.gateways;
        // The other gateways learn about the deletion; a change of the session's row that was on its way is
        // removed again.
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

    /// Returns the status of a GET request to this path at this gateway.
    pub(crate) async fn look(&self, gateway: &Gateway, path: &str) -> Result<StatusCode> {
        let asked = |at: &Gateway, client: &Client| client.get(url(at, path));
        let choose = || Some(gateway);
        let (status, _) = self.persist_at(choose, asked).await?;
        Ok(status)
    }

    /// Sends a request to the gateways in rotation until a gateway and the store are available.
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
