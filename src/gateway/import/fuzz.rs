//! Fuzzes the readers of other programs' exports and of their archives.

use super::{FileEntry, read};
use crate::jobs::Watch;
use crate::session::Speaker;

/// A conversation that is read begins with a person's message, and each of its messages is limited in
/// length.
#[test]
fn imports() {
    sepal_fuzz::check("imports", |input| {
        let Ok(found) = read(input, &Watch::default()) else {
            return;
        };
        for item in found {
            let FileEntry::Conversation(conversation) = item else {
                continue;
            };
            assert!(conversation.title.chars().count() <= 200);
            assert!(!conversation.title.is_empty() && !conversation.origin.1.is_empty());
            let first = conversation.said.first().expect("somebody said something");
            assert_eq!(first.by, Speaker::Person);
            for said in &conversation.said {
                assert!(!said.text.trim().is_empty() && said.text.len() < 300 * 1024);
                assert!(said.at.is_none_or(|at| at.0 > 0));
            }
        }
    });
}
