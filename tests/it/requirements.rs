//! `docs/requirements.md` names every requirement, and only tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// How many lines each source has.
const SOURCES: [(&str, usize); 6] = [
    ("S0.", 67),
    ("S1.", 27),
    ("S2.", 64),
    ("S3.", 46),
    ("S4.", 25),
    ("O", 15),
];

#[test]
fn every_requirement_names_its_test_or_says_that_there_is_none() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/requirements.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| number"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let known: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    let expected = SOURCES
        .iter()
        .flat_map(|(source, count)| (1..=*count).map(move |number| format!("{source}{number}")));
    for number in expected {
        assert!(known.contains(number.as_str()), "{number} is missing");
    }
    for row in &rows {
        let held_by = row[2];
        let is_open = ["not yet", "script:", "document:"]
            .iter()
            .any(|word| held_by.starts_with(word));
        assert!(is_open || held_by.starts_with('`'), "{}: {held_by}", row[0]);
        if is_open {
            continue;
        }
        for test in held_by.split('`').filter(|part| part.contains("::")) {
            let (file, name) = test.split_once("::").unwrap();
            let text = fs::read_to_string(root.join(file));
            let text = text.unwrap_or_else(|error| panic!("{}: {file}: {error}", row[0]));
            assert!(
                text.contains(&format!("fn {name}(")),
                "{}: no test `{name}` in {file}",
                row[0]
            );
        }
    }
}
