//! Tests titles: the first words, then a model's if that is enabled, and a person's above all.

use crate::domain::{MicroUsd, TokenUsage};
use crate::session::properties::world::{World, say};
use crate::session::{Command, Effect, Failure, Spent, effects};

/// A world whose first message was answered.
fn answered(has_titles_made: bool) -> World {
    let mut world = World::new();
    world.rules.has_titles_made = has_titles_made;
    world.tell(&say("how do I mend a sail")).unwrap();
    world.answer("with a needle", vec![]);
    world
}

fn is_asked(world: &World) -> bool {
    effects(&world.state.control).contains(&Effect::MakeTitle)
}

fn title(world: &World) -> &str {
    world.state.control.title.text.as_deref().unwrap()
}

fn titled(title: Option<&str>) -> Command {
    Command::Titled {
        title: title.map(ToOwned::to_owned),
        spent: vec![Spent {
            usage: TokenUsage {
                input_tokens: 10,
                output_tokens: 5,
                ..TokenUsage::default()
            },
            cost: Some(MicroUsd(7)),
            request: None,
        }],
    }
}

#[test]
fn the_first_words_are_the_title_and_no_model_is_asked_unless_that_is_set() {
    let mut world = answered(false);
    assert_eq!(title(&world), "how do I mend a sail");
    assert!(!is_asked(&world));
    // An unrequested title changes nothing and costs nothing.
    let before = world.state.clone();
    world.tell(&titled(Some("Sails"))).unwrap();
    assert_eq!(world.state, before);
}

#[test]
fn a_model_gives_the_title_once_and_what_it_used_counts() {
    let mut world = answered(true);
    assert!(is_asked(&world));
    let before = world.state.control.usage.totals;
    world.tell(&titled(Some("Mending a sail"))).unwrap();
    assert_eq!(title(&world), "Mending a sail");
    assert!(!is_asked(&world));
    let totals = world.state.control.usage.totals;
    assert_eq!(totals.total_tokens - before.total_tokens, 15);
    assert_eq!(totals.cost.0 - before.cost.0, 7);
    world.tell(&titled(Some("Twice"))).unwrap();
    assert_eq!(title(&world), "Mending a sail");
    world.tell(&say("and a rope?")).unwrap();
    world.answer("so", vec![]);
    assert!(!is_asked(&world));
    world.check_folds();
}

#[test]
fn a_model_is_asked_beside_the_next_turn() {
    let mut world = answered(true);
    world.tell(&say("and a rope?")).unwrap();
    assert!(is_asked(&world));
    assert!(matches!(
        effects(&world.state.control)[..],
        [Effect::AskModel(_), Effect::MakeTitle]
    ));
    world.tell(&titled(Some("Sails"))).unwrap();
    assert_eq!(title(&world), "Sails");
    world.answer("so", vec![]);
    assert!(!is_asked(&world));
}

#[test]
fn what_a_person_calls_a_session_stays() {
    let rename = |title: &str| Command::Rename {
        title: title.into(),
    };
    // Named before the answer: no model is asked.
    let mut world = World::new();
    world.rules.has_titles_made = true;
    world.tell(&say("hello")).unwrap();
    world.tell(&rename("Mine")).unwrap();
    world.answer("hi", vec![]);
    assert!(!is_asked(&world));

    // Named while the model is asked: even a title that repeats the first words stays.
    for words in ["Mine", "how do I mend a sail"] {
        let mut world = answered(true);
        world.tell(&rename(words)).unwrap();
        let before = world.state.control.usage.totals.total_tokens;
        world.tell(&titled(Some("Sails"))).unwrap();
        assert_eq!(title(&world), words);
        assert!(world.state.control.usage.totals.total_tokens > before);
        assert!(!is_asked(&world));
    }
}

#[test]
fn a_title_that_cannot_be_had_leaves_the_first_words() {
    let mut world = answered(true);
    world.tell(&titled(None)).unwrap();
    assert_eq!(title(&world), "how do I mend a sail");
    assert!(!is_asked(&world));
    world.tell(&say("more")).unwrap();
    world.answer("yes", vec![]);
    assert!(!is_asked(&world), "nobody pays for it with every answer");
}

#[test]
fn a_turn_that_fails_has_no_title_made_and_a_later_answer_has() {
    let mut world = World::new();
    world.rules.has_titles_made = true;
    world.tell(&say("hello")).unwrap();
    let request = world.state.control.turn.as_ref().unwrap().request();
    let failure = Failure {
        code: crate::domain::Code::ProviderUnavailable,
        text: "away".into(),
        is_retryable: true,
        spent: Vec::new(),
    };
    world
        .tell(&Command::ModelFailed { request, failure })
        .unwrap();
    assert!(!is_asked(&world));
    world.tell(&Command::Retry).unwrap();
    world.answer("hi", vec![]);
    assert!(is_asked(&world));
}

#[test]
fn a_fork_keeps_the_title_and_leaves_the_asking_to_the_other() {
    let mut world = answered(true);
    let fork = world.forked(world.state.control.seq);
    assert!(!is_asked(&fork));
    assert_eq!(title(&fork), "how do I mend a sail");
    world.crash();
    assert!(is_asked(&world), "whoever goes on with it asks");
}
