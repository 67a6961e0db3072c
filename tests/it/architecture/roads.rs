//! One road to a model: a request is built of contexts, whoever asks (S4.19).

use super::{File, assert_none, files};

/// Where a request becomes one, and is asked.
const ROAD: &str = "context/assembler/request.rs";

/// Who else may name what is asked, each with its reason.
const PASSERS: &[(&str, &str)] = &[
    (
        "agent/budget/paced.rs",
        "is a provider around a provider: it passes on what it is given",
    ),
    (
        "gateway/http/models/list/tests.rs",
        "has a provider that lists models and is never asked",
    ),
    (
        "providers/offer/unusable.rs",
        "is a provider that refuses whatever it is given",
    ),
];

/// Files that could make a request or ask a model beside the road. A request cannot be made without its
/// name, because its own module and the road are all that return one.
fn other_roads(files: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        let is_known = file.path.starts_with("llm/")
            || file.path == ROAD
            || PASSERS.iter().any(|(path, _)| *path == file.path);
        let names = |name: &str| {
            let paths = file.source.paths.iter();
            let mut pairs = paths.flat_map(|path| path.windows(2));
            pairs.any(|pair| pair[0] == "llm" && (pair[1] == name || pair[1] == "*"))
        };
        for name in ["Request", "ask"] {
            if !is_known && names(name) {
                wrong.push(format!("{}: `llm::{name}`", file.path));
            }
        }
    }
    wrong
}

/// Asserts S4.19.
#[test]
fn every_model_request_is_built_of_contexts() {
    let files = files();
    assert!(files.iter().any(|file| file.path == ROAD));
    for (path, _) in PASSERS {
        assert!(files.iter().any(|file| file.path == *path), "{path}");
    }
    assert_none(
        "Only `context` makes a request and asks a model; build an `Assembled` and call `context::ask`",
        &other_roads(files),
    );
}

#[test]
fn a_second_road_is_caught() {
    let house = [
        ("llm/mod.rs", "pub struct Request; pub fn ask() {}"),
        (ROAD, "use crate::llm::{self, Request};"),
        ("gateway/a.rs", "use crate::llm::{self, Provider, Request};"),
        ("agent/b.rs", "use crate::llm; fn f() { llm::ask(); }"),
        ("agent/c.rs", "use crate::{domain, llm::{Answer}};"),
        ("servers/d.rs", "fn f(_: crate::llm::Request) {}"),
    ];
    let files: Vec<File> = house
        .iter()
        .map(|(path, text)| File::new(path, text))
        .collect();
    let expected = [
        "gateway/a.rs: `llm::Request`",
        "agent/b.rs: `llm::ask`",
        "servers/d.rs: `llm::Request`",
    ];
    assert_eq!(other_roads(&files), expected);
}
