//! Decides whose approvals let a call run, and who may decide about a call.

use serde_json::Value;

use super::Draft;
use crate::domain::{Actor, Code, Digest, GestureMeans, Role, UserId};
use crate::session::call::{ApprovalRequirement, Call, CallStatus, Consent, Decider};
use crate::session::command::Decision;
use crate::session::event::{EditedArgs, Event};
use crate::session::policy::{Approver, EditsByOthers, PolicyEffect, Ruling};
use crate::session::refusal::Refusal;

/// The current ruling on a call with these arguments; `None` for a tool that does not exist.
pub(super) fn ruling(draft: &Draft<'_>, call: &Call, args: &Value) -> Option<Ruling> {
    let facts = call.facts.as_deref()?;
    let rules = draft.inputs.rules;

    Some(rules.rule_on(
        &draft.control.rules,
        draft.control.usage.totals.cost,
        &call.id,
        args,
        facts,
        draft.inputs.now,
    ))
}

/// A person who decides, with their role as far as it is known.
#[derive(Clone, Copy)]
pub(super) struct Person<'a> {
    pub(super) actor: &'a Actor,
    pub(super) role: Option<Role>,
}

impl<'a> Person<'a> {
    pub(super) fn new(actor: &'a Actor, role: Option<Role>) -> Self {
        Self { actor, role }
    }
}

impl<'a> Person<'a> {
    /// The person of a decision.
    pub(super) fn of(decision: &'a Decision) -> Self {
        Self {
            actor: &decision.by,
            role: decision.role,
        }
    }
}

/// A person's yes to a waiting call.
pub(super) struct Yes<'a> {
    pub(super) person: Person<'a>,
    /// The arguments, if the person changes them.
    pub(super) edited: Option<EditedArgs>,
    /// Digest of the dry-run result that the call is to get instead of running.
    pub(super) dry_run: Option<Digest>,
    /// True if the yes names the digest of the card that the person was shown.
    pub(super) names_digest: bool,
    pub(super) reason: Option<&'a str>,
}

/// The approval with which a call may run.
pub(super) struct Approval {
    pub(super) by: Decider,
    /// The arguments with which it runs, if this approval changes them.
    pub(super) edited: Option<EditedArgs>,
    pub(super) gesture: Option<GestureMeans>,
    /// Digest of the dry-run result that the call gets instead of running.
    pub(super) dry_run: Option<Digest>,
    pub(super) reason: Option<String>,
}

impl Approval {
    /// An approval of the call as it is.
    pub(super) fn of(by: Decider) -> Self {
        Self {
            by,
            edited: None,
            gesture: None,
            dry_run: None,
            reason: None,
        }
    }
}

/// Records a person's approval of a waiting call, perhaps with edited arguments. The call is approved once
/// everybody whom the current rules require has approved. Returns false for a repeat, which changes
/// nothing. With the digest of a dry run's result, the call gets that result and does not run.
pub(super) fn consent(draft: &mut Draft<'_>, call: &Call, yes: Yes<'_>) -> Result<bool, Refusal> {
    let Yes {
        person,
        edited,
        dry_run,
        names_digest,
        reason,
    } = yes;
    let Person { actor: by, role } = person;
    let edit = edited.as_ref().map(|edited| (edited, &by.id));
    check_may_edit(draft, call, edit)?;
    let wants = wanted(draft, call, edit);
    let gesture = given_gesture(draft, call, edited.as_ref());
    let owner = owner(draft);
    if !wants.may_approve(&by.id, role, owner.as_ref()) {
        return Err(not_theirs(&call.name, &wants));
    }
    let said = call.consents.iter().find(|it| it.by.id == by.id);
    let has_shown_so = said.is_some_and(|said| said.gesture.is_some()) && edited.is_none();
    if wants.fresh_gesture && gesture.is_none() && !has_shown_so {
        return Err(gesture_required(&call.name));
    }
    let is_of_others = call.consents.iter().any(|it| it.by.id != by.id);
    let editor = call.edited_by.as_ref();
    let is_by_others = editor.is_none_or(|editor| editor.id != by.id);
    let may_be_unseen = call.original_args.is_some() && (is_of_others || is_by_others);
    if may_be_unseen && edited.is_none() && !names_digest {
        return Err(Refusal::of_field(
            Code::ChangedSinceShown,
            "digest",
            "somebody changed the arguments; say yes to this call alone, with the `digest` of its card",
        ));
    }
    let approval = Approval {
        gesture,
        reason: reason.map(ToOwned::to_owned),
        ..Approval::of(Decider::Person(by.clone()))
    };
    if wants.approvers.is_empty() {
        want(draft, call, &wants);
        let approval = Approval {
            edited,
            dry_run,
            ..approval
        };
        draft.approve(&call.id, approval);
        return Ok(true);
    }
    let is_repeat = edited.is_none() && said.is_some() && (gesture.is_none() || has_shown_so);
    let is_open = |consents: &[Consent]| wants.open(owner.as_ref(), consents).next().is_some();
    if is_repeat && is_open(&call.consents) {
        return Ok(false);
    }
    let mine = Consent {
        by: by.clone(),
        role,
        at: draft.inputs.now,
        gesture,
    };
    if dry_run.is_some() && is_open(&with(call, mine)) {
        return Err(only_the_last_takes_a_result());
    }
    want(draft, call, &wants);
    if !is_repeat {
        let digest = edited.as_ref().map(|edited| &edited.digest);
        let Some(digest) = digest.or(call.digest()).cloned() else {
            return Ok(false);
        };
        draft.push(Event::Consented {
            call: call.id.clone(),
            by: by.clone(),
            role,
            digest,
            edited,
            gesture,
        });
    }
    let now = draft.control.call(&call.id);
    if now.is_some_and(|now| !is_open(&now.consents)) {
        let approval = Approval {
            dry_run,
            ..approval
        };
        draft.approve(&call.id, approval);
    }
    Ok(true)
}

