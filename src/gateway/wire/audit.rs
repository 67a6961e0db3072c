//! Writes records of the audit for others: as they are, as OCSF events, as CEF lines, and as a table.

use serde_json::{Map, Value, json};

use crate::agent::{PassedRecord, RecordForms};
use crate::config::SiemFormat;
use crate::domain::{Scope, Timestamp};
use crate::store::audit::StoredRecord;
use crate::store::records::{AuditRow, Seal};

/// The version of OCSF whose classes and fields are used.
const OCSF_VERSION: &str = "1.3.0";

/// The characters with which a spreadsheet begins a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The columns of the table.
pub const AUDIT_COLUMNS: [&str; 14] = [
    "at",
    "act",
    "by",
    "person_id",
    "person",
    "door",
    "address",
    "kind",
    "subject",
    "session",
    "server",
    "tool",
    "verdict",
    "link",
];

/// Writes records in the form of the settings.
pub struct RecordWire {
    pub format: SiemFormat,
}

impl RecordForms for RecordWire {
    fn line(&self, record: PassedRecord<'_>) -> String {
        let PassedRecord { chain, record } = record;
        match self.format {
            SiemFormat::Jsonl => json_line(chain, record),
            SiemFormat::Ocsf => ocsf_line(chain, record, None),
            SiemFormat::Cef => cef_line(chain, record, None),
        }
    }

    fn kind(&self) -> &'static str {
        match self.format {
            SiemFormat::Jsonl | SiemFormat::Ocsf => "application/x-ndjson",
            SiemFormat::Cef => "text/plain; charset=utf-8",
        }
    }
}

/// The parts of a record that all forms tell.
struct Told {
    body: Value,
}

impl Told {
    fn of(record: &AuditRow) -> Self {
        Self {
            body: serde_json::from_str(&record.body).unwrap_or_default(),
        }
    }

