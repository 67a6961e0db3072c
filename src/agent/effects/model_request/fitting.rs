//! Fits a gathered context into what one candidate can read, assembles the request to it, and has budgets admit
//! that.

use std::sync::{Arc, LazyLock};

use super::summarising::{NoSummary, Summariser};
use super::{GatheredContext, unanswered};
use crate::agent::budget::{Ceiling, Warn};
use crate::agent::effects::session_agent::{Reads, RequestBase, SessionAgent};
use crate::agent::effects::tool_call::workspace::Workspace;
use crate::agent::feed::{FeedItem, Notice};
use crate::context::{AssembledRequest, RequestOptions};
use crate::domain::{
    Attachment, Code, CountedEntry, Entry, READ_MORE, READ_SKILL_FILE, RequestParts, USE_SKILL,
};
use crate::history::{self, CompactionStrategy, Limits, Past};
use crate::jobs::Pool;
use crate::llm::tokens::Counter;
use crate::llm::{self, Compacting, Compactor};
use crate::providers::Candidate;
use crate::session::{Command, Cut, CutKind, Failure, ModelChoice, Refusal, SHORTEN_RESULTS};

/// The most sessions whose entries are counted at the same time.
static COUNTERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("token counts of sessions", 4));

/// The percentage by which a vendor may count more input than was counted here.
const MARGIN: u64 = 5;
/// The answer length from which on a limit is not worth a notice.
const SHORT: u32 = 4_096;

/// The reported server of the tool search tools; no real server can have such a name.
const TOOL_SEARCH: &str = "(tool search)";
/// The reported server of the tool that reads shortened results.
const READING_ON: &str = "(shortened results)";
/// The reported server of the tools that read skills.
const SKILLS: &str = "(skills)";

/// The ways to make a history fit that have not failed for an earlier candidate.
pub(super) struct FittingWays {
    strategies: Vec<Arc<dyn CompactionStrategy>>,
    /// True if a vendor refused its own compacted block.
    is_block_refused: bool,
}

/// A gathered context as one candidate reads it.
pub(super) struct FittedHistory<'a> {
    pub(super) context: &'a GatheredContext,
    pub(super) candidate: &'a Candidate,
    ways: &'a mut FittingWays,
    /// The vendor's compactor; `None` = Sepal compacts.
    compactor: Option<Compactor>,
    /// The history, with the attachments that the candidate can read.
    entries: Vec<Arc<CountedEntry>>,
    /// The counter of the candidate's tokens.
    counter: Counter,
}

/// A request to one model.
pub(super) struct CandidateRequest {
    pub(super) body: AssembledRequest,
    /// The part of the history that it holds.
    pub(super) shown: history::Window,
    /// The approximate tokens of the request.
    pub(super) tokens: u64,
    /// Their composition, before correction by the provider's reports.
    pub(super) parts: RequestParts,
}

/// A request with its attachments, which the budgets cover.
pub(super) struct AdmittedRequest {
    pub(super) request: CandidateRequest,
    /// A limit on the answer that a budget sets.
    pub(super) ceiling: Option<Ceiling>,
}

impl FittingWays {
    pub(super) fn new(strategies: Vec<Arc<dyn CompactionStrategy>>) -> Self {
        Self {
            strategies,
            is_block_refused: false,
        }
    }
}

