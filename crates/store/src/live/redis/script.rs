//! Defines the atomic steps as Lua scripts. Redis runs each one as a whole, and refuses it as a whole when
//! memory is used up (unless it has `allow-oom`) or when Redis is a replica.

use std::sync::LazyLock;

/// A script that Redis caches by its digest.
pub(super) struct Script {
    pub(super) source: &'static str,
    pub(super) digest: String,
}

impl Script {
    fn new(source: &'static str) -> Self {
        let digest = redis::Script::new(source).get_hash().to_owned();
        Self { source, digest }
    }
}

/// Appends an entry if the journal's length is the version that the writer expects. This is the fence.
///
/// KEYS: journal, conversation, session. ARGV: expected version, new version, commit, first seq, last seq, 1
/// if active, body, time to live in ms (0 = keep), channel, payload (empty = publish nothing). Returns 1, or
/// 0 for a conflict.
///
/// A journal is dense and never truncated, so its length is its version, and no separate counter can
/// disagree with it. If someone truncated the journal by hand, the script appends nothing and returns an
/// error.
pub(super) static APPEND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"#!lua
local journal = KEYS[1]
local length = redis.call('XLEN', journal)
if length ~= tonumber(ARGV[1]) then
  local last = redis.call('XREVRANGE', journal, '+', '-', 'COUNT', 1)[1]
  local head = last and last[1] or '0-0'
  if head ~= string.format('%.0f-0', length) then
    return redis.error_reply('CORRUPT the journal has gaps')
  end
  return 0
end
local added = redis.pcall('XADD', journal, ARGV[2] .. '-0',
  'c', ARGV[3], 'f', ARGV[4], 'l', ARGV[5], 'a', ARGV[6], 'b', ARGV[7])
if type(added) == 'table' and added.err then
  if string.find(added.err, 'equal or smaller', 1, true) then
    return redis.error_reply('CORRUPT the journal has gaps')
  end
  return added
end
if ARGV[6] == '0' and ARGV[8] ~= '0' then
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[8]) end
elseif redis.call('PERSIST', journal) == 1 then
  redis.call('PERSIST', KEYS[2])
  redis.call('PERSIST', KEYS[3])
end
if ARGV[10] ~= '' then redis.call('PUBLISH', ARGV[9], ARGV[10]) end
return 1",
    )
});

/// Writes the first entries of a journal, if there is none.
///
/// KEYS: journal. ARGV: time to live in ms (0 = keep), then commit, first seq, last seq and body of each
/// entry. Returns 1, or 0 for a conflict.
pub(super) static CREATE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"#!lua
local journal = KEYS[1]
if redis.call('XLEN', journal) > 0 then return 0 end
local version = 0
for at = 2, #ARGV, 4 do
  version = version + 1
  redis.call('XADD', journal, string.format('%.0f-0', version),
    'c', ARGV[at], 'f', ARGV[at + 1], 'l', ARGV[at + 2], 'a', '0', 'b', ARGV[at + 3])
end
if ARGV[1] ~= '0' then redis.call('PEXPIRE', journal, ARGV[1]) end
return 1",
    )
});

/// Finds the first version whose field is larger than a bound; the version after the head if there is none.
///
/// KEYS: journal. ARGV: place of the field in an entry, bound.
///
/// `first_seq` and `last_seq` never decrease, so this is a search. It goes back from the head in doubling
/// steps, because clients mostly ask for recent entries. It needs no index, which every append would have to
/// write and which could disagree with the journal. Measured: 30 µs of Redis at the end of 100,000 commits,
/// 180 µs in their middle; a sorted set answers in 1 µs and costs 120 bytes a commit.
pub(super) static FIND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"#!lua flags=no-writes
local place, bound = tonumber(ARGV[1]), tonumber(ARGV[2])
local function is_past(version)
  local id = string.format('%.0f-0', version)
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if not entry then error({err = 'CORRUPT the journal has gaps'}) end
  return tonumber(entry[2][place]) > bound
