//! Reads the chains of the audit, and stores what is signed and anchored of them. Records are appended by the
//! transactions that act; only what changes nothing else is noted here.

use serde_json::Value;

pub use super::super::audit::Seal;
use super::super::audit::{Act, ActName, ChainHead, StoredRecord};
use super::super::db::{Arg, Db, PerRow, Statement, args};
use super::super::{Error, clock};
use super::{scope, session_id, tenant_id};
use sepal_core::domain::{Scope, SessionKey, TenantId, Timestamp};

/// The most rows of a page.
const MAX_ROWS: i64 = 500;

/// The delivery of a seal to one anchor, and its result.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub struct AnchorRow {
    pub n: i64,
    pub anchor: String,
    pub done_at: Option<i64>,
    pub attempts: i64,
    pub error: Option<String>,
    /// The proof that the anchor gave, in base64url.
    pub receipt: Option<String>,
}

/// A seal that an anchor has not got yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueAnchor {
    pub chain: Scope,
    pub anchor: String,
    pub attempts: i64,
    pub seal: Seal,
}

/// Something that is recorded although it changes nothing.
#[derive(Debug, Clone)]
pub struct Note {
    act: Act,
}

impl Note {
    /// Notes an act on a thing of a kind, in the chain of a scope.
    pub fn new(name: ActName, chain: &Scope, kind: &'static str, subject: &str) -> Self {
        Self {
            act: Act::new(name, chain, kind, subject),
        }
    }

    /// Names a fact about it, never the value of a secret.
    #[must_use]
    pub fn detail(self, name: &str, value: impl Into<Value>) -> Self {
        Self {
            act: self.act.detail(name, value),
        }
    }
}

/// A receiver outside that is passed each record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordReceiver {
    Webhook,
    Syslog,
}

impl RecordReceiver {
    /// All receivers.
    pub const ALL: [Self; 2] = [Self::Webhook, Self::Syslog];

    /// The name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Syslog => "syslog",
        }
    }
}

/// The right of one gateway to do some work for the whole installation.
#[derive(Debug, Clone, Copy)]
pub struct LeaseName<'a> {
    pub work: &'a str,
    /// Names the gateway.
    pub holder: &'a str,
}

/// A decision in a session, for the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRow {
    /// The version of the commit in the journal.
    pub version: u64,
    /// Counts the records of the commit, from 0.
    pub place: u64,
    pub at: Timestamp,
    pub act: String,
    /// The person who decided.
    pub person: Option<String>,
    pub tool: String,
    pub verdict: String,
    /// The record, as canonical JSON.
    pub body: String,
}

/// Selects records of the audit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only what this person did.
    pub person: Option<String>,
    /// Only what concerns this session.
    pub session: Option<String>,
    /// Only this tool, by name.
    pub tool: Option<String>,
    /// Only decisions with this verdict.
    pub verdict: Option<String>,
    /// Only acts with this name, or whose names begin with this word and a dot.
    pub act: Option<String>,
    /// Only from this time on.
    pub from: Option<i64>,
    /// Only before this time.
    pub to: Option<i64>,
    /// True for decisions in sessions alone.
    pub is_decision: bool,
}

/// A record of the audit in a list: an act, or a decision in a session.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub struct AuditRow {
    pub at: i64,
    /// The place among records of the same time: `a` and the number of an act, or `d` and the place of a
    /// decision.
    pub place: String,
    pub act: String,
    pub person: String,
    /// The session of a decision; empty for an act.
    pub session: String,
    /// The record, as canonical JSON.
    pub body: String,
    /// The link of an act; empty for a decision, which its session's journal proves.
    pub link: String,
}

impl From<StoredRecord> for AuditRow {
    fn from(record: StoredRecord) -> Self {
        let is_of_session = record.kind == "session";
        Self {
            at: record.at,
            place: record.n.to_string(),
            act: record.act,
            person: record.person,
            session: if is_of_session {
                record.subject
            } else {
                String::new()
            },
            body: record.body,
            link: record.link,
        }
    }
}

/// Access to the audit.
pub struct Audit<'s> {
    db: &'s Db,
}

