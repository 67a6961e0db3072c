//! Simulates what other rules would have decided about past calls.

use std::collections::{HashMap, HashSet};

use sepal_policy::{Effect, Rule, Rules};
use serde_json::Value;

use super::{NewRule, RuleAccess, RuleError, RuleWhose, beside, may_give};
use crate::agent::feed::ShownEvent;
use crate::domain::{
    CallId, Caller, SessionId, SessionKey, Timestamp, ToolRef, UserId, shell_tool,
};
use crate::servers::ToolOffering;
use crate::session::{Event, SaidCall};
use crate::store::clock::now;
use crate::store::records::SessionRow;

/// The most calls examined.
const CALLS: usize = 500;
/// The most sessions whose journals are read.
const SESSIONS: i64 = 100;
/// The events of a journal that one read asks for.
const EVENTS: usize = 500;
/// The most events read in all: the newest calls are near the ends of journals.
const MOST_EVENTS: usize = 20_000;

/// The change of the rules to simulate.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// A new rule is created.
    Give(&'a NewRule),
}

/// A call of the caller that would be decided differently.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedCall {
    pub session: SessionId,
    pub tool: ToolRef,
    pub at: Timestamp,
    /// The arguments that ran, if a person changed them.
    pub arguments: Value,
    pub before: Effect,
    pub after: Effect,
    /// The reason, as a sentence.
    pub because: String,
}

/// Counts the calls in other people's sessions that a rule for a group or everybody concerns.
///
/// Nothing here depends on the calls' arguments. A count of the calls that would be decided differently
/// would: a caller who may try any number of rules could read a secret out of such counts letter by letter,
/// with a pattern, the words of a command, or a rule that is already in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OthersCalls {
    /// The number of calls examined.
    pub calls: usize,
    /// The number of them whose tools the rule names.
    pub concerned: usize,
}

/// The result of a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Simulation {
    /// The number of the caller's calls that were examined.
    pub calls: usize,
    /// The calls that would be decided differently, newest first.
    pub changed: Vec<SimulatedCall>,
    /// For a rule for a group or everybody; `None` = it is about the caller's own sessions.
    pub others: Option<OthersCalls>,
}

/// A past call.
struct PastCall {
    row: usize,
    call: SaidCall,
    at: Timestamp,
}

