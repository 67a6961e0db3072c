//! Tables for this file.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{MODELS, Part, Plan, Sent, has_tool_search, plan, refused_part};
use crate::Request;
use sepal_core::domain::Effort;

const EVERYTHING: Sent = Sent {
    has_ttl: true,
    is_searching: true,
    is_compacting: true,
};

fn request(model: &str, effort: Option<Effort>) -> Request {
    Request {
        model: model.to_owned(),
        effort,
        ..Request::default()
    }
}

fn planned(request: &Request, refused: &[Part]) -> Plan {
    let refused: BTreeSet<Part> = refused.iter().copied().collect();
    plan(request, Some(64_000), &refused)
}

/// Checks `thinking`, `effort` and `max_tokens`.
fn check(model: &str, effort: Effort, refused: &[Part], expected: &(Value, Option<&str>, u32)) {
    let plan = planned(&request(model, Some(effort)), refused);
    let thinking = serde_json::to_value(plan.thinking).unwrap();
    let got = (thinking, plan.effort, plan.max_tokens);
    assert_eq!(got, *expected, "{model} {effort} {refused:?}");
}

fn adaptive() -> Value {
    json!({"type": "adaptive", "display": "summarized"})
}

fn budget(tokens: u32) -> Value {
    json!({"type": "enabled", "budget_tokens": tokens})
}

#[test]
fn each_generation_is_told_in_its_own_form_how_much_to_think() {
    use Effort::{Budget, High, Low, Max, Medium, Minimal};
    for model in ["claude-opus-4-6", "claude-sonnet-4-6", "claude-fable-5-2"] {
        check(model, High, &[], &(adaptive(), Some("high"), 24_576));
    }
    let model = "claude-opus-5-5";
    check(model, Minimal, &[], &(adaptive(), Some("low"), 24_576));
    check(model, Low, &[], &(adaptive(), Some("low"), 24_576));
    check(model, Medium, &[], &(adaptive(), Some("medium"), 24_576));
    check(model, Max, &[], &(adaptive(), Some("max"), 24_576));
    check(
        model,
        Budget(9_000),
        &[],
        &(adaptive(), Some("medium"), 24_576),
    );
    for model in [
        "claude-3-7-sonnet-latest",
        "claude-sonnet-4-5-20250929",
        "MiniMax-M3",
    ] {
        check(model, Medium, &[], &(budget(10_240), None, 24_576));
        check(model, Minimal, &[], &(budget(2_048), None, 24_576));
        check(model, Max, &[], &(budget(20_480), None, 24_576));
        check(model, Budget(5_000), &[], &(budget(5_000), None, 24_576));
        check(model, Budget(1), &[], &(budget(1_024), None, 24_576));
    }
    let none = planned(&request("claude-opus-5-5", None), &[]);
    assert_eq!(
        (none.thinking, none.effort),
        (None, None),
        "nothing is said of it"
    );
}

#[test]
fn a_model_is_told_not_to_think_only_in_a_form_that_it_takes() {
    let off = |model: &str| planned(&request(model, Some(Effort::Off)), &[]);
    for (model, kind) in [
        ("claude-sonnet-4-5", "disabled"),
        ("claude-opus-4-8", "disabled"),
        ("claude-sonnet-5", "disabled"),
        ("claude-haiku-5-5", "disabled"),
        ("claude-sonnet-5-5", "between_tools"),
    ] {
        let plan = off(model);
        let thinking = serde_json::to_value(plan.thinking).unwrap();
        assert_eq!(thinking, json!({"type": kind}), "{model}");
        assert_eq!((plan.effort, plan.max_tokens), (None, 8_192), "{model}");
        assert!(plan.left_out.is_empty(), "{model}");
    }
    for model in [
        "claude-opus-5-5",
        "claude-fable-5",
        "anthropic.claude-mythos-5-1",
    ] {
        let plan = off(model);
        assert_eq!((plan.thinking, plan.effort), (None, Some("low")), "{model}");
        assert!(plan.left_out[0].1.contains("always thinks"), "{model}");
    }
    assert_eq!(off("claude-3-haiku-20240307").thinking, None);
}

