//! Defines the changes and matches of the full-text index, and maps its rows.

use crate::Error;
use crate::records::session_id;
use crate::records::{tenant_id, user_id};
use sepal_core::domain::{SessionKey, Timestamp, UserId};

/// The number of bits in an id that count the texts of one millisecond.
pub(super) const PLACE_BITS: u32 = 20;

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// The session's title.
    Title,
    /// A message of a person.
    Message,
    /// An answer of the model.
    Answer,
    /// A tool's name and the arguments of a call.
    Call,
    /// The output of a tool.
    Output,
}

impl TextKind {
    /// The name in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Message => "message",
            Self::Answer => "answer",
            Self::Call => "call",
            Self::Output => "output",
        }
    }

    /// Parses the name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "title" => Some(Self::Title),
            "message" => Some(Self::Message),
            "answer" => Some(Self::Answer),
            "call" => Some(Self::Call),
            "output" => Some(Self::Output),
            _ => None,
        }
    }
}

/// A text to add to the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewText {
    /// The `seq` of the event that contains the text; 0 for the title.
    pub seq: u64,
    /// The position of the text in its event.
    pub part: u64,
    pub kind: TextKind,
    /// The time of the text.
    pub at: Timestamp,
    /// The version of the commit that contains the text.
    pub version: u64,
    pub text: String,
}

/// A change of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextChange {
    /// Adds a text, or replaces the text at the same place.
    Put(NewText),
    /// Removes all texts of an event that was taken back.
    Remove { seq: u64 },
}

/// A match of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Ids grow with time; the next page starts below the last id.
    pub id: i64,
    pub key: SessionKey,
    /// The session's title.
    pub title: String,
    /// True if the session is archived.
    pub is_archived: bool,
    pub seq: u64,
    pub part: u64,
    pub kind: TextKind,
    /// The version of the commit that contains the text.
    pub version: u64,
}

impl Hit {
    /// The time of the text.
    pub fn at(&self) -> Timestamp {
        Timestamp(self.id >> PLACE_BITS)
    }
}

/// A session whose journal is ahead of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    pub key: SessionKey,
    pub owner: UserId,
    /// The journal version up to which the session is indexed.
    pub indexed: u64,
    /// The journal version of the session's row.
    pub version: u64,
}

/// The index changes of a session, from its indexed version on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenUp {
    pub session: Behind,
    /// The journal version that the index reaches with `changes`.
    pub to: u64,
    pub changes: Vec<TextChange>,
}

#[derive(sqlx_macros::FromRow)]
pub(super) struct BehindRow {
    tenant: String,
    id: String,
    owner: String,
    indexed: i64,
    version: i64,
}

impl BehindRow {
    pub(super) fn into_behind(self) -> Result<Behind, Error> {
        Ok(Behind {
            key: SessionKey {
                tenant: tenant_id(self.tenant)?,
                session: session_id(self.id)?,
            },
            owner: user_id(self.owner)?,
            indexed: u64::try_from(self.indexed).unwrap_or(0),
            version: u64::try_from(self.version).unwrap_or(0),
        })
    }
}

#[derive(sqlx_macros::FromRow)]
pub(super) struct HitRow {
    id: i64,
    tenant: String,
    session: String,
    title: String,
    archived: bool,
    seq: i64,
    part: i64,
    kind: String,
    version: i64,
}

impl HitRow {
    pub(super) fn into_hit(self) -> Result<Hit, Error> {
        Ok(Hit {
            id: self.id,
            key: SessionKey {
                tenant: tenant_id(self.tenant)?,
                session: session_id(self.session)?,
            },
            title: self.title,
            is_archived: self.archived,
            seq: u64::try_from(self.seq).unwrap_or(0),
            part: u64::try_from(self.part).unwrap_or(0),
            kind: TextKind::parse(&self.kind)
                .ok_or_else(|| Error::corrupt("kind of a text", self.kind))?,
            version: u64::try_from(self.version).unwrap_or(0),
        })
    }
}
