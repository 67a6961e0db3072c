//! Fuzzes the intake of files from people and tools, above all of pictures.

use super::{MAX_EDGE, prepare};
use crate::domain::BlobId;

/// A prepared attachment is small, matches its metadata, and is accepted again as the same kind.
#[test]
fn attachments() {
    sepal_fuzz::check("attachments", |input| {
        let Ok((attachment, content)) = prepare("a", input.to_vec()) else {
            return;
        };
        assert_eq!(attachment.id, BlobId::of(&content));
        assert_eq!(attachment.bytes, content.len() as u64);
        let edges = [attachment.width, attachment.height];
        assert!(
            edges
                .iter()
                .all(|edge| edge.is_none_or(|edge| (1..=MAX_EDGE).contains(&edge)))
        );
        assert_eq!(attachment.media_type.is_image(), attachment.width.is_some());
        let (again, _) = prepare("a", content).unwrap();
        assert_eq!(again.media_type, attachment.media_type);
        assert_eq!([again.width, again.height], edges);
    });
}
