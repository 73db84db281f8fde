// The transitions of a farm job, as scripts that the Redis server runs: each has all of its effects or none, also on
// the disk of a server with an append-only file, and may be repeated. States: queued → running → done, or back to
// queued after a failure, or dead.
//
//   job      hash at kiln:farm:VERSION:job:ID: state, spec, label, attempts (failures that somebody reported), lost
//   (workers that vanished), worker, entry (its place in
//            the stream), keep, error_kind, error, result, result_bytes, ms, differing
//   jobs     stream of entries {job = ID}, consumer group `workers`: an entry is there as long as its job is queued or
//   running; its lease is its idle time running, dead, flaky   sorted sets of IDs by time; dead: not tried again;
//   flaky: failed, then worked, or gave different bytes counts   hash: submitted, done, failed, lost, repeated
//
// Whoever can write to the server can write anything there. Fields that are missing or no numbers have defaults; a key
// of ours that has another type is removed; an item that cannot be a job becomes dead with its reason. Only the stream
// itself is left as it is. No script fails because of what another key holds.
//
// Times are milliseconds since 1970 of the server's clock.
#pragma once

#include <string_view>

namespace kiln::farm_scripts {

// In front of every script. Keys job, jobs, running, dead, flaky, counts.
inline constexpr std::string_view prelude = R"lua(
local job, jobs, running, dead, flaky, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local function is(key, kind)
  local found = redis.call('TYPE', key).ok
  return found == kind or found == 'none'
end
local function own(key, kind)
  if not is(key, kind) then redis.call('DEL', key) end
end
own(running, 'zset')
own(dead, 'zset')
own(flaky, 'zset')
own(counts, 'hash')
local function field(name) return redis.call('HGET', job, name) end
local function number(value, default)
  local n = tonumber(value)
  if n and n >= 0 and n < 2^53 and n == math.floor(n) then return n end
  return default
end
local function count(key, name)
  local n = number(redis.call('HGET', key, name), 0) + 1
  redis.call('HSET', key, name, string.format('%d', n))
  return n
end
local function milliseconds()
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end
local function drop(entry)
  redis.call('XACK', jobs, 'workers', entry)
  redis.call('XDEL', jobs, entry)
end
local function expire() redis.call('EXPIRE', job, math.max(60, math.min(number(field('keep'), 604800), 315360000))) end
local function die(id, kind, reason)
  redis.call('HSET', job, 'state', 'dead', 'error_kind', kind, 'error', reason)
  expire()
  redis.call('ZADD', dead, milliseconds(), id)
  redis.call('ZREM', running, id)
end
)lua";

// Arguments id, spec, label, keep in seconds, whether dead jobs are revived. Returns {state before, or "new"; state
// now}.
inline constexpr std::string_view submit = R"lua(
own(job, 'hash')
local state = field('state')
if state == 'queued' or state == 'running' then return {state, state} end
if state == 'done' then
  if redis.call('EXISTS', 'kiln:blob:' .. (field('result') or '')) == 1 then
    redis.call('EXPIRE', job, ARGV[4])
    return {'done', 'done'}
  end
elseif state == 'dead' and ARGV[5] == '0' and field('error_kind') ~= 'missing_file' then
  return {'dead', 'dead'}
end
redis.call('DEL', job)
redis.call('ZREM', dead, ARGV[1])
redis.call('ZREM', flaky, ARGV[1])
redis.call('HSET', job, 'state', 'queued', 'spec', ARGV[2], 'label', ARGV[3], 'keep', ARGV[4], 'attempts', 0, 'lost', 0)
redis.call('HSET', job, 'entry', redis.call('XADD', jobs, '*', 'job', ARGV[1]))
count(counts, 'submitted')
return {state or 'new', 'queued'}
)lua";

// Arguments id, entry, worker, how many vanished workers make a job dead, the largest spec in bytes. Returns {"run",
// spec}, {"drop"} for an entry that is of no use any more, or {"dead", reason} for an item that cannot be a job.
inline constexpr std::string_view begin = R"lua(
local function refuse(reason)
  drop(ARGV[2])
  die(ARGV[1], 'corrupted', reason)
  return {'dead', reason}
end
if not is(job, 'hash') then
  redis.call('DEL', job)
  return refuse('its record in the queue is no hash')
end
if redis.call('EXISTS', job) == 0 then
  drop(ARGV[2])
  return {'drop'}
end
local state = field('state')
if state == 'done' or state == 'dead' then
  drop(ARGV[2])
  return {'drop'}
end
if state ~= 'queued' and state ~= 'running' then return refuse('its record in the queue has no state that a job can have') end
local place = field('entry')
if not place then return refuse('its record in the queue does not name its entry') end
if place ~= ARGV[2] then
  drop(ARGV[2])
  return {'drop'}
end
local size = redis.call('HSTRLEN', job, 'spec')
if size == 0 then return refuse('its record in the queue has no specification') end
if size > tonumber(ARGV[5]) then return refuse('its specification has ' .. size .. ' bytes, more than ' .. ARGV[5]) end
if state == 'running' and field('worker') ~= ARGV[3] then
  count(counts, 'lost')
  if count(job, 'lost') >= tonumber(ARGV[4]) then
    drop(ARGV[2])
    die(ARGV[1], 'timed_out', ARGV[4] .. ' workers vanished while they were at it')
    return {'drop'}
  end
