//! Reads the file of an export, which is untrusted: checks every line against what an export may have, and hands
//! over the rows and records that belong to its tenant.

use std::io::{self, BufRead, BufReader, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::bufread::GzDecoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::TenantCounts;
use super::format::{FORMAT, Header, HeaderStart, MAX_HEADER, MAX_LINE, Mark, RecordLine, VERSION};
use super::shape::{ExportedTable, Shape, sealed_texts};
use crate::Sealer;
use crate::db::Arg;
use crate::live::{MAX_BODY_BYTES, NewRecord};
use sepal_core::domain::{CommitId, SessionId, TenantId};

/// The reason the reader stopped.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The file is something else, or has what no export has.
    Foreign(String),
    /// The file is incomplete or was changed.
    Damaged(String),
    /// The tables are those of another version.
    OtherSchema { program: String, schema: i64 },
    /// Whoever takes the items has ended.
    Stopped,
}

/// A part of an export, in the order of the file.
#[derive(Debug)]
pub(super) enum Item {
    /// The rows of a table follow.
    Table {
        /// The place of the table in the shape.
        table: usize,
        /// The places of the columns in the shape, in the order of the values.
        columns: Vec<usize>,
    },
    /// A row, without the column that is the tenant.
    Row(Vec<Arg>),
    /// The journal of a session follows.
    Journal {
        session: SessionId,
        version: i64,
        used: i64,
    },
    Record(NewRecord),
}

/// The header of an export, and the figures that the reader found in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExportFacts {
    pub(super) header: Header,
    pub(super) tenant: TenantId,
    pub(super) counts: TenantCounts,
    pub(super) sha256: String,
    /// The number of sealed values that the given keys do not open.
    pub(super) closed_secrets: u64,
    /// The number of people who administered the installation.
    pub(super) former_admins: u64,
}

/// The knowledge of an export before it is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected<'a> {
    /// Nothing. Counts the sealed values that these keys do not open.
    Any(&'a Sealer),
    /// It was verified as that of this tenant.
    Tenant(&'a TenantId),
}

/// Reads a whole export. `take` returns false to stop.
pub(super) fn read(
    input: impl Read,
    shape: &Shape,
    expected: Expected<'_>,
    take: impl FnMut(Item) -> bool,
) -> Result<ExportFacts, ReadError> {
    let mut lines = Lines::new(input);
    let (header, tenant) = header(&mut lines, shape.schema)?;
    let sealer = match expected {
        Expected::Any(sealer) => Some(sealer),
        // Before the first row, which would be that of another tenant.
        Expected::Tenant(verified) if *verified != tenant => {
            return Err(damaged("it is not the file that was checked"));
        }
        Expected::Tenant(_) => None,
    };
    let mut reader = Reader {
        tenant: &tenant,
        sealer,
        take,
        counts: TenantCounts::default(),
        closed_secrets: 0,
        former_admins: 0,
    };
    lines.advance()?;
    let mut listed = Ids::default();
    for (place, table) in shape.tables.iter().enumerate() {
        reader.table(&mut lines, place, table, &mut listed)?;
    }
    let mut journals = Ids::default();
    while let Mark::Journal {
        session,
        version,
        used,
    } = lines.mark()?
    {
        reader.journal(&mut lines, &mut journals, (&session, version, used))?;
    }
    if listed != journals {
        return Err(foreign("its journals are not those of its sessions"));
    }
    if lines.mark()? != (Mark::Audit {}) {
        return Err(foreign("the audit is not where it should be"));
    }
    let sha256 = reader.end(&mut lines)?;
    Ok(ExportFacts {
        counts: reader.counts,
        closed_secrets: reader.closed_secrets,
        former_admins: reader.former_admins,
        header,
        tenant,
        sha256,
    })
}

fn header(lines: &mut Lines<impl Read>, schema: i64) -> Result<(Header, TenantId), ReadError> {
    let none = || foreign("it does not begin as one");
    let line = lines.first().map_err(|_| none())?;
    let start: HeaderStart = serde_json::from_slice(line).map_err(|_| none())?;
    if start.format != FORMAT {
        return Err(none());
    }
    if start.version != VERSION || start.schema != schema {
        return Err(ReadError::OtherSchema {
            program: start.program,
            schema: start.schema,
        });
    }
    let header: Header =
        serde_json::from_slice(line).map_err(|_| foreign("its header cannot be read"))?;
    let tenant = TenantId::parse(&header.tenant.id);
    let tenant = tenant.ok_or_else(|| foreign("its header names no tenant"))?;
    Ok((header, tenant))
}

struct Reader<'a, T> {
    tenant: &'a TenantId,
    sealer: Option<&'a Sealer>,
    take: T,
    counts: TenantCounts,
    closed_secrets: u64,
    former_admins: u64,
}

