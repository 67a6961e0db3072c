//! Encodes the dry run of a call for its card.

use serde::Serialize;

use crate::domain::{Actor, ChangeCounts, Digest};
use crate::session::{DryRun, DryRunFile, NoResult, Unseen};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DryRunShown<'a> {
    /// `running`, or the status of the report.
    status: &'static str,
    /// The person who asked for the dry run.
    by: &'a Actor,
    since: String,
    /// The digest of the call that it runs.
    digest: &'a Digest,
    #[serde(flatten)]
    report: Option<ReportShown<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportShown<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    duration_ms: u64,
    prepared_ms: u64,
    counts: ChangeCounts,
    files: &'a [DryRunFile],
    unseen: &'a [Unseen],
    /// The digest of the result, which a decision names to give the call this result.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_result: Option<&'static str>,
}

impl<'a> DryRunShown<'a> {
    pub(super) fn of(dry_run: &'a DryRun) -> Self {
        let report = dry_run.report.as_ref();
        Self {
            status: report.map_or("running", |report| report.status.as_str()),
            by: &dry_run.by,
            since: dry_run.since.to_rfc3339(),
            digest: &dry_run.digest,
            report: report.map(|report| ReportShown {
                text: &report.text,
                cut_bytes: Some(report.cut_bytes).filter(|bytes| *bytes > 0),
                exit_code: report.exit_code,
                duration_ms: report.duration_ms,
                prepared_ms: report.prepared_ms,
                counts: report.counts,
                files: &report.files,
                unseen: &report.unseen,
                result: report.result.as_ref(),
                no_result: report.no_result.map(NoResult::as_str),
            }),
        }
    }
}
