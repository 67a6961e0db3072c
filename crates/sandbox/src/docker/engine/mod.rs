//! Calls the engine's API, with limits on concurrent requests, waiting requests and retries.

pub(super) mod about;
pub(super) mod images;
pub(super) mod pause;
pub(super) mod problem;
pub(super) mod volumes;

use sepal_core::domain::GatewayId;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bollard::{
    Docker,
    container::AttachContainerResults,
    errors::Error as ApiError,
    models::{
        ContainerCreateBody, ContainerState, ContainerStateStatusEnum, ImageConfig, ImageInspect,
        SystemInfo,
    },
    query_parameters::{
        AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
        ListContainersOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
        WaitContainerOptionsBuilder,
    },
};
use futures::StreamExt as _;
use tokio::{sync::Semaphore, time::sleep};

use self::problem::{Problem, status, words};
use super::container::GATEWAY;

/// The most concurrent requests.
const CONCURRENT: usize = 20;
/// The most requests that wait for their turn; more are refused.
const QUEUE: usize = 100;
/// The most retries of a request that failed.
const RETRIES: u32 = 3;
/// The backoff before the first retry; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The time that the engine may take to begin its answer.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);

/// A container engine behind a socket.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) client: Docker,
    address: String,
    places: Semaphore,
    waiting: AtomicUsize,
}

/// A container in a list.
#[derive(Debug)]
pub(super) struct ListedContainer {
    pub(super) id: String,
    pub(super) name: String,
    /// The gateway that created the container; empty if it has no label.
    pub(super) gateway: GatewayId,
}

/// The container that holds a wanted name.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) id: String,
    pub(super) gateway: GatewayId,
    /// True if the container has run and has ended.
    pub(super) has_ended: bool,
}

/// The end of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerEnd {
    /// It exited with that code.
    Exited { code: i32, was_out_of_memory: bool },
    /// Somebody removed it.
    Removed,
    /// It still runs.
    Not,
}

impl Engine {
    /// Connects to the engine at `address`, and returns what it says about itself.
    pub(super) async fn connect(address: &str) -> Result<(Self, SystemInfo), Problem> {
        let away = |error: &ApiError| Problem::Unreachable {
            address: address.to_owned(),
            said: error.to_string(),
        };
        let client = Docker::connect_with_host(address).map_err(|error| away(&error))?;
        let client = client
            .with_timeout(ANSWER_LIMIT)
            .negotiate_version()
            .await
            .map_err(|error| Problem::of(&error, "tell its version", address))?;
        let engine = Self {
            client,
            address: address.to_owned(),
            places: Semaphore::new(CONCURRENT),
            waiting: AtomicUsize::new(0),
        };
        let info = engine.info().await?;
        Ok((engine, info))
    }

    async fn info(&self) -> Result<SystemInfo, Problem> {
        let asked = self.client.info().await;
        asked.map_err(|error| self.problem(&error, "describe itself"))
    }

    fn problem(&self, error: &ApiError, what: &'static str) -> Problem {
        Problem::of(error, what, &self.address)
    }