impl GatheredContext {
    /// Prepares the history for a candidate. Attachments that it cannot read itself go into the workspace.
    pub(super) async fn fit<'a>(
        &'a mut self,
        candidate: &'a Candidate,
        ways: &'a mut FittingWays,
    ) -> FittedHistory<'a> {
        let choice = &candidate.choice;
        // The positions of a compacted block do not match a history that context providers have changed.
        let compactor = candidate.provider.compactor(&choice.model);
        let compactor = compactor.filter(|_| self.arranged.is_whole());
        let limits = self.limits(compactor.as_ref());
        let reader = self.scope.agent.reader(choice, limits);
        let missing = reader.missing(self.arranged.history(), &self.placed);
        if !missing.is_empty() {
            let tools = Arc::clone(&self.scope.agent.tools);
            if let Some(workspace) = Workspace::of(&tools) {
                for attachment in &missing {
                    self.place(attachment, workspace).await;
                }
            }
        }
        let entries = reader.entries(self.arranged.history(), &self.placed);
        let counter = self.weigh(choice, &entries).await;
        FittedHistory {
            context: self,
            candidate,
            ways,
            compactor,
            entries,
            counter,
        }
    }

    /// Returns how much of the history the model may read: the whole window if its vendor compacts, otherwise
    /// what the session lets it read.
    fn limits(&self, compactor: Option<&Compactor>) -> Limits {
        match compactor {
            Some(_) => self.history.vendor_limits,
            None => self.history.limits,
        }
    }

    /// Puts one file into the workspace, and tells the session. If that fails, the model reads that there is
    /// an attachment that it cannot read.
    async fn place(&mut self, attachment: &Attachment, workspace: Workspace<'_>) {
        let scope = &self.scope;
        let turn = scope.request.turn;
        if workspace.is_unplaced(turn, attachment) {
            return;
        }
        let placed = match self.content(attachment).await {
            Ok(Some(content)) => Box::pin(workspace.put(attachment, &content)).await,
            Ok(None) => Err("its content is gone".to_owned()),
            Err(refusal) => Err(refusal.message),
        };
        let path = match placed {
            Ok(path) => path,
            Err(error) => {
                tracing::warn!(attachment.id = %attachment.id, error, "An attachment cannot be put into the workspace");
                workspace.note_unplaced(turn, attachment);
                return;
            }
        };
        self.placed
            .insert(attachment.id.clone(), path.as_str().into());
        // The mailbox keeps the order: the journal has this before the answer, and so before any call.
        let command = Command::AttachmentPlaced {
            request: scope.request,
            id: attachment.id.clone(),
            name: attachment.name.clone(),
            path,
        };
        scope.outcomes.submit(command).await;
    }

    async fn content(&self, attachment: &Attachment) -> Result<Option<Vec<u8>>, Refusal> {
        let agent = &self.scope.agent;
        let attachments = &agent.parts.attachments;
        let read = attachments.read(&agent.key(), &attachment.id).await?;
        Ok(read.map(|(_, content)| content))
    }

    /// Counts entries that were never counted; off the async threads if that takes a while.
    async fn weigh(&self, choice: &ModelChoice, entries: &[Arc<CountedEntry>]) -> Counter {
        let counter = self.scope.agent.counter(choice);
        let all = || entries.iter().chain(self.arranged.beside());
        if counter.is_quick(all().map(|entry| &**entry)) {
            return counter;
        }
        let entries: Vec<_> = all().cloned().collect();
        let weighed = COUNTERS.run(move || {
            for entry in &entries {
                counter.of_entry(entry);
            }
        });
        if weighed.await.is_err() {
            return Counter::default();
        }
        counter
    }
}

