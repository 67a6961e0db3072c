//! Parses and checks the query of a usage report.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::agent::UsageRequest;
use crate::domain::{Code, SessionId, Timestamp, UserId};
use crate::gateway::error::ApiError;
use crate::store::clock;
use crate::store::records::{DAY_MS, Direction, Sorting, UsageBy};

const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;
/// The number of days that are summed by default, today included.
const USUAL_DAYS: i64 = 30;

/// The days, the grouping and the filters of a usage report.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct UsageQuery {
    /// The first day, in UTC; if absent, 29 days before the last.
    #[param(pattern = "^([0-9]{4}-[0-9]{2}-[0-9]{2})?$")]
    from: Option<String>,
    /// The last day, in UTC; if absent, today, or `from` if that is later.
    #[param(pattern = "^([0-9]{4}-[0-9]{2}-[0-9]{2})?$")]
    to: Option<String>,
    /// The grouping; `day` if absent. `server` and `tool` sum calls, the others sum model requests.
    #[param(pattern = "^(day|day,model|person|model|session|purpose|server|tool)?$")]
    by: Option<String>,
    /// The id of a person, to report only their usage. Members may only name themselves.
    #[param(pattern = "^(usr_[0-9a-f]{32})?$")]
    person: Option<String>,
    /// The name of a provider, to report only requests to it; not with `server` or `tool`.
    provider: Option<String>,
    /// The name of a model, to report only requests to it; not with `server` or `tool`.
    model: Option<String>,
    /// The id of a session, to report only its usage.
    #[param(pattern = "^(ses_[0-9a-f]{32})?$")]
    session: Option<String>,
    /// The key of the order: `name`, `tokens` or `count`; for model requests also `cost`, for calls also
    /// `duration`. If absent, `name` for days, `count` for servers and tools, and `cost` for other groups.
    #[param(pattern = "^(name|cost|tokens|count|duration)?$")]
    sort: Option<String>,
    /// `asc` or `desc`; if absent, ascending for `name`, descending for the other keys.
    #[param(pattern = "^(asc|desc)?$")]
    order: Option<String>,
    /// The number of groups in the page, 1 to 1000; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `nextCursor` of the previous page; absent or empty for the first page.
    #[param(pattern = "^[0-9]{0,9}$")]
    cursor: Option<String>,
    /// `json` or `csv`; if absent, `json`, or `csv` if the `Accept` header asks for it.
    #[param(pattern = "^(json|csv)?$")]
    format: Option<String>,
}

/// The query after its checks.
pub(super) struct CheckedQuery {
    pub(super) request: UsageRequest,
    pub(super) person: Option<UserId>,
    /// The first and the last day.
    pub(super) days: (Date, Date),
}

impl UsageQuery {
    pub(super) fn wants_table(&self) -> Result<bool, ApiError> {
        match self.format.as_deref().unwrap_or_default() {
            "" | "json" => Ok(false),
            "csv" => Ok(true),
            _ => Err(wrong("format", "`format` is `json` or `csv`")),
        }
    }

    pub(super) fn checked(self) -> Result<CheckedQuery, ApiError> {
        let days = self.days()?;
        let by = self.by()?;
        let (sorting, direction) = self.sorted(by)?;
        let limit = self.limit.unwrap_or(PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(wrong("limit", "`limit` is 1 to 1000"));
        }
        let is_digits = |text: &str| text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
        let cursor = given(self.cursor).map(|text| {
            let offset = Some(text).filter(|text| is_digits(text));
            let offset = offset.and_then(|text| text.parse().ok());
            offset.ok_or_else(|| wrong("cursor", "`cursor` is not one of ours"))
        });
        let person = given(self.person).map(|id| {
            UserId::parse(&id).ok_or_else(|| wrong("person", "`person` is the id of a person"))
        });
        let session = given(self.session).map(|id| {
            SessionId::parse(&id)
                .ok_or_else(|| wrong("session", "`session` is the id of a session"))
        });
        let (provider, model) = (given(self.provider), given(self.model));
        if by.is_of_calls() && (provider.is_some() || model.is_some()) {
            let text = "calls of tools belong to no model";
            return Err(wrong(
                if model.is_some() { "model" } else { "provider" },
                text,
            ));
        }
        Ok(CheckedQuery {
            request: UsageRequest {
                by,
                from: begin(days.0),
                to: Timestamp(begin(days.1).0.saturating_add(DAY_MS)),
                provider,
                model,
                session: session.transpose()?,
                sorting,
                direction,
                offset: cursor.transpose()?.unwrap_or(0),
                limit,
            },
            person: person.transpose()?,
            days,
        })
    }

