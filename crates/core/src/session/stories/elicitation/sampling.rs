//! Tests servers that request completions during their calls.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::{CallId, Code, Digest, ElicitationId, Timestamp, TokenUsage, TurnId};
use crate::session::properties::world::{World, policy, rule, say};
use crate::session::stories::answer_calls;
use crate::session::{
    Activity, AttemptUsage, Command, Completion, Effect, Elicitation, ElicitationAction,
    ElicitationAnswer, ElicitationEnd, ElicitationReply, Event, ModelChoice, PolicyEffect, Replay,
    Sampling, SamplingMessage, SamplingProblem, SamplingReply, SamplingRole, SamplingStage,
    effects,
};

fn id() -> ElicitationId {
    ElicitationId::from_bits(1)
}

fn spent(input_tokens: u64) -> AttemptUsage {
    AttemptUsage {
        usage: TokenUsage {
            input_tokens,
            ..TokenUsage::default()
        },
        cost: None,
        request: None,
    }
}

fn sampling() -> Sampling {
    Sampling {
        system: None,
        messages: vec![SamplingMessage {
            role: SamplingRole::User,
            text: "2 + 2?".into(),
        }],
        max_tokens: 9,
        temperature: None,
        stop: vec![],
        model: ModelChoice::new("p", "m"),
        at_least: spent(7),
        stage: SamplingStage::Requested,
    }
}

fn completion() -> Completion {
    Completion {
        text: "4".into(),
        model: "m".into(),
        stop_reason: "endTurn".into(),
    }
}

/// A world with a running call whose server requests a completion.
fn asking() -> (World, CallId) {
    let mut world = World::new();
    world.rules.policy = policy(vec![rule("allow", "*", PolicyEffect::Allow)]);
    world.submit(&say("go")).unwrap();
    answer_calls(&mut world, &["a"]);
    let call = world.queue()[0].clone();
    let asked = Command::Elicit(Arc::new(Elicitation {
        id: id(),
        call: call.clone(),
        server: "s".into(),
        message: String::new(),
        schema: Value::Null,
        order: vec![],
        url: None,
        is_opened: false,
        asked_at: Timestamp::default(),
        answer: None,
        sampling: Some(Box::new(sampling())),
    }));
    world.submit(&asked).unwrap();
    (world, call)
}

fn reply(action: ElicitationAction, digest: Option<Digest>, skips_review: bool) -> Command {
    Command::AnswerElicitation(ElicitationReply {
        id: id(),
        answer: ElicitationAnswer {
            action,
            content: None,
        },
        by: World::person(),
        invalid: None,
        sampling: SamplingReply {
            digest,
            skips_review,
        },
    })
}

fn yes(digest: Digest) -> Command {
    reply(ElicitationAction::Accept, Some(digest), false)
}

fn sampled(result: Result<Completion, SamplingProblem>) -> Command {
    Command::Sampled {
        id: id(),
        turn: TurnId(1),
        result,
        spent: vec![spent(11)],
    }
}

fn asks_model(world: &World) -> bool {
    effects(&world.state.control).contains(&Effect::Sample(id()))
}

fn ends(world: &World) -> Vec<(ElicitationAction, Option<ElicitationEnd>)> {
    let ends = world.events().filter_map(|event| {
        if let Event::ElicitationResolved { answer, end, .. } = event {
            Some((answer.action, *end))
        } else {
            None
        }
    });
    ends.collect()
}

fn input_tokens(world: &World) -> Vec<u64> {
    let spent = world.events().filter_map(|event| {
        if let Event::Spent { usage, .. } = event {
            Some(usage.input_tokens)
        } else {
            None
        }
    });
    spent.collect()
}

fn replays(world: &World) {
    let mut replay = Replay::default();
    for commit in &world.journal {
        assert_eq!(replay.step(commit), Ok(()));
    }
}

