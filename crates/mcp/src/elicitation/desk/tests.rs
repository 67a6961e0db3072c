//! Tests that questions reach the right call, wait, and are answered once.

use serde_json::json;

use super::*;

fn form() -> ElicitRequestParams {
    let schema = json!({ "type": "object", "properties": { "zip": { "type": "string" } } });
    let params = json!({ "message": "Who are you?", "requestedSchema": schema });
    serde_json::from_value(params).unwrap()
}

#[tokio::test]
async fn without_a_call_nobody_is_asked() {
    let desk = Desk::default();
    let answer = desk.ask(form(), None, CancellationToken::new()).await;
    assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
    assert!(!*desk.is_asking().borrow());
}

#[tokio::test]
async fn the_newest_call_asks_and_time_stands_still_meanwhile() {
    let desk = Desk::default();
    let (_first, _unheard) = desk.hear();
    let (call, mut questions) = desk.hear();
    let asking = desk.ask(form(), None, CancellationToken::new());
    let answering = async {
        let question = questions.recv().await.unwrap();
        assert!(*desk.is_asking().borrow());
        assert!(!question.withdrawn().is_cancelled());
        question.answer(FormAnswer::Accept(Some(json!({"zip": "123"}))));
    };
    let (answer, ()) = tokio::join!(asking, answering);
    let answer = answer.unwrap();
    assert_eq!(answer.action, ElicitationAction::Accept);
    assert_eq!(answer.content, Some(json!({"zip": "123"})));
    assert!(!*desk.is_asking().borrow());
    drop(call);
}

#[tokio::test]
async fn what_is_asked_for_a_task_is_asked_for_its_call() {
    let desk = Desk::default();
    let (first, mut meant) = desk.hear();
    let (_second, mut other) = desk.hear();
    first.is_task("7");
    let answering = async {
        let question = meant.recv().await.unwrap();
        question.answer(FormAnswer::Decline);
    };
    let asking = desk.ask(form(), Some("7"), CancellationToken::new());
    let (answer, ()) = tokio::join!(asking, answering);
    assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
    assert!(other.try_recv().is_err());
}

fn completion() -> CreateMessageRequestParams {
    let said = json!([{ "role": "user", "content": { "type": "text", "text": "Hi" } }]);
    serde_json::from_value(json!({ "messages": said, "maxTokens": 9 })).unwrap()
}

#[tokio::test]
async fn completions_are_asked_for_one_after_the_other_and_so_often() {
    let desk = Desk::default();
    let without = desk.sample(completion(), None, CancellationToken::new());
    assert!(without.await.unwrap_err().message.contains("while a call"));
    let (_call, mut questions) = desk.hear();
    let asking =
        (0..=MAX_COMPLETIONS).map(|_| desk.sample(completion(), None, CancellationToken::new()));
    let answering = async {
        for _ in 0..MAX_COMPLETIONS {
            let question = questions.recv().await.unwrap();
            assert!(questions.try_recv().is_err(), "the next one waits");
            question.answer(FormAnswer::Decline);
        }
    };
    let (answers, ()) = tokio::join!(futures::future::join_all(asking), answering);
    let told = |text: &str| {
        let told = answers
            .iter()
            .map(|answer| &answer.as_ref().unwrap_err().message);
        told.filter(|message| message.contains(text)).count()
    };
    assert_eq!(
        (told("rejected"), told("may ask for")),
        (MAX_COMPLETIONS, 1)
    );
}

fn page(id: &str) -> ElicitRequestParams {
    let params = json!({
        "mode": "url", "message": "Pay", "url": "https://a.example/pay", "elicitationId": id,
    });
    serde_json::from_value(params).unwrap()
}

#[tokio::test]
async fn a_page_is_accepted_when_it_is_opened_and_over_when_the_server_says_so() {
    let desk = Desk::default();
    let (_call, mut questions) = desk.hear();
    let asking = desk.ask(page("7"), None, CancellationToken::new());
    let opening = async {
        let mut question = questions.recv().await.unwrap();
        question.open();
        question
    };
    let (answer, question) = tokio::join!(asking, opening);
    assert_eq!(answer.unwrap().action, ElicitationAction::Accept);
    assert!(!question.withdrawn().is_cancelled(), "it goes on");
    assert!(*desk.is_asking().borrow());
    desk.complete("another");
    desk.complete("7");
    question.completed().await;
    let withdrawn = question.withdrawn();
    question.answer(FormAnswer::Accept(None));
    assert!(withdrawn.is_cancelled());
    assert!(!*desk.is_asking().borrow());
    assert_eq!(desk.open.pages(), 0);
}

#[tokio::test]
async fn a_page_that_comes_first_says_how_it_ended_and_not_that_it_was_opened() {
    let desk = Desk::default();
    let address = Address::read("Pay".into(), "https://a.example", "7".into()).unwrap();
    let (mut question, mut answer) = desk.visit(address);
    question.open();
    assert!(answer.try_recv().is_err());
    question.answer(FormAnswer::Decline);
    assert_eq!(answer.await, Ok(FormAnswer::Decline));
}

#[tokio::test]
async fn a_question_that_the_server_withdraws_is_over() {
    let desk = Desk::default();
    let (_call, mut questions) = desk.hear();
    let cancelled = CancellationToken::new();
    let asking = desk.ask(form(), None, cancelled.clone());
    let withdrawing = async {
        let question = questions.recv().await.unwrap();
        cancelled.cancel();
        question.withdrawn().cancelled().await;
    };
    let (answer, ()) = tokio::join!(asking, withdrawing);
    assert_eq!(answer.unwrap().action, ElicitationAction::Cancel);
}

#[tokio::test]
async fn a_call_asks_so_often_and_no_more() {
    let desk = Desk::default();
    let (_call, questions) = desk.hear();
    drop(questions);
    for _ in 0..MAX_FOR_A_CALL {
        let answer = desk.ask(form(), None, CancellationToken::new()).await;
        assert_eq!(answer.unwrap().action, ElicitationAction::Decline);
    }
    let refusal = desk.ask(form(), None, CancellationToken::new()).await;
    assert!(refusal.unwrap_err().message.contains("may ask"));
}