    /// Takes a place among the concurrent requests.
    async fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Problem> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let guard = Waiting::join(&self.waiting)?;
        let place = self.places.acquire().await;
        drop(guard);
        place.map_err(|_| Problem::Busy)
    }

    /// Sends a request, with retries after errors of the connection or of the engine (status 500 and above).
    pub(super) async fn ask<T, Asking>(
        &self,
        asking: impl Fn() -> Asking,
    ) -> Result<T, RequestError>
    where
        Asking: Future<Output = Result<T, ApiError>>,
    {
        let _place = self.place().await.map_err(RequestError::Busy)?;
        let mut pause = FIRST_PAUSE;
        for _ in 0..RETRIES {
            match asking().await {
                Err(error) if status(&error).is_none_or(|code| code >= 500) => {
                    tracing::debug!(%error, "The engine is asked again");
                }
                answer => return answer.map_err(RequestError::Answer),
            }
            sleep(pause).await;
            pause *= 2;
        }
        asking().await.map_err(RequestError::Answer)
    }

    pub(super) fn told(&self, asked: RequestError, what: &'static str) -> Problem {
        match asked {
            RequestError::Busy(problem) => problem,
            RequestError::Answer(error) => self.problem(&error, what),
        }
    }

    /// Returns the engine's data about an image; `None` if there is no image of that name.
    pub(super) async fn image(&self, image: &str) -> Result<Option<ImageInspect>, Problem> {
        match self.ask(|| self.client.inspect_image(image)).await {
            Ok(found) => Ok(Some(found)),
            Err(asked) if asked.is(404) => Ok(None),
            Err(asked) => Err(self.told(asked, "look for the image")),
        }
    }

    /// Returns the run configuration of an image.
    pub(super) async fn image_config(&self, image: &str) -> Result<ImageConfig, Problem> {
        let Some(found) = self.image(image).await? else {
            let image = image.to_owned();
            return Err(Problem::NoImage { image });
        };
        Ok(found.config.unwrap_or_default())
    }

    /// Creates a container and returns its id; `None` if another container has the name.
    pub(super) async fn create(
        &self,
        name: &str,
        body: &ContainerCreateBody,
    ) -> Result<Option<String>, Problem> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let create = || {
            self.client
                .create_container(Some(options.clone()), body.clone())
        };
        match self.ask(create).await {
            Ok(made) => Ok(Some(made.id)),
            Err(asked) if asked.is(409) => Ok(None),
            Err(asked) if asked.is(404) && !asked.says("volume") => Err(Problem::NoImage {
                image: body.image.clone().unwrap_or_default(),
            }),
            Err(asked) => Err(self.told(asked, "create a container")),
        }
    }

    /// Returns the container that has that name; `None` if there is none.
    pub(super) async fn holder(&self, name: &str) -> Result<Option<Holder>, Problem> {
        let inspect = || {
            self.client
                .inspect_container(name, None::<InspectContainerOptions>)
        };
        let found = match self.ask(inspect).await {
            Ok(found) => found,
            Err(asked) if asked.is(404) => return Ok(None),
            Err(asked) => return Err(self.told(asked, "tell about a container")),
        };
        let labels = found.config.and_then(|config| config.labels);
        let status = found.state.and_then(|state| state.status);
        Ok(found.id.map(|id| Holder {
            id,
            gateway: gateway_of(labels),
            has_ended: matches!(
                status,
                Some(ContainerStateStatusEnum::EXITED | ContainerStateStatusEnum::DEAD)
            ),
        }))
    }

    /// Attaches to the streams of a container that has not been started.
    pub(super) async fn attach(&self, id: &str) -> Result<AttachContainerResults, Problem> {
        let options = AttachContainerOptionsBuilder::default()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        let attached = self.client.attach_container(id, Some(options)).await;
        attached.map_err(|error| self.problem(&error, "attach to a container"))
    }

    pub(super) async fn start(&self, id: &str) -> Result<(), Problem> {
        let start = || {
            self.client
                .start_container(id, None::<StartContainerOptions>)
        };
        match self.ask(start).await {
            Ok(()) => Ok(()),
            // A repeated request finds that the first one succeeded.
            Err(asked) if asked.is(304) => Ok(()),
            Err(asked) => Err(self.told(asked, "start a container")),
        }
    }

    /// Kills and removes a container; a missing one is not an error.
    pub(super) async fn remove(&self, id: &str) -> Result<(), Problem> {
        let options = RemoveContainerOptionsBuilder::default().force(true).build();
        let removed = self
            .ask(|| self.client.remove_container(id, Some(options.clone())))
            .await;
        match removed {
            Ok(()) => Ok(()),
            Err(asked) if asked.is(404) => Ok(()),
            // Somebody else removes it already.
            Err(asked) if asked.is(409) => self.until_removed(id).await,
            Err(asked) => Err(self.told(asked, "remove a container")),
        }
    }

    async fn until_removed(&self, id: &str) -> Result<(), Problem> {
        let options = WaitContainerOptionsBuilder::default()
            .condition("removed")
            .build();
        let mut removed = Box::pin(self.client.wait_container(id, Some(options)));
        // Any end of the stream means that there is nothing to wait for.
        drop(removed.next().await);
        match self.state(id).await? {
            None => Ok(()),
            Some(_) => Err(Problem::Refused {
                what: "remove a container",
                said: format!("`{id}` is still there"),
            }),
        }
    }

    async fn state(&self, id: &str) -> Result<Option<ContainerState>, Problem> {
        let inspect = || {
            self.client
                .inspect_container(id, None::<InspectContainerOptions>)
        };
        match self.ask(inspect).await {
            Ok(found) => Ok(found.state),
            Err(asked) if asked.is(404) => Ok(None),
            Err(asked) => Err(self.told(asked, "tell about a container")),
        }
    }

    /// Waits until a container does not run, or the engine breaks off.
    pub(super) async fn wait(&self, id: &str) {
        let options = WaitContainerOptionsBuilder::default()
            .condition("not-running")
            .build();
        let mut ended = Box::pin(self.client.wait_container(id, Some(options)));
        // An exit code other than 0 comes as an error; the caller reads the state next in any case.
        drop(ended.next().await);
    }

    /// Returns how a container ended, if it has.
    pub(super) async fn gone(&self, id: &str) -> Result<ContainerEnd, Problem> {
        let Some(state) = self.state(id).await? else {
            return Ok(ContainerEnd::Removed);
        };
        if state.running == Some(true) {
            return Ok(ContainerEnd::Not);
        }
        Ok(ContainerEnd::Exited {
            code: state
                .exit_code
                .and_then(|code| i32::try_from(code).ok())
                .unwrap_or(-1),
            was_out_of_memory: state.oom_killed == Some(true),
        })
    }

    /// Returns all containers with that label, running or not.
    pub(super) async fn containers(&self, label: &str) -> Result<Vec<ListedContainer>, Problem> {
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&labelled(label))
            .build();
        let listed = self
            .ask(|| self.client.list_containers(Some(options.clone())))
            .await
            .map_err(|asked| self.told(asked, "list containers"))?;
        let names = listed.into_iter().filter_map(|found| {
            let name = found.names?.into_iter().next()?;
            Some(ListedContainer {
                id: found.id?,
                name: name.trim_start_matches('/').to_owned(),
                gateway: gateway_of(found.labels),
            })
        });
        Ok(names.collect())
    }
}

