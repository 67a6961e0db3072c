//! Copies a workspace: in the engine's folders if this process can read them, otherwise with two short-lived
//! containers.
//!
//! One container packs the first workspace, mounted read-only, and one unpacks it into the second; the
//! archive passes through this process. So no container ever sees the workspaces of two sandboxes, and the
//! filter in front of an engine needs no exception.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tracing::debug;

use super::attach::{self, Streams};
use super::container;
use super::engine::ContainerEnd;
use super::engine::problem::Problem;
use super::owned::Owner;
use super::startup::DockerShared;
use super::workspace::Volume;
use crate::archiving::{PACK, UNPACK};
use crate::workspace::{Size, copy, trim};
use crate::{Access, Bounds, CopyOrder, CopyResult, CopyWatch, Error, Launch, Packages, Program};
use sepal_core::domain::SandboxId;

/// The name of the copying containers, in the place of a server's name.
const COPIER: &str = "sepal-copy";
/// The confirmation that the archive was complete.
const DONE: &str = "done\n";
/// More bytes than a valid confirmation has.
const MAX_SAID: u64 = 64;
/// Bytes that are forwarded at once.
const BUFFER_BYTES: usize = 64 << 10;
/// The time that a container may take to end after its streams have ended.
const END_LIMIT: Duration = Duration::from_secs(10);

/// A short-lived container with its streams.
struct Run {
    id: String,
    streams: Streams,
    _owner: Owner,
}

impl DockerShared {
    /// Makes the copy, and removes it if it is incomplete. Must run to completion: call it on a task.
    pub(super) async fn copy(&self, order: CopyOrder) -> Result<CopyResult, Error> {
        let copied = self.try_copy(&order).await;
        if !matches!(copied, Ok(CopyResult::Whole(_)))
            && let Err(error) = self.remove_workspace(&order.to).await
        {
            debug!(%error, "A volume is left to the janitor");
        }
        copied
    }

    async fn try_copy(&self, order: &CopyOrder) -> Result<CopyResult, Error> {
        let limit = order.bounds.workspace_bytes;
        let first = container::volume(&order.from);
        let volumes = self.engine.volumes(&self.label()).await?;
        if !volumes.iter().any(|volume| volume.name == first) {
            return Ok(CopyResult::Missing);
        }
        let (pack, unpack) = (format!("{PACK} ."), format!("{UNPACK} && echo done"));
        let reading = launch(&order.from, Access::ReadOnly, order.bounds, &pack);
        let writing = launch(&order.to, Access::ReadWrite, order.bounds, &unpack);
        let made = self.workspace(&self.plan(&writing)).await?;
        let to = made.as_ref().and_then(Volume::folder);
        if let Some((from, to)) = to.and_then(|to| beside(to, &first)) {
            let copied = copy::copy(from, to, limit, order.watch.clone()).await;
            return Ok(copied?);
        }
        match self.count(&reading).await {
            Some(Size::Bytes(bytes)) if bytes <= limit => {}
            Some(Size::Bytes(_) | Size::Uncountable) => return Ok(CopyResult::TooLarge),
            None => return Err(io::Error::other("a workspace was not counted in time").into()),
        }
        let _place = copy::COPIES.place().await.map_err(io::Error::other)?;
        tokio::select! {
            copied = self.pass_on(&reading, &writing, limit, &order.watch) => copied,
            () = order.watch.stopped() => {
                self.remove_copiers([&reading, &writing]).await;
                Err(io::Error::from(io::ErrorKind::Interrupted).into())
            }
        }
    }

    /// Removes containers that still pack or unpack. The janitor removes what fails here.
    async fn remove_copiers(&self, launches: [&Launch; 2]) {
        for launch in launches {
            if let Ok(Some(holder)) = self.engine.holder(&container::name(launch)).await {
                let _ = self.engine.remove(&holder.id).await;
            }
        }
    }

