//! Learning from refusals.

use std::collections::BTreeSet;
use std::sync::Mutex;

use futures::future::join;
use tokio::sync::Barrier;

use super::{Failed, Learned, MODELS, MOST_REFUSALS, Part};
use crate::Error;

/// Capital letters are refused in one request only.
impl Part for char {
    fn is_lasting(self) -> bool {
        self.is_lowercase()
    }
}

fn error() -> Error {
    Error::Misconfigured {
        provider: "p".to_owned(),
        problem: "refused".to_owned(),
    }
}

/// Sends requests to a model that refuses those parts, in that order; returns the omitted parts of each
/// attempt.
async fn ask(
    learned: &Learned<char>,
    model: &str,
    refuses: &[char],
) -> (Result<(), Error>, Vec<String>) {
    let sent = Mutex::new(Vec::new());
    let attempt = |left_out: BTreeSet<char>| {
        sent.lock().unwrap().push(left_out.iter().collect());
        let part = refuses.iter().find(|part| !left_out.contains(part));
        let answered: Result<(), Failed<char>> = match part {
            Some(part) => Err((error(), Some(*part))),
            None => Ok(()),
        };
        async move { answered }
    };
    let asked = learned.ask(model, attempt).await;
    (asked, sent.into_inner().unwrap())
}

#[tokio::test]
async fn a_refusal_is_learned_for_its_model_and_said_once() {
    let learned = Learned::default();
    let (asked, sent) = ask(&learned, "a", &['x', 'Y']).await;
    assert!(asked.is_ok());
    assert_eq!(sent, ["", "x", "Yx"]);
    let (_, sent) = ask(&learned, "a", &['x', 'Y']).await;
    assert_eq!(sent, ["x", "Yx"], "only what lasts is kept");
    assert_eq!(ask(&learned, "b", &[]).await.1, [""]);
    let tell = |model, text: &str| learned.tell(model, vec![('x', text.to_owned())]);
    assert_eq!(tell("a", "no x at 1"), ["no x at 1"]);
    assert_eq!(tell("a", "no x at 2"), [""; 0]);
    assert_eq!(tell("b", "no x"), ["no x"]);
    for more in 0..MODELS {
        ask(&learned, &more.to_string(), &['x']).await.0.unwrap();
    }
    assert_eq!(ask(&learned, "a", &[]).await.1, [""], "the oldest goes");
}

#[tokio::test]
async fn two_requests_that_learn_the_same_at_once_both_go_well() {
    let (learned, both_sent) = (Learned::default(), Barrier::new(2));
    let attempt = |left_out: BTreeSet<char>| {
        let both_sent = &both_sent;
        async move {
            if left_out.contains(&'x') {
                return Ok(());
            }
            both_sent.wait().await;
            Err((error(), Some('x')))
        }
    };
    let (one, two) = join(learned.ask("m", attempt), learned.ask("m", attempt)).await;
    assert!(one.is_ok() && two.is_ok());
}

#[tokio::test]
async fn nothing_is_kept_of_a_request_that_came_to_nothing() {
    let learned = Learned::default();
    let many: Vec<char> = ('a'..='z').take(MOST_REFUSALS + 1).collect();
    let (asked, sent) = ask(&learned, "m", &many).await;
    assert!(asked.is_err());
    assert_eq!(sent.len(), MOST_REFUSALS + 1);
    assert_eq!(ask(&learned, "m", &[]).await.1, [""]);
    // The refused part was already omitted, so there is nothing more to omit.
    let again = |_| async { Err::<(), _>((error(), Some('x'))) };
    assert!(learned.ask("m", again).await.is_err());
}