end
local high = redis.call('XLEN', KEYS[1]) + 1
local low, step = 0, 1
while high - step > 0 do
  local probe = high - step
  if is_past(probe) then
    high = probe
    step = step * 2
  else
    low = probe
    break
  end
end
while high - low > 1 do
  local probe = math.floor((low + high) / 2)
  if is_past(probe) then high = probe else low = probe end
end
return high",
    )
});

/// Saves a snapshot unless a newer one exists or the journal does not reach its version. The snapshot
/// expires with the journal.
///
/// KEYS: journal, conversation. ARGV: version, schema, encoding, body.
pub(super) static SAVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"#!lua
local version = tonumber(ARGV[1])
if redis.call('XLEN', KEYS[1]) < version then return 0 end
local kept = redis.call('HGET', KEYS[2], 'version')
if kept and tonumber(kept) > version then return 0 end
redis.call('HSET', KEYS[2], 'version', ARGV[1], 'schema', ARGV[2], 'encoding', ARGV[3],
  'body', ARGV[4])
local left = redis.call('PTTL', KEYS[1])
if left > 0 then redis.call('PEXPIRE', KEYS[2], left) else redis.call('PERSIST', KEYS[2]) end
return 1",
    )
});

/// Publishes how a session is in use, if its journal exists. The entry expires with the journal.
///
/// KEYS: session, journal. ARGV: this gateway, `owner`, `guest` or `left`, engine, sandbox, container (each
/// empty if there is none).
///
/// Engine and sandbox stay when the session leaves memory, because its files still exist. The heartbeat is
/// in milliseconds by the clock of Redis.
pub(super) static SHOW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"#!lua
local session, life, use = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
if use == 'left' then
  if redis.call('HGET', session, 'owner') == life then
    redis.call('HDEL', session, 'owner', 'container')
  end
  return 1
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', session, 'heartbeat', now)
if use == 'owner' then
  redis.call('HSET', session, 'owner', life)
  if ARGV[4] ~= '' then redis.call('HSET', session, 'engine', ARGV[3], 'sandbox', ARGV[4]) end
  if ARGV[5] ~= '' then
    redis.call('HSET', session, 'container', ARGV[5])
  else
    redis.call('HDEL', session, 'container')
  end
elseif redis.call('HGET', session, 'owner') == life then
  redis.call('HDEL', session, 'owner', 'container')
end
local left = redis.call('PTTL', KEYS[2])
if left > 0 then redis.call('PEXPIRE', session, left) else redis.call('PERSIST', session) end
return 1",
    )
});

/// Marks members of the index whose sessions have no journal with the current time, and removes those whose
/// mark is old. A mark is the time in milliseconds by the clock of Redis as a negative score, which is below
/// every version. A member whose score has changed since it was read stays as it is.
///
/// KEYS: index. ARGV: age in ms from which a marked member is removed, then pairs of member and the score
/// that was read.
pub(super) static AGE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for at = 2, #ARGV, 2 do
  local member, seen = ARGV[at], tonumber(ARGV[at + 1])
  local since = redis.call('ZSCORE', KEYS[1], member)
  if since and tonumber(since) == seen then
    if seen >= 0 then
      redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', -now), member)
    elseif now + seen >= tonumber(ARGV[1]) then
      redis.call('ZREM', KEYS[1], member)
    end
  end
end
return 1",
    )
});

/// Removes ended sessions from the index. A session that became unfinished again later stays.
///
/// KEYS: index. ARGV: pairs of member and the version up to which the session is known to have ended.
pub(super) static DISMISS: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"#!lua flags=allow-oom
for at = 1, #ARGV, 2 do
  local since = redis.call('ZSCORE', KEYS[1], ARGV[at])
  if since and tonumber(since) <= tonumber(ARGV[at + 1]) then
    redis.call('ZREM', KEYS[1], ARGV[at])
  end
end
return 1",
    )
});
