//! `docs/requirements.md` names every requirement, and only tests that exist and mention it.

use std::collections::{BTreeMap, BTreeSet};
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

/// What a row says where no test holds it.
const OPEN: [&str; 3] = ["not yet", "script:", "document:"];

/// The rows of the page: number, what it asks for, what holds it.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| number"));
    rows.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect()
}

/// The numbers that a text mentions, `S0.55-57` and `S0.55-S0.57` being three each.
fn mentioned(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut before = ' ';
    for (at, first) in text.char_indices() {
        let is_inside = before.is_alphanumeric() || matches!(before, '_' | '.' | '-');
        before = first;
        let Some((source, number, rest)) = number_at(&text[at..]).filter(|_| !is_inside) else {
            continue;
        };
        let to = rest.strip_prefix('-').and_then(|to| {
            let to = to.strip_prefix(source).unwrap_or(to);
            leading_number(to)
        });
        let last = to.map_or(number, |(last, _)| last);
        found.extend((number..=last.max(number)).map(|number| format!("{source}{number}")));
    }
    found
}

/// The requirement that a text begins with: its source, its number, and what follows.
fn number_at(text: &str) -> Option<(&'static str, usize, &str)> {
    SOURCES.iter().find_map(|(source, _)| {
        let (number, rest) = leading_number(text.strip_prefix(source)?)?;
        let goes_on = rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        (!goes_on).then_some((*source, number, rest))
    })
}

fn leading_number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((digits.parse().ok()?, rest))
}

/// Where a test is written and what it is called: a function of Rust, or the title of a test in
/// JavaScript.
struct Test<'a> {
    file: &'a str,
    name: &'a str,
}

impl<'a> Test<'a> {
    fn parse(text: &'a str) -> Self {
        let (file, name) = text.split_once("::").unwrap();
        Self { file, name }
    }

    fn is_rust(&self) -> bool {
        Path::new(self.file).extension() == Some("rs".as_ref())
    }

    /// Whether a line begins the test.
    fn begins_at(&self, line: &str) -> bool {
        if self.is_rust() {
            return line.contains(&format!("fn {}(", self.name));
        }
        let line = line.trim_start();
        let is_test = ["test(", "it(", "story("]
            .iter()
            .any(|begin| line.starts_with(begin));
        let quoted = |quote: char| line.contains(&format!("{quote}{}{quote}", self.name));
        is_test && ['"', '\'', '`'].into_iter().any(quoted)
    }

    /// Its source: the comments and attributes above it, and its body. The body ends with the first
    /// line that is indented as the one it begins with.
    fn source(&self, text: &str) -> Option<String> {
        let lines: Vec<&str> = text.lines().collect();
        let begin = lines.iter().position(|line| self.begins_at(line))?;
        let indent = |line: &str| line.len() - line.trim_start().len();
        let above = lines[..begin].iter().rev().take_while(|line| {
            let line = line.trim_start();
            line.starts_with("//") || line.starts_with("#[") || line.starts_with('*')
        });
        let first = begin - above.count();
        let is_end =
            |line: &&str| indent(line) == indent(lines[begin]) && line.trim().starts_with('}');
        let body = lines[begin + 1..].iter().position(is_end);
        let last = begin + body.map_or(0, |length| length + 1);
        Some(lines[first..=last].join("\n"))
    }

    /// Whether it is run: by an attribute above it, or by a macro that lists it.
    fn is_run(&self, source: &str, text: &str) -> bool {
        let is_attribute = |line: &str| {
            line.starts_with("#[") && (line.ends_with("test]") || line.contains("test("))
        };
        let is_listed = |line: &str| line.trim() == format!("{},", self.name);
        !self.is_rust()
            || source.lines().any(|line| is_attribute(line.trim()))
            || text.lines().any(is_listed)
    }
}

#[test]
fn every_requirement_names_its_test_or_says_that_there_is_none() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/requirements.md")).unwrap();
    let rows = rows(&page);
    let known: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    let expected = SOURCES
        .iter()
        .flat_map(|(source, count)| (1..=*count).map(move |number| format!("{source}{number}")));
    for number in expected {
        assert!(known.contains(number.as_str()), "{number} is missing");
    }
    for row in &rows {
        let is_open = OPEN.iter().any(|word| row[2].starts_with(word));
        assert!(is_open || row[2].starts_with('`'), "{}: {}", row[0], row[2]);
    }
}

/// A test that somebody can rely on says what it is for: its comment or its body names the number.
#[test]
fn every_named_test_is_there_is_run_and_mentions_its_requirement() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/requirements.md")).unwrap();
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut problems = Vec::new();
    for row in rows(&page) {
        if OPEN.iter().any(|word| row[2].starts_with(word)) {
            continue;
        }
        let number = row[0];
        for name in row[2].split('`').filter(|part| part.contains("::")) {
            let test = Test::parse(name);
            let content = texts
                .entry(test.file)
                .or_insert_with(|| fs::read_to_string(root.join(test.file)).unwrap_or_default());
            match test.source(content) {
                None => problems.push(format!("{number}: there is no test `{name}`")),
                Some(source) if !test.is_run(&source, content) => {
                    problems.push(format!("{number}: nobody runs `{name}`"));
                }
                Some(source) if !mentioned(&source).contains(number) => {
                    problems.push(format!("{number}: `{name}` does not mention it"));
                }
                Some(_) => {}
            }
        }
    }
    assert!(
        problems.is_empty(),
        "Point the row to a test that asserts it, and say `/// Asserts S2.36.` above that test:\n{}",
        problems.join("\n")
    );
}

#[test]
fn numbers_are_found_alone_and_in_ranges() {
    fn check(text: &str, expected: &[&str]) {
        let expected = expected.iter().map(|number| (*number).to_owned()).collect();
        assert_eq!(mentioned(text), expected, "{text}");
    }
    check("/// Asserts S2.36, O4.", &["S2.36", "O4"]);
    check("(S0.55-57)", &["S0.55", "S0.56", "S0.57"]);
    check("S1.25-S1.27", &["S1.25", "S1.26", "S1.27"]);
    check("S3.2: one, S3.20", &["S3.2", "S3.20"]);
    check("fooO4 O4x S2.36b AS2.3 S9.1 S2. IO1 call_O2 O_1 -O3", &[]);
}

#[test]
fn the_source_of_a_test_has_its_comment_and_its_body_and_nothing_else() {
    let rust = "mod tests {\n    /// S0.1.\n    #[test]\n    fn one() {\n        // S0.2\n    }\n\n    \
                /// S0.3.\n    #[test]\n    fn two() {\n    }\n}\n";
    let script =
        "// O1.\ntest('one', async () => {\n  // O2\n})\n\n// O3.\nit(\"two\", () => {\n})\n";
    for (file, text, name, expected) in [
        ("a.rs", rust, "one", &["S0.1", "S0.2"][..]),
        ("a.rs", rust, "two", &["S0.3"]),
        ("a.test.mjs", script, "one", &["O1", "O2"]),
        ("a.test.ts", script, "two", &["O3"]),
    ] {
        let source = Test { file, name }.source(text).unwrap();
        let expected = expected.iter().map(|number| (*number).to_owned()).collect();
        assert_eq!(mentioned(&source), expected, "{source}");
    }
    let missing = Test {
        file: "a.rs",
        name: "three",
    };
    assert_eq!(missing.source(rust), None);
}
