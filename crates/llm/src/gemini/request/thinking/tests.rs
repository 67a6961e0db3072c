//! Tables for this file.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Part, Plan, plan, refused_part, wants_signatures};
use crate::Request;
use sepal_core::domain::Effort;

fn request(model: &str, effort: Option<Effort>) -> Request {
    Request {
        model: model.to_owned(),
        effort,
        ..Request::default()
    }
}

fn planned(request: &Request, refused: &[Part]) -> Plan {
    let refused: BTreeSet<Part> = refused.iter().copied().collect();
    plan(request, &refused)
}

fn check(model: &str, effort: Effort, refused: &[Part], expected: &Value) {
    let plan = planned(&request(model, Some(effort)), refused);
    let thinking = serde_json::to_value(plan.thinking).unwrap();
    assert_eq!(thinking, *expected, "{model} {effort} {refused:?}");
}

fn level(level: &str) -> Value {
    json!({"includeThoughts": true, "thinkingLevel": level})
}

fn budget(tokens: u32) -> Value {
    json!({"includeThoughts": true, "thinkingBudget": tokens})
}

/// Removes `includeThoughts`, which is not sent if thinking is off.
fn quiet(mut config: Value) -> Value {
    config.as_object_mut().unwrap().remove("includeThoughts");
    config
}

#[test]
fn the_third_generation_is_told_a_level_and_the_one_before_it_a_budget() {
    use Effort::{Budget, High, Low, Max, Medium, Minimal, Off};
    for model in [
        "gemini-3.1-pro-preview",
        "gemini-3.8-flash",
        "gemini-4-argon",
        "gemini-flash-latest",
    ] {
        for (effort, expected) in [
            (Minimal, "low"),
            (Low, "low"),
            (Medium, "medium"),
            (High, "high"),
            (Max, "high"),
            (Budget(40_000), "high"),
        ] {
            check(model, effort, &[], &level(expected));
        }
        check(model, Off, &[], &quiet(level("low")));
    }
    for model in ["gemini-3-flash-preview", "models/gemini-3.5-flash-lite"] {
        check(model, Minimal, &[], &level("minimal"));
        check(model, Off, &[], &quiet(level("minimal")));
    }
    check("gemini-2.5-pro", Max, &[], &budget(32_768));
    check("gemini-2.5-pro", Budget(9), &[], &budget(128));
    check("gemini-2.5-pro", Off, &[], &quiet(budget(128)));
    check("gemini-2.5-flash", Medium, &[], &budget(12_288));
    check("gemini-2.5-flash", Off, &[], &quiet(budget(0)));
    check("gemini-2.5-flash-lite", Budget(9), &[], &budget(512));
    check("gemini-2.0-flash", High, &[], &Value::Null);
    let none = planned(&request("gemini-3.8-flash", None), &[]);
    assert_eq!(none.config(), None, "nothing is said of it");
}

#[test]
fn what_was_left_out_is_said() {
    let said = |model, effort| -> Vec<String> {
        let plan = planned(&request(model, Some(effort)), &[]);
        plan.left_out.into_iter().map(|(_, text)| text).collect()
    };
    assert_eq!(
        said("gemini-2.0-flash", Effort::High),
        ["`gemini-2.0-flash` does not think"]
    );
    assert!(said("gemini-2.0-flash", Effort::Off).is_empty());
    assert!(said("gemini-2.5-flash", Effort::Off).is_empty());
    for model in ["gemini-2.5-pro", "gemini-3.8-flash"] {
        assert!(
            said(model, Effort::Off)[0].contains("always thinks"),
            "{model}"
        );
    }
    let mut warm = request("gemini-3.8-flash", None);
    warm.temperature = Some(0.1);
    assert_eq!(planned(&warm, &[]).temperature, Some(0.1));
    let cold = planned(&warm, &[Part::Temperature]);
    assert_eq!((cold.temperature, cold.left_out.len()), (None, 1));
}

#[test]
fn a_budget_leaves_room_for_the_answer() {
    let mut request = request("gemini-2.5-flash", Some(Effort::Max));
    request.max_tokens = Some(4_000);
    let config = planned(&request, &[]).config();
    assert_eq!(
        serde_json::to_value(config).unwrap(),
        json!({"maxOutputTokens": 4_000, "thinkingConfig": budget(3_000)})
    );
}

#[test]
fn what_a_model_refused_is_said_in_another_form_or_not_at_all() {
    use Effort::{High, Medium, Minimal, Off};
    check(
        "gemini-3-flash-preview",
        Minimal,
        &[Part::Minimal],
        &level("low"),
    );
    check(
        "gemini-3-pro-preview",
        Medium,
        &[Part::Medium],
        &level("high"),
    );
    check("gemini-flash-latest", High, &[Part::Level], &budget(19_660));
    check(
        "gemini-flash-latest",
        High,
        &[Part::Level, Part::Budget],
        &Value::Null,
    );
    check(
        "gemini-2.5-flash",
        Off,
        &[Part::NoBudget],
        &quiet(budget(1)),
    );
    check("gemini-2.5-flash", High, &[Part::Budget], &Value::Null);
}

#[test]
fn a_refusal_names_the_part_of_the_request_that_it_is_about() {
    fn check(model: &str, effort: Option<Effort>, words: &str, expected: Option<Part>) {
        let mut request = request(model, effort);
        request.temperature = Some(0.1);
        let plan = planned(&request, &[]);
        assert_eq!(refused_part(words, &plan), expected, "{words}");
    }
    let minimal = "Thinking level MINIMAL is not supported for this model.";
    let level = "Thinking level is not supported for this model.";
    let only = "Budget 0 is invalid. This model only works in thinking mode.";
    check(
        "gemini-3-flash",
        Some(Effort::Minimal),
        minimal,
        Some(Part::Minimal),
    );
    check("gemini-3-pro", Some(Effort::High), level, Some(Part::Level));
    check(
        "gemini-2.5-flash",
        Some(Effort::Off),
        only,
        Some(Part::NoBudget),
    );
    check(
        "gemini-2.5-flash",
        Some(Effort::Low),
        "Thinking budget is not supported",
        Some(Part::Budget),
    );
    check(
        "gemini-9",
        None,
        "temperature is not supported",
        Some(Part::Temperature),
    );
    check("gemini-9", None, level, None);
    let signature = "Function call is missing a thought_signature in functionCall parts.";
    check("gemini-3-pro", Some(Effort::High), signature, None);
    check(
        "gemini-3-pro",
        Some(Effort::High),
        "Invalid JSON payload received.",
        None,
    );
}

#[test]
fn signatures_are_wanted_from_the_third_generation_on() {
    for (model, wants) in [
        ("gemini-2.5-pro", false),
        ("models/gemini-2.0-flash", false),
        ("gemini-3-pro-preview", true),
        ("gemini-4-argon", true),
        ("gemini-flash-latest", true),
    ] {
        assert_eq!(wants_signatures(model), wants, "{model}");
    }
}