#[test]
fn what_a_budget_of_money_covers_shortens_an_answer_and_lengthens_none() {
    for (covered, effort, limit) in [
        (300, None, 300),
        (30_000, None, 8_192),
        (2_000, Some(Effort::Max), 2_000),
    ] {
        let mut request = request("claude-sonnet-4-5", effort);
        request.affordable = Some(covered);
        assert_eq!(planned(&request, &[]).max_tokens, limit, "{covered}");
    }
}

#[test]
fn a_budget_stays_below_the_longest_answer_or_is_left_out() {
    for (limit, expected) in [
        (64_000, Some(59_904)),
        (8_192, Some(6_144)),
        (2_000, Some(1_500)),
        (1_366, Some(1_025)),
        (1_024, None),
        (16, None),
    ] {
        let mut request = request("claude-sonnet-4-5", Some(Effort::Max));
        request.max_tokens = Some(limit);
        let plan = planned(&request, &[]);
        let thinking = serde_json::to_value(plan.thinking).unwrap();
        assert_eq!(thinking, expected.map_or(Value::Null, budget), "{limit}");
        assert_eq!(plan.max_tokens, limit);
        assert_eq!(plan.left_out.is_empty(), expected.is_some(), "{limit}");
        assert_eq!(plan.is_interleaved, expected.is_some(), "{limit}");
    }
}

#[test]
fn temperature_goes_only_to_models_that_take_it_and_never_with_thoughts() {
    for (model, effort, is_sent) in [
        ("claude-sonnet-4-5", None, true),
        ("claude-sonnet-4-5", Some(Effort::Off), true),
        ("claude-sonnet-4-5", Some(Effort::Low), false),
        ("claude-opus-4-6", None, true),
        ("claude-opus-4-7", None, false),
        ("claude-sonnet-5", None, false),
        ("claude-fable-5-1", None, false),
        ("claude-haiku-5-5", None, true),
        ("claude-haiku-5-5", Some(Effort::Low), false),
        ("MiniMax-M3", None, true),
    ] {
        let mut request = request(model, effort);
        request.temperature = Some(0.3);
        let plan = planned(&request, &[]);
        assert_eq!(plan.temperature.is_some(), is_sent, "{model} {effort:?}");
        assert_eq!(plan.left_out.is_empty(), is_sent, "{model} {effort:?}");
    }
    let mut request = request("claude-haiku-5-5", None);
    request.temperature = Some(0.3);
    assert_eq!(planned(&request, &[Part::Temperature]).temperature, None);
}

#[test]
fn an_old_model_does_not_think_and_that_is_said() {
    let plan = planned(&request("claude-3-5-haiku-latest", Some(Effort::High)), &[]);
    assert_eq!(
        (plan.thinking, plan.effort, plan.max_tokens),
        (None, None, 8_192)
    );
    assert_eq!(
        plan.left_out[0].1,
        "`claude-3-5-haiku-latest` does not think"
    );
}

#[test]
fn what_a_model_refused_is_said_in_another_form_or_not_at_all() {
    use Effort::{High, Max};
    let (adaptive_only, without) = ((adaptive(), None, 24_576), (Value::Null, None, 8_192));
    let model = "claude-opus-4-6";
    check(
        model,
        High,
        &[Part::Adaptive],
        &(budget(16_384), None, 24_576),
    );
    check(model, High, &[Part::Effort], &adaptive_only);
    check(
        model,
        Max,
        &[Part::MaxEffort],
        &(adaptive(), Some("high"), 24_576),
    );
    check(
        model,
        High,
        &[Part::Display],
        &(json!({"type": "adaptive"}), Some("high"), 24_576),
    );
    check(model, High, &[Part::Adaptive, Part::Budget], &without);
    check(
        "MiniMax-M3",
        High,
        &[Part::Budget],
        &(adaptive(), Some("high"), 24_576),
    );
    check(
        "MiniMax-M3",
        High,
        &[Part::Budget, Part::Adaptive],
        &without,
    );
    check(
        model,
        Effort::Off,
        &[Part::Off],
        &(Value::Null, Some("low"), 8_192),
    );
}