impl<'s> Audit<'s> {
    pub(super) fn new(db: &'s Db) -> Self {
        Self { db }
    }

    /// Records what changes nothing else.
    pub async fn note(&self, note: Note) -> Result<(), Error> {
        self.db.append(vec![note.act]).await
    }

    /// The end of a chain; `None` if it has no record.
    pub async fn head(&self, chain: &Scope) -> Result<Option<ChainHead>, Error> {
        let sql = "SELECT n, at, link FROM audit WHERE tenant = $1 ORDER BY n DESC LIMIT 1";
        self.db.fetch_optional(sql, args![chain.as_str()]).await
    }

    /// The chains that have records.
    pub async fn chains(&self) -> Result<Vec<Scope>, Error> {
        let sql = "SELECT DISTINCT tenant FROM audit ORDER BY tenant";
        let rows: Vec<(String,)> = self.db.fetch_all(sql, args![]).await?;
        rows.into_iter().map(|(name,)| scope(name)).collect()
    }

    /// The records of a chain after `after`, in their order; at most 500.
    pub async fn records(&self, chain: &Scope, after: i64) -> Result<Vec<StoredRecord>, Error> {
        let sql = "SELECT n, body, link, at, act, person, kind, subject FROM audit \
                   WHERE tenant = $1 AND n > $2 ORDER BY n LIMIT $3";
        let values = args![chain.as_str(), after, MAX_ROWS];
        self.db.fetch_all(sql, values).await
    }

    /// The last record that retention removed from a chain; 0 if it removed none.
    pub async fn cut(&self, chain: &Scope) -> Result<i64, Error> {
        let sql = "SELECT through FROM audit_cuts WHERE tenant = $1";
        let row: Option<(i64,)> = self.db.fetch_optional(sql, args![chain.as_str()]).await?;
        Ok(row.map_or(0, |(through,)| through))
    }

    /// Adds a signature. Returns false if this record is signed already, by another gateway, or was deleted with
    /// its tenant meanwhile.
    pub async fn add_seal(
        &self,
        chain: &Scope,
        seal: &Seal,
        anchors: &[&str],
    ) -> Result<bool, Error> {
        let sql = "INSERT INTO audit_seals (tenant, n, at, link, key, signature) \
                   SELECT $1, $2, $3, $4, $5, $6 \
                   WHERE EXISTS (SELECT 1 FROM audit WHERE tenant = $1 AND n = $2) \
                   ON CONFLICT DO NOTHING";
        let values = args![
            chain.as_str(),
            seal.n,
            seal.at,
            seal.link.as_str(),
            seal.key.as_str(),
            seal.signature.as_str()
        ];
        let mut statements = vec![Statement::required(sql, values)];
        statements.extend(anchors.iter().map(|anchor| {
            let sql = "INSERT INTO audit_anchors (tenant, n, anchor, attempts, due_at) \
                       VALUES ($1, $2, $3, 0, $4) ON CONFLICT DO NOTHING";
            Statement::new(sql, args![chain.as_str(), seal.n, *anchor, seal.at])
        }));
        Ok(self.db.execute_all(statements).await?.is_some())
    }

    /// The newest signature of a chain.
    pub async fn newest_seal(&self, chain: &Scope) -> Result<Option<Seal>, Error> {
        let sql = "SELECT n, at, link, key, signature FROM audit_seals WHERE tenant = $1 \
                   ORDER BY n DESC LIMIT 1";
        self.db.fetch_optional(sql, args![chain.as_str()]).await
    }

    /// The signatures of a chain after a record, in their order; at most 500.
    pub async fn seals(&self, chain: &Scope, after: i64) -> Result<Vec<Seal>, Error> {
        let sql = "SELECT n, at, link, key, signature FROM audit_seals \
                   WHERE tenant = $1 AND n > $2 ORDER BY n LIMIT $3";
        let values = args![chain.as_str(), after, MAX_ROWS];
        self.db.fetch_all(sql, values).await
    }

