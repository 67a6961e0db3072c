//! What is attached to messages, in the journal and in what the model reads.

use serde_json::json;

use crate::domain::{Attachment, BlobId, Entry, MediaType};
use crate::session::properties::world::World;
use crate::session::{Command, Commit, Event};

/// Asserts S3.19: the working context keeps what was attached, and a picture needs no words.
#[test]
fn what_is_attached_stays_with_its_message_and_old_messages_have_nothing() {
    let mut world = World::new();
    let cat = Attachment {
        id: BlobId::of(b"cat"),
        name: "cat.png".into(),
        media_type: MediaType::Png,
        bytes: 3,
        width: Some(2),
        height: Some(1),
    };
    let say = Command::Say {
        text: " ".into(),
        author: World::person(),
        client_message_id: None,
        attachments: vec![cat.clone()],
    };
    world.tell(&say).unwrap();
    assert_eq!(world.state.control.title.as_deref(), Some("cat.png"));
    let Entry::User { attachments, .. } = &***world.state.entries.last().unwrap() else {
        panic!("no message");
    };
    assert_eq!(*attachments, [cat]);
    let stored = world.journal[0].to_bytes().unwrap();
    assert_eq!(Commit::from_bytes(&stored).unwrap(), world.journal[0]);
    // As releases before attachments wrote it.
    let old = json!({ "type": "user_message", "text": "hi", "author": World::person(),
        "client_message_id": null });
    let Event::UserMessage { attachments, .. } = serde_json::from_value(old).unwrap() else {
        panic!("no message");
    };
    assert!(attachments.is_empty());
    let entry = json!({ "kind": "user", "seq": 1, "text": "hi" });
    let entry: Entry = serde_json::from_value(entry.clone()).unwrap();
    assert_eq!(
        serde_json::to_value(&entry).unwrap(),
        json!({ "kind": "user", "seq": 1, "text": "hi" })
    );
}
