//! Parses the entries of a journal's stream.

use bytes::Bytes;

use crate::Error;
use crate::live::{Head, Record};
use sepal_core::domain::CommitId;

/// An entry as Redis returns it: its id, then alternating names and values.
pub(super) type RawEntry = (String, Vec<Bytes>);

/// The positions of fields in the list of names and values that [`super::script::APPEND`] writes; Lua counts
/// from 1.
pub(super) const FIRST_SEQ_PLACE: &[u8] = b"4";
pub(super) const LAST_SEQ_PLACE: &[u8] = b"6";

/// A parsed entry.
pub(super) struct Entry {
    pub(super) record: Record,
    /// True if the session is unfinished after this entry.
    pub(super) is_active: bool,
}

impl Entry {
    pub(super) fn read((id, fields): RawEntry) -> Result<Self, Error> {
        let corrupt = || Error::corrupt("journal entry in Redis", id.clone());
        let version = id
            .strip_suffix("-0")
            .and_then(|version| version.parse().ok());
        let field = |name: &[u8]| {
            let mut pairs = fields.chunks_exact(2);
            pairs.find_map(|pair| match pair {
                [key, value] if key == name => Some(value.clone()),
                _ => None,
            })
        };
        let text = |name| field(name).and_then(|value| String::from_utf8(value.into()).ok());
        let number = |name| text(name).and_then(|text| text.parse().ok());
        let read = || {
            Some(Self {
                record: Record {
                    version: version?,
                    commit_id: CommitId::parse(&text(b"c")?)?,
                    first_seq: number(b"f")?,
                    last_seq: number(b"l")?,
                    body: field(b"b")?,
                },
                is_active: field(b"a")? == b"1"[..],
            })
        };
        read().ok_or_else(corrupt)
    }

    pub(super) fn head(self) -> Head {
        Head {
            version: self.record.version,
            last_seq: self.record.last_seq,
            commit_id: self.record.commit_id,
        }
    }
}

/// Parses the entries of a range. Returns an error unless their versions are dense and start at `first`.
pub(super) fn read_range(raw: Vec<RawEntry>, first: u64) -> Result<Vec<Record>, Error> {
    let mut records = Vec::with_capacity(raw.len());
    for (version, raw) in (first..).zip(raw) {
        let record = Entry::read(raw)?.record;
        if record.version != version {
            return Err(Error::corrupt(
                "journal in Redis",
                format!("no version {version}"),
            ));
        }
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Entry, RawEntry, read_range};
    use sepal_core::domain::CommitId;

    fn raw(id: &str, last_seq: &str) -> RawEntry {
        let commit = CommitId::from_bits(7).to_string();
        let fields = ["c", &commit, "f", "1", "l", last_seq, "a", "1", "b", "body"];
        let fields = fields.map(|field| Bytes::copy_from_slice(field.as_bytes()));
        (id.into(), fields.into())
    }

    #[test]
    fn only_what_an_append_wrote_is_an_entry() {
        let entry = Entry::read(raw("3-0", "9")).unwrap();
        assert!(entry.is_active);
        assert_eq!(&entry.record.body[..], b"body");
        assert_eq!((entry.record.version, entry.record.last_seq), (3, 9));
        for wrong in [
            raw("3-1", "9"),
            raw("x", "9"),
            raw("3-0", "-1"),
            raw("3-0", ""),
        ] {
            assert!(Entry::read(wrong).is_err());
        }
        let (id, mut fields) = raw("3-0", "9");
        fields.truncate(8);
        assert!(Entry::read((id, fields)).is_err());
    }

    #[test]
    fn a_range_with_a_hole_is_no_journal() {
        assert!(read_range(vec![raw("3-0", "9"), raw("4-0", "9")], 3).is_ok());
        assert!(read_range(vec![raw("3-0", "9"), raw("5-0", "9")], 3).is_err());
        assert!(read_range(vec![raw("4-0", "9")], 3).is_err());
    }
}