    /// Returns the deliveries of the newest seals of a chain to the anchors, newest first; at most 500.
    pub async fn anchors(&self, chain: &Scope) -> Result<Vec<AnchorRow>, Error> {
        let sql = "SELECT n, anchor, done_at, attempts, error, receipt FROM audit_anchors \
                   WHERE tenant = $1 ORDER BY n DESC, anchor LIMIT $2";
        self.db
            .fetch_all(sql, args![chain.as_str(), MAX_ROWS])
            .await
    }

    /// The seals that an anchor is to be given now, oldest first; at most 500.
    pub async fn due_anchors(&self, anchor: &str, now: Timestamp) -> Result<Vec<DueAnchor>, Error> {
        let sql = "SELECT a.tenant, a.anchor, a.attempts, s.n, s.at, s.link, s.key, s.signature \
                   FROM audit_anchors a JOIN audit_seals s ON s.tenant = a.tenant AND s.n = a.n \
                   WHERE a.anchor = $1 AND a.done_at IS NULL AND a.due_at <= $2 \
                   ORDER BY a.due_at, a.n LIMIT $3";
        let values = args![anchor, now.0, MAX_ROWS];
        let rows: Vec<DueRow> = self.db.fetch_all(sql, values).await?;
        rows.into_iter().map(DueRow::into_due).collect()
    }

    /// The time of the oldest seal that each anchor has not got.
    pub async fn oldest_unanchored(&self) -> Result<Vec<(String, Timestamp)>, Error> {
        let sql = "SELECT a.anchor, MIN(s.at) FROM audit_anchors a \
                   JOIN audit_seals s ON s.tenant = a.tenant AND s.n = a.n \
                   WHERE a.done_at IS NULL GROUP BY a.anchor ORDER BY a.anchor";
        let rows: Vec<(String, i64)> = self.db.fetch_all(sql, args![]).await?;
        let time = |(anchor, at)| (anchor, Timestamp(at));
        Ok(rows.into_iter().map(time).collect())
    }

