//! Lists, creates, previews, simulates and revokes rules about calls, within the rights of the caller.

mod network;
mod new_rule;
mod simulation;
mod view;

use std::sync::{Arc, LazyLock};

use sepal_policy as policy;
use sepal_policy::Rule;

pub use new_rule::{NewRule, RuleOffer, RuleReach, RuleWhose};
pub use simulation::{Change, OthersCalls, SimulatedCall, Simulation};
pub use view::{RuleState, RuleView};

use self::view::{of_session, view};
use super::key_limits;
use super::request::SessionAction;
use super::sessions::Sessions;
use crate::domain::{CallId, Caller, Code, Digest, KeyScope, Right, SessionKey};
use crate::jobs::{self, Pool};
use crate::servers::{ListedRule, RuleOrigin};
use crate::session::{Call, Command, Decision, Refusal};
use crate::store;
use crate::store::clock::now;
use crate::store::records::RuleRow;

/// Compiles and tries at most two rules at the same time, with room for 64 waiting.
static RULES: LazyLock<Pool> = LazyLock::new(|| Pool::new("rules", 2).with_queue(64));

/// The reason rules are not shown, created or revoked.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// The caller may not do this, or not with this rule.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// A rule that was created.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatedRule {
    pub view: RuleView,
    /// True if the call that the rule was made from is approved, by the rule or by the decision that came
    /// with it.
    pub has_approved: bool,
}

/// A rule as it would be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewedRule {
    pub rule: Rule,
    /// The rule in words.
    pub sentence: String,
    /// The name that has to be repeated to create the rule, because it lets every call of a tool run that may
    /// write or run something.
    pub confirm: Option<String>,
}

/// Gives callers access to rules.
pub struct RuleAccess<'s> {
    sessions: &'s Sessions,
}

impl<'s> RuleAccess<'s> {
    /// Makes the access to the rules of these sessions.
    pub fn of(sessions: &'s Sessions) -> Self {
        Self { sessions }
    }

    /// Lists the rules that decide in the caller's sessions, in order of precedence; with a session of theirs
    /// also the rules given in it. Admins also see the rules of their tenant that belong to nobody.
    pub async fn list(
        &self,
        caller: &Caller,
        session: Option<&SessionKey>,
    ) -> Result<Vec<RuleView>, RuleError> {
        let mut listed = self.lasting(caller).await?;
        if let Some(key) = session {
            let view = self.sessions.join(key, caller).await?.view;
            listed.extend(view.rules.given().iter().map(of_session));
        }
        self.sessions.listed().await;
        let whose = (!is_admin(caller)).then_some(&caller.user.id);
        let rules = self.sessions.records().rules();
        let uses = rules.uses(&caller.tenant.id, whose).await?;
        let servers = self.sessions.servers();
        let offering = servers.offering(caller.whose()).await?;
        let definition = |rule: &Rule| {
            let (server, tool) = (rule.server.as_exact()?, rule.tool.as_exact()?);
            offering.definition(server, tool)
        };
        let on_request = servers.hosts_on_request();
        let mut views: Vec<RuleView> = listed
            .into_iter()
            .map(|listed| view(caller, listed, &uses, definition))
            .collect();
        for view in &mut views {
            if network::is_lapsed(&view.rule, on_request) {
                view.state = RuleState::Expired;
            }
        }
        views.sort_by_key(|view| (std::cmp::Reverse(view.rule.effect), view.rule.scope));
        Ok(views)
    }

    /// Returns the rules that outlast a session, as far as they concern the caller.
    async fn lasting(&self, caller: &Caller) -> Result<Vec<ListedRule>, RuleError> {
        let offering = self.sessions.servers().offering(caller.whose()).await?;
        if !is_admin(caller) {
            return Ok(offering.rules_for(&caller.user.id).cloned().collect());
        }
        // Admins also see the rules of groups in which they are not.
        let is_theirs = |it: &&ListedRule| {
            it.owner
                .as_ref()
                .is_none_or(|owner| *owner == caller.user.id)
        };
        let listed = offering.listed_rules().iter();
        Ok(listed.filter(is_theirs).cloned().collect())
    }

