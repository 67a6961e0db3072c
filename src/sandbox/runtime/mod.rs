//! The seam: what every kind of sandbox can do.

pub(super) mod copying;
pub(super) mod deferred;
pub(super) mod image;
pub(super) mod launch;
pub(super) mod off;
pub(super) mod running;

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{Copied, CopyOrder, Error, Image, ImageId, Launch, Running};
use crate::domain::{Enforcement, EngineId, SandboxId, SandboxKind};

/// A way to run programs in sealed places.
#[async_trait]
pub trait Runtime: Send + Sync {
    /// Which one it is.
    fn kind(&self) -> SandboxKind;

    /// What really holds each limit on this machine.
    fn limits(&self) -> Limits;

    /// What a program inside can reach at most.
    fn network(&self) -> Network;

    /// Names what keeps the workspaces, such that a workspace is never looked for where it is not.
    fn engine(&self) -> EngineId {
        self.kind().as_str().into()
    }

    /// Why nothing can be started, as far as that is known without trying; `None` if something can.
    fn lack(&self) -> Option<Error> {
        None
    }

    /// What the engine calls the container of a sandbox's bundled server, for people who look
    /// there.
    fn container(&self, _sandbox: &SandboxId) -> Option<String> {
        None
    }

    /// The content that an image's name stood for when it was last looked up; `None` where that is
    /// not known, or nothing names it.
    fn image_id(&self, _image: &Image) -> Option<ImageId> {
        None
    }

    /// The same, looked up now. Where that cannot be done, what was last known holds.
    async fn look_up_image(&self, image: &Image) -> Option<ImageId> {
        self.image_id(image)
    }

    /// A fresh sandbox whose bundled server already runs, for a session that has none yet. The
    /// caller owns the id from now on and starts the server with it soon.
    fn reserve(&self) -> Option<SandboxId> {
        None
    }

    /// The sandboxes that run, or are about to, before any session has them.
    fn warm(&self) -> BTreeSet<SandboxId> {
        BTreeSet::new()
    }

    /// Starts warm ones after a session started `launch`, at most `room`.
    fn warm_up(&self, _launch: &Launch, _room: usize) {}

    /// Ends one warm sandbox that nobody has reserved, to make room; `false` if there is none.
    async fn spare(&self) -> bool {
        false
    }

    /// Starts one program in a place of its own; the workspace is made when it is missing.
    async fn start(&self, launch: Launch) -> Result<Running, Error>;

    /// Ends what an earlier process of this installation left running; says how many there were. To be
    /// called once, before the first [`Runtime::start`]. Beside other gateways on the same store
    /// that takes time, and is left to [`Runtime::tidy`].
    async fn reap(&self) -> Result<usize, Error>;

    /// Ends what runs without an owner, such as what could not be ended while the engine was away;
    /// says how many there were. What has an owner is left alone.
    async fn tidy(&self) -> Result<usize, Error> {
        Ok(0)
    }

    /// The workspaces that exist for sessions, for the janitor to compare with the store. Those that
    /// another living gateway made are that one's to look at.
    async fn workspaces(&self) -> Result<Vec<SandboxId>, Error>;

    /// Makes a workspace that has what another one has now. Where that fails, is too large or is given
    /// up, nothing is left of it but what the janitor finds: nobody may start anything in a sandbox
    /// whose copy has not come back.
    async fn copy_workspace(&self, order: CopyOrder) -> Result<Copied, Error>;

    /// Deletes a workspace for good. Its programs must have ended; one that is gone is no error.
    async fn remove_workspace(&self, sandbox: &SandboxId) -> Result<(), Error>;

    /// Ends everything that was started, and waits for it.
    async fn close(&self);
}

/// What holds the limits in force, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all processes together.
    pub memory: Enforcement,
    pub cpu: Enforcement,
    /// How many processes and threads.
    pub processes: Enforcement,
    /// The life of a sandbox.
    pub time: Enforcement,
    /// The size of the workspace.
    pub workspace: Enforcement,
}

impl Limits {
    /// Nothing is held, because nothing runs.
    pub const NONE: Self = Self {
        memory: Enforcement::None,
        cpu: Enforcement::None,
        processes: Enforcement::None,
        time: Enforcement::None,
        workspace: Enforcement::None,
    };
}

/// What a sandbox can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Nothing, not even this machine.
    Sealed,
    /// Named hosts through our proxy, for servers whose entry lists them.
    Hosts,
}
