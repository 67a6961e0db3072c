//! Decides turns: messages, model requests, answers and stops.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::elicitation;
use super::rules::apply_policy;
use super::title::{ask_for_title, title_by_words};
use super::{Draft, nothing_to_do};
use crate::domain::{
    Actor, Attachment, BlobId, CallId, Code, Effort, Memo, ModelRequestId, StrategyName, Timestamp,
    TurnId,
};
use crate::session::call::{
    ApprovalRequirement, Call, CallStatus, Outcome, Output, Proposal, Resolution, RuleName,
    SaidCall, ToolFacts,
};
use crate::session::command::{Answer, Cut, Failure};
use crate::session::event::{Event, MAX_ITERATIONS};
use crate::session::model::{AttemptUsage, ModelChoice};
use crate::session::policy::PolicyEffect;
use crate::session::reasoning::Reasoning;
use crate::session::refusal::Refusal;
use crate::session::state::{Phase, Turn, tool_key};

/// The answer's text if the iteration limit was reached and the model gave none (S3.29).
const ITERATIONS_SPENT: &str = "Reached maximum tool call iterations without a final answer.";

impl Draft<'_> {
    pub(super) fn say(
        &mut self,
        text: &str,
        attachments: &[Attachment],
        author: &Actor,
        client_message_id: Option<&str>,
        effort: Option<Effort>,
    ) -> Result<(), Refusal> {
        if client_message_id.is_some_and(|id| self.control.seq_of_message(id).is_some()) {
            return Ok(());
        }
        if text.trim().is_empty() && attachments.is_empty() {
            return Err(Refusal::of_field(
                Code::InvalidArguments,
                "text",
                "the message is empty",
            ));
        }
        if self.control.waiting.len() >= self.inputs.rules.max_waiting_messages {
            return Err(Refusal::new(
                Code::TooManyRequests,
                "too many messages wait for this turn; stop it or wait for its next model request",
            ));
        }
        self.create();
        // The files of the assistant come first, and only with the first message.
        let due = self.control.due_files.iter();
        let due = due.filter(|due| attachments.iter().all(|sent| sent.id != due.id));
        let with_due = due.chain(attachments).cloned().collect();
        self.push(Event::UserMessage {
            text: text.to_owned(),
            author: author.clone(),
            client_message_id: client_message_id.map(ToOwned::to_owned),
            effort,
            attachments: with_due,
        });
        if self.control.title.text.is_none() {
            let name = attachments.first().map_or("", |first| first.name.as_str());
            let is_blank = text.trim().is_empty();
            title_by_words(self, if is_blank { name } else { text });
        }
        if self.control.turn.is_none() {
            self.ask_model(ModelRequestId::first_after(self.control.turns), false);
        }
        Ok(())
    }

    /// Starts a model request that reads all waiting messages.
    pub(super) fn ask_model(&mut self, request: ModelRequestId, is_retry: bool) {
        self.claim_work();
        let model = self
            .control
            .model
            .as_ref()
            .map(|choice| choice.model.clone());
        let took = self
            .control
            .waiting
            .iter()
            .map(|message| message.seq)
            .collect();
        let model = model.unwrap_or_default();
        self.push(Event::Thinking {
            turn: request.turn,
            iteration: request.iteration,
            model,
            took,
            is_retry,
        });
    }

    /// Starts the next turn if messages are still waiting at the end of a turn.
    fn go_on_with_waiting(&mut self) {
        if self.control.turn.is_none() && !self.control.waiting.is_empty() {
            self.ask_model(ModelRequestId::first_after(self.control.turns), false);
        }
    }

    /// The turn whose current model request is `request`; an outcome of any other request is late.
    fn asking(&self, request: ModelRequestId) -> Option<&Turn> {
        let running = self.control.turn.as_ref();
        running.filter(|running| running.request() == request && running.phase == Phase::Asking)
    }

    pub(super) fn answered(&mut self, request: ModelRequestId, answer: &Answer) {
        let Some(running) = self.asking(request) else {
            return;
        };
        let (started, is_told) = (running.started, running.is_shortening_told);
        self.spend(request.turn, &answer.spent);
        if let Some(compacted) = &answer.compacted {
            self.push(Event::ContextCompacted(compacted.clone()));
        }
        if let Some(shortened) = answer.shortened.filter(|_| !is_told) {
            self.push(Event::ResultsShortened {
                results: shortened.results,
                before: shortened.before,
                after: shortened.after,
            });
        }
        if let Some(by_vendor) = &answer.compacted_by_vendor {
            self.push(Event::CompactedByVendor(by_vendor.clone()));
        }
        let is_last = request.iteration.0 >= self.inputs.rules.max_iterations;
        if answer.calls.is_empty() || is_last {
            self.final_answer(request.turn, started, answer);
            ask_for_title(self, request.turn);
            self.go_on_with_waiting();
            return;
        }
        let calls = self.admit(&answer.calls);
        self.push(Event::Said {
            turn: request.turn,
            iteration: request.iteration,
            text: answer.text.clone(),
            calls: calls.iter().map(|call| SaidCall::of(call)).collect(),
            usage: answer.usage,
            cost: answer.cost,
            request: answer.request.clone(),
            native: answer.native.clone(),
            reasoning: answer.reasoning.clone(),
            answered_by: answer.answered_by.clone(),
        });
        self.push(Event::Queued { calls });
        self.answer_at_once(&answer.calls);
        self.refuse_repeated();
        apply_policy(self);
        self.advance();
    }

    /// Records the path of an attachment, once per content: later requests name the same path.
    pub(super) fn attachment_placed(
        &mut self,
        request: ModelRequestId,
        id: &BlobId,
        name: &str,
        path: &str,
    ) {
        if self.asking(request).is_none() || self.control.placed.contains_key(id) {
            return;
        }
        self.push(Event::AttachmentPlaced {
            id: id.clone(),
            name: name.to_owned(),
            path: path.to_owned(),
        });
    }

    fn final_answer(&mut self, turn: TurnId, started: Timestamp, answer: &Answer) {
        let is_spent = !answer.calls.is_empty();
        let text = match (is_spent, answer.text.is_empty()) {
            (true, true) => ITERATIONS_SPENT.to_owned(),
            _ => answer.text.clone(),
        };
        let asked = self.control.asked().map(|choice| &choice.model);
        let model = answer.answered_by.as_ref().map(|by| &by.model).or(asked);
        let model = model.cloned().unwrap_or_default();
        self.push(Event::Answered {
            turn,
            text,
            model,
            usage: answer.usage,
            cost: answer.cost,
            request: answer.request.clone(),
            duration_ms: self.inputs.now.since_ms(started),
            first_token_ms: answer.first_token_ms,
            finish: if is_spent {
                MAX_ITERATIONS.into()
            } else {
                answer.finish.clone()
            },
            stop_detail: answer.stop_detail.clone(),
            dropped_calls: answer.dropped_calls,
            native: answer.native.clone(),
            reasoning: answer.reasoning.clone(),
            answered_by: answer.answered_by.clone(),
        });
    }

    /// Counts the usage of failed attempts, one event each.
    pub(super) fn spend(&mut self, turn: TurnId, spent: &[AttemptUsage]) {
        for spent in spent {
            self.push(Event::Spent {
                turn,
                usage: spent.usage,
                cost: spent.cost,
                request: spent.request.clone(),
            });
        }
    }

    /// Gives each call of an answer an id, its ruling and its place (S2.30, S2.31).
    pub(super) fn admit(&self, proposals: &[Proposal]) -> Vec<Arc<Call>> {
        let ms = self
            .inputs
            .now
            .0
            .max(self.control.last_call_ms.saturating_add(1));
        let mut seen = self.control.used_tools.clone();
        let calls = proposals.iter().enumerate().map(|(index, proposal)| {
            let facts = match &proposal.resolution {
                Resolution::Ready(facts) => Some(Arc::clone(facts)),
                Resolution::Invalid(_) | Resolution::Answered(_) => None,
            };
            let id = CallId::new(ms, index);
            let (why, asking_rule, wants) =
                self.asked_by_rules(&id, &proposal.args, facts.as_deref());
            let is_first_use = facts
                .as_ref()
                .is_some_and(|facts| seen.insert(tool_key(&facts.tool)));
            Arc::new(Call {
                card: Memo::default(),
                id,
                origin: None,
                provider_id: proposal.provider_id.clone(),
                name: proposal.name.clone(),
                args: proposal.args.clone(),
                is_indirect: proposal.is_indirect,
                original_args: None,
                edited_by: None,
                facts,
                why,
                asking_rule,
                wants,
                consents: Vec::new(),
                is_first_use,
                awaits_person: false,
                task: None,
                gesture: None,
                review: None,
                dry_run: None,
                taken_result: None,
                has_expired: false,
                since: self.inputs.now,
                status: CallStatus::Pending { asked: false },
                result: None,
                result_digest: None,
            })
        });
        calls.collect()
    }

    /// The reason a call would need approval, the rule that asks for it, and its approval requirements.
    fn asked_by_rules(
        &self,
        id: &CallId,
        args: &Value,
        facts: Option<&ToolFacts>,
    ) -> (String, Option<RuleName>, ApprovalRequirement) {
        let Some(facts) = facts else {
            return (String::new(), None, ApprovalRequirement::default());
        };
        let rules = self.inputs.rules;

        let ruling = rules.rule_on(
            &self.control.rules,
            self.control.usage.totals.cost,
            id,
            args,
            facts,
            self.inputs.now,
        );
        let expires_after_ms = rules.approval_expiry_ms;
        let wants = ruling.wants().expiring(self.inputs.now, expires_after_ms);
        if self.control.unknown_equals.contains(&facts.equal) {
            let why = "An equal call has an unknown outcome".to_owned();
            return (why, None, wants);
        }
        let asks = ruling.effect == PolicyEffect::Ask;
        (ruling.why, ruling.rule.filter(|_| asks), wants)
    }

    /// Ends invalid calls, calls beyond the limit of an answer, and calls that are answered already,
    /// without asking for approval (S3.25).
    fn answer_at_once(&mut self, proposals: &[Proposal]) {
        let ids: Vec<CallId> = self.queue().iter().map(|call| call.id.clone()).collect();
        let most = self.inputs.rules.max_calls_per_answer;
        for (index, (id, proposal)) in ids.iter().zip(proposals).enumerate() {
            let output = |text: &str| Output {
                text: text.to_owned(),
                ..Output::default()
            };
            let failed = |problem: &str| Outcome::Failed {
                code: Code::InvalidArguments,
                output: output(problem),
            };
            let outcome = match &proposal.resolution {
                Resolution::Invalid(problem) => failed(problem),
                Resolution::Ready(_) | Resolution::Answered(_) if index >= most => failed(
                    &format!("only {most} calls are allowed in one answer; ask again for this one"),
                ),
                Resolution::Answered(text) => Outcome::Completed {
                    output: output(text),
                },
                Resolution::Ready(_) => continue,
            };
            self.end_call(id, outcome, 0);
        }
    }

    /// Ends calls that repeated with the same results too often, without running them or asking for
    /// approval; the error tells the model that it goes in circles.
    fn refuse_repeated(&mut self) {
        let Some(turn) = &self.control.turn else {
            return;
        };
        let most = self.inputs.rules.max_same_calls.unwrap_or(u32::MAX);
        let Some(before) = turn.repeated.as_ref().filter(|it| it.times >= most) else {
            return;
        };
        let equal = turn
            .queue
            .iter()
            .map(|call| Some(&call.facts.as_ref()?.equal));
        if !equal.eq(before.equal.iter().map(Some)) {
            return;
        }
        let text = format!(
            "not run: this very call was made {} times in a row in this turn and gave the same each \
             time. Use what it gave, try something else, or answer.",
            before.times
        );
        let ids: Vec<CallId> = turn.queue.iter().map(|call| call.id.clone()).collect();
        for id in ids {
            let output = Output {
                text: text.clone(),
                ..Output::default()
            };
            let code = Code::RepeatedCall;
            self.end_call(&id, Outcome::Failed { code, output }, 0);
        }
    }

    pub(super) fn model_failed(&mut self, request: ModelRequestId, failure: &Failure) {
        if self.asking(request).is_none() {
            return;
        }
        self.spend(request.turn, &failure.spent);
        self.push(Event::TurnFailed {
            turn: request.turn,
            code: failure.code,
            text: failure.text.clone(),
            is_retryable: failure.is_retryable,
        });
    }

    /// Repeats the request with a smaller context; the transcript stays (D2).
    pub(super) fn overflowed(&mut self, request: ModelRequestId, cut: Cut, spent: &[AttemptUsage]) {
        if self.asking(request).is_none() {
            return;
        }
        self.spend(request.turn, spent);
        if request.iteration.0 >= self.inputs.rules.max_iterations {
            self.push(Event::TurnFailed {
                turn: request.turn,
                code: Code::ContextOverflow,
                text: "the request does not fit the model's window, and the turn may not ask again"
                    .to_owned(),
                is_retryable: false,
            });
            return;
        }
        self.push(Event::ContextCut {
            strategy: cut.kind.strategy().to_owned(),
            kept: cut.kept,
            max_tokens: Some(cut.max_tokens),
            before: cut.before,
            after: cut.after,
        });
        self.ask_model(request.next(), false);
    }

    pub(super) fn stop(
        &mut self,
        turn: Option<TurnId>,
        said_so_far: Option<&str>,
        thought_so_far: Option<&Reasoning>,
        spent: &[AttemptUsage],
    ) {
        let Some(running) = &self.control.turn else {
            return;
        };
        let id = running.id;
        if turn.is_some_and(|turn| turn != id) || running.is_stopping {
            return;
        }
        if running.phase == Phase::Asking {
            self.spend(id, spent);
            let text = said_so_far
                .filter(|text| !text.is_empty())
                .map(ToOwned::to_owned);
            self.cancelled(id, text, thought_so_far.cloned());
            return;
        }
        self.stop_calls(id, None);
    }

    /// Cancels everything in the turn that has not started. The turn ends with its last running call.
    fn stop_calls(&mut self, turn: TurnId, limit_ms: Option<u64>) {
        self.push(Event::StopRequested { turn, limit_ms });
        elicitation::stop(self, None);
        let undecided = self
            .queue()
            .iter()
            .filter(|call| call.is_pending() || call.is_approved());
        let undecided: Vec<CallId> = undecided.map(|call| call.id.clone()).collect();
        for call in &undecided {
            self.end_call(call, Outcome::Cancelled, 0);
        }
        self.advance();
    }

    /// Ends a turn that ran for too long without a person (S0.58): at once during a model request,
    /// otherwise with its calls.
    pub(super) fn time_out(&mut self, turn: TurnId, limit: Duration, spent: &[AttemptUsage]) {
        let running = self.control.turn.as_ref().filter(|it| it.id == turn);
        let Some((running, since)) = running.and_then(|it| Some((it, it.alone_since()?))) else {
            return;
        };
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        if self.inputs.now.since_ms(since) < limit_ms {
            return;
        }
        if running.phase == Phase::Asking {
            self.spend(turn, spent);
            self.timed_out(turn, limit_ms);
        } else {
            self.stop_calls(turn, Some(limit_ms));
        }
    }

    /// Fails a turn that exceeded its time limit, after all its calls have ended.
    pub(super) fn timed_out(&mut self, turn: TurnId, limit_ms: u64) {
        self.push(Event::TurnFailed {
            turn,
            code: Code::TurnTimeout,
            text: overdue(Duration::from_millis(limit_ms)),
            is_retryable: true,
        });
        self.go_on_with_waiting();
    }

    /// Cancels a stopped turn, after all its calls have ended.
    pub(super) fn cancelled(
        &mut self,
        turn: TurnId,
        text: Option<String>,
        reasoning: Option<Reasoning>,
    ) {
        self.push(Event::Cancelled {
            turn,
            text,
            reasoning,
        });
        self.go_on_with_waiting();
    }

    pub(super) fn retry(&mut self) -> Result<(), Refusal> {
        if self.control.turn.is_some() {
            return Err(nothing_to_do("a turn is running; stop it first"));
        }
        // A fork may begin with an unanswered message.
        let is_unanswered = !self.control.waiting.is_empty();
        if self.control.last_ending.is_none() && !is_unanswered {
            return Err(nothing_to_do("there is no answer to ask again for"));
        }
        let request = ModelRequestId::first_after(self.control.turns);
        self.ask_model(request, !is_unanswered);
        Ok(())
    }

    pub(super) fn withdraw(&mut self, client_message_id: &str) -> Result<(), Refusal> {
        let waiting = self.control.waiting.iter();
        let mut found =
            waiting.filter(|m| m.client_message_id.as_deref() == Some(client_message_id));
        let Some(message_seq) = found.next().map(|message| message.seq) else {
            return Err(nothing_to_do("the model has read that message already"));
        };
        self.push(Event::Withdrawn {
            message_seq,
            client_message_id: client_message_id.to_owned(),
        });
        Ok(())
    }

    pub(super) fn reset_context(&mut self) -> Result<(), Refusal> {
        if self.control.turn.is_some() {
            return Err(nothing_to_do("a turn is running; stop it first"));
        }
        if self.control.version > 0 {
            self.push(Event::ContextReset);
        }
        Ok(())
    }

    /// Allowed during a turn: the running model request keeps its model.
    /// A model that the session's assistant does not allow is refused.
    pub(super) fn choose_model(&mut self, model: &ModelChoice) -> Result<(), Refusal> {
        self.create();
        if let Some(assistant) = &self.control.assistant {
            assistant.definition.check_model(model)?;
        }
        if self.control.model.as_ref() != Some(model) {
            self.push(Event::ModelChosen {
                model: model.clone(),
            });
        }
        Ok(())
    }

    /// Allowed during a turn: applies from the next model request on.
    pub(super) fn choose_window(&mut self, whole: bool) {
        if self.control.context.reads_whole != whole {
            self.create();
            self.push(Event::WindowChosen { whole });
        }
    }

    /// Allowed during a turn: applies from the next model request on.
    pub(super) fn choose_compaction(
        &mut self,
        strategies: Option<&[StrategyName]>,
    ) -> Result<(), Refusal> {
        if let Some(wrong) = strategies.and_then(StrategyName::problem_of) {
            return Err(Refusal::of_field(
                Code::InvalidArguments,
                "strategies",
                wrong,
            ));
        }
        if self.control.context.strategies.as_deref() != strategies {
            self.create();
            let strategies = strategies.map(<[_]>::to_vec);
            self.push(Event::CompactionChosen { strategies });
        }
        Ok(())
    }

    pub(super) fn queue(&self) -> &[Arc<Call>] {
        self.control.turn.as_ref().map_or(&[], |turn| &turn.queue)
    }
}

/// The error text for a turn, or a question, that exceeded its time limit.
pub fn overdue(limit: Duration) -> String {
    let seconds = limit.as_secs_f64();
    format!("this took longer than {seconds} s and was stopped (`agent.chat.turn_timeout_s`)")
}