    /// Creates a rule, which applies from now on, also to waiting calls. If it was made from a call, the
    /// person also approves that call, as it was shown.
    pub async fn give(
        &self,
        caller: &Caller,
        new: NewRule,
        shown: Option<Digest>,
    ) -> Result<CreatedRule, RuleError> {
        may_give(caller, &new.whose)?;
        self.check_group(caller, &new.whose).await?;
        let call = self.call_of(caller, &new).await?;
        let rule = self.rule(caller, &new, call.as_ref()).await?;
        if let (Some(call), Some(shown)) = (&call, &shown)
            && call.digest() != Some(shown)
        {
            let text = "what would run is no longer what was shown; read the card again";
            return Err(Refusal::of_field(Code::ChangedSinceShown, "digest", text).into());
        }
        let wanted = self.confirmation(caller, &rule).await?;
        new_rule::check_confirmed(&new, wanted.as_deref())?;
        self.keep(caller, &new.whose, &rule).await?;
        let has_approved = match (&new.call, call) {
            (Some((key, id)), Some(call)) if rule.effect == policy::Effect::Allow => {
                self.approve(caller, key, id, call.digest()).await
            }
            _ => false,
        };
        tracing::info!(
            tenant.id = %caller.tenant.id,
            user.id = %caller.user.id,
            rule.id = rule.id,
            rule.effect = ?rule.effect,
            rule.scope = ?rule.scope,
            "A rule was given"
        );
        let view = self.find(caller, &new.whose, &rule.id).await?;
        let view = view.ok_or_else(no_rule)?;
        Ok(CreatedRule { view, has_approved })
    }

    async fn keep(&self, caller: &Caller, whose: &RuleWhose, rule: &Rule) -> Result<(), RuleError> {
        let (owner, group) = match whose {
            RuleWhose::Session(key) => {
                let command = Command::GiveRule {
                    rule: Box::new(rule.clone()),
                    by: caller.actor(),
                };
                self.sessions.submit(key, caller, command.into()).await?;
                return Ok(());
            }
            RuleWhose::Person => (Some(caller.user.id.clone()), None),
            RuleWhose::Group(id) => (None, Some(id.clone())),
            RuleWhose::Tenant => (None, None),
        };
        let row = RuleRow {
            rule: rule.clone(),
            owner,
            group,
            created_by: caller.user.id.clone(),
            created_at: now(),
        };
        let rules = self.sessions.records().rules();
        if !rules.add(&caller.tenant.id, &row).await? {
            let text = "there are as many rules as there may be; take some back first";
            return Err(Refusal::new(Code::TooLarge, text).into());
        }
        self.sessions.servers().policy_changed(&caller.tenant.id);
        Ok(())
    }

    /// Approves the call for the person, if the rule has not decided it yet. A decision made meanwhile
    /// stands.
    async fn approve(
        &self,
        caller: &Caller,
        key: &SessionKey,
        call: &CallId,
        digest: Option<&Digest>,
    ) -> bool {
        let decision = Decision {
            call: call.clone(),
            approved: true,
            take_back: false,
            reason: None,
            edit: None,
            dry_run: None,
            digest: digest.cloned(),
            by: caller.actor(),
            role: Some(caller.user.role),
        };
        let request = SessionAction::Decide {
            decision,
            args: None,
        };
        match self.sessions.submit(key, caller, request.into()).await {
            Ok(_) => true,
            Err(refusal) => {
                tracing::debug!(call.id = %call, %refusal, "The rule's call was decided otherwise");
                false
            }
        }
    }