    fn text(&self, path: &str) -> &str {
        let value = self.body.pointer(path).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    /// The kind of actor: a person, or `gateway`, `operator`, `rule` and so on.
    fn by(&self) -> &str {
        match self.text("/by/kind") {
            "" if !self.text("/by/id").is_empty() => "person",
            kind => kind,
        }
    }
}

/// A record as it is, in one line: with the link, the record proves itself (docs/audit.md).
pub fn json_line(chain: &Scope, record: &AuditRow) -> String {
    let body: Value = serde_json::from_str(&record.body).unwrap_or_default();
    let mut line = Map::new();
    if record.link.is_empty() {
        line.insert("type".to_owned(), "decision".into());
        line.insert("session".to_owned(), record.session.as_str().into());
        line.insert("at".to_owned(), record.at.into());
    } else {
        line.insert("type".to_owned(), "record".into());
        line.insert("link".to_owned(), record.link.as_str().into());
    }
    line.insert("tenant".to_owned(), chain.as_str().into());
    line.insert("record".to_owned(), body);
    Value::Object(line).to_string()
}

/// A record of a whole chain in one line.
pub fn record_line(chain: &Scope, record: StoredRecord) -> String {
    json_line(chain, &AuditRow::from(record))
}

/// A signature in one line of an export.
pub fn seal_line(chain: &Scope, seal: &Seal) -> String {
    json!({
        "type": "seal", "tenant": chain.as_str(), "n": seal.n, "at": seal.at, "link": seal.link,
        "key": seal.key, "signature": seal.signature,
    })
    .to_string()
}

/// The class of an act in OCSF, and its activity there: both as numbers and in words.
fn ocsf_class(act: &str) -> ((u32, &'static str), (u32, &'static str)) {
    const AUTHENTICATION: (u32, &str) = (3002, "Authentication");
    const ACCOUNT: (u32, &str) = (3001, "Account Change");
    const ENTITY: (u32, &str) = (3004, "Entity Management");
    const API: (u32, &str) = (6003, "API Activity");
    const OTHER: (u32, &str) = (99, "Other");
    let (family, verb) = act.split_once('.').unwrap_or((act, ""));
    match (family, verb) {
        ("sign_in", "ended") => (AUTHENTICATION, (2, "Logoff")),
        ("sign_in", _) => (AUTHENTICATION, (1, "Logon")),
        ("user", "added") => (ACCOUNT, (1, "Create")),
        ("user", "enabled") => (ACCOUNT, (2, "Enable")),
        ("user", "password_set") => (ACCOUNT, (3, "Password Change")),
        ("user", "disabled") => (ACCOUNT, (5, "Disable")),
        ("user" | "key" | "passkey" | "link" | "gesture" | "scim_token", _) => (ACCOUNT, OTHER),
        ("call" | "dry_run" | "message" | "turn" | "question" | "model" | "request", _) => {
            (API, OTHER)
        }
        (_, "added" | "given" | "begun") => (ENTITY, (1, "Create")),
        (_, "set" | "changed" | "replaced" | "switched") => (ENTITY, (3, "Update")),
        (_, "removed" | "deleted" | "forgotten") => (ENTITY, (4, "Delete")),
        _ => (ENTITY, OTHER),
    }
}

fn has_failed(act: &str) -> bool {
    matches!(
        act,
        "sign_in.failed" | "sign_in.limited" | "request.refused"
    )
}

/// A record as an event of the Open Cybersecurity Schema Framework.
pub fn ocsf_line(chain: &Scope, record: &AuditRow, name: Option<&str>) -> String {
    let told = Told::of(record);
    let ((class, class_name), (activity, activity_name)) = ocsf_class(&record.act);
    let (status, status_name) = if has_failed(&record.act) {
        (2, "Failure")
    } else {
        (1, "Success")
    };
    let address = told.text("/door/address");
    let source = (!address.is_empty()).then(|| json!({ "ip": address }));
    let event = json!({
        "activity_id": activity,
        "activity_name": activity_name,
        "actor": { "user": { "name": name.unwrap_or(told.by()), "uid": record.person } },
        "category_uid": class / 1_000,
        "class_name": class_name,
        "class_uid": class,
        "message": record.act,
        "metadata": {
            "log_name": "audit",
            "product": {
                "name": "Sepal", "vendor_name": "Sepal", "version": env!("CARGO_PKG_VERSION"),
            },
            "tenant_uid": chain.as_str(),
            "uid": if record.link.is_empty() { &record.place } else { &record.link },
            "version": OCSF_VERSION,
        },
        "severity": "Informational",
        "severity_id": 1,
        "src_endpoint": source,
        "status": status_name,
        "status_id": status,
        "time": record.at,
        "type_uid": class * 100 + activity,
        "unmapped": { "link": record.link, "record": told.body, "session": record.session },
    });
    event.to_string()
}

/// A record as a line in Common Event Format.
pub fn cef_line(chain: &Scope, record: &AuditRow, name: Option<&str>) -> String {
    let told = Told::of(record);
    let header = |text: &str| {
        text.replace('\\', "\\\\")
            .replace('|', "\\|")
            .replace(['\n', '\r'], " ")
    };
    let value = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('=', "\\=");
        text.replace('\n', "\\n").replace('\r', "\\r")
    };
    let severity = if has_failed(&record.act) { 5 } else { 3 };
    let at = record.at.to_string();
    let act = header(&record.act);
    let address = told.text("/door/address");
    let session = record.session.as_str();
    let fields = [
        ("rt", at.as_str()),
        ("suid", record.person.as_str()),
        ("suser", name.unwrap_or(told.by())),
        ("src", address),
        (
            "outcome",
            if has_failed(&record.act) {
                "failure"
            } else {
                "success"
            },
        ),
        ("cs1Label", "tenant"),
        ("cs1", chain.as_str()),
        ("cs2Label", "link"),
        ("cs2", record.link.as_str()),
        ("cs3Label", "session"),
        ("cs3", session),
        ("msg", record.body.as_str()),
    ];
    let fields = fields.iter().filter(|(_, text)| !text.is_empty());
    let fields: Vec<String> = fields
        .map(|(key, text)| format!("{key}={}", value(text)))
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "CEF:0|Sepal|Sepal|{version}|{act}|{act}|{severity}|{}",
        fields.join(" ")
    )
}