impl<T: FnMut(Item) -> bool> Reader<'_, T> {
    fn give(&mut self, item: Item) -> Result<(), ReadError> {
        if (self.take)(item) {
            Ok(())
        } else {
            Err(ReadError::Stopped)
        }
    }

    /// Reads the rows of the table that has to come next.
    fn table(
        &mut self,
        lines: &mut Lines<impl Read>,
        place: usize,
        table: &ExportedTable,
        listed: &mut Ids,
    ) -> Result<(), ReadError> {
        let expected = table.table.name;
        let (name, columns) = match lines.mark()? {
            Mark::Table { name, columns } => (name, columns),
            Mark::Journal { .. } | Mark::Audit {} | Mark::End { .. } => {
                return Err(foreign(format!("the table `{expected}` is missing")));
            }
        };
        if name != expected {
            let name = shown(&name);
            return Err(foreign(format!(
                "`{name}` stands in the place of `{expected}`"
            )));
        }
        let mut places = Vec::with_capacity(columns.len());
        for column in &columns {
            let at = table.columns.iter().position(|it| it.name == *column);
            let at = at
                .filter(|at| !places.contains(at))
                .ok_or_else(|| foreign(format!("`{expected}` has a column `{}`", shown(column))))?;
            places.push(at);
        }
        if places.len() != table.columns.len() {
            return Err(foreign(format!("`{expected}` lacks columns")));
        }
        let item = Item::Table {
            table: place,
            columns: places.clone(),
        };
        self.give(item)?;
        lines.advance()?;
        while lines.is_array() {
            self.row(lines, table, &places, listed)?;
            lines.advance()?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        lines: &Lines<impl Read>,
        table: &ExportedTable,
        places: &[usize],
        listed: &mut Ids,
    ) -> Result<(), ReadError> {
        let name = table.table.name;
        let values: Vec<Value> = serde_json::from_slice(&lines.line)
            .map_err(|_| foreign(format!("a row of `{name}` cannot be read")))?;
        if values.len() != places.len() {
            return Err(foreign(format!("a row of `{name}` has another length")));
        }
        let mut row = Vec::with_capacity(values.len());
        for (at, value) in places.iter().zip(values) {
            let Some(column) = table.columns.get(*at) else {
                continue;
            };
            let column_name = column.name.as_str();
            if (name, column_name, &value) == ("users", "is_installation_admin", &Value::Bool(true))
            {
                self.former_admins += 1;
            }
            let arg = table.read(column, self.tenant, value).map_err(|reason| {
                foreign(format!(
                    "a row of `{name}` has a `{column_name}` that {reason}"
                ))
            })?;
            if let Arg::Text(Some(text)) = &arg {
                if name == "sessions" && column_name == "id" {
                    listed.add(text)?;
                }
                if table.is_sealed(column_name) {
                    self.closed_secrets += self.closed(text);
                }
            }
            row.push(arg);
        }
        self.counts.rows += 1;
        self.give(Item::Row(row))
    }

    /// The number of sealed texts in a value that the keys do not open.
    fn closed(&self, value: &str) -> u64 {
        let Some(sealer) = self.sealer else {
            return 0;
        };
        let texts = sealed_texts(value).into_iter();
        let closed = texts.filter(|text| sealer.is_closed(text));
        closed.count() as u64
    }

    fn journal(
        &mut self,
        lines: &mut Lines<impl Read>,
        journals: &mut Ids,
        (session, version, used): (&str, i64, i64),
    ) -> Result<(), ReadError> {
        let id = SessionId::parse(session);
        let id = id.ok_or_else(|| foreign("a journal is that of no session"))?;
        journals.add(session)?;
        let item = Item::Journal {
            session: id,
            version,
            used,
        };
        self.give(item)?;
        lines.advance()?;
        let (mut count, mut last_seq) = (0_i64, 0);
        while lines.is_array() {
            let record = record(&lines.line, last_seq)
                .ok_or_else(|| foreign("a record of a journal cannot be read"))?;
            last_seq = record.last_seq;
            count += 1;
            self.give(Item::Record(record))?;
            lines.advance()?;
        }
        if !(0..=count).contains(&version) || !(0..=version).contains(&used) {
            return Err(foreign("a journal is shorter than its session"));
        }
        self.counts.sessions += 1;
        self.counts.records += count.unsigned_abs();
        Ok(())
    }

    /// Reads over the audit to the end of the file, and returns the digest of everything before the last line.
    fn end(&mut self, lines: &mut Lines<impl Read>) -> Result<String, ReadError> {
        loop {
            lines.advance()?;
            if lines.line.starts_with(b"{\"end\":") {
                break;
            }
        }
        let Mark::End {
            rows,
            sessions,
            records,
            sha256,
        } = lines.mark()?
        else {
            return Err(foreign("its end cannot be read"));
        };
        let counts = TenantCounts {
            rows,
            sessions,
            records,
        };
        if counts != self.counts || sha256 != lines.digest() {
            return Err(damaged("it is not what was written"));
        }
        lines.finish()?;
        Ok(sha256)
    }
}

