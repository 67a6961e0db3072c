//! Tests valid `SKILL.md` files, and the problems of invalid ones.

use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, proptest};

use super::{Document, claims, read_document, write_document};

const GOOD: &str = "---\nname: pdf-processing\ndescription: Extracts text from PDF files. Use it for \
                    PDFs.\nlicense: Apache-2.0\ncompatibility: needs python3\nmetadata:\n  author: \
                    acme\n  version: 1.0\nallowed-tools: Bash(git add:*) Read\n---\n\n# PDF\n\nRead it.\n";

fn problems(text: &str, folder: Option<&str>) -> Vec<String> {
    let problems = read_document(text.as_bytes(), folder).unwrap_err();
    for problem in &problems {
        assert!(!problem.remedy.is_empty(), "{problem}");
    }
    problems.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found = problems(text, None);
    for expected in expected {
        let is_said = found.iter().any(|problem| problem.contains(expected));
        assert!(is_said, "{expected}: {found:?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:?}");
}

#[test]
fn a_skill_of_the_convention_is_read_whole() {
    let Document {
        manifest,
        body,
        warnings,
    } = read_document(GOOD.as_bytes(), Some("pdf-processing")).unwrap();
    assert_eq!(manifest.name, "pdf-processing");
    assert_eq!(manifest.license.as_deref(), Some("Apache-2.0"));
    assert_eq!(manifest.metadata["version"], "1.0");
    assert_eq!(manifest.allowed_tools, ["Bash(git add:*)", "Read"]);
    assert_eq!(body, "# PDF\n\nRead it.\n");
    let warned: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("grants nothing"), "{warned:?}");
    // Windows line ends and a byte order mark.
    let other = format!("\u{feff}{}", GOOD.replace('\n', "\r\n"));
    let read = read_document(other.as_bytes(), None).unwrap();
    assert_eq!(read.manifest, manifest);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let long = "x".repeat(1025);
    check(
        &format!(
            "---\nname: -PDF\ndescription: {long}\ncompatibility: {long}\nmetadata: 3\n\
             allowed-tools: {{a: b}}\n---\nbody"
        ),
        &[
            "`name`: `-PDF` is no name",
            "`description`: it has 1025 letters",
            "`compatibility`: it has 1025 letters",
            "`metadata`: it is no list of fields",
            "`allowed-tools`: it is no list",
        ],
    );
    check(
        "---\nlicense: MIT\n---\nbody",
        &["`name`: it is missing", "`description`: it is missing"],
    );
    check(
        "---\n---\nbody",
        &["`name`: it is missing", "`description`: it is missing"],
    );
    check(
        "---\nname:\ndescription: \"  \"\n---\nbody",
        &["`name`: `` is no name", "`description`: it is empty"],
    );
    check(
        "---\nname: [a]\ndescription: b\n---\nx",
        &["`name`: it is no text", "is no name"],
    );
    for (text, expected) in [
        ("", "has no front matter"),
        ("# PDF", "has no front matter"),
        ("---", "has no front matter"),
        ("--- name: a\n---\n", "has no front matter"),
        ("---\nname: a\n", "has no end"),
        ("---\n- a\n---\n", "no list of fields"),
        ("---\n# a\n---\n", "no list of fields"),
        ("---\nname: a: b\n---\n", "no YAML"),
        ("---\nname: a\nname: b\n---\n", "`name` stands twice"),
    ] {
        check(text, &[expected]);
    }
    let wrong = problems(GOOD, Some("pdf"));
    assert!(wrong[0].contains("the folder is called `pdf`"), "{wrong:?}");
}

#[test]
fn hostile_front_matter_ends_in_words() {
    let name = format!("---\nname: {}\n---\n", "a".repeat(1_000_000));
    check(&name, &["more than 128 KiB"]);
    let name = format!("---\nname: {}\n---\n", "a".repeat(100_000));
    check(&name, &["front matter has more than 16 KiB"]);
    let name = format!("---\nname: {}\ndescription: b\n---\nx", "a".repeat(10_000));
    let found = problems(&name, None);
    assert!(found[0].len() < 500, "{}", found[0].len());
    let aliases = "---\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                   c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n---\n";
    check(aliases, &["no YAML"]);
    assert!(read_document(b"---\nname: \xff\n---\n", None).is_err());
    let found = problems("---\nna\u{202e}me: a\ndescription: b\n---\nx", None);
    assert!(found.iter().any(|it| it.contains("⟦U+202E⟧")), "{found:?}");
}

#[test]
fn a_claim_keeps_its_brackets() {
    assert_eq!(
        claims("Bash(git:*) Read,Write"),
        ["Bash(git:*)", "Read", "Write"]
    );
    assert_eq!(claims("  "), [""; 0]);
    assert_eq!(claims("a(b c"), ["a(b c"]);
}

fn words() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[ -~äöü…\u{202e}\n\t:#\"'{}\\[\\]&*!|>%@`-]{0,200}").unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A document that is written is read back unchanged.
    #[test]
    fn what_is_written_is_read_back(
        name in "[a-z0-9]{1,10}(-[a-z0-9]{1,5}){0,3}",
        description in words(),
        body in words(),
    ) {
        let written = write_document(&name, &description, &body);
        match read_document(written.as_bytes(), Some(&name)) {
            Ok(document) => {
                prop_assert_eq!(document.manifest.name, name);
                prop_assert_eq!(document.manifest.description, description);
                prop_assert_eq!(document.body.trim(), body.trim());
            }
            Err(problems) => prop_assert!(description.trim().is_empty(), "{:?}", problems),
        }
    }

    /// Any front matter gives either a skill within its limits or problems.
    #[test]
    fn any_front_matter_ends_in_a_skill_or_in_words(front in words(), body in words()) {
        let text = format!("---\n{front}\n---\n{body}");
        match read_document(text.as_bytes(), None) {
            Ok(document) => {
                let name = document.manifest.name;
                prop_assert!(crate::is_skill_name(&name), "{}", name);
                prop_assert!(!document.manifest.description.trim().is_empty());
            }
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }
}
