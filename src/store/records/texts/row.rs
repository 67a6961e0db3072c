//! What the index is told, and what it answers.

use crate::domain::{SessionKey, Timestamp, UserId};
use crate::store::Error;
use crate::store::records::session_id;
use crate::store::records::{tenant_id, user_id};

/// How many bits of an id count the texts of one millisecond.
pub(super) const PLACE_BITS: u32 = 20;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// The session's title.
    Title,
    /// What a person said.
    Message,
    /// What the model said.
    Answer,
    /// A tool's name, and what it was called with.
    Call,
    /// What a tool gave.
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

    /// Reads the name back.
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

/// A text of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewText {
    /// Of the event that it is part of; 0 is the title.
    pub seq: u64,
    /// Which text of that event.
    pub part: u64,
    pub kind: TextKind,
    /// When it was said.
    pub at: Timestamp,
    /// The commit that has it.
    pub version: u64,
    pub text: String,
}

/// A change of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextChange {
    /// Said; takes the place of what stood there.
    Put(NewText),
    /// All texts of that event were taken back.
    Remove { seq: u64 },
}

/// Where something that was looked for stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Grows with time; a page goes on below it.
    pub id: i64,
    pub key: SessionKey,
    /// The session's title.
    pub title: String,
    /// Whether the session is archived.
    pub is_archived: bool,
    pub seq: u64,
    pub part: u64,
    pub kind: TextKind,
    /// The commit that has the text.
    pub version: u64,
}

impl Hit {
    /// When it was said.
    pub fn at(&self) -> Timestamp {
        Timestamp(self.id >> PLACE_BITS)
    }
}

/// A session whose journal has more than the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    pub key: SessionKey,
    pub owner: UserId,
    /// What the index has.
    pub indexed: u64,
    /// What the session's row says.
    pub version: u64,
}

/// What a session's journal has up to a version, from where the index ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenUp {
    pub session: Behind,
    /// The version up to which `changes` go.
    pub to: u64,
    pub changes: Vec<TextChange>,
}

#[derive(sqlx::FromRow)]
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

#[derive(sqlx::FromRow)]
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