/// The reason that a request has no usable answer.
pub(super) enum RequestError {
    Busy(Problem),
    Answer(ApiError),
}

impl RequestError {
    pub(super) fn is(&self, code: u16) -> bool {
        matches!(self, Self::Answer(error) if status(error) == Some(code))
    }

    /// Returns true if the engine's message contains `what`.
    fn says(&self, what: &str) -> bool {
        matches!(self, Self::Answer(error) if words(error).contains(what))
    }
}

/// Returns the gateway that created an object, according to its labels.
pub(super) fn gateway_of(labels: Option<HashMap<String, String>>) -> GatewayId {
    labels
        .and_then(|mut labels| labels.remove(GATEWAY))
        .unwrap_or_default()
        .into()
}

pub(super) fn labelled(label: &str) -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![label.to_owned()])])
}

/// A request that waits for a place.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn join(waiting: &'w AtomicUsize) -> Result<Self, Problem> {
        let guard = Self(waiting);
        // Counted before the check, so that no two requests take the last place.
        if waiting.fetch_add(1, Ordering::AcqRel) >= QUEUE {
            drop(guard);
            return Err(Problem::Busy);
        }
        Ok(guard)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_may_wait() {
        let waiting = AtomicUsize::new(0);
        let places: Vec<_> = (0..QUEUE).map(|_| Waiting::join(&waiting)).collect();
        assert!(places.iter().all(Result::is_ok));
        assert!(matches!(Waiting::join(&waiting), Err(Problem::Busy)));
        drop(places);
        assert_eq!(waiting.load(Ordering::Acquire), 0);
        assert!(Waiting::join(&waiting).is_ok());
    }
}
