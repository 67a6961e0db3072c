//! Derives the decision records of a commit: who sent, asked, decided, changed and ran what. Pure.

use serde::Serialize;
use serde_json::Value;

use crate::domain::{
    Actor, BlobId, CallId, Digest, ElicitationId, FileFacts, GestureMeans, JournalId, Role, RunsIn,
    SessionId, Timestamp, ToolAnnotations, TurnId, canonical_json,
};
use crate::session::call::{
    ApprovalRequirement, Call, Decider, DryRun, DryRunStatus, ElicitationAction, ElicitationEnd,
    RuleName, SamplingStage, Verdict,
};
use crate::session::event::{Commit, EditedArgs, Event};
use crate::session::model::ModelChoice;
use crate::session::policy::{Approver, PolicyEffect};
use crate::session::review::CallReview;
use crate::session::state::Control;

/// One act of a person, a rule or the system that an audit asks about. It holds ids, names and hashes; the
/// texts, arguments and results that were hashed are in the journal.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "act", rename_all_fields = "camelCase")]
pub enum DecisionRecord {
    /// The session began.
    #[serde(rename = "session.created")]
    SessionCreated {
        journal: JournalId,
        owner: Actor,
        model: ModelChoice,
        /// True if what follows comes from another session or another program.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_inherited: bool,
    },
    /// The session's past up to here comes from another session.
    #[serde(rename = "session.forked")]
    SessionForked {
        session: SessionId,
        seq: u64,
        root: SessionId,
    },
    /// Later model requests use another model.
    #[serde(rename = "model.chosen")]
    ModelChosen { model: ModelChoice },
    /// A person sent a message.
    #[serde(rename = "message.sent")]
    MessageSent {
        seq: u64,
        by: Actor,
        /// Hash of the text.
        text: Digest,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<BlobId>,
    },
    /// A waiting message was taken back.
    #[serde(rename = "message.withdrawn")]
    MessageWithdrawn { seq: u64 },
    /// The running turn was asked to stop.
    #[serde(rename = "turn.stop_asked")]
    TurnStopAsked {
        turn: TurnId,
        /// The exceeded time limit, if nobody asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit_ms: Option<u64>,
    },
    /// A running call was asked to stop.
    #[serde(rename = "call.stop_asked")]
    CallStopAsked { call: CallId },
    /// A view asked for a call.
    #[serde(rename = "call.requested")]
    CallRequested { by: Actor, call: CallRef },
    /// People were asked to decide a call.
    #[serde(rename = "call.asked")]
    CallAsked {
        call: CallRef,
        /// Hash of what the people were shown.
        card: Digest,
        /// Hash of the reason the call needs approval, which may quote arguments.
        reason: Digest,
        /// The rule that asks for approval, if one does.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<RuleName>,
        requirement: Requirement,
    },
    /// The people who have to approve, or the time they have, changed.
    #[serde(rename = "call.requirement_changed")]
    CallRequirementChanged {
        call: CallId,
        requirement: Requirement,
    },
    /// A person approved a call that needs more than one approval.
    #[serde(rename = "call.consented")]
    CallConsented {
        by: Actor,
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        /// The call that the approval covers.
        call: CallRef,
        /// Hash of the card that the person was shown.
        card: Digest,
        #[serde(skip_serializing_if = "Option::is_none")]
        edit: Option<EditRecord>,
        #[serde(skip_serializing_if = "Option::is_none")]
        gesture: Option<GestureMeans>,
    },
    /// A person took their approval back.
    #[serde(rename = "call.consent_withdrawn")]
    CallConsentWithdrawn { by: Actor, call: CallId },
    /// A call was approved or rejected, or an approval was taken back.
    #[serde(rename = "call.decided")]
    CallDecided {
        verdict: Verdict,
        by: DecidedBy,
        /// The call that the decision is about, with the arguments that run if it was approved.
        call: CallRef,
        /// Hash of the card that the person was shown; only with a decision of a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        card: Option<Digest>,
        #[serde(skip_serializing_if = "Option::is_none")]
        edit: Option<EditRecord>,
        #[serde(skip_serializing_if = "Option::is_none")]
        gesture: Option<GestureMeans>,
        /// The result of a dry run that replaces running the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        dry_run: Option<Digest>,
        /// Hash of the reason that the decider gave.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Digest>,
    },
    /// A call started.
    #[serde(rename = "call.started")]
    CallStarted { call: CallRef },
    /// A call ended.
    #[serde(rename = "call.ended")]
    CallEnded {
        call: CallId,
        status: &'static str,
        /// Hash of the outcome, with its result.
        result: Digest,
    },
    /// A person stated whether a call with an unknown outcome happened.
    #[serde(rename = "call.settled")]
    CallSettled {
        by: Actor,
        call: CallId,
        happened: bool,
    },
    /// A dry run of a waiting call began.
    #[serde(rename = "dry_run.begun")]
    DryRunBegun {
        by: Actor,
        call: CallId,
        /// Digest of what the dry run runs.
        digest: Digest,
    },
    /// A dry run ended.
    #[serde(rename = "dry_run.ended")]
    DryRunEnded {
        call: CallId,
        digest: Digest,
        status: DryRunStatus,
        /// The stored result that the call may take.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Digest>,
    },
    /// A person discarded a dry run.
    #[serde(rename = "dry_run.discarded")]
    DryRunDiscarded {
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        call: CallId,
    },
    /// A rule applies to this session from now on.
    #[serde(rename = "rule.given")]
    RuleGiven {
        by: Actor,
        rule: String,
        effect: PolicyEffect,
        /// Hash of the whole rule.
        content: Digest,
    },
    /// A rule of this session was removed.
    #[serde(rename = "rule.taken_back")]
    RuleTakenBack { by: Actor, rule: String },
    /// A person allowed a completion that a server requested.
    #[serde(rename = "question.allowed")]
    QuestionAllowed {
        by: Actor,
        question: ElicitationId,
        call: CallId,
    },
    /// A question of a server was answered or closed.
    #[serde(rename = "question.answered")]
    QuestionAnswered {
        /// `None` = nobody answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        question: ElicitationId,
        call: CallId,
        action: ElicitationAction,
        /// Hash of what the server was sent.
        answer: Digest,
        /// The reason the question was closed without an answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<ElicitationEnd>,
    },
}

