//! Fuzzes the readers of other programs' exports and of their archives.

use serde_json::{Value, json};

use super::{FileEntry, read};
use crate::jobs::Watch;
use crate::session::Speaker;

/// A conversation that is read begins with a person's message, and each of its messages is limited in
/// length.
#[test]
fn imports() {
    sepal_fuzz::check("imports", |input| {
        if let Ok(odd) = serde_json::from_slice(input) {
            check_neighbours(&odd);
        }
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

/// One odd conversation of a file changes only itself, and is listed.
fn check_neighbours(odd: &Value) {
    let conversation = |title: &str| {
        let said =
            json!({"id": "m", "role": "user", "content": "Hello", "timestamp": 1_700_000_000});
        let history = json!({"currentId": "m", "messages": {"m": said}});
        json!({"id": title, "title": title, "chat": {"title": title, "history": history}})
    };
    let file = json!([conversation("first"), odd, conversation("last")]);
    let Ok(found) = read(file.to_string().as_bytes(), &Watch::default()) else {
        panic!("{odd} hides its neighbours");
    };
    let title = |entry: Option<&FileEntry>| match entry {
        Some(FileEntry::Conversation(conversation)) => conversation.title.clone(),
        other => panic!("{odd}: {other:?}"),
    };
    assert_eq!(
        (title(found.first()), title(found.last())),
        ("first".into(), "last".into())
    );
    assert_eq!(found.len(), 3, "{odd}");
}