/// Withdraws a person's approval of a call that waits for others; a repeat changes nothing.
pub(super) fn withdraw_consent(draft: &mut Draft<'_>, call: &Call, by: &Actor) {
    if call.consents.iter().any(|it| it.by.id == by.id) {
        draft.push(Event::ConsentWithdrawn {
            call: call.id.clone(),
            by: by.clone(),
        });
    }
}

/// Checks that a person may reject a call or take its approval back: the session's owner, and everybody
/// whose approval would count.
pub(super) fn check_may_decide(
    draft: &Draft<'_>,
    call: &Call,
    person: Person<'_>,
) -> Result<(), Refusal> {
    let Person { actor: by, role } = person;
    let owner = owner(draft);
    let is_owner = owner.as_ref() == Some(&by.id);
    if is_owner || call.wants.may_approve(&by.id, role, owner.as_ref()) {
        return Ok(());
    }
    Err(not_theirs(&call.name, &call.wants))
}

/// Checks that a person's approval of a call would count under the current rules.
pub(super) fn check_may_approve(
    draft: &Draft<'_>,
    call: &Call,
    person: Person<'_>,
) -> Result<(), Refusal> {
    let Person { actor: by, role } = person;
    let wants = wanted(draft, call, None);
    if wants.may_approve(&by.id, role, owner(draft).as_ref()) {
        return Ok(());
    }
    Err(not_theirs(&call.name, &wants))
}

/// Checks that a person may start a dry run of the call: edited arguments run nowhere, not even in a copy
/// of the workspace, before the session's owner has approved them.
pub(super) fn check_may_try(draft: &Draft<'_>, call: &Call, by: &Actor) -> Result<(), Refusal> {
    let owner = owner(draft);
    if owner.as_ref() == Some(&by.id) || !call.lacks_owner(owner.as_ref()) {
        return Ok(());
    }
    let text = format!(
        "the arguments of `{}` were changed: it can be tried by the owner of the session, or once the \
         owner has said yes to them",
        call.name
    );
    Err(Refusal::of_field(Code::NotAllowed, "callId", text))
}

/// Checks that a person may edit the arguments.
fn check_may_edit(
    draft: &Draft<'_>,
    call: &Call,
    edit: Option<(&EditedArgs, &UserId)>,
) -> Result<(), Refusal> {
    let may_edit = draft.inputs.rules.edits_by_others == EditsByOthers::NeedOwner;
    let is_owner = edit.is_none_or(|(_, by)| owner(draft).as_ref() == Some(by));
    if may_edit || is_owner || !is_other(call, edit) {
        return Ok(());
    }
    let text = format!(
        "only the owner of the session may change the arguments of `{}` \
         (`agent.chat.edits_by_others`); refuse the call and say why, and the model can ask anew",
        call.name
    );
    Err(Refusal::of_field(Code::NotAllowed, "args", text))
}

/// Returns true if the call would run with other arguments than the proposed ones.
fn is_other(call: &Call, edit: Option<(&EditedArgs, &UserId)>) -> bool {
    let Some((edited, _)) = edit else {
        return call.is_edited();
    };
    edited.args != *call.original_args.as_ref().unwrap_or(&call.args)
}