/// A call, and what would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRef {
    pub id: CallId,
    pub server: String,
    pub tool: String,
    /// Hash of server, definition, arguments and sandbox image; `None` for a tool that does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Hash of the arguments.
    pub arguments: Digest,
}

/// A change of a call's arguments by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditRecord {
    /// The person; `None` = unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// Hash of the arguments as the model wrote them.
    pub before: Digest,
    /// Hash of the arguments that replace them.
    pub after: Digest,
}

/// The person, rule or model that decided a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum DecidedBy {
    Person(Actor),
    /// A rule; without an id, no rule covers the call.
    Rule {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        name: String,
    },
    /// A model that reviews calls.
    Reviewer {
        model: String,
    },
    /// Nobody decided in time.
    Expiry,
    /// The system, for example after a restart.
    System,
}

/// The approvals that a call needs before it may start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The people who have to approve, all of them: `owner` (of the session), `somebody_else`, `two`, or
    /// `role:` and a role.
    pub approvers: Vec<String>,
    /// True if an approval needs a fresh proof of presence.
    pub fresh_gesture: bool,
    /// The time at which the undecided call is rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The parts of a card that people decide by. Its hash is part of stored journals: a new field must be left
/// out where it is empty.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Card<'a> {
    id: &'a CallId,
    name: &'a str,
    arguments: &'a Value,
    original: Option<&'a Value>,
    edited_by: Option<&'a Actor>,
    tool: Option<CardTool<'a>>,
    why: &'a str,
    requirement: Requirement,
    approved_by: Vec<&'a Actor>,
    is_first_use: bool,
    review: Option<&'a CallReview>,
    dry_run: Option<&'a DryRun>,
}

/// The part of a card about the tool. `definition` stands for the whole definition, with its schema.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CardTool<'a> {
    server: &'a str,
    tool: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    definition: Option<&'a Digest>,
    annotations: &'a ToolAnnotations,
    is_trusted: bool,
    runs_in: &'a RunsIn,
    is_without_workspace: bool,
    drift: Option<Timestamp>,
    file: Option<&'a FileFacts>,
    digest: &'a Digest,
}