    /// Revokes a rule. Calls that it approved and that have not started are asked about again.
    pub async fn remove(
        &self,
        caller: &Caller,
        id: &str,
        session: Option<&SessionKey>,
    ) -> Result<(), RuleError> {
        may_act(caller)?;
        if let Some(key) = session {
            let command = Command::TakeRuleBack {
                id: id.to_owned(),
                by: caller.actor(),
            };
            self.sessions.submit(key, caller, command.into()).await?;
            return Ok(());
        }
        key_limits::check_not_confined(caller)?;
        let tenant = &caller.tenant.id;
        let rules = self.sessions.records().rules();
        let is_own = rules.remove(tenant, id, Some(&caller.user.id)).await?;
        if !is_own {
            let may = is_admin(caller) && caller.has_scope(KeyScope::Administer);
            let is_tenants = may && rules.remove(tenant, id, None).await?;
            if !is_tenants {
                return Err(self.why_not(caller, id).await?.into());
            }
        }
        self.sessions.servers().policy_changed(tenant);
        tracing::info!(tenant.id = %tenant, user.id = %caller.user.id, rule.id = id, "A rule was taken back");
        Ok(())
    }

    /// Returns the refusal for a rule that was not revoked.
    async fn why_not(&self, caller: &Caller, id: &str) -> Result<Refusal, RuleError> {
        let listed = self.lasting(caller).await?;
        let found = listed.iter().find(|listed| listed.rule.id == id);
        Ok(match found.map(|listed| listed.origin) {
            Some(RuleOrigin::Settings) => {
                let text = "the rule is in the settings of the installation (`policy.rules`)";
                Refusal::new(Code::ReadOnly, text)
            }
            Some(RuleOrigin::Tool) => {
                let text = "the rule is what the page of its server says of the tool";
                Refusal::new(Code::ReadOnly, text)
            }
            Some(RuleOrigin::Group | RuleOrigin::Tenant) if is_admin(caller) => {
                key_limits::require_scope(caller, KeyScope::Administer)?;
                no_rule()
            }
            Some(RuleOrigin::Group | RuleOrigin::Tenant) => {
                let text = "only admins take rules of the tenant and its groups back";
                Refusal::new(Code::NotAllowed, text)
            }
            Some(RuleOrigin::Person | RuleOrigin::Session) | None => no_rule(),
        })
    }

    /// Suggests rules about calls like a waiting one, each described in words.
    pub async fn offers(
        &self,
        caller: &Caller,
        key: &SessionKey,
        id: &CallId,
    ) -> Result<Vec<RuleOffer>, RuleError> {
        let call = self.call(caller, key, id).await?;
        Ok(new_rule::offers(&call, now()))
    }

    /// Returns a rule as it would be stored, without storing it.
    pub async fn preview(
        &self,
        caller: &Caller,
        new: &NewRule,
    ) -> Result<PreviewedRule, RuleError> {
        may_give(caller, &new.whose)?;
        let group = self.check_group(caller, &new.whose).await?;
        let call = self.call_of(caller, new).await?;
        let rule = self.rule(caller, new, call.as_ref()).await?;
        let confirm = self.confirmation(caller, &rule).await?;
        let sentence = policy::sentence_of(&rule, group.as_deref());
        Ok(PreviewedRule {
            rule,
            sentence,
            confirm,
        })
    }

    /// Returns the name that has to be typed again to create the rule: for a rule that lets every call run,
    /// unless it names one tool that a trusted server declares read-only.
    async fn confirmation(
        &self,
        caller: &Caller,
        rule: &Rule,
    ) -> Result<Option<String>, RuleError> {
        if !rule.allows_everything() {
            return Ok(None);
        }
        let offering = self.sessions.servers().offering(caller.whose()).await?;
        let only_reads = match (rule.server.as_exact(), rule.tool.as_exact()) {
            (Some(server), Some(tool)) => offering.only_reads(server, tool),
            _ => false,
        };
        Ok((!only_reads).then(|| new_rule::name_to_confirm(rule).to_owned()))
    }

