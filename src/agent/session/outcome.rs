//! Stores the outcomes of effects, however long the store is away: what they report has already happened.

use std::time::Duration;

use tokio::time::Instant;

use super::LiveSession;
use super::commit::Failure;
use crate::agent::mailbox::{Message, store_away};
use crate::session::{Command, Outcome, Output, Refusal, Spent, Titling};

/// The most outcomes in one commit.
const MOST_OUTCOMES: usize = 16;
/// The backoff between attempts to append an outcome while the store is away.
const STORE_RETRY: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

impl LiveSession {
    /// Stores an outcome together with those right behind it: calls that ran concurrently tend to end
    /// together, and one commit is cheaper than several.
    pub(super) async fn outcomes(&mut self, first: Command, epoch: u64) {
        let mut all = vec![first];
        while self.take_outcomes(&mut all, epoch) && all.len() < self.running.calls() {
            // Yield once, so that outcomes that are ready reach the mailbox. Do not wait for others.
            let before = all.len();
            tokio::task::yield_now().await;
            if !self.take_outcomes(&mut all, epoch) || all.len() == before {
                break;
            }
        }
        let is_barred = self.may_begin_work(&all) && self.is_barred().await;
        if is_barred {
            self.end_turns().await;
        }
        self.store(all, epoch).await;
        if is_barred {
            // A waiting message may have begun another turn.
            self.end_turns().await;
        }
    }

    /// Returns true if something may start because of these outcomes. Those of a plain answer, and of calls
    /// beside others that still run, begin nothing.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "of most outcomes it is not known"
    )]
    fn may_begin_work(&self, outcomes: &[Command]) -> bool {
        let control = &self.replica.state.control;
        let rules = self.replica.agent.tools.rules(&self.replica.owner().id);
        let may_ask_for_title = rules.has_titles_made && control.titling == Titling::Unasked;
        let may_follow = !control.waiting.is_empty() || may_ask_for_title;
        let queue = || control.turn.iter().flat_map(|turn| &turn.queue);
        let running = queue().filter(|call| call.is_executing()).count();
        let all_run = queue().all(|call| call.is_executing() || call.is_ended());
        outcomes.iter().any(|outcome| match outcome {
            Command::Answered { answer, .. } => may_follow || !answer.calls.is_empty(),
            Command::CallEnded { .. } => !all_run || running <= outcomes.len(),
            _ => true,
        })
    }

    /// Stores outcomes of one epoch.
    async fn store(&mut self, all: Vec<Command>, epoch: u64) {
        let approves = |command: &Command| matches!(command, Command::Reviewed { .. });
        if all.iter().any(approves) {
            // Load the current rules, as for a person's approval.
            self.replica.agent.tools.refresh().await;
        }
        if all.len() > 1 {
            let together: Vec<&Command> = all.iter().collect();
            if self.replica.commit(&together, Some(epoch)).await.is_ok() {
                return;
            }
            // Store them one by one, so that one that is too large or too late does not hold up the others.
        }
        for command in all {
            self.outcome(command, Some(epoch)).await;
        }
    }

    /// Takes outcomes from the mailbox. Returns true if more of them may come.
    fn take_outcomes(&mut self, all: &mut Vec<Command>, epoch: u64) -> bool {
        while all.len() < MOST_OUTCOMES && self.set_aside.is_none() {
            match self.mailbox.try_recv() {
                Ok(Message::Outcome {
                    command,
                    epoch: its,
                }) if its == epoch => all.push(*command),
                Ok(other) => self.set_aside = Some(other),
                Err(_) => return true,
            }
        }
        false
    }

    /// Stores an outcome, retrying until the store is back; meanwhile commands are refused. An outcome that
    /// can never be stored is replaced by a failure; a damaged journal ends the task.
    pub(super) async fn outcome(&mut self, mut command: Command, epoch: Option<u64>) {
        let mut pauses = STORE_RETRY
            .iter()
            .copied()
            .chain(std::iter::repeat(Duration::from_secs(5)));
        while let Some(error) = self.try_outcome(&mut command, epoch).await {
            tracing::warn!(session.id = %self.replica.key.session, ?error, "The store is away; an outcome waits");
            let until = Instant::now() + pauses.next().unwrap_or_default();
            if !Box::pin(self.refuse_until(until)).await {
                return;
            }
        }
    }

    /// Tries once. Returns the error if the store is away; `None` if the outcome needs no further attempt.
    async fn try_outcome(
        &mut self,
        command: &mut Command,
        epoch: Option<u64>,
    ) -> Option<crate::store::Error> {
        let failure = match self.replica.commit(&[command], epoch).await {
            Err(Failure::Unfit(refusal)) => {
                tracing::error!(session.id = %self.replica.key.session, %refusal, "An outcome cannot be stored");
                *command = unstorable(command, &refusal)?;
                self.replica.commit(&[command], epoch).await.err()?
            }
            answer => answer.err()?,
        };
        match failure {
            Failure::Refused(refusal) | Failure::Unfit(refusal) => {
                tracing::debug!(session.id = %self.replica.key.session, %refusal, "An outcome came too late");
                None
            }
            Failure::Damaged => None,
            Failure::Away(error) => Some(error),
        }
    }

    /// Refuses commands until then. Returns true if the task goes on.
    async fn refuse_until(&mut self, until: Instant) -> bool {
        let mut later = Vec::new();
        let goes_on = loop {
            // A message may have come between the outcomes that were taken together.
            let mut next = self.set_aside.take();
            if next.is_none() {
                next = tokio::select! {
                    () = self.stop.cancelled() => break false,
                    () = tokio::time::sleep_until(until) => break true,
                    message = self.mailbox.recv() => message,
                };
            }
            match next {
                Some(Message::Outcome { command, epoch }) => later.push((command, epoch)),
                Some(message) => message.refuse(&store_away()),
                None => break false,
            }
        };
        for (command, epoch) in later {
            // These outcomes need the same store. Handle them one after the other, to keep their order.
            Box::pin(self.outcome(*command, Some(epoch))).await;
        }
        goes_on
    }
}

/// Returns the outcome to store instead of one that cannot be stored.
fn unstorable(outcome: &Command, refusal: &Refusal) -> Option<Command> {
    let text = format!("the result cannot be stored: {}", refusal.message);
    let code = refusal.code;
    if let Command::Answered { request, answer } = outcome {
        let request = *request;
        // The request was paid for in any case.
        let own = Spent {
            usage: answer.usage,
            cost: answer.cost,
            request: answer.request.clone(),
        };
        let spent = answer.spent.iter().cloned().chain([own]).collect();
        let failure = crate::session::Failure {
            code,
            text,
            is_retryable: true,
            spent,
        };
        return Some(Command::ModelFailed { request, failure });
    }
    if let Command::CallEnded {
        call, duration_ms, ..
    } = outcome
    {
        let output = Output {
            text,
            ..Output::default()
        };
        return Some(Command::CallEnded {
            call: call.clone(),
            outcome: Outcome::Failed { code, output },
            duration_ms: *duration_ms,
        });
    }
    None
}