/// A record as a row of the table; names that people chose cannot become formulas.
pub fn audit_columns(record: &AuditRow, name: Option<&str>) -> [String; 14] {
    let told = Told::of(record);
    let text = |text: &str| {
        if text.starts_with(FORMULA) {
            format!("'{text}")
        } else {
            text.to_owned()
        }
    };
    [
        Timestamp(record.at).to_rfc3339(),
        record.act.clone(),
        text(told.by()),
        record.person.clone(),
        text(name.unwrap_or_default()),
        text(told.text("/door/name")),
        text(told.text("/door/address")),
        text(told.text("/on/kind")),
        text(told.text("/on/id")),
        record.session.clone(),
        text(told.text("/call/server")),
        text(told.text("/call/tool")),
        text(told.text("/verdict")),
        record.link.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{AUDIT_COLUMNS, audit_columns, cef_line, json_line, ocsf_line};
    use crate::domain::Scope;
    use crate::store::records::AuditRow;

    fn row(act: &str, subject: &str) -> AuditRow {
        let body = json!({
            "act": act, "at": 1_000, "by": { "id": "usr_1", "kind": "person", "tenant": "ten_1" },
            "details": {}, "door": { "address": "192.0.2.1", "name": "http" }, "n": 1,
            "on": { "id": subject, "kind": "skill" }, "prev": "0",
        });
        AuditRow {
            at: 1_000,
            place: "1".to_owned(),
            act: act.to_owned(),
            person: "usr_1".to_owned(),
            session: String::new(),
            body: body.to_string(),
            link: "ab".to_owned(),
        }
    }

    #[test]
    fn a_record_is_written_in_each_form() {
        let row = row("skill.added", "=a|b\n");
        let line: Value = serde_json::from_str(&json_line(&Scope::Installation, &row)).unwrap();
        assert_eq!(line["type"], "record");
        assert_eq!(line["record"]["on"]["id"], "=a|b\n");
        let event: Value =
            serde_json::from_str(&ocsf_line(&Scope::Installation, &row, Some("ann"))).unwrap();
        for (path, expected) in [
            ("/class_uid", json!(3004)),
            ("/category_uid", json!(3)),
            ("/type_uid", json!(300_401)),
            ("/status_id", json!(1)),
            ("/time", json!(1_000)),
            ("/actor/user/name", json!("ann")),
            ("/src_endpoint/ip", json!("192.0.2.1")),
            ("/unmapped/record/act", json!("skill.added")),
        ] {
            assert_eq!(event.pointer(path), Some(&expected), "{path}");
        }
        let cef = cef_line(&Scope::Installation, &row, None);
        assert!(cef.starts_with("CEF:0|Sepal|Sepal|"), "{cef}");
        assert!(
            cef.contains("|skill.added|skill.added|3|rt=1000 suid=usr_1 suser=person"),
            "{cef}"
        );
        assert!(
            !cef.contains('\n') && cef.contains("src=192.0.2.1"),
            "{cef}"
        );
        let columns = audit_columns(&row, Some("+ann"));
        assert_eq!(columns.len(), AUDIT_COLUMNS.len());
        assert_eq!((&*columns[4], &*columns[8]), ("'+ann", "'=a|b\n"));
    }

    #[test]
    fn failures_are_told_as_such() {
        for (act, class, status) in [
            ("sign_in.failed", 3002, 2),
            ("sign_in.succeeded", 3002, 1),
            ("user.disabled", 3001, 1),
            ("call.decided", 6003, 1),
            ("request.refused", 6003, 2),
            ("rule.removed", 3004, 1),
        ] {
            let line = ocsf_line(&Scope::Installation, &row(act, "x"), None);
            let event: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(
                (&event["class_uid"], &event["status_id"]),
                (&json!(class), &json!(status))
            );
        }
    }
}