impl RuleAccess<'_> {
    /// Compares the current rules with the changed ones on the caller's last calls; for a rule for everybody,
    /// also counts the calls of others that it concerns. Rules of single sessions are left out.
    pub async fn simulate(
        &self,
        caller: &Caller,
        Change::Give(new): Change<'_>,
    ) -> Result<Simulation, RuleError> {
        may_give(caller, &new.whose)?;
        self.check_group(caller, &new.whose).await?;
        let call = self.call_of(caller, new).await?;
        let rule = self.rule(caller, new, call.as_ref()).await?;
        let offering = self.sessions.servers().offering(caller.whose()).await?;
        let rows = self.rows(caller, &new.whose).await?;
        let others = match &new.whose {
            RuleWhose::Session(_) | RuleWhose::Person => None,
            RuleWhose::Group(id) => {
                let groups = self.sessions.records().user_groups();
                let members = groups.members(&caller.tenant.id, id).await?;
                let members: HashSet<UserId> = members.into_iter().map(|it| it.user).collect();
                Some(
                    self.others_calls(caller, &rule, &offering, Some(&members))
                        .await?,
                )
            }
            RuleWhose::Tenant => Some(self.others_calls(caller, &rule, &offering, None).await?),
        };
        let past = self.past_calls(&rows).await;
        let owner = caller.user.id.clone();
        let compared = beside(move || Self::compare(&offering, &rows, past, &rule, &owner));
        Ok(Simulation {
            others,
            ..compared.await?
        })
    }

    fn compare(
        offering: &ToolOffering,
        rows: &[SessionRow],
        past: Vec<PastCall>,
        rule: &Rule,
        owner: &UserId,
    ) -> Simulation {
        let mut simulation = Simulation::default();
        let before = rules_of(offering, owner);
        let all = before.iter().cloned().chain([rule.clone()]);
        let after = Rules::compile_safely(all.collect());
        for past in past {
            let Some(row) = rows.get(past.row) else {
                continue;
            };
            let Some(tool) = offering.tool_of(&past.call.name) else {
                continue;
            };
            simulation.calls += 1;
            let definition = offering.definition(&tool.server, &tool.tool);
            let call = sepal_policy::Call {
                definition: definition.as_deref(),
                shell: shell_tool(&tool),
                now_ms: u64::try_from(now().0).unwrap_or(0),
                ..sepal_policy::Call::new(&tool.server, &tool.tool, &past.call.args)
            };
            let (before, after) = (before.decide(&call), after.decide(&call));
            if before.effect != after.effect {
                simulation.changed.push(SimulatedCall {
                    session: row.key.session.clone(),
                    at: past.at,
                    arguments: past.call.args.clone(),
                    before: before.effect,
                    after: after.effect,
                    because: after.because.to_string(),
                    tool,
                });
            }
        }
        simulation
    }

    /// Counts the calls in other people's sessions whose tools the rule names; with `members`, in theirs alone.
    async fn others_calls(
        &self,
        caller: &Caller,
        rule: &Rule,
        offering: &ToolOffering,
        members: Option<&HashSet<UserId>>,
    ) -> Result<OthersCalls, RuleError> {
        let sessions = self.sessions.records().sessions();
        let mut rows = sessions.newest(&caller.tenant.id, None, SESSIONS).await?;
        let is_meant = |owner: &UserId| members.is_none_or(|all| all.contains(owner));
        rows.retain(|row| row.owner != caller.user.id && is_meant(&row.owner));
        let past = self.past_calls(&rows).await;
        // A tool that the caller is not offered belongs to another person.
        let tools = past
            .iter()
            .filter_map(|past| offering.tool_of(&past.call.name));
        let mut others = OthersCalls::default();
        for tool in tools {
            others.calls += 1;
            let is_named = rule.server.fits(&tool.server) && rule.tool.fits(&tool.tool);
            others.concerned += usize::from(is_named);
        }
        Ok(others)
    }

    async fn rows(&self, caller: &Caller, whose: &RuleWhose) -> Result<Vec<SessionRow>, RuleError> {
        let sessions = self.sessions.records().sessions();
        let tenant = &caller.tenant.id;
        Ok(match whose {
            RuleWhose::Session(key) => {
                self.sessions.admit(key, caller).await?;
                let found = sessions.find(key).await?;
                let own = found.filter(|row| row.owner == caller.user.id);
                own.into_iter().collect()
            }
            RuleWhose::Person | RuleWhose::Group(_) | RuleWhose::Tenant => {
                let owner = Some(&caller.user.id);
                sessions.newest(tenant, owner, SESSIONS).await?
            }
        })
    }

    /// Reads the newest calls of those sessions, newest first within each, with the arguments that ran.
    async fn past_calls(&self, rows: &[SessionRow]) -> Vec<PastCall> {
        let mut calls = Vec::new();
        let mut read = 0;
        for (index, row) in rows.iter().enumerate() {
            let mut before = u64::MAX;
            let mut edited = HashMap::new();
            while calls.len() < CALLS && read < MOST_EVENTS {
                let events = self.events_before(&row.key, before).await;
                let Some(first) = events.first() else { break };
                before = first.seq;
                read += events.len();
                for event in events.iter().rev() {
                    calls.extend(past_calls(index, event, &mut edited));
                }
            }
        }
        calls.truncate(CALLS);
        calls
    }

    /// Reads a page of events; empty if the journal cannot be read now.
    async fn events_before(&self, key: &SessionKey, before: u64) -> Vec<ShownEvent> {
        let journal = self.sessions.journal(key);
        match journal.events_before(before, EVENTS).await {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(session.id = %key.session, ?error, "A session was left out of a simulation");
                Vec::new()
            }
        }
    }
}

/// Returns the calls of an event, with the arguments that a person put in their place: later events contain
/// them, and are read first.
fn past_calls(
    row: usize,
    event: &ShownEvent,
    edited: &mut HashMap<CallId, Value>,
) -> Vec<PastCall> {
    if let Event::Decided {
        call,
        edited: Some(edit),
        ..
    } = &event.event
    {
        edited
            .entry(call.clone())
            .or_insert_with(|| edit.args.clone());
    }
    let Event::Said { calls, .. } = &event.event else {
        return Vec::new();
    };
    let calls = calls.iter().rev().map(|call| PastCall {
        row,
        call: SaidCall {
            args: edited.remove(&call.id).unwrap_or_else(|| call.args.clone()),
            ..call.clone()
        },
        at: event.at,
    });
    calls.collect()
}

/// Compiles the rules that outlast a session, as they apply in the sessions of that person.
fn rules_of(offering: &ToolOffering, person: &UserId) -> Rules {
    let listed = offering.rules_for(person);
    let rules: Vec<Rule> = listed.map(|listed| listed.rule.clone()).collect();
    Rules::compile_safely(rules)
}
