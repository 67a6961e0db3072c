//! Two sessions side by side: one attacks, the other works.

use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ContentBlock};
use sepal::sandbox::{Bounds, ProgramEnd};
use serde_json::json;

use super::super::house::{House, Served, in_time};

/// What the neighbour's file holds.
const KEPT: &str = "of-the-neighbour";
/// How long the neighbour may wait for a small answer on a busy machine.
const NEIGHBOUR: Duration = Duration::from_secs(20);
/// How long a call of the attacker may stay without an answer before its sandbox is ended, as the
/// gateway does with a call that takes too long. Longer than every attack is allowed to run.
const PATIENCE: Duration = Duration::from_secs(20);

/// The attacker's sandbox and the neighbour's.
pub(super) struct Place {
    house: House,
    attacker: Option<Served>,
    neighbour: Served,
    bounds: Bounds,
}

/// How a call of the attacker ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The answer's text.
    Told(String),
    /// There was no answer, and the sandbox ended like this.
    Over(ProgramEnd),
}

impl Outcome {
    /// What the command printed, for a call that was answered.
    pub(super) fn printed(&self) -> &str {
        match self {
            Self::Told(text) => text.split_once("--- stdout ---\n").map_or("", |(_, it)| it),
            Self::Over(_) => "",
        }
    }
}

impl Place {
    pub(super) async fn new(house: House) -> Self {
        Self::with(house, Bounds::default()).await
    }

    /// `bounds` are the attacker's.
    pub(super) async fn with(house: House, bounds: Bounds) -> Self {
        let (attacker, neighbour) = tokio::join!(
            Box::pin(house.serve(1, bounds)),
            Box::pin(house.serve(2, Bounds::default()))
        );
        let mine = json!({ "path": "mine", "content": KEPT });
        neighbour.call("write_file", mine).await;
        Self {
            house,
            attacker: Some(attacker),
            neighbour,
            bounds,
        }
    }

    /// The attacker's sandbox, which runs.
    pub(super) fn session(&self) -> &Served {
        self.attacker.as_ref().expect("it was ended")
    }

    pub(super) fn is_running(&self) -> bool {
        self.attacker
            .as_ref()
            .is_some_and(|it| !it.life.has_ended())
    }

    /// Ends the attacker's sandbox, as the gateway does.
    pub(super) async fn end(&mut self) -> ProgramEnd {
        let Served { client, life } = self.attacker.take().expect("it was ended");
        let ended = in_time(life.kill()).await;
        drop(client);
        ended
    }

    /// Runs a command as the attacker while the neighbour works.
    pub(super) async fn attack(&mut self, command: &str) -> Outcome {
        let (outcome, ()) = tokio::join!(
            Box::pin(self.attempt(command)),
            Box::pin(self.neighbour_works(command))
        );
        match outcome {
            Some(outcome) => outcome,
            None => Outcome::Over(self.end().await),
        }
    }

    /// `None` when there is no answer.
    async fn attempt(&self, command: &str) -> Option<Outcome> {
        let arguments = json!({ "command": command, "timeout_s": 5 });
        let request = CallToolRequestParams::new("execute_command")
            .with_arguments(arguments.as_object().unwrap().clone());
        let session = self.session();
        match tokio::time::timeout(PATIENCE, session.client.call_tool(request)).await {
            Ok(Ok(result)) => match result.content.first() {
                Some(ContentBlock::Text(text)) => Some(Outcome::Told(text.text.clone())),
                _ => panic!("text is expected: `{command}`"),
            },
            Ok(Err(_)) => Some(Outcome::Over(in_time(session.life.ended()).await)),
            Err(_) => None,
        }
    }

    async fn neighbour_works(&self, during: &str) {
        let line = json!({ "command": "cat mine; ls -A | wc -l" });
        let told = tokio::time::timeout(NEIGHBOUR, self.neighbour.call("execute_command", line));
        let told = told.await;
        let told = told.unwrap_or_else(|_| panic!("the neighbour waits during `{during}`"));
        assert!(
            told.ends_with(&format!("{KEPT}1\n")),
            "during `{during}` the neighbour sees {told}"
        );
    }

    /// The session's next call, in a new sandbox where the last one ended, as the gateway does.
    pub(super) async fn next_call_works(&mut self, after: &str) {
        if !self.is_running() {
            self.attacker = None;
            self.attacker = Some(Box::pin(self.house.serve(1, self.bounds)).await);
        }
        let word = json!({ "command": "echo next" });
        let told = self.session().call("execute_command", word).await;
        assert!(told.ends_with("next\n"), "after `{after}`: {told}");
    }

    pub(super) async fn close(self) {
        self.neighbour_works("the end").await;
        assert!(!self.neighbour.life.has_ended());
        drop((self.attacker, self.neighbour));
        self.house.close().await;
    }
}
