//! What other rules would have decided about calls that were made.

use std::collections::HashMap;

use sepal_policy::{Effect, Rule, Rules};
use serde_json::Value;

use super::{NewRule, RuleAccess, RuleError, RuleWhose, beside, may_give};
use crate::agent::feed::ShownEvent;
use crate::domain::{Caller, SessionId, SessionKey, Timestamp, ToolRef, shell_tool};
use crate::servers::View;
use crate::session::{Event, SaidCall};
use crate::store::clock::now;
use crate::store::records::SessionRow;

/// Calls that are looked at.
const CALLS: usize = 500;
/// Sessions whose journals are read for them.
const SESSIONS: i64 = 100;
/// Events of a journal that are read at once.
const EVENTS: usize = 500;
/// Events that are read in all: the newest calls are near the ends of journals.
const MOST_EVENTS: usize = 20_000;

/// What would be otherwise.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// A rule that is not there is given.
    Give(&'a NewRule),
}

/// A call that would be decided otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedCall {
    pub session: SessionId,
    pub tool: ToolRef,
    pub at: Timestamp,
    /// None = the session is somebody else's.
    pub arguments: Option<Value>,
    pub before: Effect,
    pub after: Effect,
    /// Why it would be, as a sentence.
    pub because: String,
}

/// What other rules would have decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Simulation {
    /// How many calls were looked at.
    pub calls: usize,
    /// Those that would be decided otherwise, the newest first.
    pub changed: Vec<SimulatedCall>,
}

/// A call that was made.
struct PastCall {
    row: usize,
    call: SaidCall,
    at: Timestamp,
}

impl RuleAccess<'_> {
    /// What the rules of now, and those with the change, say of the last calls: the caller's own, or,
    /// where everybody is concerned, the tenant's. Rules of single sessions are left out.
    pub async fn simulate(
        &self,
        caller: &Caller,
        Change::Give(new): Change<'_>,
    ) -> Result<Simulation, RuleError> {
        may_give(caller, &new.whose)?;
        let call = self.call_of(caller, new).await?;
        let rule = self.rule(caller, new, call.as_ref()).await?;
        let view = self.sessions.servers().view(caller.whose()).await?;
        let rows = self.rows(caller, &new.whose).await?;
        let past = self.past_calls(&rows).await;
        let caller = caller.clone();
        Ok(beside(move || Self::compare(&view, (&rows, past), &rule, &caller)).await?)
    }

    fn compare(
        view: &View,
        (rows, past): (&[SessionRow], Vec<PastCall>),
        rule: &Rule,
        caller: &Caller,
    ) -> Simulation {
        let mut rules: HashMap<&str, [Rules; 2]> = HashMap::new();
        let mut simulation = Simulation::default();
        for past in past {
            let Some(row) = rows.get(past.row) else {
                continue;
            };
            let Some(tool) = view.tool_of(&past.call.name) else {
                continue;
            };
            simulation.calls += 1;
            let both = rules.entry(row.owner.as_str()).or_insert_with(|| {
                let before = rules_of(view, row);
                let all = before.iter().cloned().chain([rule.clone()]);
                let after = Rules::compile_safely(all.collect());
                [before, after]
            });
            let definition = view.definition(&tool.server, &tool.tool);
            let call = sepal_policy::Call {
                definition: definition.as_deref(),
                shell: shell_tool(&tool),
                now_ms: u64::try_from(now().0).unwrap_or(0),
                ..sepal_policy::Call::new(&tool.server, &tool.tool, &past.call.args)
            };
            let [before, after] = both;
            let (before, after) = (before.decide(&call), after.decide(&call));
            if before.effect != after.effect {
                simulation.changed.push(SimulatedCall {
                    session: row.key.session.clone(),
                    at: past.at,
                    arguments: (row.owner == caller.user.id).then(|| past.call.args.clone()),
                    before: before.effect,
                    after: after.effect,
                    because: after.because.to_string(),
                    tool,
                });
            }
        }
        simulation
    }

    async fn rows(&self, caller: &Caller, whose: &RuleWhose) -> Result<Vec<SessionRow>, RuleError> {
        let sessions = self.sessions.records().sessions();
        let tenant = &caller.tenant.id;
        Ok(match whose {
            RuleWhose::Session(key) => {
                self.sessions.admit(key, caller).await?;
                sessions.find(key).await?.into_iter().collect()
            }
            RuleWhose::Person => {
                let owner = Some(&caller.user.id);
                sessions.newest(tenant, owner, SESSIONS).await?
            }
            RuleWhose::Tenant => sessions.newest(tenant, None, SESSIONS).await?,
        })
    }

    /// The newest calls of those sessions, the newest first within each.
    async fn past_calls(&self, rows: &[SessionRow]) -> Vec<PastCall> {
        let mut calls = Vec::new();
        let mut read = 0;
        for (index, row) in rows.iter().enumerate() {
            let mut before = u64::MAX;
            while calls.len() < CALLS && read < MOST_EVENTS {
                let events = self.events_before(&row.key, before).await;
                let Some(first) = events.first() else { break };
                before = first.seq;
                read += events.len();
                for event in events.iter().rev() {
                    calls.extend(said_calls(index, event));
                }
            }
        }
        calls.truncate(CALLS);
        calls
    }

    /// A journal that cannot be read now has no calls to tell of.
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

fn said_calls(row: usize, event: &ShownEvent) -> Vec<PastCall> {
    let Event::Said { calls, .. } = &event.event else {
        return Vec::new();
    };
    let calls = calls.iter().rev().map(|call| PastCall {
        row,
        call: call.clone(),
        at: event.at,
    });
    calls.collect()
}

/// The rules that outlast a session, as they decide in the sessions of the row's owner.
fn rules_of(view: &View, row: &SessionRow) -> Rules {
    let is_theirs = |rule: &&crate::servers::ListedRule| {
        rule.owner.as_ref().is_none_or(|owner| *owner == row.owner)
    };
    let listed = view.listed_rules().iter().filter(is_theirs);
    let rules: Vec<Rule> = listed.map(|listed| listed.rule.clone()).collect();
    Rules::compile_safely(rules)
}
