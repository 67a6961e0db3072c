//! Runs approved calls: combines the tools offered to the session's tenant with the session's own connections
//! to their servers.

pub(super) mod checkpointed;
pub(in crate::agent) mod connections;
pub(in crate::agent) mod digest;
pub(super) mod dry_run;
pub(in crate::agent) mod hosts;
pub(in crate::agent) mod outcome;
pub(in crate::agent) mod proposal;
mod refused_tools;
pub(in crate::agent) mod tasks;
mod waiting;
pub(in crate::agent) mod workspace;
pub(in crate::agent) mod written_files;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use self::digest::DigestInputs;
use self::outcome::{closed_tool, failed, fenced, gone_tool, kept};
use self::refused_tools::RefusedTools;
use self::tasks::{CallStop, FailedConnection, TaskCall};
use self::waiting::PersonWaits;
use crate::agent::attachments::Attachments;
use crate::agent::checkpoints::Checkpoints;
use crate::agent::journal::fence::Fence;
use crate::domain::{BlobId, Code, Digest, EngineId, Memo, Tool, ToolRef, TurnId, UserId};
use crate::mcp::{self, CallNews, ToolAnswer, ToolboxTool};
use crate::sandbox::ImageId;
use crate::sandbox::assignment::SandboxAssignment;
use crate::sandbox::host::SandboxHost;
use crate::servers::{
    LiveConnection, OwnTools, ServerEntry, Servers, SessionConnection, SessionReach, ToolOffer,
    ToolOffering,
};
use crate::session::{Call, Edit, Outcome, Resolution, Rules, SessionAssistant, ToolFacts};

/// The tools of one session. Each server starts at its first call: most sessions never need it.
pub struct SessionTools {
    pub(in crate::agent) servers: Servers,
    /// The engine that keeps this gateway's workspaces; gateways with the same engine reach them too. Known
    /// as soon as there are sandboxes.
    engine: OnceLock<EngineId>,
    pub(in crate::agent) place: Arc<SandboxHost>,
    pub(in crate::agent) assignment: SandboxAssignment,
    attachments: Attachments,
    /// The hosts that its own sandbox may reach beyond those of the settings.
    pub(in crate::agent) reach: Arc<SessionReach>,
    /// The history of the workspace.
    pub(in crate::agent) checkpoints: Checkpoints,
    /// Never held across an await.
    offered: Mutex<OfferedTools>,
    /// Never held across an await.
    links: Mutex<BTreeMap<String, Arc<SessionConnection>>>,
    /// The task that connects before the first call; `None` = not begun. The lock is never held across an
    /// await.
    pub(in crate::agent) ahead: Mutex<Option<AbortOnDropHandle<()>>>,
    /// The attachments that could not be put into the workspace in a turn. The lock is never held across an
    /// await.
    unplaced: Mutex<(TurnId, Vec<BlobId>)>,
    /// The tools that providers refused to be sent.
    refused: RefusedTools,
}

/// The offered tools as of the last look-up.
struct OfferedTools {
    /// Those of the session's owner.
    of_owner: Arc<ToolOffering>,
    /// What the session leaves of them.
    of_session: Arc<ToolOffering>,
    narrowing: ToolNarrowing,
}

/// What narrows the tools of a session.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct ToolNarrowing {
    pub(in crate::agent) assistant: Option<Arc<SessionAssistant>>,
    /// The only servers whose tools it may use, because the key that began it is limited to them.
    pub(in crate::agent) servers: Option<Arc<BTreeSet<String>>>,
}

impl ToolNarrowing {
    fn is_like(&self, other: &Self) -> bool {
        let is_same_assistant = match (&self.assistant, &other.assistant) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same_assistant && self.servers == other.servers
    }
}

impl OfferedTools {
    fn new(of_owner: Arc<ToolOffering>, narrowing: ToolNarrowing) -> Self {
        let assistant = narrowing.assistant.as_deref();
        let assistant = assistant.filter(|it| it.narrows_tools());
        let servers = narrowing.servers.as_deref();
        let of_session = if assistant.is_none() && servers.is_none() {
            Arc::clone(&of_owner)
        } else {
            Arc::new(of_owner.narrowed(assistant, servers))
        };
        Self {
            of_owner,
            of_session,
            narrowing,
        }
    }
}

/// An approved call with everything that it needs to run.
struct ReadyCall {
    tool: ToolRef,
    server: Arc<ServerEntry>,
    opened: LiveConnection,
}