impl FittedHistory<'_> {
    fn limits(&self) -> Limits {
        self.context.limits(self.compactor.as_ref())
    }

    pub(super) fn past(&self) -> Past<'_> {
        let history = &self.context.history;
        // A vendor's compacted block can replace the entries before it for all models of its family.
        let compactor = self.compactor.as_ref();
        let resumable = compactor.filter(|_| !self.ways.is_block_refused);
        Past {
            entries: &self.entries,
            question: history.question,
            gaps: &history.gaps,
            compaction: history.compaction.as_ref(),
            compactor: resumable.map(|it| it.family.as_str()),
        }
    }

    fn window(&self, past: Past<'_>, limits: Limits) -> history::Window {
        let count = |entry: &CountedEntry| self.counter.of_entry(entry);
        let mut shown = history::window(past, limits, &self.ways.strategies, count);
        if !self.context.arranged.is_whole() {
            // The positions in an arranged history are not those of the session.
            shown.compacted = None;
        }
        shown
    }

    /// Returns a cut to half of the tokens: by shorter results if that is enough, otherwise by the session's
    /// strategies, once in a turn, otherwise with only the newest turn; `None` = nothing is left to cut
    /// (S2.26, D2).
    pub(super) fn cut(&self, shown: &history::Window) -> Option<Cut> {
        let context = self.context;
        let half = self.limits().at_most(shown.tokens / 2);
        let past = self.past();
        let turn = past.newest_turn();
        let mut again = self.window(past, half);
        let has_earlier = again.due.is_some() || again.entries.len() > turn;
        let kind = if again.left_out == shown.left_out {
            CutKind::Shortening
        } else if has_earlier && !context.history.is_limit_lowered {
            CutKind::LowerLimit
        } else {
            again = self.window(past.newest(turn), half);
            CutKind::FreshContext
        };
        let kept = match kind {
            CutKind::Shortening | CutKind::LowerLimit => self.entries.len(),
            // An arranged history does not tell what to drop from the session's own.
            CutKind::FreshContext if !context.arranged.is_whole() => return None,
            CutKind::FreshContext => again.entries.len(),
        };
        (again.tokens < shown.tokens).then(|| Cut {
            kept,
            kind,
            max_tokens: shown.tokens / 2,
            before: shown.size(),
            after: again.size(),
        })
    }

    /// Returns the request's base, and the window on the history. The first request that shortens a result
    /// also explains how to read the rest, which takes a little of its room.
    fn read(&self) -> Result<(RequestBase, history::Window), history::PromptError> {
        let context = self.context;
        let mut reads = Reads {
            input: history::last_input(&self.entries),
            arranged: &context.arranged,
            limits: self.limits(),
            has_short_results: context.history.has_short_results,
        };
        let agent = &context.scope.agent;
        loop {
            let base = agent.request_base(&self.candidate.choice, reads, self.counter)?;
            let shown = self.window(self.past(), base.limits);
            if reads.has_short_results || !shown.has_short_results {
                return Ok((base, shown));
            }
            reads.has_short_results = true;
        }
    }

    /// Assembles the request, without a summary.
    pub(super) fn request(&self) -> Result<CandidateRequest, Failure> {
        let refused = |code, text| Failure {
            code,
            text,
            is_retryable: false,
            spent: Vec::new(),
        };
        let read = self.read();
        let (base, shown) =
            read.map_err(|error| refused(Code::InvalidArguments, error.to_string()))?;
        let (context, choice) = (self.context, &self.candidate.choice);
        let agent = &context.scope.agent;
        let compacting = self.compacting(&base, &shown);

        let parts = agent.composition(&base, shown.read(), context.history.question, self.counter);
        let RequestBase {
            system,
            tools,
            deferral,
            tokens,
            window,
            ..
        } = base;
        let needed = tokens + shown.tokens;
        tracing::debug!(tokens = needed, "Estimated tokens being sent: {needed}");
        // An assumed window refuses nothing: the provider decides.
        if let Some(window) = window.filter(|window| needed > *window) {
            // The newest message alone, or the tools alone, are too large, so no cut can help.
            let text = format!(
                "the request needs about {needed} tokens ({tokens} of them for the system prompt, \
                 the tools and what stands beside the history), and the model `{}` reads {window}; shorten the message, switch \
                 servers off, or choose a model with a larger window",
                choice.model
            );
            return Err(refused(Code::ContextOverflow, text));
        }
        let longest = agent.longest_answer(choice);
        let at_most = |most: u32| longest.map_or(most, |longest| most.min(longest));
        let options = RequestOptions {
            model: choice.model.clone(),
            tools,
            deferral,
            temperature: agent.parts.temperature,
            effort: context.scope.effort.or(agent.effort(choice)),
            max_tokens: agent.parts.max_tokens.map(at_most),
            max_output: longest,
            compacting,
        };
        let turn = self.past().newest_turn();
        Ok(CandidateRequest {
            body: AssembledRequest::new(&system, &shown.entries, turn, options),
            shown,
            tokens: needed,
            parts,
        })
    }

    /// Returns the compaction to request from the vendor.
    fn compacting(&self, base: &RequestBase, shown: &history::Window) -> Option<Compacting> {
        let compactor = self.compactor.as_ref()?;
        let with_rest = |history: u64| history.saturating_add(base.tokens);
        let room = base.limits.max_tokens.map_or(u64::MAX, with_rest);
        let own = self.context.history.limits;
        Some(Compacting {
            threshold: compactor.threshold(room, own.max_tokens.map(with_rest)),
            resumes: shown.resumed.is_some(),
        })
    }

    /// Assembles the request, with a summary if one is due. If it cannot be written, the other strategies
    /// choose what to leave out.
    pub(super) async fn assemble(&mut self) -> Result<CandidateRequest, Failure> {
        let mut request = self.request()?;
        let Some(due) = request.shown.due.take() else {
            return Ok(request);
        };
        let context = self.context;
        let scope = &context.scope;
        let warn = |text| scope.warn(text);
        let summariser = Summariser {
            agent: &scope.agent,
            choice: &scope.choice,
            meter: &scope.meter,
            gate: context.gate.as_ref().map(|gate| (gate, &warn as Warn<'_>)),
        };
        let (summary, by) = match Box::pin(summariser.summary(&due)).await {
            Ok(written) => written,
            Err(why) => {
                self.forget_summaries(&why);
                return self.request();
            }
        };
        let before = request.shown.tokens;
        let counter = self.counter;
        let count = |entry: &CountedEntry| counter.of_entry(entry);
        request.shown = request.shown.summarised(&summary, by, count);
        request.tokens += request.shown.tokens.saturating_sub(before);
        if let Some(note) = request.shown.entries.first() {
            add(&mut request.parts, note, false, counter);
        }
        let turn = self.past().newest_turn();
        request.body = request.body.showing(&request.shown.entries, turn);
        Ok(request)
    }

    /// Does without summaries from now on, and tells people.
    fn forget_summaries(&mut self, why: &NoSummary) {
        tracing::warn!(%why, "What leaves the context is not summarised");
        let text = format!("What leaves the context is not summarised: {why}");
        self.context.scope.announce("summary_failed", text);
        self.ways
            .strategies
            .retain(|strategy| !strategy.summarises());
    }

    /// Loads the attachments of a request, and reserves its cost.
    pub(super) async fn admit(
        &self,
        request: CandidateRequest,
    ) -> Result<AdmittedRequest, Failure> {
        let contents = self.contents(&request.body).await.map_err(unanswered)?;
        let mut request = CandidateRequest {
            body: request.body.with_contents(contents),
            ..request
        };
        let scope = &self.context.scope;
        let Some(gate) = &self.context.gate else {
            let ceiling = None;
            return Ok(AdmittedRequest { request, ceiling });
        };
        let model = scope.agent.describe(&self.candidate.choice);
        let longest = u32::try_from(model.max_output).unwrap_or(u32::MAX);
        let warn = |text| scope.warn(text);
        let cost = scope.meter.cost();
        let admitted = gate.admit(model, request.paid_tokens(), cost, &warn).await;
        let tightest = admitted.map_err(unanswered)?;
        let limit = request.body.max_tokens.filter(|&limit| limit > 0);
        let ceiling = gate.ceiling(tightest, limit.unwrap_or(longest));
        let tokens = ceiling.as_ref().map(|ceiling| ceiling.tokens);
        request.body = request.body.with_affordable(tokens);
        self.announce_ceiling(ceiling.as_ref());
        Ok(AdmittedRequest { request, ceiling })
    }

    /// Loads the attachments of a request that its model can see.
    async fn contents(&self, body: &AssembledRequest) -> Result<llm::Contents, Refusal> {
        let agent = &self.context.scope.agent;
        let reader = agent.reader(&self.candidate.choice, self.limits());
        let attachments = &agent.parts.attachments;
        attachments
            .contents(&agent.key(), &body.entries, reader.sight())
            .await
    }

    /// Shows that the answer has to be short.
    fn announce_ceiling(&self, ceiling: Option<&Ceiling>) {
        let Some(ceiling) = ceiling.filter(|ceiling| ceiling.tokens < SHORT) else {
            return;
        };
        tracing::info!(tokens = ceiling.tokens, "A budget shortens an answer");
        let scope = &self.context.scope;
        let notice = Notice::of_budget(ceiling.words(), scope.request.turn);
        scope.feed.announce(FeedItem::Notice(Notice {
            code: "answer_limited".into(),
            ..notice
        }));
    }

    /// Returns true if the request should be repeated without the vendor's compacted block, because the
    /// vendor refused it, which can happen with another of its models. The repeated request has the
    /// conversation itself.
    pub(super) fn forgets_block(&mut self, request: &CandidateRequest, error: &llm::Error) -> bool {
        let is_refused = request.shown.resumed.is_some() && error.is_refused_request();
        if is_refused {
            tracing::warn!(?error, "A vendor refuses what it has compacted");
            self.ways.is_block_refused = true;
            let text = "The provider does not take back what it compacted: the conversation is sent \
                        again, as far as it fits";
            let scope = &self.context.scope;
            scope.announce("compaction_refused", text.to_owned());
        }
        is_refused
    }

    /// Returns true if the request should be repeated without a tool that the provider refuses. The tool is left
    /// out for the rest of the session, and people are told once.
    pub(super) fn leaves_out_tool(&self, request: &CandidateRequest, error: &llm::Error) -> bool {
        let Some(tool) = request.body.refused_tool(error) else {
            return false;
        };
        let scope = &self.context.scope;
        let tools = &scope.agent.tools;
        let is_new = tools.leave_out(&self.candidate.choice.provider, tool);
        if is_new {
            let server = tools.server_of(&tool.name);
            let server =
                server.map_or_else(String::new, |server| format!(" of the server `{server}`"));
            let name = &tool.name;
            tracing::warn!(tool.name = %name, ?error, "A provider refuses the tool `{name}`");
            let text = format!(
                "The tool `{name}`{server} is left out while this session is open, because {error}. The model can \
                 still find it and call it with `use_tool`."
            );
            scope.announce("tool_left_out", text);
        }
        is_new
    }

    /// Calibrates the counter with the provider's count.
    pub(super) fn calibrate(&self, answer: &llm::Answer, counted: u64) {
        let (agent, choice) = (&self.context.scope.agent, &self.candidate.choice);
        let offer = agent.parts.providers.find(&agent.tenant, &choice.provider);
        // The tokens of pictures are estimated, and would distort the calibration for texts.
        let has_attachments = self.entries.iter().any(|entry| match &***entry {
            Entry::User { attachments, .. } | Entry::ToolResult { attachments, .. } => {
                !attachments.is_empty()
            }
            Entry::Assistant { .. } | Entry::Note { .. } => false,
        });
        if let (Some(offer), Some(usage)) = (offer, &answer.usage)
            && !usage.is_estimated
            && !has_attachments
            // After a compaction, the provider did not read what was counted here.
            && answer.compacted.is_none()
        {
            offer.calibrate(&choice.model, counted, usage.input_tokens);
        }
    }
}

impl CandidateRequest {
    /// Returns the input tokens to pay for: twice the request if the vendor is going to compact, because it
    /// reads the request once more, and what it then writes and reads is less than that.
    fn paid_tokens(&self) -> u64 {
        let counted = self.tokens.saturating_mul(100 + MARGIN) / 100;
        let compacting = self.body.compacting.filter(|it| counted >= it.threshold);
        compacting.map_or(self.tokens, |_| self.tokens.saturating_mul(2))
    }

    /// Logs each change in how the request shows the history (S0.12). People see it as an event, with the
    /// answer.
    pub(super) fn log_changes(&self) {
        let shown = &self.shown;
        let after = shown.size();
        if shown.shortened > 0 {
            tracing::info!(
                strategy = SHORTEN_RESULTS,
                results = shown.shortened,
                before.messages = after.messages,
                before.tokens = shown.whole_tokens,
                after.messages = after.messages,
                after.tokens = after.tokens,
                "Results of the running turn are shown in a short form"
            );
        }
        let Some(compacted) = &shown.compacted else {
            return;
        };
        tracing::info!(
            strategy = compacted.strategy,
            left = compacted.left,
            left_out = shown.left_out,
            before.messages = compacted.before.messages,
            before.tokens = compacted.before.tokens,
            after.messages = compacted.after.messages,
            after.tokens = compacted.after.tokens,
            "Earlier turns take less of the context"
        );
    }
}

impl SessionAgent {
    /// Returns the composition of a request's tokens, before the provider's report scales them. `question` is
    /// the `seq` of the message that began the turn.
    pub(in crate::agent) fn composition(
        &self,
        base: &RequestBase,
        entries: &[Arc<CountedEntry>],
        question: Option<u64>,
        counter: Counter,
    ) -> RequestParts {
        let mut parts = RequestParts {
            system: base.weights.system,
            context: base.system.sources(counter),
            ..RequestParts::default()
        };
        for (tool, tokens) in base.tools.iter().zip(&base.weights.tools) {
            let server = self.tools.server_of(&tool.name);
            let ours = || match tool.name.as_str() {
                READ_MORE => READING_ON,
                READ_SKILL_FILE | USE_SKILL => SKILLS,
                _ => TOOL_SEARCH,
            };
            let server = server.unwrap_or_else(|| ours().to_owned());
            *parts.tools.entry(server).or_default() += tokens;
        }
        let mut is_asked = false;
        for entry in entries {
            is_asked |= matches!(&***entry, Entry::User { seq, .. } if question.is_some_and(|first| *seq >= first));
            add(&mut parts, entry, is_asked, counter);
        }
        parts
    }
}

/// Adds an entry; `is_asked` = the running turn began with this entry or an earlier one.
fn add(parts: &mut RequestParts, entry: &CountedEntry, is_asked: bool, counter: Counter) {
    let beside = Counter::beside_text(entry);
    parts.attachments += beside.attachments;
    parts.reasoning += beside.native;
    let text = counter.counted(entry);
    let text = text.saturating_sub(beside.attachments + beside.native);
    let part = match &**entry {
        Entry::ToolResult { .. } => &mut parts.results,
        Entry::User { .. } | Entry::Note { .. } if is_asked => &mut parts.message,
        Entry::User { .. } | Entry::Note { .. } | Entry::Assistant { .. } => &mut parts.history,
    };
    *part += text;
}
