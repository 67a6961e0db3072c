//! Fuzzes the sources of settings: YAML and JSON files, `.env`, and the environment.

use std::collections::BTreeMap;
use std::path::Path;

use super::source::env::of_lines;
use super::{SourceFile, Sources, load};

#[test]
fn settings() {
    sepal_fuzz::check("settings", |input| {
        let (choice, bytes) = sepal_fuzz::choice(input);
        let mut problems = Vec::new();
        let mut sources = Sources::default();
        if choice % 4 == 0 {
            sources.env = of_lines(dotenvy::Iter::new(bytes), Path::new(".env"), &mut problems);
        } else {
            let Ok(text) = std::str::from_utf8(bytes) else {
                return;
            };
            let names = ["sepal.yaml", "sepal.json", "sepal.yml"];
            sources.file = Some(SourceFile {
                name: names[usize::from(choice) % names.len()].to_owned(),
                text: text.to_owned(),
            });
            sources.env = BTreeMap::from([("A".to_owned(), "x".to_owned())]);
        }
        match load(&sources) {
            Ok(loaded) => {
                let again = load(&sources).unwrap();
                assert_eq!(loaded.shown, again.shown);
                assert!(loaded.shown.len() < 64 * 1024 + 16 * bytes.len());
            }
            Err(problems) => {
                assert!(!problems.0.is_empty());
                let text = problems.to_string();
                assert!(
                    text.len() < 64 * 1024 + 64 * bytes.len(),
                    "{} bytes",
                    text.len()
                );
            }
        }
    });
}
