//! Context providers of the settings.

use secrecy::ExposeSecret as _;

use super::{check_refused, loaded, yaml};
use crate::{ContextKind, ContextPosition, ContextRole};

fn named(providers: &str) -> String {
    format!("agent: {{context: {{providers: {{{providers}}}}}}}")
}

/// Asserts S4.22.
#[test]
fn providers_of_every_kind_are_read_and_nothing_secret_is_shown() {
    let text = "rules: {kind: file, path: /a.md, role: system}, \
                orders: {kind: database, databaseUrl: 'postgres://a:hush@b/c', query: SELECT 1, limit: 5, \
                         tenants: [ten_1, ten_2]}, \
                status: {kind: rest, url: 'https://e.test/x', headers: {key: hush}, input_parameter: q, \
                         pointer: /a, relevant: 2, max_age_s: 60, position: before}";
    let loaded = loaded(&yaml(&named(text)));
    let providers = &loaded.settings.context.providers;
    let rules = &providers["rules"];
    assert_eq!(
        (rules.kind, rules.role),
        (ContextKind::File, ContextRole::System)
    );
    assert_eq!(rules.position(), ContextPosition::Before);
    let orders = &providers["orders"];
    let url = orders.database_url.as_ref().unwrap();
    assert_eq!(url.expose_secret(), "postgres://a:hush@b/c");
    assert_eq!((orders.limit, orders.tenants.len()), (Some(5), 2));
    assert_eq!(orders.position(), ContextPosition::After);
    let status = &providers["status"];
    assert_eq!(status.headers["key"], "hush");
    assert_eq!(status.position(), ContextPosition::Before);
    assert_eq!((status.relevant, status.max_age_s), (Some(2), Some(60)));
    assert!(!loaded.shown.contains("hush"), "{}", loaded.shown);
}

#[test]
fn a_provider_that_could_never_give_anything_is_refused() {
    let check = |text: &str, pieces: &[&str]| check_refused(&yaml(&named(text)), pieces);
    check(
        "a: {path: /a}",
        &["agent.context.providers.a.kind", "missing"],
    );
    check(
        "a: {kind: file}",
        &["agent.context.providers.a.path", "needs it"],
    );
    check(
        "a: {kind: database, query: SELECT 1}",
        &["agent.context.providers.a.database_url", "needs it"],
    );
    check(
        "a: {kind: rest}",
        &["agent.context.providers.a.url", "needs it"],
    );
    check(
        "a: {kind: file, path: /a, query: SELECT 1}",
        &["agent.context.providers.a.query", "no such field"],
    );
    check("'a b': {kind: file, path: /a}", &["cannot be used"]);
}