end
redis.call('HSET', job, 'state', 'running', 'worker', ARGV[3])
redis.call('ZADD', running, milliseconds(), ARGV[1])
return {'run', field('spec')}
)lua";

// Arguments id, entry, label, reason. The entry of the stream cannot be a job: it goes, and a dead record tells why.
inline constexpr std::string_view refuse = R"lua(
drop(ARGV[2])
own(job, 'hash')
redis.call('HSET', job, 'label', ARGV[3])
die(ARGV[1], 'corrupted', ARGV[4])
)lua";

// Arguments worker, the largest entry in bytes. Returns the entries that the worker holds and that are larger.
inline constexpr std::string_view large_entries = R"lua(
local found = {}
for _, held in ipairs(redis.call('XPENDING', jobs, 'workers', '-', '+', 100, ARGV[1])) do
  for _, entry in ipairs(redis.call('XRANGE', jobs, held[1], held[1])) do
    local size = 0
    for _, text in ipairs(entry[2]) do size = size + #text + 16 end
    if size > tonumber(ARGV[2]) then found[#found + 1] = entry[1] end
  end
end
return found
)lua";

// Arguments id, entry, result hash, its bytes, milliseconds of work. Returns "done", "repeated" (somebody was faster,
// with the same bytes), "differs" (with other bytes; the first stay) or "unknown".
inline constexpr std::string_view finish = R"lua(
drop(ARGV[2])
if not is(job, 'hash') then return 'unknown' end
local state = field('state')
if not state then return 'unknown' end
if state == 'done' then
  count(counts, 'repeated')
  if field('result') == ARGV[3] then return 'repeated' end
  redis.call('HSET', job, 'differing', ARGV[3])
  redis.call('ZADD', flaky, milliseconds(), ARGV[1])
  return 'differs'
end
redis.call('HSET', job, 'state', 'done', 'result', ARGV[3], 'result_bytes', ARGV[4], 'ms', ARGV[5])
expire()
redis.call('ZREM', running, ARGV[1])
redis.call('ZREM', dead, ARGV[1])
if number(field('attempts'), 0) > 0 then redis.call('ZADD', flaky, milliseconds(), ARGV[1]) end
count(counts, 'done')
return 'done'
)lua";

// Arguments id, entry, worker, error's kind, its words, whether trying again is useless, how many failures make a job
// dead. Returns "retry", "dead", or "ignored" where the job is not this worker's any more.
inline constexpr std::string_view fail = R"lua(
if not is(job, 'hash') or field('state') ~= 'running' or field('worker') ~= ARGV[3] then return 'ignored' end
drop(ARGV[2])
redis.call('ZREM', running, ARGV[1])
count(counts, 'failed')
local attempts = count(job, 'attempts')
if ARGV[6] == '1' or attempts >= tonumber(ARGV[7]) then
  die(ARGV[1], ARGV[4], ARGV[5])
  return 'dead'
end
redis.call('HSET', job, 'error_kind', ARGV[4], 'error', ARGV[5])
redis.call('HSET', job, 'state', 'queued', 'entry', redis.call('XADD', jobs, '*', 'job', ARGV[1]))
return 'retry'
)lua";

// Arguments entry, worker. Starts the lease anew, unless it is somebody else's by now: 1 or 0.
inline constexpr std::string_view renew = R"lua(
local held = redis.call('XPENDING', jobs, 'workers', ARGV[1], ARGV[1], 1)
if #held == 0 or held[1][2] ~= ARGV[2] then return 0 end
redis.call('XCLAIM', jobs, 'workers', ARGV[2], 0, ARGV[1], 'IDLE', 0, 'JUSTID')
return 1
)lua";

// Argument worker. With jobs in hand the name stays: deleting it would delete them from the list of those that somebody
// must do.
inline constexpr std::string_view leave = R"lua(
for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', jobs, 'workers')) do
  if c[2] == ARGV[1] and c[4] == 0 then redis.call('XGROUP', 'DELCONSUMER', jobs, 'workers', ARGV[1]) end
end
)lua";

// The scripts below only read, and have no prelude: values are cut to what a person reads, names of other lengths than
// ours are left out.

// Keys of jobs; arguments the longest value, then names of fields. Returns a list of values for each job.
inline constexpr std::string_view records = R"lua(
local result = {}
for i, key in ipairs(KEYS) do
  result[i] = {}
  if redis.call('TYPE', key).ok == 'hash' then
    for j = 2, #ARGV do
      local value = redis.call('HGET', key, ARGV[j])
      result[i][j - 1] = value and string.sub(value, 1, tonumber(ARGV[1]))
    end
  end
end
return result
)lua";

// Key a sorted set; arguments how many, the longest name. Returns the latest members.
inline constexpr std::string_view members = R"lua(
local result = {}
if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  for _, name in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '-inf', 'LIMIT', '0', ARGV[1])) do
    if #name <= tonumber(ARGV[2]) then result[#result + 1] = name end
  end
end
return result
)lua";

// Key a set; arguments how many, the longest name. Returns members.
inline constexpr std::string_view some_of = R"lua(
local result = {}
if redis.call('TYPE', KEYS[1]).ok == 'set' then
  for _, name in ipairs(redis.call('SRANDMEMBER', KEYS[1], ARGV[1])) do
    if #name <= tonumber(ARGV[2]) then result[#result + 1] = name end
  end
end
return result
)lua";

}  // namespace kiln::farm_scripts