fn record(line: &[u8], before: u64) -> Option<NewRecord> {
    let RecordLine(commit, first_seq, last_seq, body) = serde_json::from_slice(line).ok()?;
    let body = STANDARD.decode(body).ok()?;
    let is_dense = first_seq >= 1
        && last_seq >= before
        && i64::try_from(last_seq).is_ok_and(|last| last < i64::MAX)
        && first_seq <= last_seq + 1;
    (is_dense && body.len() <= MAX_BODY_BYTES).then_some(())?;
    Some(NewRecord {
        commit_id: CommitId::parse(&commit)?,
        first_seq,
        last_seq,
        is_active: false,
        body: Bytes::from(body),
        wake: None,
    })
}

/// Ids in ascending order, as their digest.
#[derive(Default)]
struct Ids {
    last: String,
    digest: Sha256,
}

impl Ids {
    fn add(&mut self, id: &str) -> Result<(), ReadError> {
        if *id <= *self.last {
            return Err(foreign("its sessions are not in order"));
        }
        self.digest.update(id);
        id.clone_into(&mut self.last);
        Ok(())
    }
}

impl PartialEq for Ids {
    fn eq(&self, other: &Self) -> bool {
        self.digest.clone().finalize() == other.digest.clone().finalize()
    }
}

/// The lines of the file, one at a time.
struct Lines<R: Read> {
    input: BufReader<GzDecoder<BufReader<R>>>,
    /// The current line, without its end.
    line: Vec<u8>,
    /// Of all lines before the current one.
    digest: Sha256,
}

