//! Defines the interface of every kind of sandbox.

pub(super) mod copying;
pub(super) mod deferred;
pub(super) mod image;
pub(super) mod launch;
pub(super) mod off;
pub(super) mod running;

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{CopyOrder, CopyResult, Error, Image, ImageId, Launch, Running};
use sepal_core::domain::{Enforcement, EngineId, SandboxId, SandboxKind};

/// A way to run programs in sandboxes.
#[async_trait]
pub trait Runtime: Send + Sync {
    /// Returns the kind of the runtime.
    fn kind(&self) -> SandboxKind;

    /// Returns what enforces each limit on this machine.
    fn limits(&self) -> Limits;

    /// Returns the most that a program inside can reach.
    fn network(&self) -> Network;

    /// Returns the id of the engine that keeps the workspaces, so that a workspace is never looked for in
    /// another engine.
    fn engine(&self) -> EngineId {
        self.kind().as_str().into()
    }

    /// Returns the reason that nothing can be started, if it is known without a trial; `None` if a start is
    /// possible.
    fn lack(&self) -> Option<Error> {
        None
    }

    /// Returns the engine's name of the container of a sandbox's bundled server, for people who inspect the
    /// engine.
    fn container(&self, _sandbox: &SandboxId) -> Option<String> {
        None
    }

    /// Returns the content id of an image's last look-up; `None` if it is unknown.
    fn image_id(&self, _image: &Image) -> Option<ImageId> {
        None
    }

    /// Looks up the content id now. If that fails, the last known id is returned.
    async fn look_up_image(&self, image: &Image) -> Option<ImageId> {
        self.image_id(image)
    }

    /// Reserves a fresh sandbox whose bundled server already runs, for a session that has no sandbox yet. The
    /// caller owns the id from now on and has to start the server with it soon.
    fn reserve(&self) -> Option<SandboxId> {
        None
    }

    /// Returns the sandboxes that run, or are about to, before any session has them.
    fn warm(&self) -> BTreeSet<SandboxId> {
        BTreeSet::new()
    }

    /// Starts warm sandboxes after a session started `launch`, at most `room`.
    fn warm_up(&self, _launch: &Launch, _room: usize) {}

    /// Ends one warm sandbox that is not reserved, to make room; `false` if there is none.
    async fn spare(&self) -> bool {
        false
    }

    /// Starts one program in a sandbox of its own; the workspace is created if it is missing.
    async fn start(&self, launch: Launch) -> Result<Running, Error>;

    /// Ends what an earlier process of this installation left running, and returns the number. To be called
    /// once, before the first [`Runtime::start`]. With other gateways on the same store this takes time, and
    /// is left to [`Runtime::tidy`].
    async fn reap(&self) -> Result<usize, Error>;

    /// Ends running programs without an owner, such as those that could not be ended while the engine was
    /// unreachable, and returns their number. Programs with an owner keep running.
    async fn tidy(&self) -> Result<usize, Error> {
        Ok(0)
    }

    /// Returns the workspaces that exist for sessions, for the janitor to compare with the store. Excludes
    /// those that another living gateway created, which that gateway checks itself.
    async fn workspaces(&self) -> Result<Vec<SandboxId>, Error>;

    /// Returns true if a workspace exists, whichever gateway created it, and in whichever data folder.
    async fn has_workspace(&self, sandbox: &SandboxId) -> Result<bool, Error>;

    /// Copies the current state of a workspace into a new one. If the copy fails, is too large or is
    /// cancelled, at most leftovers for the janitor remain: nothing may be started in a sandbox whose copy
    /// has not returned.
    async fn copy_workspace(&self, order: CopyOrder) -> Result<CopyResult, Error>;

    /// Deletes a workspace permanently. Its programs must have ended; a missing workspace is not an error.
    async fn remove_workspace(&self, sandbox: &SandboxId) -> Result<(), Error>;

    /// Ends everything that was started, and waits for it.
    async fn close(&self);
}

/// The mechanism that enforces each limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all processes together.
    pub memory: Enforcement,
    pub cpu: Enforcement,
    /// The number of processes and threads.
    pub processes: Enforcement,
    /// The lifetime of a sandbox.
    pub time: Enforcement,
    /// The size of the workspace.
    pub workspace: Enforcement,
}

impl Limits {
    /// No limit is enforced, because nothing runs.
    pub const NONE: Self = Self {
        memory: Enforcement::None,
        cpu: Enforcement::None,
        processes: Enforcement::None,
        time: Enforcement::None,
        workspace: Enforcement::None,
    };
}

/// The network that a sandbox can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Nothing, not even this machine.
    Sealed,
    /// Named hosts through our proxy, for servers whose entry lists them.
    Hosts,
}
