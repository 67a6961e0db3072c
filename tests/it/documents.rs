//! The documents name only files that are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders without files of ours.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// Documents about other times: what was measured when, with the files of then.
const HISTORY: [&str; 1] = ["docs/performance/diary.md"];

/// A part of the names of files that a reader of a guide is told to write.
const EXAMPLE: &str = "cohere";

/// Endings that make a word between backticks the name of a file.
const ENDINGS: [&str; 11] = [
    "css", "html", "js", "json", "mjs", "py", "rs", "sql", "toml", "ts", "vue",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files and folders below a folder, from the root of the tree.
fn everything(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if SKIPPED.contains(&&*name) {
            continue;
        }
        found.push(path.strip_prefix(root()).unwrap().to_owned());
        if path.is_dir() {
            everything(&path, found);
        }
    }
}

/// Whether a word is the path of a file, or of a folder that is two levels deep at least.
fn is_path(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.@/-".contains(c);
    if !word.contains('/') || word.starts_with('/') || !word.chars().all(is_plain) {
        return false;
    }
    let ending = word.rsplit_once('.').map(|(_, ending)| ending);
    let is_file = ending.is_some_and(|ending| ENDINGS.contains(&ending));
    is_file || (word.ends_with('/') && word.matches('/').count() > 1)
}

/// The words between backticks that name a path which nothing ends with.
fn stale<'t>(text: &'t str, known: &BTreeSet<PathBuf>) -> Vec<&'t str> {
    let words = text.split('`').skip(1).step_by(2);
    words
        .filter(|word| is_path(word) && !word.contains(EXAMPLE))
        .filter(|word| !known.contains(Path::new(word.trim_end_matches('/'))))
        .collect()
}

#[test]
fn documents_name_only_files_that_are_there() {
    let mut found = Vec::new();
    everything(root(), &mut found);
    // A document may leave out the folders that its subject has in common: `decide/consent.rs`.
    let known: BTreeSet<PathBuf> = found
        .iter()
        .flat_map(|path| {
            let parts: Vec<_> = path.components().collect();
            (0..parts.len()).map(move |from| parts[from..].iter().collect())
        })
        .collect();
    let is_document = |path: &&PathBuf| {
        let is_page = path.extension().is_some_and(|ending| ending == "md");
        let is_ours = path.starts_with("docs") || path.components().count() == 1;
        let is_history = HISTORY.iter().any(|page| path.as_path() == Path::new(page));
        (is_page && is_ours && !is_history) || path.as_path() == Path::new("clippy.toml")
    };
    let documents: Vec<&PathBuf> = found.iter().filter(is_document).collect();
    assert!(documents.len() > 20);
    let mut wrong = Vec::new();
    for document in documents {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for line in text.lines() {
            let stale = stale(line, &known);
            wrong.extend(
                stale
                    .iter()
                    .map(|word| format!("{}: `{word}`", document.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "not there:\n  {}", wrong.join("\n  "));
}

#[test]
fn a_file_that_went_is_caught() {
    let known = ["src", "src/a.rs", "a.rs"].map(PathBuf::from).into();
    let text = "see `src/a.rs`, `src/b.rs`, `text/plain`, `src/gone/`, `a.rs` and `x::y`";
    assert_eq!(stale(text, &known), ["src/b.rs", "src/gone/"]);
}