/// The decision records of a commit that follows `before`, in the order of its events. Events that a fork or
/// an import took over have none: they were decided elsewhere.
pub fn records(before: &Control, commit: &Commit) -> Vec<DecisionRecord> {
    let events = commit.events.as_slice();
    let needing = events.iter().rposition(needs_call);
    // Only decisions about calls are derived from the state, and the first event meets `before` itself.
    let mut control = needing.filter(|place| *place > 0).map(|_| before.clone());
    let mut records = Vec::new();
    let mut seq = commit.seq;
    for (place, event) in events.iter().enumerate() {
        seq = seq.saturating_add(u64::from(event.is_shown()));
        let is_elsewhere = commit.is_inherited && !matches!(event, Event::Created { .. });
        if !is_elsewhere {
            let control = control.as_ref().unwrap_or(before);
            records.extend(record(control, commit, event, seq));
        }
        if let Some(control) = control.as_mut().filter(|_| needing > Some(place)) {
            control.evolve(event, commit.at);
        }
    }
    records
}

/// A decision record as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordForm {
    pub value: Value,
    /// The canonical JSON (RFC 8785).
    pub text: String,
}

/// The JSON of a commit's decision records.
pub fn forms(records: &[DecisionRecord]) -> Vec<RecordForm> {
    let form = |record| {
        // Texts, numbers and names alone: this cannot fail.
        let value = serde_json::to_value(record).unwrap_or_default();
        let text = canonical_json(&value);
        RecordForm { value, text }
    };
    records.iter().map(form).collect()
}

/// The hash of a commit's decision records: of the list of them, as canonical JSON.
pub fn digest_of_records(records: &[RecordForm]) -> Digest {
    /// SHA-256 of `[]`: most commits hold no decision.
    const NONE: &[u8] = b"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";
    let none = || Digest::parse(NONE);
    let known = records.is_empty().then(none).flatten();
    known.unwrap_or_else(|| {
        let mut parts: Vec<&[u8]> = Vec::with_capacity(2 * records.len() + 1);
        for record in records {
            parts.push(if parts.is_empty() { b"[" } else { b"," });
            parts.push(record.text.as_bytes());
        }
        parts.push(b"]");
        Digest::of_parts(&parts)
    })
}

/// Returns true if the record of the event names a call that only the state describes.
fn needs_call(event: &Event) -> bool {
    matches!(
        event,
        Event::Consented { .. } | Event::Decided { .. } | Event::Started { .. }
    )
}