    /// Says what came of giving a seal to an anchor: its receipt, or the reason why it failed and when to try
    /// again.
    pub async fn anchored(
        &self,
        due: &DueAnchor,
        outcome: Result<Option<&str>, (&str, Timestamp)>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let sql = "UPDATE audit_anchors SET attempts = attempts + 1, done_at = $4, due_at = $5, \
                   error = $6, receipt = $7 WHERE tenant = $1 AND n = $2 AND anchor = $3";
        let (done_at, due_at, error, receipt) = match outcome {
            Ok(receipt) => (Some(now.0), now.0, None, receipt),
            Err((reason, next)) => (None, next.0, Some(reason), None),
        };
        let values = args![
            due.chain.as_str(),
            due.seal.n,
            due.anchor.as_str(),
            done_at,
            due_at,
            error,
            receipt
        ];
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// Sessions whose journal grew since a record of their chain named it, of every tenant that stays, after
    /// `last` in the order of keys; at most 500.
    pub async fn unsealed_sessions(
        &self,
        last: Option<&SessionKey>,
    ) -> Result<Vec<SessionKey>, Error> {
        let sql = "SELECT s.tenant, s.id FROM sessions s LEFT JOIN audit_sessions a \
                   ON a.tenant = s.tenant AND a.session = s.id \
                   WHERE s.version > COALESCE(a.version, 0) AND (s.tenant, s.id) > ($1, $2) \
                   AND NOT EXISTS (SELECT 1 FROM tenants t \
                   WHERE t.id = s.tenant AND t.delete_at IS NOT NULL) ORDER BY s.tenant, s.id LIMIT $3";
        let values = args![
            last.map_or("", |key| key.tenant.as_str()),
            last.map_or("", |key| key.session.as_str()),
            MAX_ROWS
        ];
        let rows: Vec<(String, String)> = self.db.fetch_all(sql, values).await?;
        let key = |(tenant, session)| {
            Ok(SessionKey {
                tenant: tenant_id(tenant)?,
                session: session_id(session)?,
            })
        };
        rows.into_iter().map(key).collect()
    }

    /// Records the newest link of sessions in the chain of their tenant.
    pub async fn seal_sessions(
        &self,
        tenant: &TenantId,
        sessions: &[(String, u64, String)],
    ) -> Result<(), Error> {
        const KEEP: PerRow = PerRow {
            before: "INSERT INTO audit_sessions (tenant, session, version, at) VALUES ",
            row: "(?, ?, ?, ?)",
            between: ", ",
            after: " ON CONFLICT (tenant, session) DO UPDATE SET version = excluded.version, \
                    at = excluded.at",
        };
        let list = sessions.iter().map(|(session, version, link)| {
            serde_json::json!({ "id": session, "link": link, "version": version })
        });
        let act = Act::new(ActName::SessionsSealed, tenant, "tenant", tenant.as_str())
            .detail("sessions", list.collect::<Vec<_>>());
        // Before the record itself, so that its removal takes this along.
        let at = clock::now().0;
        let rows = sessions.iter().map(|(session, version, _)| {
            let version = i64::try_from(*version).unwrap_or(i64::MAX);
            args![tenant.as_str(), session.as_str(), version, at]
        });
        let mut statements: Vec<Statement> = KEEP.statements(rows).collect();
        if let Some(last) = statements.pop() {
            statements.push(last.recorded(act));
        }
        self.db.execute_all(statements).await?;
        Ok(())
    }

    /// Takes the turn to do work for the whole installation until `until`. Returns false if another gateway
    /// has it.
    pub async fn take_turn(
        &self,
        work: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "INSERT INTO audit_cursors (tenant, receiver, place) VALUES ('', $1, $2) \
                   ON CONFLICT (tenant, receiver) DO UPDATE SET place = excluded.place \
                   WHERE audit_cursors.place < $3";
        let (now, until) = (time_text(now), time_text(until));
        let values = args![work, until.as_str(), now.as_str()];
        Ok(self.db.execute(sql, values).await? > 0)
    }

    /// Takes the lease of work for the whole installation until `until`. Returns false if another holder has it.
    pub async fn take_lease(
        &self,
        LeaseName { work, holder }: LeaseName<'_>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "INSERT INTO audit_cursors (tenant, receiver, place) VALUES ('', $1, $2) \
                   ON CONFLICT (tenant, receiver) DO UPDATE SET place = excluded.place \
                   WHERE audit_cursors.place < $3";
        let now = time_text(now);
        let place = format!("{} {holder}", time_text(until));
        let values = args![work, place.as_str(), now.as_str()];
        Ok(self.db.execute(sql, values).await? > 0)
    }

    /// Extends a lease. Returns false if it ran out and another holder took it.
    pub async fn renew_lease(
        &self,
        LeaseName { work, holder }: LeaseName<'_>,
        until: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "UPDATE audit_cursors SET place = $3 \
                   WHERE tenant = '' AND receiver = $1 AND SUBSTR(place, 22) = $2";
        let place = format!("{} {holder}", time_text(until));
        let values = args![work, holder, place.as_str()];
        Ok(self.db.execute(sql, values).await? > 0)
    }

    /// Ends a lease, if the holder still has it.
    pub async fn end_lease(&self, lease: LeaseName<'_>) -> Result<(), Error> {
        let LeaseName { work, holder } = lease;
        let sql = "UPDATE audit_cursors SET place = '' \
                   WHERE tenant = '' AND receiver = $1 AND SUBSTR(place, 22) = $2";
        self.db.execute(sql, args![work, holder]).await?;
        Ok(())
    }

    /// Notes whether a receiver gets records: decisions wait for it from now on.
    pub async fn set_receives(&self, receiver: RecordReceiver, is_set: bool) -> Result<(), Error> {
        let sql = if is_set {
            "INSERT INTO audit_cursors (tenant, receiver, place) VALUES ('', $1, '') \
             ON CONFLICT DO NOTHING"
        } else {
            "DELETE FROM audit_cursors WHERE tenant = '' AND receiver = $1"
        };
        self.db.execute(sql, args![receiver.as_str()]).await?;
        Ok(())
    }

    /// The last record of a chain that a receiver has.
    pub async fn cursor(
        &self,
        chain: &Scope,
        receiver: RecordReceiver,
    ) -> Result<Option<String>, Error> {
        let sql = "SELECT place FROM audit_cursors WHERE tenant = $1 AND receiver = $2";
        let values = args![chain.as_str(), receiver.as_str()];
        let row: Option<(String,)> = self.db.fetch_optional(sql, values).await?;
        Ok(row.map(|(place,)| place))
    }

    /// Stores the last record of a chain that a receiver has. It never goes back, and a deleted tenant gets none.
    pub async fn set_cursor(
        &self,
        chain: &Scope,
        receiver: RecordReceiver,
        at: &str,
    ) -> Result<(), Error> {
        let sql = "INSERT INTO audit_cursors (tenant, receiver, place) SELECT $1, $2, $3 \
                   WHERE EXISTS (SELECT 1 FROM audit WHERE tenant = $1) \
                   ON CONFLICT (tenant, receiver) DO UPDATE SET place = excluded.place \
                   WHERE CAST(audit_cursors.place AS BIGINT) < CAST(excluded.place AS BIGINT)";
        let values = args![chain.as_str(), receiver.as_str(), at];
        self.db.execute(sql, values).await?;
        Ok(())
    }

    /// The last record of a chain from before a time, and its link.
    pub async fn last_before(
        &self,
        chain: &Scope,
        at: Timestamp,
    ) -> Result<Option<ChainHead>, Error> {
        let sql = "SELECT n, at, link FROM audit WHERE tenant = $1 AND at < $2 \
                   ORDER BY n DESC LIMIT 1";
        self.db
            .fetch_optional(sql, args![chain.as_str(), at.0])
            .await
    }

    /// Records that a chain is cut after a record, so that [`Self::remove_cut`] may remove what is before.
    pub async fn record_cut(&self, chain: &Scope, last: &ChainHead) -> Result<(), Error> {
        let from = self.cut(chain).await?.saturating_add(1);
        let act = Act::new(ActName::ChainCut, chain, "chain", chain.as_str())
            .detail("from", from)
            .detail("through", last.n)
            .detail("link", last.link.as_str())
            .detail("until", last.at);
        self.db.append(vec![act]).await
    }

    /// Removes the records up to one that a signed record of the chain names. Sessions that are recorded there
    /// are to be recorded again.
    pub async fn remove_cut(&self, chain: &Scope, last: &ChainHead) -> Result<(), Error> {
        let cut = "INSERT INTO audit_cuts (tenant, through) VALUES ($1, $2) \
                   ON CONFLICT (tenant) DO UPDATE SET through = excluded.through \
                   WHERE audit_cuts.through < excluded.through";
        let which = || args![chain.as_str(), last.n];
        let records = "DELETE FROM audit WHERE tenant = $1 AND n <= $2";
        let seals = "DELETE FROM audit_seals WHERE tenant = $1 AND n <= $2";
        let anchors = "DELETE FROM audit_anchors WHERE tenant = $1 AND n <= $2";
        let sessions = "DELETE FROM audit_sessions WHERE tenant = $1 AND at <= $2";
        let sessions = Statement::new(sessions, args![chain.as_str(), last.at]);
        let cut = [cut, anchors, seals, records].map(|sql| Statement::new(sql, which()));
        let statements = cut.into_iter().chain([sessions]);
        self.db.execute_all(statements.collect()).await?;
        Ok(())
    }

    /// Removes decisions from before a time from the index.
    pub async fn remove_decisions(&self, tenant: &TenantId, at: Timestamp) -> Result<(), Error> {
        let sql = "DELETE FROM decisions WHERE tenant = $1 AND at < $2";
        self.db.execute(sql, args![tenant.as_str(), at.0]).await?;
        Ok(())
    }

    /// A page of the audit of a scope, newest first: acts and decisions in sessions that fit the filter. It
    /// starts after the record `after`, given by its time and place.
    pub async fn list(
        &self,
        chain: &Scope,
        filter: &AuditFilter,
        after: Option<(i64, &str)>,
        limit: usize,
    ) -> Result<Vec<AuditRow>, Error> {
        let limit = i64::try_from(limit)
            .unwrap_or(MAX_ROWS)
            .clamp(1, MAX_ROWS + 1);
        let from = filter.from.unwrap_or(i64::MIN);
        let to = filter.to.map_or(i64::MAX, |to| to.saturating_sub(1));
        let (at, place) = after.map_or((i64::MAX, "z"), |(at, place)| (at, place));
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let act = text(&filter.act);
        let family = format!("{act}.");
        let tool = text(&filter.tool);
        let values = args![
            chain.as_str(),
            from,
            to,
            at,
            place,
            text(&filter.person).as_str(),
            text(&filter.session).as_str(),
            tool.as_str(),
            text(&filter.verdict).as_str(),
            act.as_str(),
            family.as_str(),
            limit,
            format!("%/{}", escaped(&tool)).as_str(),
            filter.is_decision
        ];
        self.db.fetch_all(listed(filter), values).await
    }

    /// The names of people by id, for lists: of a tenant, or of those who administer the installation.
    pub async fn names(&self, tenant: Option<&TenantId>) -> Result<Vec<(String, String)>, Error> {
        let sql =
            "SELECT id, name FROM users WHERE tenant = $1 OR ($1 = '' AND is_installation_admin)";
        let tenant = tenant.map_or("", TenantId::as_str);
        self.db.fetch_all(sql, args![tenant]).await
    }

    /// Decisions that a receiver does not have yet, of one tenant, oldest first; at most 500.
    pub async fn unsent_decisions(
        &self,
        receiver: RecordReceiver,
    ) -> Result<Option<(Scope, Vec<AuditRow>)>, Error> {
        let sql = match receiver {
            RecordReceiver::Webhook => "SELECT tenant FROM decisions WHERE NOT is_posted LIMIT 1",
            RecordReceiver::Syslog => "SELECT tenant FROM decisions WHERE NOT is_logged LIMIT 1",
        };
        let first: Option<(String,)> = self.db.fetch_optional(sql, args![]).await?;
        let Some((tenant,)) = first else {
            return Ok(None);
        };
        let sql = match receiver {
            RecordReceiver::Webhook => {
                "SELECT at, session || '.' || version || '.' || place AS place, act, person, \
                 session, body, '' AS link FROM decisions WHERE tenant = $1 AND NOT is_posted \
                 ORDER BY at, session, version, decisions.place LIMIT $2"
            }
            RecordReceiver::Syslog => {
                "SELECT at, session || '.' || version || '.' || place AS place, act, person, \
                 session, body, '' AS link FROM decisions WHERE tenant = $1 AND NOT is_logged \
                 ORDER BY at, session, version, decisions.place LIMIT $2"
            }
        };
        let rows = self.db.fetch_all(sql, args![tenant.as_str(), MAX_ROWS]);
        Ok(Some((scope(tenant.clone())?, rows.await?)))
    }

    /// Notes that a receiver has decisions of [`Self::unsent_decisions`].
    pub async fn decisions_sent(
        &self,
        receiver: RecordReceiver,
        chain: &Scope,
        rows: &[AuditRow],
    ) -> Result<(), Error> {
        const POSTED: PerRow = PerRow {
            before: "UPDATE decisions SET is_posted = TRUE WHERE ",
            row: "(tenant = ? AND at = ? AND session || '.' || version || '.' || place = ?)",
            between: " OR ",
            after: "",
        };
        const LOGGED: PerRow = PerRow {
            before: "UPDATE decisions SET is_logged = TRUE WHERE ",
            ..POSTED
        };
        let sent = match receiver {
            RecordReceiver::Webhook => POSTED,
            RecordReceiver::Syslog => LOGGED,
        };
        let rows = rows
            .iter()
            .map(|row| args![chain.as_str(), row.at, row.place.as_str()]);
        self.db.execute_all(sent.statements(rows).collect()).await?;
        Ok(())
    }
}

/// A time as a text of 20 digits, so that texts are in the order of times.
fn time_text(at: Timestamp) -> String {
    format!("{:020}", at.0)
}

/// A text as a pattern of LIKE that matches nothing else.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_")
}