    fn days(&self) -> Result<(Date, Date), ApiError> {
        let read = |name: &'static str, text: &Option<String>| {
            let text = text.as_deref().filter(|text| !text.is_empty());
            let day = text.map(|text| {
                let day = text.parse::<Date>();
                day.map_err(|_| wrong(name, "a day is written like `2026-11-25`"))
            });
            day.transpose()
        };
        let today = clock::now().date();
        let (from, to) = (read("from", &self.from)?, read("to", &self.to)?);
        let last = to.unwrap_or_else(|| from.map_or(today, |from| today.max(from)));
        let earlier = jiff::Span::new().days(USUAL_DAYS - 1);
        let first = from.unwrap_or_else(|| last.saturating_sub(earlier));
        if first > last {
            return Err(wrong("from", "`from` is not after `to`"));
        }
        Ok((first, last))
    }

    fn by(&self) -> Result<UsageBy, ApiError> {
        Ok(match self.by.as_deref().unwrap_or_default() {
            "" | "day" => UsageBy::Day,
            "day,model" => UsageBy::DayAndModel,
            "person" => UsageBy::Person,
            "model" => UsageBy::Model,
            "session" => UsageBy::Session,
            "purpose" => UsageBy::Purpose,
            "server" => UsageBy::Server,
            "tool" => UsageBy::Tool,
            _ => {
                let text = "`by` is `day`, `day,model`, `person`, `model`, `session`, `purpose`, \
                            `server` or `tool`";
                return Err(wrong("by", text));
            }
        })
    }

    fn sorted(&self, by: UsageBy) -> Result<(Sorting, Direction), ApiError> {
        let usual = match by {
            UsageBy::Day | UsageBy::DayAndModel => Sorting::Name,
            UsageBy::Person | UsageBy::Model | UsageBy::Session | UsageBy::Purpose => Sorting::Cost,
            UsageBy::Server | UsageBy::Tool => Sorting::Count,
        };
        let sorting = match self.sort.as_deref().unwrap_or_default() {
            "" => usual,
            "name" => Sorting::Name,
            "tokens" => Sorting::Tokens,
            "count" => Sorting::Count,
            "cost" if !by.is_of_calls() => Sorting::Cost,
            "duration" if by.is_of_calls() => Sorting::Duration,
            _ => {
                let text = "`sort` is `name`, `tokens` or `count`, of model requests also `cost`, \
                            of calls also `duration`";
                return Err(wrong("sort", text));
            }
        };
        let direction = match self.order.as_deref().unwrap_or_default() {
            "" if sorting == Sorting::Name => Direction::Ascending,
            "" | "desc" => Direction::Descending,
            "asc" => Direction::Ascending,
            _ => return Err(wrong("order", "`order` is `asc` or `desc`")),
        };
        Ok((sorting, direction))
    }
}

/// Returns the time at which a day begins in UTC.
fn begin(day: Date) -> Timestamp {
    let begin = day.to_zoned(TimeZone::UTC);
    let begin = begin.map(|begin| begin.timestamp().as_millisecond());
    Timestamp(begin.unwrap_or(i64::MAX))
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn wrong(field: &'static str, text: &str) -> ApiError {
    ApiError::of_field(Code::InvalidArguments, field, text)
}