/// Records the current approval requirements of a pending call if they differ from those on its card.
pub(super) fn renew_wants(draft: &mut Draft<'_>, call: &Call) {
    let wants = wanted(draft, call, None);
    want(draft, call, &wants);
}

/// Returns true if an approved call has the approvals that the current rules require.
pub(super) fn is_still_approved(draft: &Draft<'_>, call: &Call) -> bool {
    let wants = wanted(draft, call, None);
    let CallStatus::Approved {
        by: Decider::Person(by),
        at,
    } = &call.status
    else {
        return true;
    };
    // A sole approval of the owner is not stored as a consent.
    let mut consents = call.consents.clone();
    if consents.iter().all(|it| it.by.id != by.id) {
        consents.push(Consent {
            by: by.clone(),
            role: None,
            at: *at,
            gesture: call.gesture,
        });
    }
    let owner = owner(draft);
    wants.open(owner.as_ref(), &consents).next().is_none()
}

/// The approval requirements of the current rules for a call as it is, or with edited arguments; the expiry
/// stays. Edited arguments also need the owner's approval, whoever wrote them: an approver of another
/// person's call decides whether it runs, not what else runs.
fn wanted(
    draft: &Draft<'_>,
    call: &Call,
    edit: Option<(&EditedArgs, &UserId)>,
) -> ApprovalRequirement {
    let args = edit.map_or(&call.args, |(edited, _)| &edited.args);
    let ruling = ruling(draft, call, args).filter(|it| it.effect == PolicyEffect::Ask);
    let wants = ApprovalRequirement {
        expires_at: call.wants.expires_at,
        expires_after_ms: call.wants.expires_after_ms,
        ..ruling.map(|ruling| ruling.wants()).unwrap_or_default()
    };
    if is_other(call, edit) {
        return wants.with_owner();
    }
    wants
}

fn want(draft: &mut Draft<'_>, call: &Call, wants: &ApprovalRequirement) {
    let now = draft.control.call(&call.id);
    if now.is_some_and(|now| *wants != now.wants) {
        draft.push(Event::WantsChanged {
            call: call.id.clone(),
            wants: wants.clone(),
        });
    }
}

/// The means of the decision's gesture, if the gesture covers this call as it would run.
fn given_gesture(
    draft: &Draft<'_>,
    call: &Call,
    edited: Option<&EditedArgs>,
) -> Option<GestureMeans> {
    let gesture = draft.gesture.as_ref()?;
    let edited = edited.map(|edited| &edited.args);
    let is_for_it = gesture.covers(&call.id, call.digest()?, edited);
    is_for_it.then_some(gesture.means)
}

/// The consents to a call, including this one.
fn with(call: &Call, mine: Consent) -> Vec<Consent> {
    let others = call.consents.iter().filter(|it| it.by.id != mine.by.id);
    let mut consents: Vec<Consent> = others.cloned().collect();
    consents.push(mine);
    consents
}

/// Refuses a dry-run result before the last approval: later approvers, who have not seen that result, might
/// expect the call to run.
fn only_the_last_takes_a_result() -> Refusal {
    let text = "others have to say yes to this call too: whoever says the last yes may take the result \
                of the dry run; until then say yes to the call itself";
    Refusal::of_field(Code::NotAllowed, "dryRun", text)
}

fn gesture_required(name: &str) -> Refusal {
    let text = format!(
        "a rule wants a fresh gesture with the yes to `{name}`: your passkey or your password. One \
         counts once, for two minutes, and for what was shown"
    );
    Refusal::of_field(Code::GestureRequired, "gesture", text)
}

fn owner(draft: &Draft<'_>) -> Option<UserId> {
    draft.control.owner.as_ref().map(|owner| owner.id.clone())
}

fn not_theirs(name: &str, wants: &ApprovalRequirement) -> Refusal {
    let who: Vec<String> = wants.approvers.iter().map(told).collect();
    let who = match who.as_slice() {
        [] => told(&Approver::Owner),
        _ => who.join(", and "),
    };
    let text = format!("your yes does not let `{name}` run: it needs {who}");
    Refusal::new(Code::NotAllowed, text)
}

fn told(approver: &Approver) -> String {
    match approver {
        Approver::Owner => "the owner of the session".to_owned(),
        Approver::Role(role) => format!("somebody with the role `{role}`"),
        Approver::SomebodyElse => "somebody else than the owner of the session".to_owned(),
        Approver::Two => "two people".to_owned(),
    }
}
