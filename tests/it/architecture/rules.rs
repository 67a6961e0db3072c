//! The rules themselves, tried on small houses that break them.

use super::{
    File, circles, empty_names, impurities, undocumented, without_front_page, wrong_layers,
    wrong_reading_order,
};

#[track_caller]
fn check(rule: fn(&[File]) -> Vec<String>, house: &[(&str, &str)], expected: &[&str]) {
    let files: Vec<File> = house
        .iter()
        .map(|(path, text)| File::new(path, text))
        .collect();
    assert_eq!(rule(&files), expected);
}

#[test]
fn an_upward_use_is_caught() {
    let upward = [("agent/db.rs", "use crate::{domain, gateway::Gateway};")];
    check(
        wrong_layers,
        &upward,
        &["agent/db.rs: `agent` may not use `gateway`"],
    );
    let in_core = [("domain/id.rs", "use crate::session;")];
    check(
        wrong_layers,
        &in_core,
        &["domain/id.rs: `domain` may not use `session`"],
    );
    let hidden = [(
        "agent/feed/wire.rs",
        "mod t { use super::super::super::super::app::App; }",
    )];
    check(
        wrong_layers,
        &hidden,
        &["agent/feed/wire.rs: `agent` may not use `app`"],
    );
    let app = [("gateway/mod.rs", "use crate::app;")];
    check(
        wrong_layers,
        &app,
        &["gateway/mod.rs: `gateway` may not use `app`"],
    );
    let unknown = [("agent/mod.rs", "use crate::lost::X;")];
    check(
        wrong_layers,
        &unknown,
        &["agent/mod.rs: `agent` may not use `lost`"],
    );
}

#[test]
fn a_downward_use_is_fine() {
    let house = [
        (
            "agent/tools.rs",
            "use super::Agent; use crate::{mcp, llm::Provider, domain::CallId};",
        ),
        ("app.rs", "use crate::gateway::serve;"),
        ("main.rs", "use sepal::app;"),
    ];
    check(wrong_layers, &house, &[]);
}

#[test]
fn a_clock_in_the_core_is_caught() {
    let house = [
        ("session/decide.rs", "use std::time::{Duration, Instant};"),
        ("history/mod.rs", "async fn f() {}"),
        ("domain/id.rs", "use std::{fmt, fs::File};"),
        ("store/mod.rs", "use std::fs; async fn f() {}"),
        (
            "session/mod.rs",
            "/// No async, no tokio::spawn.\nuse std::time::Duration;",
        ),
    ];
    let expected = [
        "domain/id.rs: `std::fs::File`",
        "history/mod.rs: `async`",
        "session/decide.rs: `Instant`",
        "session/decide.rs: `std::time::Instant`",
    ];
    check(impurities, &house, &expected);
}

#[test]
fn a_circle_is_caught_and_a_chain_is_not() {
    let circle = [
        ("llm/mod.rs", "mod a; mod b; mod c; use a::A;"),
        ("llm/a.rs", "use super::b::B;"),
        ("llm/b.rs", "use crate::llm::c::C;"),
        ("llm/c.rs", "use super::a::A; use super::Error;"),
        ("llm/d.rs", "use super::a::A;"),
    ];
    check(circles, &circle, &["llm::a", "llm::b", "llm::c"]);
    check(circles, &circle[..3], &[]);
}

#[test]
fn names_front_pages_and_order_are_caught() {
    let house = [
        ("llm/util.rs", "use a;"),
        ("mcp/mod.rs", "//! Tools.\nmod helpers {}"),
    ];
    let expected = ["llm/util.rs: module `util`", "mcp/mod.rs: module `helpers`"];
    check(empty_names, &house, &expected);
    check(without_front_page, &house, &["llm/util.rs"]);
    let order = [("lib.rs", "pub mod domain; pub mod session; mod lost;")];
    let expected = ["`session` stands too low", "`lost` is in no layer"];
    check(wrong_reading_order, &order, &expected);
}

#[test]
fn an_item_without_a_word_is_caught() {
    let house = [(
        "llm/mod.rs",
        "/// A.\n#[derive(Debug)]\npub struct A {\n    pub x: u8,\n}\n\npub fn b() {}\n",
    )];
    check(undocumented, &house, &["llm/mod.rs: `pub fn b() {}`"]);
}