impl<R: Read> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input: BufReader::new(GzDecoder::new(BufReader::new(input))),
            line: Vec::new(),
            digest: Sha256::new(),
        }
    }

    /// Reads the first line, which is short.
    fn first(&mut self) -> Result<&[u8], ReadError> {
        self.read(MAX_HEADER)?;
        Ok(&self.line)
    }

    /// Goes to the next line.
    fn advance(&mut self) -> Result<(), ReadError> {
        self.digest.update(&self.line);
        self.digest.update(b"\n");
        self.read(MAX_LINE)
    }

    fn read(&mut self, most: usize) -> Result<(), ReadError> {
        self.line.clear();
        // One long line does not keep its memory for all others.
        self.line.shrink_to(1 << 20);
        let limit = most as u64 + 1;
        let read = self
            .input
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut self.line);
        read.map_err(|error| damaged(reason(&error)))?;
        if self.line.pop() == Some(b'\n') {
            return Ok(());
        }
        Err(if self.line.len() >= most {
            foreign("one of its lines is too long")
        } else {
            damaged("it ends too early")
        })
    }

    fn is_array(&self) -> bool {
        self.line.first() == Some(&b'[')
    }

    /// The current line as one that begins a part.
    fn mark(&self) -> Result<Mark, ReadError> {
        serde_json::from_slice(&self.line).map_err(|_| foreign("one of its lines cannot be read"))
    }

    fn digest(&self) -> String {
        hex::encode(self.digest.clone().finalize())
    }

    /// Checks that nothing follows, and the checksum of the compression.
    fn finish(&mut self) -> Result<(), ReadError> {
        if is_end(&mut self.input)? && is_end(self.input.get_mut().get_mut())? {
            return Ok(());
        }
        Err(foreign("something follows its end"))
    }
}

fn is_end(input: &mut impl BufRead) -> Result<bool, ReadError> {
    let rest = input.fill_buf();
    let rest = rest.map_err(|error| damaged(reason(&error)))?;
    Ok(rest.is_empty())
}

fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        "it ends too early".to_owned()
    } else {
        error.to_string()
    }
}

fn foreign(reason: impl Into<String>) -> ReadError {
    ReadError::Foreign(reason.into())
}

fn damaged(reason: impl Into<String>) -> ReadError {
    ReadError::Damaged(reason.into())
}