/// Selects acts and decisions, newest first. Equal times are in the order of their places. A condition that
/// everything fits is left out of the text, so that an index can be used for the others.
fn listed(filter: &AuditFilter) -> String {
    let person = match filter.person {
        Some(_) => "person = $6",
        None => "$6 = ''",
    };
    let session = match filter.session {
        Some(_) => {
            "session = $7 AND at >= COALESCE((SELECT created_at FROM sessions \
             WHERE tenant = $1 AND id = $7), 0)"
        }
        None => "$7 = ''",
    };
    format!(
        "SELECT at, place, act, person, session, body, link FROM ( \
         SELECT * FROM (SELECT at, 'a' || SUBSTR(CAST(1000000000000 + n AS TEXT), 2) AS place, act, \
         person, CASE WHEN kind = 'session' THEN subject ELSE '' END AS session, body, link FROM audit \
         WHERE tenant = $1 AND at >= $2 AND at <= $3 AND at <= $4 AND {person} \
         AND ($7 = '' OR (kind = 'session' AND subject = $7)) \
         AND ($8 = '' OR (kind = 'tool' AND (subject = $8 OR subject LIKE $13 ESCAPE '\\'))) \
         AND $9 = '' AND NOT $14 AND ($10 = '' OR act = $10 OR SUBSTR(act, 1, LENGTH($11)) = $11)) AS acts \
         WHERE at < $4 OR place < $5 ORDER BY at DESC, place DESC LIMIT $12) AS acts \
         UNION ALL SELECT at, place, act, person, session, body, link FROM ( \
         SELECT * FROM (SELECT at, 'd' || session || '.' \
         || SUBSTR(CAST(1000000000000 + version AS TEXT), 2) \
         || '.' || SUBSTR(CAST(1000 + place AS TEXT), 2) AS place, act, person, session, body, \
         '' AS link FROM decisions WHERE tenant = $1 AND at >= $2 AND at <= $3 AND at <= $4 \
         AND {person} AND {session} AND ($8 = '' OR tool = $8) AND ($9 = '' OR verdict = $9) \
         AND ($10 = '' OR act = $10 OR SUBSTR(act, 1, LENGTH($11)) = $11)) AS decided \
         WHERE at < $4 OR place < $5 ORDER BY at DESC, place DESC LIMIT $12) AS decided \
         ORDER BY at DESC, place DESC LIMIT $12"
    )
}

