//! Stores journals in Redis or Valkey, for several gateways. Each session has one stream, and each change of
//! it is one atomic step in the session's own slot.

mod active;
mod bus;
mod ears;
mod entry;
mod keys;
mod link;
mod script;
mod start;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::active::ActiveIndex;
pub(crate) use self::bus::RedisBus;
use self::entry::{Entry, FIRST_SEQ_PLACE, LAST_SEQ_PLACE, RawEntry, read_range};
use self::keys::Keys;
use self::link::{Address, Link};
use super::packing::{self, PackedSnapshot};
use super::{
    AppendOutcome, Head, LiveStore, MAX_BODY_BYTES, MAX_RECORDS_PER_READ, NewRecord, Record,
    Snapshot,
};
use crate::{Access, Error};
use sepal_core::domain::SessionKey;
use sepal_telemetry::instruments;

/// The address of Redis and the options for its use.
#[derive(Debug, Clone)]
pub(crate) struct RedisSettings {
    /// `redis://`, `rediss://` or `unix://`, with user and password if needed.
    pub(crate) url: SecretString,
    /// True if a Redis that may lose acknowledged writes is accepted.
    pub(crate) allow_volatile: bool,
    /// The time for which a finished session is kept after its last commit; `None` = for ever.
    pub(crate) history_ttl: Option<Duration>,
    /// True if snapshots are written compressed; both forms can be read.
    pub(crate) compression: bool,
}

/// The live store of one Redis.
pub(crate) struct RedisLive {
    /// The connection for appends and other small commands.
    write: Link,
    /// The connection for reading ranges, which may be large: appends must not wait behind them.
    read: Link,
    index: ActiveIndex,
    address: String,
    /// The time to live of a finished session in milliseconds; 0 = for ever.
    ttl: String,
    compression: bool,
}

impl RedisLive {
    /// Connects. For a server, returns an error if Redis is unavailable or could lose journals. For a
    /// command beside the server, connects only with the first read.
    pub(crate) async fn open(
        settings: &RedisSettings,
        access: Access,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let address = Address::parse(&settings.url)?;
        match access {
            Access::Serve => start::check(&address, settings.allow_volatile).await?,
            Access::Beside => {}
        }
        let write = Link::new(&address)?;
        let ttl = settings.history_ttl.map_or(0, |ttl| ttl.as_millis());
        Ok(Self {
            index: ActiveIndex::start(write.clone(), tasks, shutdown),
            read: Link::new(&address)?,
            write,
            address: address.shown,
            ttl: ttl.to_string(),
            compression: settings.compression,
        })
    }

    /// The address of Redis, without user and password.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Appends a record. Returns false on a conflict.
    async fn try_append(
        &self,
        key: &SessionKey,
        version: u64,
        record: &NewRecord,
    ) -> Result<bool, Error> {
        if record.is_active {
            self.index.announce(key, version).await?;
        }
        let keys = Keys::of(key);
        let numbers = [version - 1, version, record.first_seq, record.last_seq];
        let [expected, version, first_seq, last_seq] = numbers.map(|number| number.to_string());
        let args = [
            expected.as_bytes(),
            version.as_bytes(),
            record.commit_id.as_str().as_bytes(),
            first_seq.as_bytes(),
            last_seq.as_bytes(),
            if record.is_active { b"1" } else { b"0" },
            &record.body,
            self.ttl.as_bytes(),
            keys.wake.as_bytes(),
            record.wake.as_deref().unwrap_or_default(),
        ];
        let keys = [&*keys.journal, &*keys.conversation, &*keys.session];
        self.write.run(&script::APPEND, &keys, &args).await
    }

    /// The oldest `limit` records from version `from` on.
    async fn range(&self, key: &SessionKey, from: u64, limit: usize) -> Result<Vec<Record>, Error> {
        let limit = limit.min(MAX_RECORDS_PER_READ);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut range = redis::cmd("XRANGE");
        range
            .arg(keys::journal(key))
            .arg(format!("{from}-0"))
            .arg("+")
            .arg("COUNT")
            .arg(limit);
        let raw: Vec<RawEntry> = self.read.query(&range).await?;
        read_range(raw, from)
    }

    /// The first version whose field at `place` is above `bound`; the version after the head if there is
    /// none.
    async fn find(&self, key: &SessionKey, place: &[u8], bound: u64) -> Result<u64, Error> {
        let journal = keys::journal(key);
        let bound = bound.to_string();
        let args = [place, bound.as_bytes()];
        self.read.run(&script::FIND, &[&journal], &args).await
    }
}

#[async_trait]
impl LiveStore for RedisLive {
    async fn append(
        &self,
        key: &SessionKey,
        expected_version: u64,
        record: NewRecord,
    ) -> AppendOutcome {
        if let Err(error) = check_size(&record.body) {
            return AppendOutcome::Unknown(error);
        }
        let Some(version) = expected_version.checked_add(1) else {
            return AppendOutcome::Conflict;
        };
        let _timing = instruments().append("redis");
        let answer = self.try_append(key, version, &record).await;
        match &answer {
            Ok(true) => self.index.appended(key, version, record.is_active),
            Ok(false) | Err(_) => self.index.forget(key),
        }
        match answer {
            Ok(true) => AppendOutcome::Ok,
            Ok(false) => AppendOutcome::Conflict,
            Err(error) => AppendOutcome::Unknown(error),
        }
    }

