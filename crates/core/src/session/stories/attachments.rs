//! Tests attachments of messages.

use serde_json::json;

use crate::domain::{Attachment, BlobId, Entry, MediaType};
use crate::session::properties::world::{World, say};
use crate::session::{Command, Commit, Control, Event};

/// Asserts S3.19: the working context keeps attachments, and a picture needs no text.
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
        source: None,
    };
    let say = Command::Say {
        text: " ".into(),
        author: World::person(),
        client_message_id: None,
        effort: None,
        attachments: vec![cat.clone()],
    };
    world.tell(&say).unwrap();
    assert_eq!(world.state.control.title.text.as_deref(), Some("cat.png"));
    let Entry::User { attachments, .. } = &***world.state.entries.last().unwrap() else {
        panic!("no message");
    };
    assert_eq!(*attachments, [cat]);
    let stored = world.journal[0].to_bytes().unwrap();
    assert_eq!(Commit::from_bytes(&stored).unwrap(), world.journal[0]);
    // The form that releases before attachments wrote.
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

/// Asserts S3.19: the path of an attachment is recorded once, binds the session's files to their engine,
/// and outlives the context; old snapshots have no paths.
#[test]
fn where_an_attachment_was_put_is_kept_once() {
    let mut world = World::new();
    world.tell(&say("read it")).unwrap();
    let request = world.state.control.turn.as_ref().unwrap().request();
    let placed = |request, path: &str| Command::AttachmentPlaced {
        request,
        id: BlobId::of(b"paper"),
        name: "a.pdf".into(),
        path: path.into(),
    };
    world.tell(&placed(request.next(), "/late")).unwrap();
    assert!(world.state.control.placed.is_empty());
    world.tell(&placed(request, "/workspace/a.pdf")).unwrap();
    world.tell(&placed(request, "/workspace/b.pdf")).unwrap();
    let told = world
        .events()
        .filter(|event| matches!(event, Event::AttachmentPlaced { .. }));
    assert_eq!(told.count(), 1);
    assert_eq!(
        world.state.control.engine,
        world.state.control.runner.engine
    );
    assert_eq!(
        world.state.control.turn.as_ref().unwrap().request(),
        request
    );
    let stored = world.journal.last().unwrap().to_bytes().unwrap();
    assert_eq!(
        Commit::from_bytes(&stored).unwrap(),
        *world.journal.last().unwrap()
    );
    world.answer("Read", vec![]);
    world.tell(&Command::ResetContext).unwrap();
    let control = &world.state.control;
    let path = control.placed.get(&BlobId::of(b"paper")).unwrap();
    assert_eq!(&**path, "/workspace/a.pdf");
    let mut snapshot = serde_json::to_value(control).unwrap();
    snapshot.as_object_mut().unwrap().remove("placed").unwrap();
    let old: Control = serde_json::from_value(snapshot).unwrap();
    assert!(old.placed.is_empty());
}