    /// Packs in one container and unpacks in another.
    async fn pass_on(
        &self,
        reading: &Launch,
        writing: &Launch,
        limit: u64,
        watch: &CopyWatch,
    ) -> Result<CopyResult, Error> {
        let mut packing = self.run(reading).await?;
        let unpacking = match self.run(writing).await {
            Ok(unpacking) => unpacking,
            Err(error) => {
                let _ = self.engine.remove(&packing.id).await;
                return Err(error.into());
            }
        };
        let Streams { stdin, stdout, .. } = unpacking.streams;
        let whole = passed_on(&mut packing.streams.stdout, stdin, limit, watch);
        let (whole, said) = tokio::join!(whole, said(stdout));
        let end = self.ended(&packing.id).await;
        self.engine.remove(&packing.id).await?;
        self.engine.remove(&unpacking.id).await?;
        if !whole? {
            return Ok(CopyResult::TooLarge);
        }
        // tar exits with 1 if a file changed while it was read, which is acceptable for a copy of the current
        // state.
        let is_packed = matches!(end?, ContainerEnd::Exited { code: 0 | 1, .. });
        if is_packed && said? == DONE {
            return Ok(CopyResult::Whole(watch.bytes()));
        }
        let mut lines = packing.streams.stderr;
        let line = lines.try_recv().unwrap_or_default();
        Err(io::Error::other(format!("a workspace could not be packed: {line}")).into())
    }

    async fn run(&self, launch: &Launch) -> Result<Run, Problem> {
        let (name, body) = (container::name(launch), self.plan(launch).body());
        let owner = self.owned.own(name.clone());
        let id = self.maker.create(&name, &body).await?;
        let begun = async {
            let attached = self.engine.attach(&id).await?;
            self.engine.start(&id).await?;
            Ok(attach::pump(attached, &self.pumps))
        };
        match begun.await {
            Ok(streams) => Ok(Run {
                id,
                streams,
                _owner: owner,
            }),
            Err(problem) => {
                // The janitor removes what fails here.
                let _ = self.engine.remove(&id).await;
                Err(problem)
            }
        }
    }

    /// Returns how a container ended whose streams have ended.
    async fn ended(&self, id: &str) -> Result<ContainerEnd, Problem> {
        // A container that does not end is reported as running.
        let _ = tokio::time::timeout(END_LIMIT, self.engine.wait(id)).await;
        self.engine.gone(id).await
    }
}

fn launch(sandbox: &SandboxId, workspace: Access, bounds: Bounds, script: &str) -> Launch {
    Launch {
        sandbox: sandbox.clone(),
        packages: Packages::None,
        holder: None,
        server: COPIER.to_owned(),
        program: Program::Command(["bash", "-c", script].map(str::to_owned).to_vec()),
        environment: BTreeMap::new(),
        workspace,
        egress: None,
        bounds,
    }
}

/// Returns the folders of both volumes: an engine keeps them side by side, as `…/volumes/<name>/_data`.
fn beside(to: &Path, first: &str) -> Option<(PathBuf, PathBuf)> {
    let from = to.ancestors().nth(2)?.join(first).join(to.file_name()?);
    std::fs::read_dir(&from).ok()?;
    Some((from, to.to_owned()))
}

/// Forwards the archive; `false` once it is too large.
async fn passed_on(
    packed: &mut DuplexStream,
    mut unpacking: DuplexStream,
    limit: u64,
    watch: &CopyWatch,
) -> io::Result<bool> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = packed.read(&mut buffer).await?;
        if read == 0 {
            unpacking.shutdown().await?;
            return Ok(true);
        }
        // Names and padding count too; files may grow while they are packed.
        if watch.add(read as u64) > trim::ceiling(limit) {
            return Ok(false);
        }
        let part = buffer.get(..read).unwrap_or_default();
        unpacking.write_all(part).await?;
    }
}

/// Returns the output of a container up to its end, or up to [`MAX_SAID`] bytes.
async fn said(stdout: DuplexStream) -> io::Result<String> {
    let mut words = String::new();
    stdout.take(MAX_SAID).read_to_string(&mut words).await?;
    Ok(words)
}
