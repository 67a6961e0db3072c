//! Fuzzes the reader of the files given to `sepal admin tenant import`, which are untrusted input.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::reading::tests::shape;
use super::reading::{Expected, Item, read};
use crate::Sealer;
use crate::db::Arg;
use crate::live::MAX_BODY_BYTES;

#[test]
fn tenant_archive() {
    sepal_fuzz::check("tenant_archive", |input| {
        let (choice, bytes) = sepal_fuzz::choice(input);
        let file = match choice % 3 {
            0 => bytes.to_vec(),
            1 => packed(bytes),
            // Without a right digest, the reader would refuse almost every changed input at its end.
            _ => packed(&with_digest(bytes)),
        };
        let (shape, sealer) = (shape(), Sealer::with_key(&"one".into()));
        let mut current = None;
        let mut counts = (0, 0, 0);
        let facts = read(file.as_slice(), &shape, Expected::Any(&sealer), |item| {
            match item {
                Item::Table { table, columns } => {
                    let table = &shape.tables[table];
                    assert_eq!(columns.len(), table.columns.len());
                    current = Some((table, columns));
                }
                Item::Row(row) => {
                    counts.0 += 1;
                    let (table, columns) = current.as_ref().unwrap();
                    assert_eq!(row.len(), columns.len());
                    for (at, arg) in columns.iter().zip(row) {
                        let Arg::Text(text) = arg else {
                            continue;
                        };
                        let text = text.unwrap();
                        // No row names a tenant that its header does not name.
                        match table.columns[*at].name.as_str() {
                            "scope" => assert!(text == "installation" || text.starts_with("ten_")),
                            "hash" => assert!(text.starts_with("accepted:ten_"), "{text}"),
                            _ => {}
                        }
                    }
                }
                Item::Journal { .. } => counts.1 += 1,
                Item::Record(record) => {
                    counts.2 += 1;
                    assert!(record.body.len() <= MAX_BODY_BYTES && !record.is_active);
                    assert!(record.first_seq >= 1 && record.first_seq <= record.last_seq + 1);
                }
            }
            true
        });
        if let Ok(facts) = facts {
            let told = (
                facts.counts.rows,
                facts.counts.sessions,
                facts.counts.records,
            );
            assert_eq!(told, counts);
        }
    });
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a copy whose last line has the digest of the lines before it.
fn with_digest(bytes: &[u8]) -> Vec<u8> {
    const NAME: &[u8] = b"\"sha256\":\"";
    let mut file = bytes.to_vec();
    let lines = file.strip_suffix(b"\n").unwrap_or(&file);
    let last = lines.iter().rposition(|byte| *byte == b'\n');
    let last = last.map_or(0, |at| at + 1);
    let digest = hex::encode(Sha256::digest(&file[..last]));
    let place = file[last..].windows(NAME.len()).position(|it| it == NAME);
    if let Some(place) = place {
        let at = last + place + NAME.len();
        if let Some(there) = file.get_mut(at..at + digest.len()) {
            there.copy_from_slice(digest.as_bytes());
        }
    }
    file
}