impl SessionTools {
    pub(in crate::agent) fn new(
        servers: Servers,
        place: Arc<SandboxHost>,
        assignment: SandboxAssignment,
        attachments: Attachments,
    ) -> Self {
        Self {
            offered: Mutex::new(OfferedTools::new(
                servers.bare_offering(),
                ToolNarrowing::default(),
            )),
            checkpoints: Checkpoints::new(&place, assignment.key()),
            reach: Arc::new(SessionReach::new(
                &place.network,
                Arc::clone(&place.network_on_request),
            )),
            servers,
            engine: OnceLock::new(),
            place,
            assignment,
            attachments,
            links: Mutex::default(),
            ahead: Mutex::default(),
            unplaced: Mutex::default(),
            refused: RefusedTools::default(),
        }
    }

    /// The engine that holds the workspace of a session that runs here.
    pub(in crate::agent) fn engine(&self) -> Option<&EngineId> {
        let is_on = self.place.is_on();
        is_on.then(|| self.engine.get_or_init(|| self.place.runtime.engine()))
    }

    fn offered(&self) -> MutexGuard<'_, OfferedTools> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools that the session may use, as of the last look-up.
    fn offering(&self) -> Arc<ToolOffering> {
        Arc::clone(&self.offered().of_session)
    }

    /// The assistant of the session, in the version that is in use.
    pub(in crate::agent) fn assistant(&self) -> Option<Arc<SessionAssistant>> {
        self.offered().narrowing.assistant.clone()
    }