/// The record of an event that follows `control`, if it is an act that an audit asks about.
#[expect(clippy::too_many_lines, reason = "one flat match over all events")]
fn record(control: &Control, commit: &Commit, event: &Event, seq: u64) -> Option<DecisionRecord> {
    Some(match event {
        Event::Created {
            journal,
            owner,
            model,
            ..
        } => DecisionRecord::SessionCreated {
            journal: journal.clone(),
            owner: owner.clone(),
            model: model.clone(),
            is_inherited: commit.is_inherited,
        },
        Event::Forked { origin, .. } => DecisionRecord::SessionForked {
            session: origin.session.clone(),
            seq: origin.seq,
            root: origin.root.clone(),
        },
        Event::ModelChosen { model } => DecisionRecord::ModelChosen {
            model: model.clone(),
        },
        Event::UserMessage {
            text,
            author,
            attachments,
            ..
        } => DecisionRecord::MessageSent {
            seq,
            by: author.clone(),
            text: Digest::of_bytes(text.as_bytes()),
            attachments: attachments.iter().map(|it| it.id.clone()).collect(),
        },
        Event::Withdrawn { message_seq, .. } => {
            DecisionRecord::MessageWithdrawn { seq: *message_seq }
        }
        Event::StopRequested { turn, limit_ms } => DecisionRecord::TurnStopAsked {
            turn: *turn,
            limit_ms: *limit_ms,
        },
        Event::CallStopRequested { call } => DecisionRecord::CallStopAsked { call: call.clone() },
        Event::ViewCalled { call, by } => DecisionRecord::CallRequested {
            by: by.clone(),
            call: CallRef::of(call),
        },
        Event::ApprovalAsked { call, .. } => DecisionRecord::CallAsked {
            call: CallRef::of(call),
            card: card(call),
            reason: Digest::of_bytes(call.why.as_bytes()),
            rule: call.asking_rule.clone(),
            requirement: Requirement::of(&call.wants),
        },
        Event::WantsChanged { call, wants } => DecisionRecord::CallRequirementChanged {
            call: call.clone(),
            requirement: Requirement::of(wants),
        },
        Event::Consented { call, .. } | Event::Decided { call, .. } => {
            return decision(control.call(call)?, event, commit.at);
        }
        Event::ConsentWithdrawn { call, by } => DecisionRecord::CallConsentWithdrawn {
            by: by.clone(),
            call: call.clone(),
        },
        Event::Started { call, digest, .. } => DecisionRecord::CallStarted {
            call: CallRef {
                digest: Some(digest.clone()),
                ..CallRef::of(control.call(call)?)
            },
        },
        Event::Ended { call, outcome, .. } => DecisionRecord::CallEnded {
            call: call.clone(),
            status: outcome.status(),
            result: outcome.digest(),
        },
        Event::Settled {
            call, happened, by, ..
        } => DecisionRecord::CallSettled {
            by: by.clone(),
            call: call.clone(),
            happened: *happened,
        },
        Event::DryRunMoved { call, to, by } => dry_run(call, to.as_deref(), by.as_ref()),
        Event::RuleGiven { rule, by } => DecisionRecord::RuleGiven {
            by: by.clone(),
            rule: rule.id.clone(),
            effect: rule.effect,
            content: Digest::of_form(rule),
        },
        Event::RuleTakenBack { id, by } => DecisionRecord::RuleTakenBack {
            by: by.clone(),
            rule: id.clone(),
        },
        Event::SamplingMoved { id, call, to } => {
            let SamplingStage::Asking { by, .. } = to else {
                return None;
            };
            DecisionRecord::QuestionAllowed {
                by: by.clone(),
                question: id.clone(),
                call: call.clone(),
            }
        }
        Event::ElicitationResolved {
            id,
            call,
            answer,
            by,
            end,
        } => DecisionRecord::QuestionAnswered {
            by: by.clone(),
            question: id.clone(),
            call: call.clone(),
            action: answer.action,
            answer: Digest::of_form(answer),
            end: *end,
        },
        Event::OwnerChanged { .. }
        | Event::AssistantUpdated { .. }
        | Event::Queued { .. }
        | Event::Spent { .. }
        | Event::TaskCreated { .. }
        | Event::TitlingMoved { .. }
        | Event::ReviewAsked { .. }
        | Event::Reviewed { .. }
        | Event::Thinking { .. }
        | Event::Said { .. }
        | Event::Answered { .. }
        | Event::TurnFailed { .. }
        | Event::Cancelled { .. }
        | Event::TitleSet { .. }
        | Event::WindowChosen { .. }
        | Event::ContextReset
        | Event::ContextCut { .. }
        | Event::WorkspaceCopied { .. }
        | Event::AttachmentPlaced { .. }
        | Event::ContextCompacted(_)
        | Event::CompactedByVendor(_)
        | Event::CompactionChosen { .. }
        | Event::HostRefused(_)
        | Event::ElicitationAsked(_)
        | Event::ElicitationOpened { .. }
        | Event::ResultsShortened { .. } => return None,
    })
}

/// The record of a decision about a call as it was before the decision.
fn decision(call: &Call, event: &Event, at: Timestamp) -> Option<DecisionRecord> {
    if let Event::Consented {
        by,
        role,
        digest,
        edited,
        gesture,
        ..
    } = event
    {
        return Some(DecisionRecord::CallConsented {
            by: by.clone(),
            role: *role,
            call: CallRef {
                digest: Some(digest.clone()),
                ..CallRef::edited(call, edited.as_ref())
            },
            card: card(call),
            edit: EditRecord::of(call, edited.as_ref(), Some(by)),
            gesture: *gesture,
        });
    }
    let Event::Decided {
        verdict,
        by,
        reason,
        edited,
        edited_by,
        gesture,
        dry_run,
        ..
    } = event
    else {
        return None;
    };
    let person = match by {
        Decider::Person(person) => Some(person),
        Decider::Rule { .. } | Decider::Reviewer { .. } | Decider::System => None,
    };
    let reason = reason.as_deref().map(str::as_bytes);
    Some(DecisionRecord::CallDecided {
        verdict: *verdict,
        by: DecidedBy::of(by, call, at),
        call: CallRef::edited(call, edited.as_ref()),
        card: person.map(|_| card(call)),
        edit: EditRecord::of(call, edited.as_ref(), edited_by.as_ref().or(person)),
        gesture: *gesture,
        dry_run: dry_run.clone(),
        reason: reason.map(Digest::of_bytes),
    })
}