/// A name of the file, shortened and escaped for display.
fn shown(name: &str) -> String {
    name.chars()
        .take(80)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::{Value, json};
    use sha2::{Digest as _, Sha256};

    use super::{Expected, ExportFacts, Item, ReadError, read};
    use crate::Sealer;
    use crate::db::{Arg, ColumnKind, TableColumn};
    use crate::records::tenant_tables::{Owner, TenantTable};
    use crate::tenant_archive::shape::{ExportedTable, Shape};
    use sepal_core::domain::TenantId;

    const TENANT: &str = "ten_00000000000000000000000000000001";
    const OTHER: &str = "ten_00000000000000000000000000000002";
    const SESSION: &str = "ses_00000000000000000000000000000001";
    const PERSON: &str = "usr_00000000000000000000000000000001";

    const SESSIONS: TenantTable = TenantTable {
        name: "sessions",
        owner: Owner::Column("tenant"),
        is_exported: true,
    };
    const GRANTS: TenantTable = TenantTable {
        name: "mcp_grants",
        owner: Owner::Column("tenant"),
        is_exported: true,
    };
    const DEFINITIONS: TenantTable = TenantTable {
        name: "tool_definitions",
        owner: Owner::Prefix {
            column: "hash",
            prefix: "accepted:",
        },
        is_exported: true,
    };

    fn column(name: &str, kind: ColumnKind, key: i64) -> TableColumn {
        TableColumn {
            name: name.to_owned(),
            kind,
            is_nullable: false,
            key,
        }
    }

    pub(in super::super) fn shape() -> Shape {
        let text = |name, key| column(name, ColumnKind::Text, key);
        Shape {
            schema: 7,
            tables: vec![
                ExportedTable {
                    table: &SESSIONS,
                    columns: vec![
                        text("id", 2),
                        text("owner", 0),
                        column("version", ColumnKind::Int, 0),
                        column("pinned", ColumnKind::Bool, 0),
                    ],
                },
                ExportedTable {
                    table: &GRANTS,
                    columns: vec![text("scope", 1), column("body", ColumnKind::Bytes, 0)],
                },
                ExportedTable {
                    table: &DEFINITIONS,
                    columns: vec![text("hash", 1)],
                },
            ],
        }
    }

    fn whole() -> Vec<Value> {
        vec![
            json!({ "format": "sepal-tenant", "version": 1, "program": "1", "schema": 7,
                "createdAt": "now", "tenant": { "id": TENANT, "name": "acme", "createdAt": 1,
                "allowsLinks": false }, "audit": { "records": 0, "link": null } }),
            json!({ "table": { "name": "sessions", "columns": ["id", "owner", "version", "pinned"] } }),
            json!([SESSION, PERSON, 5, true]),
            json!({ "table": { "name": "mcp_grants", "columns": ["body", "scope"] } }),
            json!(["AAE=", TENANT]),
            json!(["", "installation"]),
            json!({ "table": { "name": "tool_definitions", "columns": ["hash"] } }),
            json!(["files"]),
            json!({ "journal": { "session": SESSION, "version": 1, "used": 1 } }),
            json!(["com_00000000000000000000000000000001", 1, 2, "e30="]),
            json!({ "audit": {} }),
            json!({ "type": "act" }),
        ]
    }

    /// The file with these lines and a right end.
    fn file(lines: &[Value]) -> Vec<u8> {
        let text = joined(lines);
        let sha256 = hex::encode(Sha256::digest(&text));
        let rows = lines.iter().filter(|line| line.is_array()).count() - 1;
        let end = json!({ "end": { "rows": rows, "sessions": 1, "records": 1, "sha256": sha256 } });
        packed(format!("{text}{end}\n").as_bytes())
    }

    fn joined(lines: &[Value]) -> String {
        let texts: Vec<String> = lines.iter().map(Value::to_string).collect();
        texts.join("\n") + "\n"
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn taken(file: &[u8]) -> (Result<ExportFacts, ReadError>, Vec<Item>) {
        taken_as(file, Expected::Any(&Sealer::with_key(&"one".into())))
    }

    fn taken_as(
        file: &[u8],
        expected: Expected<'_>,
    ) -> (Result<ExportFacts, ReadError>, Vec<Item>) {
        let mut items = Vec::new();
        let facts = read(file, &shape(), expected, |item| {
            items.push(item);
            true
        });
        (facts, items)
    }

    #[test]
    fn a_file_that_was_exchanged_after_it_was_checked_gives_no_row() {
        let file = file(&whole());
        let id = |text| TenantId::parse(text).unwrap();
        let (facts, items) = taken_as(&file, Expected::Tenant(&id(TENANT)));
        assert!(facts.is_ok() && !items.is_empty());
        let (facts, items) = taken_as(&file, Expected::Tenant(&id(OTHER)));
        assert!(matches!(facts, Err(ReadError::Damaged(_))) && items.is_empty());
    }

    #[test]
    fn rows_get_their_tenant_from_the_header_alone() {
        let (facts, items) = taken(&file(&whole()));
        let facts = facts.unwrap();
        assert_eq!(facts.tenant.as_str(), TENANT);
        assert_eq!((facts.counts.rows, facts.counts.records), (4, 1));
        let mut texts = Vec::new();
        for item in &items {
            let Item::Row(args) = item else {
                continue;
            };
            texts.extend(args.iter().find_map(|arg| {
                if let Arg::Text(Some(text)) = arg {
                    Some(text.as_str())
                } else {
                    None
                }
            }));
        }
        let accepted = format!("accepted:{TENANT}:files");
        assert_eq!(texts, [SESSION, TENANT, "installation", accepted.as_str()]);
        // The version of a session's row is set when its journal is there.
        let Some(Item::Row(session)) = items.get(1) else {
            panic!("{items:?}");
        };
        assert!(matches!(session[2], Arg::Int(Some(0))), "{session:?}");
    }

    #[test]
    fn what_no_export_has_is_refused() {
        fn check(change: impl FnOnce(&mut Vec<Value>), expected: &str) {
            let mut lines = whole();
            change(&mut lines);
            let said = match taken(&file(&lines)).0 {
                Err(ReadError::Foreign(reason) | ReadError::Damaged(reason)) => reason,
                Err(ReadError::OtherSchema { schema, .. }) => format!("schema {schema}"),
                other => panic!("{expected}: {other:?}"),
            };
            assert!(said.contains(expected), "`{expected}` in `{said}`");
        }
        // Another tenant's name has no place: as a column, as a scope, or in a value.
        check(
            |it| {
                it[1]["table"]["columns"]
                    .as_array_mut()
                    .unwrap()
                    .push("tenant".into());
                it[2].as_array_mut().unwrap().push(OTHER.into());
            },
            "has a column `tenant`",
        );
        check(|it| it[4][1] = OTHER.into(), "scope of another tenant");
        check(|it| it[0]["tenant"]["id"] = "x".into(), "names no tenant");
        check(|it| it[0]["schema"] = 8.into(), "schema 8");
        check(|it| it[0]["version"] = 2.into(), "schema 7");
        check(|it| it[0]["format"] = "zip".into(), "does not begin as one");
        check(
            |it| it[1]["table"]["name"] = "tenants; DROP TABLE users".into(),
            "`tenants; DROP TABLE users` stands in the place of `sessions`",
        );
        check(
            |it| it[1]["table"]["columns"][0] = "id) --".into(),
            "has a column `id) --`",
        );
        check(
            |it| it[1]["table"]["columns"][0] = "owner".into(),
            "has a column `owner`",
        );
        check(|it| drop(it.drain(6..8)), "`tool_definitions` is missing");
        check(|it| it[2][0] = "s".into(), "is not the id of a session");
        check(|it| it[2][2] = "5".into(), "a value of another kind");
        check(|it| it[2][3] = 1.into(), "a value of another kind");
        check(|it| it[2][1] = Value::Null, "a value of another kind");
        check(|it| it[4][0] = "?".into(), "is not base64");
        check(|it| it[2] = json!([SESSION]), "has another length");
        check(|it| it[8]["journal"]["version"] = 2.into(), "is shorter");
        check(|it| it[9][1] = 4.into(), "a record of a journal");
        check(
            |it| it[8]["journal"]["session"] = SESSION.replace('1', "2").into(),
            "not those of its sessions",
        );
        check(
            |it| {
                let again = it[2].clone();
                it.insert(3, again);
            },
            "are not in order",
        );
        check(|it| drop(it.remove(10)), "cannot be read");
    }

    #[test]
    fn a_cut_or_changed_file_is_noticed() {
        let file = file(&whole());
        for cut in [0, 1, 20, file.len() / 2, file.len() - 1] {
            let facts = taken(&file[..cut]).0;
            assert!(
                matches!(facts, Err(ReadError::Damaged(_) | ReadError::Foreign(_))),
                "{cut}: {facts:?}"
            );
        }
        let mut lines = whole();
        let text = joined(&lines);
        let cut = taken(&packed(text.as_bytes())).0;
        assert!(matches!(cut, Err(ReadError::Damaged(_))), "{cut:?}");
        let sha256 = hex::encode(Sha256::digest(&text));
        lines[11]["type"] = "decision".into();
        let text = joined(&lines);
        let end = json!({ "end": { "rows": 4, "sessions": 1, "records": 1, "sha256": sha256 } });
        let changed = taken(&packed(format!("{text}{end}\n").as_bytes())).0;
        assert!(matches!(changed, Err(ReadError::Damaged(_))), "{changed:?}");
        let more = [&file[..], b"x"].concat();
        assert!(matches!(taken(&more).0, Err(ReadError::Foreign(_))));
    }
}