    async fn create(&self, key: &SessionKey, records: Vec<NewRecord>) -> AppendOutcome {
        let sizes = records
            .iter()
            .try_for_each(|record| check_size(&record.body));
        if let Err(error) = sizes {
            return AppendOutcome::Unknown(error);
        }
        let seqs: Vec<[String; 2]> = records
            .iter()
            .map(|record| [record.first_seq, record.last_seq].map(|seq| seq.to_string()))
            .collect();
        let mut args = vec![self.ttl.as_bytes()];
        for (record, [first_seq, last_seq]) in records.iter().zip(&seqs) {
            args.extend([
                record.commit_id.as_str().as_bytes(),
                first_seq.as_bytes(),
                last_seq.as_bytes(),
                &record.body,
            ]);
        }
        let keys = Keys::of(key);
        let created = self
            .write
            .run(&script::CREATE, &[&*keys.journal], &args)
            .await;
        match created {
            Ok(true) => AppendOutcome::Ok,
            Ok(false) => AppendOutcome::Conflict,
            Err(error) => AppendOutcome::Unknown(error),
        }
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>, Error> {
        let mut last = redis::cmd("XREVRANGE");
        last.arg(keys::journal(key))
            .arg("+")
            .arg("-")
            .arg("COUNT")
            .arg(1);
        // Uses the connection of the appends, so that after a lost answer the head includes what was sent
        // before.
        let last: Vec<RawEntry> = self.write.query(&last).await?;
        let last = last.into_iter().next();
        last.map(|raw| Ok(Entry::read(raw)?.head())).transpose()
    }

    async fn version(&self, key: &SessionKey) -> Result<u64, Error> {
        let mut length = redis::cmd("XLEN");
        length.arg(keys::journal(key));
        // A journal is dense and never truncated. Uses the connection of the appends, as above.
        self.write.query(&length).await
    }

    async fn read_after_version(
        &self,
        key: &SessionKey,
        version: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        match version.checked_add(1) {
            Some(from) => self.range(key, from, limit).await,
            None => Ok(Vec::new()),
        }
    }

    async fn read_after_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let from = self.find(key, LAST_SEQ_PLACE, seq).await?;
        self.range(key, from, limit).await
    }

    async fn read_before_seq(
        &self,
        key: &SessionKey,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let Some(bound) = seq.checked_sub(1) else {
            return Ok(Vec::new());
        };
        let end = self.find(key, FIRST_SEQ_PLACE, bound).await?;
        let limit = limit.min(MAX_RECORDS_PER_READ);
        let most = u64::try_from(limit).unwrap_or(u64::MAX);
        let from = end.saturating_sub(most).max(1);
        let count = usize::try_from(end - from).unwrap_or(limit);
        self.range(key, from, count).await
    }

    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Error> {
        let mut get = redis::cmd("HMGET");
        get.arg(Keys::of(key).conversation)
            .arg(&["version", "schema", "encoding", "body"]);
        let fields: Vec<Option<Bytes>> = self.read.query(&get).await?;
        let (version, schema, encoding, body) = match &fields[..] {
            [None, None, None, None] => return Ok(None),
            [Some(version), Some(schema), Some(encoding), Some(body)] => {
                (version, schema, encoding, body)
            }
            _ => return Err(Error::corrupt("snapshot in Redis", key.to_string())),
        };
        let is_compressed = match &encoding[..] {
            GZIP => true,
            PLAIN => false,
            _ => {
                return Err(Error::corrupt(
                    "snapshot encoding in Redis",
                    key.to_string(),
                ));
            }
        };
        let packed = PackedSnapshot {
            is_compressed,
            body: body.clone(),
        };
        Ok(Some(Snapshot {
            version: number(version, key)?,
            schema: number(schema, key)?,
            body: packing::unpack(packed).await?,
        }))
    }

    async fn save_snapshot(&self, key: &SessionKey, snapshot: Snapshot) -> Result<(), Error> {
        let packed = packing::pack(snapshot.body, self.compression).await;
        check_size(&packed.body)?;
        let keys = Keys::of(key);
        let (version, schema) = (snapshot.version.to_string(), snapshot.schema.to_string());
        let encoding = if packed.is_compressed { GZIP } else { PLAIN };
        let args = [
            version.as_bytes(),
            schema.as_bytes(),
            encoding,
            &packed.body,
        ];
        let keys = [&*keys.journal, &*keys.conversation];
        self.write.run(&script::SAVE, &keys, &args).await
    }

    async fn active(&self) -> Result<Vec<SessionKey>, Error> {
        self.index.read().await
    }

    async fn remove(&self, key: &SessionKey) -> Result<(), Error> {
        // Removes the index entry first: a writer can create the session anew only once the journal is gone,
        // and then adds the entry again before it appends.
        self.index.remove(key).await?;
        let keys = Keys::of(key);
        let mut unlink = redis::cmd("UNLINK");
        unlink
            .arg(keys.journal)
            .arg(keys.conversation)
            .arg(keys.session);
        self.write.query(&unlink).await
    }

    async fn ping(&self) -> Result<(), Error> {
        self.write.query(&redis::cmd("PING")).await
    }

    fn shows_snapshots(&self) -> bool {
        true
    }
}

/// The encodings of a snapshot's body.
const GZIP: &[u8] = b"gzip";
const PLAIN: &[u8] = b"plain";

fn check_size(body: &Bytes) -> Result<(), Error> {
    if body.len() > MAX_BODY_BYTES {
        return Err(Error::TooLarge {
            bytes: body.len(),
            limit: MAX_BODY_BYTES,
        });
    }
    Ok(())
}

fn number<T: std::str::FromStr>(bytes: &[u8], key: &SessionKey) -> Result<T, Error> {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::corrupt("snapshot in Redis", key.to_string()))
}
