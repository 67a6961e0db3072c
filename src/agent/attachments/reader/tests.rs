//! Tests which attachments a model reads itself.

use std::sync::Arc;

use super::{AttachmentPaths, MAX_NAME_BYTES, Reader, Sight, file_name, is_file_name};
use crate::domain::{Attachment, BlobId, CountedEntry, Entry, MediaType};

fn attached(name: &str, media_type: MediaType, bytes: u64) -> Attachment {
    Attachment {
        id: BlobId::of(name.as_bytes()),
        name: name.to_owned(),
        media_type,
        bytes,
        width: None,
        height: None,
        source: None,
    }
}

fn message(text: &str, attachments: &[&Attachment]) -> Arc<CountedEntry> {
    CountedEntry::new(Entry::User {
        seq: 1,
        text: text.to_owned(),
        attachments: attachments.iter().map(|it| (*it).clone()).collect(),
    })
}

/// Returns the text of an entry as it is read, and the names of its remaining attachments.
fn read(
    reader: Reader,
    entry: &Arc<CountedEntry>,
    placed: &AttachmentPaths,
) -> (String, Vec<String>) {
    let read = reader.entries(std::slice::from_ref(entry), placed);
    let Entry::User {
        text, attachments, ..
    } = &**read[0]
    else {
        panic!("no message");
    };
    let names = attachments.iter().map(|it| it.name.clone());
    (text.clone(), names.collect())
}

/// Asserts S3.19: an attachment that a model cannot read is in its workspace, and is sent as it is to a model
/// that can.
#[test]
fn what_a_model_cannot_read_is_words_until_one_can() {
    let cat = attached("cat.png", MediaType::Png, 10);
    let paper = attached("a.pdf", MediaType::Pdf, 2_000);
    let short = attached("short.txt", MediaType::Text, 1_000);
    let long = attached("long.txt", MediaType::Text, 1_001);
    let all = [&cat, &paper, &short, &long];
    let entry = message("look", &all);
    let path = |it: &Attachment| (it.id.clone(), format!("/w/{}", it.name).into());
    let placed = all.map(path).into_iter().collect();
    let check = |sight: Sight, tokens: u64, words: &str, rest: &[&str]| {
        let (text, names) = read(Reader::new(sight, tokens), &entry, &placed);
        assert_eq!(text, format!("look{words}"), "{sight:?}");
        assert_eq!(names, rest, "{sight:?}");
    };
    check(
        Sight::Nothing,
        1_000,
        "\n\n[image \"cat.png\", 1 kB: this model cannot see images; the file is at `/w/cat.png`]\
         \n\n[PDF \"a.pdf\", 2 kB: this model cannot read PDF by itself; the file is at `/w/a.pdf`]\
         \n\n[text file \"long.txt\", 2 kB: it is too long for this model to read at once; the file \
         is at `/w/long.txt`]",
        &["short.txt"],
    );
    check(
        Sight::Images,
        10_000,
        "\n\n[PDF \"a.pdf\", 2 kB: this model cannot read PDF by itself; the file is at `/w/a.pdf`]",
        &["cat.png", "short.txt", "long.txt"],
    );
    let names = all.map(|it| it.name.as_str());
    check(Sight::Documents, 10_000, "", &names);
}

#[test]
fn what_is_missing_is_asked_for_once_and_stays_attached_until_it_is_there() {
    let paper = attached("a.pdf", MediaType::Pdf, 10);
    let note = attached("note.txt", MediaType::Text, 10);
    let entries = [message("one", &[&paper, &note]), message("", &[&paper])];
    let reader = Reader::new(Sight::Images, 1_000);
    let mut placed = AttachmentPaths::new();
    assert_eq!(
        reader.missing(&entries, &placed),
        std::slice::from_ref(&paper)
    );
    assert_eq!(reader.entries(&entries, &placed), entries);
    placed.insert(paper.id.clone(), "/w/a.pdf".into());
    assert!(reader.missing(&entries, &placed).is_empty());
    let (text, names) = read(reader, &entries[1], &placed);
    assert!(text.starts_with("[PDF \"a.pdf\""), "{text}");
    assert!(names.is_empty());
    let other = Reader::new(Sight::Documents, 1_000);
    assert!(other.missing(&entries, &AttachmentPaths::new()).is_empty());
}

/// Asserts S3.19: a name in the workspace is one plain word.
#[test]
fn names_in_the_workspace_are_plain() {
    let check = |name: &str, expected: &str| {
        let name = file_name(&attached(name, MediaType::Pdf, 1));
        assert_eq!(name, expected);
        assert!(is_file_name(&name), "{name}");
    };
    check("report.pdf", "report.pdf");
    check("Q3 report (final).pdf", "Q3_report__final_.pdf");
    check("żółw.pdf", "żółw.pdf");
    check("--help", "help");
    check("-rf $(x)`y`.pdf", "rf___x__y_.pdf");
    check(".bashrc", "bashrc");
    check("../../etc/passwd", "etc_passwd");
    check("a\u{202e}fdp.exe", "a_fdp.exe");
    check("a\nb\0", "a_b_");
    check("...", "document.pdf");
    check("", "document.pdf");
    let long = file_name(&attached(
        &format!("{}.pdf", "ä".repeat(200)),
        MediaType::Pdf,
        1,
    ));
    assert!(
        long.len() <= MAX_NAME_BYTES && long.ends_with("ä.pdf"),
        "{long}"
    );
    let longer = file_name(&attached(
        &format!("a.{}", "x".repeat(200)),
        MediaType::Pdf,
        1,
    ));
    assert_eq!(longer, "a");
    for name in ["", ".a", "-a", "a/b", "a b", "a`", "..", "a\n"] {
        assert!(!is_file_name(name), "{name}");
    }
}