fn check_refusal(model: &str, effort: Option<Effort>, words: &str, expected: Option<Part>) {
    let mut request = request(model, effort);
    request.temperature = Some(0.1);
    let plan = planned(&request, &[]);
    assert_eq!(refused_part(words, &plan, EVERYTHING), expected, "{words}");
}

#[test]
fn models_since_4_5_are_told_of_what_they_find() {
    for (model, expected) in [
        ("claude-sonnet-4-5-20250929", true),
        ("claude-haiku-4-5", true),
        ("claude-opus-4-6", true),
        ("anthropic.claude-opus-5-5", true),
        ("claude-fable-5", true),
        ("claude-mythos-preview", true),
        ("claude-opus-4-1-20250805", false),
        ("claude-sonnet-4-20250514", false),
        ("claude-3-5-haiku-latest", false),
        ("MiniMax-M3", false),
    ] {
        assert_eq!(has_tool_search(model), expected, "{model}");
    }
}

#[test]
fn a_refusal_of_the_vendors_search_is_told_from_others() {
    let search = Some(Part::ToolSearch);
    for (words, expected) in [
        (
            "tools.3: Input tag 'tool_search_tool_bm25_20251119' found using 'type' does not match",
            search,
        ),
        (
            "tools.4.custom.defer_loading: Extra inputs are not permitted",
            search,
        ),
        ("Tool reference 'gone' not found in available tools", search),
        ("tools.0.custom.input_schema: JSON schema is invalid", None),
    ] {
        check_refusal("claude-sonnet-4-5", None, words, expected);
    }
    let plan = planned(&request("claude-sonnet-4-5", None), &[]);
    let nothing = Sent::default();
    let refused = refused_part("tool_search is unknown", &plan, nothing);
    assert_eq!(refused, None, "it was not sent");
    let refused = refused_part("context_management: extra inputs", &plan, nothing);
    assert_eq!(
        refused, None,
        "without its block the model would lack what came before"
    );
}

#[test]
fn a_refusal_names_the_part_of_the_request_that_it_is_about() {
    let (high, off) = (Some(Effort::High), Some(Effort::Off));
    let adaptive = "adaptive thinking is not supported on this model";
    let enabled = "\"thinking.type.enabled\" is not supported for this model. Use \
                   \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.";
    let disabled = "\"thinking.type.disabled\" is not supported for this model.";
    check_refusal(
        "claude-haiku-5-5",
        None,
        "`temperature` is deprecated for this model.",
        Some(Part::Temperature),
    );
    check_refusal("claude-opus-4-6", high, adaptive, Some(Part::Adaptive));
    check_refusal("claude-sonnet-4-5", high, enabled, Some(Part::Budget));
    check_refusal("claude-sonnet-5", off, disabled, Some(Part::Off));
    check_refusal(
        "claude-opus-4-6",
        high,
        "This model does not support the effort parameter.",
        Some(Part::Effort),
    );
    check_refusal(
        "claude-opus-4-6",
        Some(Effort::Max),
        "effort: `max` is not supported by this model",
        Some(Part::MaxEffort),
    );
    check_refusal(
        "claude-opus-4-6",
        high,
        "thinking.adaptive.display: Extra inputs are not permitted",
        Some(Part::Display),
    );
    check_refusal(
        "x",
        None,
        "system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted",
        Some(Part::CacheTtl),
    );
    check_refusal(
        "claude-haiku-4-5",
        None,
        "context_management: Extra inputs are not permitted",
        Some(Part::Compaction),
    );
}

/// A parameter that was not sent cannot be left out, and messages are not parameters.
#[test]
fn a_refusal_about_something_else_names_no_part() {
    let high = Some(Effort::High);
    check_refusal(
        "claude-opus-5-5",
        None,
        "`temperature` is deprecated for this model.",
        None,
    );
    check_refusal(
        "claude-opus-4-6",
        high,
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        None,
    );
    check_refusal(
        "claude-opus-4-6",
        high,
        "tools.0.name: Field required",
        None,
    );
    assert!(MODELS.iter().all(|row| !row.family.contains('-')));
}