    /// Narrows the tools, at once.
    pub(in crate::agent) fn narrow(&self, narrowing: ToolNarrowing) {
        let mut offered = self.offered();
        if offered.narrowing.is_like(&narrowing) {
            return;
        }
        let of_owner = Arc::clone(&offered.of_owner);
        *offered = OfferedTools::new(of_owner, narrowing);
        let offering = Arc::clone(&offered.of_session);
        drop(offered);
        // A running call holds its own connection, which closes when the call ends.
        self.links()
            .retain(|name, _| offering.entry(name).is_some());
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<String, Arc<SessionConnection>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up the offered tools: at the session's start, before each model request, and before a call runs.
    /// While the records are away, the last known ones stay.
    pub(in crate::agent) async fn refresh(&self) -> Arc<ToolOffering> {
        let holder = self.assignment.holder();
        let offering = match self.servers.offering((&holder.tenant, &holder.user)).await {
            Ok(offering) => offering,
            Err(error) => {
                tracing::warn!(?error, "What MCP servers there are cannot be read now");
                return self.offering();
            }
        };
        let (before, offering) = {
            let mut offered = self.offered();
            let before = Arc::clone(&offered.of_session);
            if !Arc::ptr_eq(&offered.of_owner, &offering) {
                let narrowing = std::mem::take(&mut offered.narrowing);
                *offered = OfferedTools::new(offering, narrowing);
            }
            (before, Arc::clone(&offered.of_session))
        };
        if !Arc::ptr_eq(&before, &offering) {
            // A running call holds its own connection, which closes when the call ends.
            self.links()
                .retain(|name, _| offering.connects_like(&before, name));
            self.shown(&offering).name_images().await;
        }
        offering
    }

    /// Returns the tools for a provider's model with a window of `window` tokens: their definitions, or a
    /// search for them. Those that the provider refused in this session are left out.
    pub(in crate::agent) fn offer(
        &self,
        provider: &str,
        (window, percent): (u64, u8),
        own: OwnTools,
    ) -> ToolOffer {
        let offer = self.offering().offer_within(window, percent, own);
        self.refused.applied(provider, offer)
    }

    /// Leaves a tool out of what the provider is sent from now on. Returns false if it was left out before.
    pub(in crate::agent) fn leave_out(&self, provider: &str, tool: &Tool) -> bool {
        self.refused.add(provider, tool)
    }

    /// Returns the server of a tool, by the name that models use.
    pub(in crate::agent) fn server_of(&self, tool: &str) -> Option<String> {
        let offering = self.offering();
        offering
            .toolbox
            .find(tool)
            .map(|found| found.at.server.clone())
    }

    /// Returns the rules for calls in that person's sessions, without the rules of the session itself.
    pub(in crate::agent) fn rules(&self, owner: &UserId) -> Arc<Rules> {
        Arc::clone(self.offering().rules.of(owner))
    }

    /// Returns how long the session must stay in memory for its servers; `None` if none runs.
    pub(in crate::agent) fn idle_limit(&self) -> Option<Duration> {
        let is_live = self.links().values().any(|link| link.is_live());
        is_live.then_some(self.place.idle_limit)
    }

    /// Resolves and validates a call, before anybody is asked.
    fn resolve(&self, name: &str, args: &Value) -> Resolution {
        let offering = self.offering();
        let Some(entry) = offering.toolbox.find(name) else {
            return Resolution::Invalid(proposal::no_tool(&offering, name));
        };
        self.resolve_found(&offering, entry, args)
    }

    fn resolve_found(
        &self,
        offering: &ToolOffering,
        entry: &ToolboxTool,
        args: &Value,
    ) -> Resolution {
        if let Some(problem) = entry.problem_with(args) {
            return Resolution::Invalid(problem);
        }
        match offering.entry(&entry.at.server) {
            Some(server) => {
                Resolution::Ready(Arc::new(self.facts(offering, entry, server.as_ref(), args)))
            }
            None => Resolution::Invalid(format!("the server of `{}` is gone", entry.tool.name)),
        }
    }

    /// Resolves changed arguments of a waiting call. The name may lead to another tool by now: the digest of
    /// the unchanged arguments reveals that.
    pub(in crate::agent) fn edit(&self, call: &Call, args: Value) -> Edit {
        let offering = self.offering();
        let Some(entry) = called(&offering, call) else {
            let nothing = Digest::from_wire("");
            return Edit {
                args,
                unedited: None,
                digest: nothing.clone(),
                equal: nothing,
                invalid: None,
            };
        };
        let hosts = hosts::shown(self, call.facts.as_deref());
        Edit {
            invalid: entry.problem_with(&args),
            unedited: Some(self.digest_now(&offering, entry, &hosts, &call.args)),
            digest: self.digest_now(&offering, entry, &hosts, &args),
            equal: Digest::of_equal_calls(&entry.at, &args),
            args,
        }
    }

    fn digest_now(
        &self,
        offering: &ToolOffering,
        entry: &ToolboxTool,
        hosts: &[String],
        args: &Value,
    ) -> Digest {
        let shown = self.shown(offering);
        let image = shown.image(&entry.at.server, self.link(&entry.at.server).as_deref());
        shown.digest(entry, args, image.as_ref(), hosts)
    }

    fn shown<'a>(&'a self, offering: &'a ToolOffering) -> DigestInputs<'a> {
        DigestInputs {
            place: &self.place,
            offering,
        }
    }

    fn link(&self, server: &str) -> Option<Arc<SessionConnection>> {
        self.links().get(server).cloned()
    }

    fn facts(
        &self,
        offering: &ToolOffering,
        entry: &ToolboxTool,
        server: &ServerEntry,
        args: &Value,
    ) -> ToolFacts {
        let hosts = hosts::now(self, server);
        let mut runs_in = server.runs_in();
        runs_in.hosts.extend(hosts.iter().cloned());
        ToolFacts {
            tool: entry.at.clone(),
            title: entry.tool.title.clone(),
            description: entry.tool.description.clone(),
            schema: Arc::clone(&entry.schema),
            annotations: entry.tool.annotations.clone(),
            is_trusted: entry.is_trusted,
            runs_in,
            is_without_workspace: server.is_without_workspace(),
            definition: Some(entry.definition.clone()),
            drift: offering.drift(&entry.at),
            file: None,
            view: entry.tool.view.as_ref().and_then(|view| view.uri.clone()),
            digest: self.digest_now(offering, entry, &hosts, args),
            equal: Digest::of_equal_calls(&entry.at, args),
            card: Memo::default(),
        }
    }

    /// Reports to the health monitor that the server went away during a call.
    pub(in crate::agent) fn lost_server(&self, server: &ServerEntry, text: &str) {
        self.servers.lost(server, self.assignment.tenant(), text);
    }

    /// Runs one approved call. Every failure is a value. Nothing is sent if the fence finds that another
    /// gateway runs the session; without a fence no other gateway can.
    #[tracing::instrument(skip_all, fields(session.id = %self.assignment.session(), call.id = %call.id, tool.name = %call.name))]
    pub(in crate::agent) async fn run(
        &self,
        call: &Call,
        fence: Option<&Fence>,
        stop: &CallStop,
        mut on_news: impl FnMut(CallNews),
    ) -> Outcome {
        let cancel = &stop.cancel;
        if let Some(task) = &call.task {
            let of = TaskCall { call, task };
            return tasks::pick_up(self, of, stop, &mut on_news).await;
        }
        let mut is_second = false;
        let mut waits = PersonWaits::new(cancel);
        loop {
            let ready = tokio::select! {
                ready = self.ready(call, fence) => ready,
                () = cancel.cancelled() => return Outcome::Cancelled,
            };
            let ReadyCall {
                tool,
                server,
                opened,
            } = match ready {
                Ok(ready) => ready,
                Err(outcome) => {
                    if waits.connects(self, call, &outcome, &mut on_news).await {
                        continue;
                    }
                    return *outcome;
                }
            };
            let request = tasks::request(self, call, tool, &server, stop);
            let begun = tasks::CreatedTask::default();
            let answer = opened.call(request, cancel, begun.noting(&mut on_news));
            let error = match answer.await {
                Ok(answer) => return self.keep(answer, call, &server.name).await,
                Err(error) => error,
            };
            if let Some(task) = begun.task() {
                let of = TaskCall { call, task: &task };
                let failed = FailedConnection {
                    server: &server,
                    opened: &opened,
                    error,
                };
                return tasks::go_on(self, of, failed, stop, &mut on_news).await;
            }
            // Nothing of the call has run: the server has ended its session, for example.
            let is_sent = !matches!(
                error,
                mcp::Error::Unreachable { .. } | mcp::Error::NotTaken { .. }
            );
            if !is_sent && !is_second {
                is_second = true;
                self.forget(&server.name, &opened).await;
                continue;
            }
            let Err(error) = waits.visited(&opened, error, &mut on_news).await else {
                continue;
            };
            let outcome = self.broken(error, call, &server, &opened).await;
            if waits.connects(self, call, &outcome, &mut on_news).await {
                continue;
            }
            return outcome;
        }
    }

    /// Prepares everything that an approved call needs, right before it is sent.
    async fn ready(&self, call: &Call, fence: Option<&Fence>) -> Result<ReadyCall, Box<Outcome>> {
        let ready = self.connect(call).await?;
        checkpointed::before(self, call, &ready).await;
        if let Some(fence) = fence {
            let checked = fence.check().await;
            checked.map_err(|error| Box::new(fenced(&error)))?;
        }
        Ok(ready)
    }

    /// Returns the tool of an approved call, its server, and the open connection. The tool is checked before
    /// the server starts and after, because the start may show another definition.
    async fn connect(&self, call: &Call) -> Result<ReadyCall, Box<Outcome>> {
        let before = self.refresh().await;
        let image = self.look_up_image(&before, call).await;
        let (tool, server) = self.check(&before, call, image.as_ref())?;
        let opened = self.open(&server).await?;
        let offering = self.refresh().await;
        if Arc::ptr_eq(&offering, &before) && opened.image == image {
            return Ok(ReadyCall {
                tool,
                server,
                opened,
            });
        }
        let (tool, server) = self.check(&offering, call, opened.image.as_ref())?;
        Ok(ReadyCall {
            tool,
            server,
            opened,
        })
    }

    async fn look_up_image(&self, offering: &ToolOffering, call: &Call) -> Option<ImageId> {
        let server = &called(offering, call)?.at.server;
        let link = self.link(server);
        self.shown(offering)
            .look_up_image(server, link.as_deref())
            .await
    }

    /// Makes sure that what runs is what was approved: recomputes the digest from what would run now.
    fn check(
        &self,
        offering: &ToolOffering,
        call: &Call,
        image: Option<&ImageId>,
    ) -> Result<(ToolRef, Arc<ServerEntry>), Box<Outcome>> {
        let entry = called(offering, call);
        let server = entry.and_then(|entry| offering.entry(&entry.at.server));
        let (Some(entry), Some(server), Some(facts)) = (entry, server, &call.facts) else {
            let is_closed =
                (call.facts.as_ref()).is_some_and(|facts| offering.is_closed(&facts.tool.server));
            return Err(Box::new(if is_closed {
                closed_tool(call)
            } else {
                gone_tool(self.place.runtime.lack(), call)
            }));
        };
        let hosts = hosts::shown(self, Some(facts));
        if self
            .shown(offering)
            .digest(entry, &call.args, image, &hosts)
            == facts.digest
        {
            return Ok((entry.at.clone(), Arc::clone(server)));
        }
        tracing::warn!(call.id = %call.id, "What would run is not what was approved");
        let text = "not run: the tool's definition, its server or its sandbox changed since it \
                    was approved; ask for it again, and a person decides about it as it is now";
        Err(Box::new(failed(Code::ChangedSinceShown, text.to_owned())))
    }

    /// Checks a server's answer against its tool's schema, and stores it.
    async fn keep(&self, mut answer: ToolAnswer, call: &Call, server: &str) -> Outcome {
        if let Some(tool) = called(&self.offering(), call) {
            tool.check_answer(&mut answer);
        }

        kept(answer, self.assignment.key(), server, &self.attachments).await
    }
}

/// Returns the tool of a call as it is offered now: to the model, by its name, or to the views of its server.
fn called<'v>(offering: &'v ToolOffering, call: &Call) -> Option<&'v ToolboxTool> {
    match &call.origin {
        None => offering.toolbox.find(&call.name),
        Some(_) => offering.find_for_apps(&call.facts.as_ref()?.tool),
    }
}