    /// Builds the rule, if the caller may create it.
    async fn rule(
        &self,
        caller: &Caller,
        new: &NewRule,
        call: Option<&Arc<Call>>,
    ) -> Result<Rule, Refusal> {
        if new.network.is_empty() {
            let (new, call) = (new.clone(), call.cloned());
            return beside(move || new.rule(call.as_deref(), now())).await?;
        }
        let on_request = self.sessions.servers().hosts_on_request();
        network::rule(new, caller, on_request, now())
    }

    async fn call_of(
        &self,
        caller: &Caller,
        new: &NewRule,
    ) -> Result<Option<Arc<Call>>, RuleError> {
        match &new.call {
            Some((key, id)) => Ok(Some(self.call(caller, key, id).await?)),
            None => Ok(None),
        }
    }

    async fn call(
        &self,
        caller: &Caller,
        key: &SessionKey,
        id: &CallId,
    ) -> Result<Arc<Call>, RuleError> {
        let view = self.sessions.join(key, caller).await?.view;
        let call = view.queue.calls.iter().find(|call| call.id == *id).cloned();
        let missing = || {
            let text = format!("no matching pending tool call `{id}`");
            Refusal::of_field(Code::NoSuchCall, "callId", text)
        };
        Ok(call.ok_or_else(missing)?)
    }

    /// Returns the name of the group that a rule is for, if it is for one; refuses one that does not exist.
    async fn check_group(
        &self,
        caller: &Caller,
        whose: &RuleWhose,
    ) -> Result<Option<String>, RuleError> {
        let RuleWhose::Group(id) = whose else {
            return Ok(None);
        };
        let groups = self.sessions.records().user_groups();
        let found = groups.list(&caller.tenant.id, Some(id)).await?.pop();
        let found = found.filter(|_| !id.is_empty());
        let missing = || Refusal::of_field(Code::NotFound, "group", "there is no such group");
        Ok(Some(found.ok_or_else(missing)?.group.name))
    }

    async fn find(
        &self,
        caller: &Caller,
        whose: &RuleWhose,
        id: &str,
    ) -> Result<Option<RuleView>, RuleError> {
        let session = match whose {
            RuleWhose::Session(key) => Some(key),
            RuleWhose::Person | RuleWhose::Group(_) | RuleWhose::Tenant => None,
        };
        let views = self.list(caller, session).await?;
        Ok(views.into_iter().find(|view| view.rule.id == id))
    }
}

/// Compiles and tries rules off the threads that serve others.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    RULES.run(work).await.map_err(|error| match error {
        jobs::Error::Full(_) => {
            let text = "too many rules are being tried at the same time; try again in a moment";
            Refusal::new(Code::TooManyRequests, text)
        }
        jobs::Error::Broken(_) => Refusal::new(Code::Internal, "the rule could not be tried"),
    })
}

fn is_admin(caller: &Caller) -> bool {
    caller.may(Right::ManageRules)
}

fn may_act(caller: &Caller) -> Result<(), Refusal> {
    if caller.user.role.may_act() {
        return Ok(());
    }
    Err(Refusal::new(Code::NotAllowed, "a viewer may read, not act"))
}

fn may_give(caller: &Caller, whose: &RuleWhose) -> Result<(), Refusal> {
    may_act(caller)?;
    let is_of_admins = matches!(whose, RuleWhose::Group(_) | RuleWhose::Tenant);
    if is_of_admins && !is_admin(caller) {
        let text = "only admins give rules for groups and the whole tenant";
        return Err(Refusal::of_field(Code::NotAllowed, "scope", text));
    }
    match whose {
        RuleWhose::Session(_) => Ok(()),
        RuleWhose::Person => key_limits::check_not_confined(caller),
        // A rule for others is more than a decision of one's own.
        RuleWhose::Group(_) | RuleWhose::Tenant => {
            key_limits::require_scope(caller, KeyScope::Administer)
        }
    }
}

fn no_rule() -> Refusal {
    Refusal::new(Code::NotFound, "there is no such rule")
}