#[test]
fn a_model_is_asked_after_a_yes_and_its_answer_waits_for_another() {
    let (mut world, _) = asking();
    assert_eq!(world.state.control.activity(), Activity::Waiting(1));
    assert!(!asks_model(&world));
    for (digest, code) in [
        (None, Code::InvalidArguments),
        (Some(Digest::from_wire("x")), Code::ChangedSinceShown),
    ] {
        let refused = world.submit(&reply(ElicitationAction::Accept, digest, false));
        assert_eq!(refused.unwrap_err().code, code);
    }
    let request = sampling().digest();
    world.submit(&yes(request.clone())).unwrap();
    assert!(asks_model(&world));
    assert_eq!(world.state.control.activity(), Activity::Running);
    world.submit(&yes(request.clone())).unwrap();
    world.submit(&sampled(Ok(completion()))).unwrap();
    assert!(!asks_model(&world));
    assert_eq!(world.state.control.activity(), Activity::Waiting(1));
    // A repeat of the first approval does not release the answer.
    world.submit(&yes(request)).unwrap();
    assert_eq!(ends(&world), []);
    let answer = sampling().digest_of(&completion());
    world.submit(&yes(answer.clone())).unwrap();
    assert_eq!(ends(&world), [(ElicitationAction::Accept, None)]);
    world.submit(&yes(answer)).unwrap();
    assert_eq!(ends(&world).len(), 1);
    assert_eq!(input_tokens(&world), [11]);
    replays(&world);
}

#[test]
fn an_answer_goes_on_by_itself_where_the_person_said_so() {
    let (mut world, _) = asking();
    let digest = Some(sampling().digest());
    let yes = reply(ElicitationAction::Accept, digest, true);
    world.submit(&yes).unwrap();
    world.submit(&sampled(Ok(completion()))).unwrap();
    assert_eq!(ends(&world), [(ElicitationAction::Accept, None)]);
    replays(&world);
}

#[test]
fn a_no_ends_it_at_every_stage_and_what_was_used_counts() {
    for steps in 0..3 {
        let (mut world, _) = asking();
        if steps > 0 {
            world.submit(&yes(sampling().digest())).unwrap();
        }
        if steps > 1 {
            world.submit(&sampled(Ok(completion()))).unwrap();
        }
        let no = reply(ElicitationAction::Decline, None, false);
        world.submit(&no).unwrap();
        assert_eq!(ends(&world), [(ElicitationAction::Decline, None)]);
        assert!(!asks_model(&world));
        if steps == 1 {
            world.submit(&sampled(Ok(completion()))).unwrap();
        }
        let counted: &[u64] = if steps > 0 { &[11] } else { &[] };
        assert_eq!(input_tokens(&world), counted);
        assert_eq!(ends(&world).len(), 1);
        replays(&world);
    }
}

#[test]
fn a_failure_closes_it() {
    let (mut world, _) = asking();
    world.submit(&yes(sampling().digest())).unwrap();
    let problem = SamplingProblem {
        code: Code::BudgetExhausted,
        text: "spent".into(),
    };
    world.submit(&sampled(Err(problem))).unwrap();
    let failed = (ElicitationAction::Cancel, Some(ElicitationEnd::Failed));
    assert_eq!(ends(&world), [failed]);
    replays(&world);
}

#[test]
fn what_a_gateway_asked_that_is_gone_counts_and_is_not_asked_again() {
    let (mut world, _) = asking();
    world.submit(&yes(sampling().digest())).unwrap();
    world.crash();
    assert!(!asks_model(&world));
    assert_eq!(input_tokens(&world), [7]);
    let over = (ElicitationAction::Cancel, Some(ElicitationEnd::CallEnded));
    assert_eq!(ends(&world), [over]);
    replays(&world);
}

#[test]
fn it_ends_with_its_call() {
    let (mut world, call) = asking();
    world.submit(&yes(sampling().digest())).unwrap();
    world.submit(&Command::StopCall { call }).unwrap();
    let stopped = (ElicitationAction::Cancel, Some(ElicitationEnd::Stopped));
    assert_eq!(ends(&world), [stopped]);
    assert!(!asks_model(&world));
    world.submit(&sampled(Ok(completion()))).unwrap();
    assert_eq!(input_tokens(&world), [11]);
    replays(&world);
}
