//! One road to a model: a request is built of contexts, whoever asks (S4.19).

use super::{File, assert_none, trees};

/// The file that builds requests and asks models.
const ROAD: &str = "crates/context/src/assembler/request.rs";

/// The other files that may name requests, each with its reason.
const PASSERS: &[(&str, &str)] = &[
    (
        "src/agent/budget/paced.rs",
        "is a provider around a provider: it passes on what it is given",
    ),
    (
        "src/gateway/http/models/list/tests.rs",
        "has a provider that lists models and is never asked",
    ),
    (
        "crates/providers/src/offer/unusable.rs",
        "is a provider that refuses whatever it is given",
    ),
];

/// Files that could make a request or ask a model beside the road. A request cannot be made without its
/// name, because its own module and the road are all that return one.
fn other_roads(tree: &str, files: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        let path = format!("{tree}/{}", file.path);
        let is_known = tree == "crates/llm/src"
            || path == ROAD
            || PASSERS.iter().any(|(passer, _)| *passer == path);
        let names = |name: &str| {
            let paths = file.source.paths.iter();
            let mut pairs = paths.flat_map(|path| path.windows(2));
            pairs.any(|pair| {
                matches!(pair[0].as_str(), "llm" | "sepal_llm")
                    && (pair[1] == name || pair[1] == "*")
            })
        };
        for name in ["Request", "ask"] {
            if !is_known && names(name) {
                wrong.push(format!("{path}: `llm::{name}`"));
            }
        }
    }
    wrong
}

/// Asserts S4.19.
#[test]
fn every_model_request_is_built_of_contexts() {
    let exists = |path: &str| {
        let mut trees = trees().iter();
        trees.any(|(tree, files)| {
            files
                .iter()
                .any(|file| format!("{tree}/{}", file.path) == path)
        })
    };
    assert!(exists(ROAD));
    for (path, _) in PASSERS {
        assert!(exists(path), "{path}");
    }
    let wrong = trees().iter();
    let wrong: Vec<String> = wrong
        .flat_map(|(tree, files)| other_roads(tree, files))
        .collect();
    assert_none(
        "Only `context` makes a request and asks a model; build an `AssembledRequest` and call `context::ask`",
        &wrong,
    );
}

#[test]
fn a_second_road_is_caught() {
    let house = [
        ("gateway/a.rs", "use crate::llm::{self, Provider, Request};"),
        ("agent/b.rs", "use crate::llm; fn f() { llm::ask(); }"),
        ("agent/c.rs", "use crate::{domain, llm::{Answer}};"),
        ("agent/d.rs", "fn f(_: sepal_llm::Request) {}"),
        ("agent/budget/paced.rs", "use crate::llm::Request;"),
    ];
    let files: Vec<File> = house
        .iter()
        .map(|(path, text)| File::new(path, text))
        .collect();
    let expected = [
        "src/gateway/a.rs: `llm::Request`",
        "src/agent/b.rs: `llm::ask`",
        "src/agent/d.rs: `llm::Request`",
    ];
    assert_eq!(other_roads("src", &files), expected);
    assert!(other_roads("crates/llm/src", &files).is_empty());
}
