//! The forms of the audit on the wire.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::query::cursor;
use crate::agent::{AuditCheck, AuditPage, AuditStanding, ListedRecord};
use crate::domain::Timestamp;
use crate::store::audit::PublicKey;
use crate::store::records::AnchorRow;

/// A page of the audit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditRecordsPage {
    /// The records, newest first.
    items: Vec<AuditRecord>,
    /// The `cursor` of the next page; `null` on the last page.
    next_cursor: Option<String>,
}

/// A record of the audit: an act, or a decision in a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditRecord {
    /// The record's place in the list.
    id: String,
    /// When it was done (RFC 3339).
    at: String,
    /// The act, such as `user.added` or `call.decided`.
    act: String,
    /// The person who did it; `null` if it was nobody who has an account.
    person: Option<AuditPerson>,
    /// The session that it concerns; `null` if none.
    session: Option<String>,
    /// The link of the record: SHA-256 of its canonical JSON (RFC 8785); `null` for a decision, which the
    /// journal of its session proves.
    link: Option<String>,
    /// The record itself (docs/audit.md).
    #[schema(value_type = Object)]
    record: Value,
}

/// A person in the audit.
#[derive(Debug, Serialize, ToSchema)]
struct AuditPerson {
    id: String,
    /// The name that the person has now; `null` if there is no such person any more.
    name: Option<String>,
}

impl AuditRecordsPage {
    pub(super) fn of(page: AuditPage) -> Self {
        Self {
            items: page.records.into_iter().map(AuditRecord::of).collect(),
            next_cursor: page.next.as_ref().map(cursor),
        }
    }
}

impl AuditRecord {
    fn of(listed: ListedRecord) -> Self {
        let ListedRecord { row, name } = listed;
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            id: row.place,
            at: Timestamp(row.at).to_rfc3339(),
            act: row.act,
            person: some(row.person).map(|id| AuditPerson { id, name }),
            session: some(row.session),
            link: some(row.link),
            record: serde_json::from_str(&row.body).unwrap_or_default(),
        }
    }
}

/// The public key of the audit (Ed25519).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditKeyBody {
    /// Its 32 bytes in base64url.
    key: String,
    /// The same as PEM (SPKI).
    pem: String,
}

impl AuditKeyBody {
    pub(super) fn of(key: PublicKey) -> Self {
        Self {
            key: key.to_string(),
            pem: key.to_pem(),
        }
    }
}

/// The newest signatures of the audit, and the anchors that have them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditState {
    /// The number of the last record.
    last: i64,
    /// The newest signature; `null` if there is none yet.
    sealed: Option<AuditSeal>,
    /// The anchors outside: for each the newest signature that it has, and the newest that it lacks.
    anchors: Vec<AuditAnchor>,
}

/// A signature over the end of the audit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditSeal {
    /// The number of the signed record.
    n: i64,
    /// When it was signed (RFC 3339).
    at: String,
    /// The link of the record.
    link: String,
    /// The public key, in base64url.
    key: String,
    /// The signature, in base64url.
    signature: String,
}

/// A place outside that gets signatures.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditAnchor {
    /// `webhook`, `file`, `mail` or `timestamp`.
    anchor: String,
    /// The number of the signed record.
    n: i64,
    /// When the place got the signature (RFC 3339); `null` if it has not got it yet.
    at: Option<String>,
    /// The number of attempts.
    attempts: i64,
    /// The reason why the last attempt failed.
    error: Option<String>,
    /// The proof that the place gave, in base64url: the answer of a time-stamp service.
    receipt: Option<String>,
}

impl AuditState {
    pub(super) fn of(standing: AuditStanding) -> Self {
        Self {
            last: standing.last,
            sealed: standing.seal.map(|seal| AuditSeal {
                n: seal.n,
                at: Timestamp(seal.at).to_rfc3339(),
                link: seal.link,
                key: seal.key,
                signature: seal.signature,
            }),
            anchors: standing.anchors.into_iter().map(AuditAnchor::of).collect(),
        }
    }
}

impl AuditAnchor {
    fn of(row: AnchorRow) -> Self {
        Self {
            anchor: row.anchor,
            n: row.n,
            at: row.done_at.map(|at| Timestamp(at).to_rfc3339()),
            attempts: row.attempts,
            error: row.error,
            receipt: row.receipt,
        }
    }
}

/// The result of checking the audit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditVerification {
    /// True if nothing is wrong.
    ok: bool,
    /// The number of records that were checked.
    records: u64,
    /// The number of sessions whose journals were checked.
    sessions: u64,
    /// The first thing that is wrong; `null` if nothing is.
    problem: Option<AuditProblem>,
    /// The time up to which everything is proven by a signature (RFC 3339); `null` if nothing is.
    proven_until: Option<String>,
    /// The last record that is proven; 0 if none is.
    proven_record: i64,
    /// When a place outside got the newest signature that any of them has (RFC 3339).
    anchored_at: Option<String>,
}

/// The first thing that is wrong with the audit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditProblem {
    /// The number of the record.
    record: i64,
    /// The fault, in words for people.
    detail: String,
    /// The session whose journal is not the one that the record names; `null` if the record itself is wrong.
    session: Option<String>,
}

impl AuditVerification {
    pub(super) fn of(check: &AuditCheck) -> Self {
        let broken = check.report.broken.as_ref().map(|broken| AuditProblem {
            record: broken.n(),
            detail: broken.to_string(),
            session: None,
        });
        let in_session = check.broken_session.as_ref().map(|broken| AuditProblem {
            record: broken.n,
            detail: format!(
                "commit {} of the session is not the one that the record names",
                broken.version
            ),
            session: Some(broken.session.clone()),
        });
        let rfc3339 = |at: i64| Timestamp(at).to_rfc3339();
        Self {
            ok: check.is_whole(),
            records: check.report.records,
            sessions: check.sessions,
            problem: broken.or(in_session),
            proven_until: check.report.proven.map(|(_, at)| rfc3339(at)),
            proven_record: check.report.proven.map_or(0, |(n, _)| n),
            anchored_at: check.anchored.as_ref().map(|(_, at, _)| rfc3339(*at)),
        }
    }
}
