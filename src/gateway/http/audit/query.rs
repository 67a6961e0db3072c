//! Parses and checks the queries of the audit.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::agent::{AuditAccess, AuditError, AuditPlace};
use crate::domain::{Caller, Code};
use crate::gateway::error::ApiError;
use crate::store::records::AuditFilter;

const PAGE: usize = 100;
const MAX_PAGE: usize = 500;

/// The audit that is meant.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditScopeQuery {
    /// `tenant` for the audit of the caller's tenant, `installation` for that of the installation, which its
    /// administrators see; `tenant` if absent.
    #[param(pattern = "^(tenant|installation)?$")]
    scope: Option<String>,
}

impl AuditScopeQuery {
    pub(super) fn access(&self, caller: &Caller) -> Result<AuditAccess, ApiError> {
        let is_of_installation = of_installation(self.scope.as_deref())?;
        let access = AuditAccess::of(caller, is_of_installation).map_err(AuditError::from)?;
        Ok(access)
    }
}

/// The page, and the records to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// `tenant` for the audit of the caller's tenant, `installation` for that of the installation, which its
    /// administrators see; `tenant` if absent.
    #[param(pattern = "^(tenant|installation)?$")]
    scope: Option<String>,
    /// The id of a person, to list only what they did. Members may only name themselves.
    #[param(pattern = "^(usr_[0-9a-f]{32})?$")]
    person: Option<String>,
    /// The id of a session, to list only what concerns it.
    #[param(pattern = "^(ses_[0-9a-f]{32})?$")]
    session: Option<String>,
    /// The name of a tool, to list only decisions about its calls and changes of its settings.
    #[param(max_length = 256)]
    tool: Option<String>,
    /// Only decisions with this verdict: `approved`, `rejected` or `taken_back`.
    #[param(max_length = 32, pattern = "^[a-z_]*$")]
    verdict: Option<String>,
    /// Only acts of this name, such as `user.added`, or of this family, such as `user`.
    #[param(max_length = 64, pattern = r"^[a-z_.]*$")]
    act: Option<String>,
    /// Only records from this time on (RFC 3339).
    from: Option<String>,
    /// Only records before this time (RFC 3339).
    to: Option<String>,
    /// The `nextCursor` of the previous page; absent or empty for the first page.
    #[param(max_length = 128)]
    cursor: Option<String>,
    /// The number of records in the page, 1 to 500; 100 if absent.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Of an export: `jsonl`, `csv`, `ocsf` or `cef`; `jsonl` if absent.
    #[param(pattern = "^(jsonl|csv|ocsf|cef)?$")]
    format: Option<String>,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExportFormat {
    Jsonl,
    Csv,
    Ocsf,
    Cef,
}

impl ExportFormat {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Ocsf => "ocsf",
            Self::Cef => "cef",
        }
    }
}

/// The query after its checks.
pub(super) struct CheckedQuery {
    pub(super) is_of_installation: bool,
    pub(super) filter: AuditFilter,
    pub(super) after: Option<AuditPlace>,
    pub(super) limit: usize,
    pub(super) format: ExportFormat,
    /// True if every record is meant.
    pub(super) is_unfiltered: bool,
}

impl AuditQuery {
    pub(super) fn checked(self) -> Result<CheckedQuery, ApiError> {
        let limit = self.limit.unwrap_or(PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(wrong("limit", "`limit` is 1 to 500"));
        }
        let format = match self.format.as_deref().unwrap_or_default() {
            "" | "jsonl" => ExportFormat::Jsonl,
            "csv" => ExportFormat::Csv,
            "ocsf" => ExportFormat::Ocsf,
            "cef" => ExportFormat::Cef,
            _ => {
                return Err(wrong(
                    "format",
                    "`format` is `jsonl`, `csv`, `ocsf` or `cef`",
                ));
            }
        };
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let filter = AuditFilter {
            person: given(self.person),
            session: given(self.session),
            tool: given(self.tool),
            verdict: given(self.verdict),
            act: given(self.act),
            from: time("from", given(self.from))?,
            to: time("to", given(self.to))?,
            is_decision: false,
        };
        let cursor = given(self.cursor);
        Ok(CheckedQuery {
            is_of_installation: of_installation(self.scope.as_deref())?,
            is_unfiltered: filter == AuditFilter::default(),
            filter,
            after: cursor.map(|text| place(&text)).transpose()?,
            limit,
            format,
        })
    }
}

fn of_installation(scope: Option<&str>) -> Result<bool, ApiError> {
    match scope.unwrap_or_default() {
        "" | "tenant" => Ok(false),
        "installation" => Ok(true),
        _ => Err(wrong("scope", "`scope` is `tenant` or `installation`")),
    }
}

fn time(field: &'static str, text: Option<String>) -> Result<Option<i64>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    let parsed = parsed.map_err(|_| {
        wrong(
            field,
            format!("`{field}` is a time such as `2026-11-29T08:00:00Z`"),
        )
    })?;
    Ok(Some(parsed.as_millisecond()))
}

/// Reads a cursor: time and place of the last record of a page.
fn place(text: &str) -> Result<AuditPlace, ApiError> {
    let parsed = text.split_once('.').and_then(|(at, place)| {
        let at = at.parse().ok()?;
        let place = place.to_owned();
        Some(AuditPlace { at, place })
    });
    parsed.ok_or_else(|| wrong("cursor", "`cursor` is not one of ours"))
}

/// The cursor that [`place`] reads.
pub(super) fn cursor(place: &AuditPlace) -> String {
    format!("{}.{}", place.at, place.place)
}

fn wrong(field: &'static str, text: impl Into<String>) -> ApiError {
    ApiError::of_field(Code::InvalidArguments, field, text.into())
}