#[derive(sqlx_macros::FromRow)]
struct DueRow {
    tenant: String,
    anchor: String,
    attempts: i64,
    n: i64,
    at: i64,
    link: String,
    key: String,
    signature: String,
}

impl DueRow {
    fn into_due(self) -> Result<DueAnchor, Error> {
        Ok(DueAnchor {
            chain: scope(self.tenant)?,
            anchor: self.anchor,
            attempts: self.attempts,
            seal: Seal {
                n: self.n,
                at: self.at,
                link: self.link,
                key: self.key,
                signature: self.signature,
            },
        })
    }
}

/// Writes the decisions of a session into the index.
pub(super) fn keep_decisions<'r>(
    rows: impl Iterator<Item = (&'r SessionKey, &'r DecisionRow)>,
) -> impl Iterator<Item = Statement> {
    const KEEP: PerRow = PerRow {
        before: "INSERT INTO decisions (tenant, at, session, version, place, act, person, tool, \
                 verdict, body, is_posted, is_logged) VALUES ",
        row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NOT EXISTS (SELECT 1 FROM audit_cursors \
              WHERE tenant = '' AND receiver = 'webhook'), NOT EXISTS (SELECT 1 FROM audit_cursors \
              WHERE tenant = '' AND receiver = 'syslog'))",
        between: ", ",
        after: " ON CONFLICT DO NOTHING",
    };
    let rows = rows.map(|(key, row)| -> Vec<Arg> {
        let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        args![
            key.tenant.as_str(),
            row.at.0,
            key.session.as_str(),
            int(row.version),
            int(row.place),
            row.act.as_str(),
            row.person.as_deref().unwrap_or_default(),
            row.tool.as_str(),
            row.verdict.as_str(),
            row.body.as_str()
        ]
    });
    KEEP.statements(rows)
}
