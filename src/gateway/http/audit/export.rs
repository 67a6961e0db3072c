//! Exports the audit as a stream of lines.

use std::collections::VecDeque;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures::stream;

use super::query::{AuditQuery, ExportFormat};
use crate::agent::{AuditAccess, AuditError, AuditPlace, AuditTrail, ListedRecord};
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;
use crate::gateway::wire::audit::{
    AUDIT_COLUMNS, audit_columns, cef_line, json_line, ocsf_line, record_line, seal_line,
};
use crate::store::records::AuditFilter;

/// Records per read.
const PAGE: usize = 500;

/// Exports the audit: `jsonl` (the records as they are), `csv`, `ocsf` or `cef`. Without filters, `jsonl` for
/// admins begins with the whole chain and its signatures, which `sepal audit verify FILE` checks.
#[utoipa::path(get, path = "/api/audit/export", tag = "audit", params(AuditQuery), responses(
    (status = 200, description = "The records: one in each line, or a table.",
        content((String = "application/x-ndjson"), (String = "text/csv"), (String = "text/plain"))),
    (status = 400, body = Problem), (status = 403, body = Problem),
))]
pub(super) async fn export_audit(
    State(state): State<GatewayState>,
    caller: Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Response, ApiError> {
    let checked = query.checked()?;
    let access = AuditAccess::of(&caller, checked.is_of_installation).map_err(AuditError::from)?;
    let format = checked.format;
    let is_whole =
        format == ExportFormat::Jsonl && checked.is_unfiltered && access.check_sees_all().is_ok();
    let mut lines = Lines {
        trail: state.audit.clone(),
        access,
        filter: checked.filter,
        format,
        next: Next::Listed(None),
        ready: VecDeque::new(),
    };
    if is_whole {
        lines.next = Next::Chain(0);
    }
    if format == ExportFormat::Csv {
        lines.ready.push_back(table_row(&AUDIT_COLUMNS)?);
    }
    state.sessions.listed().await;
    // What is refused is refused before the first byte.
    lines.read().await?;
    lines
        .trail
        .note_export(&lines.access, format.as_str())
        .await?;
    let name = format!("attachment; filename=\"audit.{}\"", ending(format));
    let mut response = Body::from_stream(stream::try_unfold(lines, Lines::step)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind(format)));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

fn kind(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Jsonl | ExportFormat::Ocsf => "application/x-ndjson",
        ExportFormat::Csv => "text/csv; charset=utf-8; header=present",
        ExportFormat::Cef => "text/plain; charset=utf-8",
    }
}

fn ending(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Jsonl => "jsonl",
        ExportFormat::Csv => "csv",
        ExportFormat::Ocsf => "ocsf.jsonl",
        ExportFormat::Cef => "cef",
    }
}

/// The part that an export reads next.
enum Next {
    /// The chain after this record, in its order.
    Chain(i64),
    /// The list after this place, newest first.
    Listed(Option<AuditPlace>),
    Nothing,
}

/// The lines of an export.
struct Lines {
    trail: AuditTrail,
    access: AuditAccess,
    filter: AuditFilter,
    format: ExportFormat,
    next: Next,
    ready: VecDeque<String>,
}

impl Lines {
    /// The next chunk.
    async fn step(mut self) -> Result<Option<(Bytes, Self)>, axum::Error> {
        while self.ready.is_empty() && !matches!(self.next, Next::Nothing) {
            self.read().await.map_err(axum::Error::new)?;
        }
        let chunk: String = self.ready.drain(..).collect();
        Ok((!chunk.is_empty()).then(|| (Bytes::from(chunk), self)))
    }

    async fn read(&mut self) -> Result<(), AuditError> {
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Chain(after) => {
                let (records, seals) = self.trail.whole(&self.access, after).await?;
                let mut seals = seals.into_iter().peekable();
                self.next = if let Some(last) = records.last() {
                    Next::Chain(last.n)
                } else {
                    // What follows are the decisions in sessions.
                    self.filter.is_decision = true;
                    Next::Listed(None)
                };
                let chain = self.access.chain();
                for record in records {
                    let n = record.n;
                    self.ready
                        .push_back(format!("{}\n", record_line(chain, record)));
                    while let Some(seal) = seals.next_if(|seal| seal.n <= n) {
                        self.ready
                            .push_back(format!("{}\n", seal_line(chain, &seal)));
                    }
                }
            }
            Next::Listed(after) => {
                let filter = self.filter.clone();
                let page = self.trail.list(&self.access, filter, after.as_ref(), PAGE);
                let page = page.await?;
                self.next = page
                    .next
                    .map_or(Next::Nothing, |next| Next::Listed(Some(next)));
                for listed in page.records {
                    self.ready.push_back(self.line(&listed));
                }
            }
            Next::Nothing => {}
        }
        Ok(())
    }

    fn line(&self, ListedRecord { row, name }: &ListedRecord) -> String {
        let (chain, name) = (self.access.chain(), name.as_deref());
        let line = match self.format {
            ExportFormat::Jsonl => json_line(chain, row),
            ExportFormat::Ocsf => ocsf_line(chain, row, name),
            ExportFormat::Cef => cef_line(chain, row, name),
            ExportFormat::Csv => return table_row(&audit_columns(row, name)).unwrap_or_default(),
        };
        format!("{line}\n")
    }
}

/// A row of a table (RFC 4180).
fn table_row(columns: &[impl AsRef<[u8]>]) -> Result<String, ApiError> {
    let mut table = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    let written = table
        .write_record(columns)
        .map_err(|error| error.to_string());
    let row = written.and_then(|()| table.into_inner().map_err(|error| error.to_string()));
    let row = row.and_then(|row| String::from_utf8(row).map_err(|error| error.to_string()));
    row.map_err(|error| {
        tracing::error!(%error, "A row of the audit cannot be written");
        ApiError::new(Code::Internal, "internal error")
    })
}