fn dry_run(call: &CallId, to: Option<&DryRun>, by: Option<&Actor>) -> DecisionRecord {
    let call = call.clone();
    match to {
        None => DecisionRecord::DryRunDiscarded {
            by: by.cloned(),
            call,
        },
        Some(DryRun {
            by,
            digest,
            report: None,
            ..
        }) => DecisionRecord::DryRunBegun {
            by: by.clone(),
            call,
            digest: digest.clone(),
        },
        Some(DryRun {
            digest,
            report: Some(report),
            ..
        }) => DecisionRecord::DryRunEnded {
            call,
            digest: digest.clone(),
            status: report.status,
            result: report.result.clone(),
        },
    }
}

/// The hash of what people are shown of a call.
fn card(call: &Call) -> Digest {
    let tool = call.facts.as_ref().map(|facts| CardTool {
        server: &facts.tool.server,
        tool: &facts.tool.tool,
        title: facts.title.as_deref(),
        description: &facts.description,
        definition: facts.definition.as_ref(),
        annotations: &facts.annotations,
        is_trusted: facts.is_trusted,
        runs_in: &facts.runs_in,
        is_without_workspace: facts.is_without_workspace,
        drift: facts.drift,
        file: facts.file.as_ref(),
        digest: &facts.digest,
    });
    Digest::of_form(&Card {
        id: &call.id,
        name: &call.name,
        arguments: &call.args,
        original: call.original_args.as_ref(),
        edited_by: call.edited_by.as_ref(),
        tool,
        why: &call.why,
        requirement: Requirement::of(&call.wants),
        approved_by: call.consents.iter().map(|consent| &consent.by).collect(),
        is_first_use: call.is_first_use,
        review: call.review.as_ref(),
        dry_run: call.dry_run.as_deref(),
    })
}

impl DecisionRecord {
    /// The hashes of arguments that the record names.
    pub fn arguments(&self) -> impl Iterator<Item = &Digest> {
        let mut call = None;
        let mut edited = None;
        if let Self::CallRequested { call: named, .. }
        | Self::CallAsked { call: named, .. }
        | Self::CallStarted { call: named } = self
        {
            call = Some(named);
        } else if let Self::CallConsented {
            call: named, edit, ..
        }
        | Self::CallDecided {
            call: named, edit, ..
        } = self
        {
            (call, edited) = (Some(named), edit.as_ref());
        }
        let edited = edited.into_iter();
        let edited = edited.flat_map(|edit| [&edit.before, &edit.after]);
        edited.chain(call.map(|call| &call.arguments))
    }
}

impl CallRef {
    fn of(call: &Call) -> Self {
        Self::edited(call, None)
    }

    /// The call with the changed arguments, if a person changed them.
    fn edited(call: &Call, edited: Option<&EditedArgs>) -> Self {
        let tool = call.facts.as_ref().map(|facts| &facts.tool.tool);
        Self {
            id: call.id.clone(),
            server: call.server().to_owned(),
            tool: tool.unwrap_or(&call.name).clone(),
            digest: edited
                .map(|edited| &edited.digest)
                .or(call.digest())
                .cloned(),
            arguments: Digest::of_json(edited.map_or(&call.args, |edited| &edited.args)),
        }
    }
}

impl EditRecord {
    fn of(call: &Call, edited: Option<&EditedArgs>, editor: Option<&Actor>) -> Option<Self> {
        let first = call.original_args.as_ref().unwrap_or(&call.args);
        edited.map(|edited| Self {
            by: editor.cloned(),
            before: Digest::of_json(first),
            after: Digest::of_json(&edited.args),
        })
    }
}

impl DecidedBy {
    fn of(by: &Decider, call: &Call, at: Timestamp) -> Self {
        match by {
            Decider::Person(person) => Self::Person(person.clone()),
            Decider::Rule { id, name } => Self::Rule {
                id: id.clone(),
                name: name.clone(),
            },
            Decider::Reviewer { model, .. } => Self::Reviewer {
                model: model.clone(),
            },
            Decider::System if call.is_overdue(at) => Self::Expiry,
            Decider::System => Self::System,
        }
    }
}

impl Requirement {
    fn of(wants: &ApprovalRequirement) -> Self {
        let approvers = match wants.approvers.as_slice() {
            [] => vec![Approver::Owner.to_string()],
            approvers => approvers.iter().map(ToString::to_string).collect(),
        };
        Self {
            approvers,
            fresh_gesture: wants.fresh_gesture,
            expires_at: wants.expires_at,
        }
    }
}
