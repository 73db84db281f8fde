// The state transitions of a farm job, as Lua scripts that the Redis server runs. Each script is atomic, also on the
// disk of a server with an append-only file, and may be repeated. States: queued -> running -> done; after a failure
// back to queued, or dead.
//
// Keys, all below kiln:farm:VERSION:
// - job:ID: hash of state, spec, label, attempts (reported failures), lost (workers that vanished), worker,
//   entry (its ID in the stream), keep, error_kind, error, result, result_bytes, ms, differing
// - jobs: stream of entries {job = ID} with the consumer group `workers`. An entry exists as long as its job is queued
//   or running; the age of its lease is its idle time.
// - running, dead, flaky: sorted sets of IDs by time. Dead jobs are not tried again. Flaky jobs failed and then
//   succeeded, or gave different bytes.
// - counts: hash of submitted, done, failed, lost, repeated
//
// Anybody who can write to the server may have written anything there. Missing or non-numeric fields get defaults. A
// key of ours that has another type is removed. An item that is not a valid job becomes dead with a reason. Only the
// stream itself is never removed. No script fails because of the contents of other keys.
//
// Times are milliseconds since 1970 by the server's clock.
#pragma once

#include <string_view>

namespace kiln::farm_scripts {

// Prepended to every script. Keys: job, jobs, running, dead, flaky, counts.
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

// Arguments: id, spec, label, keep in seconds, "1" to revive dead jobs or "0". Returns {state before or "new", state
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

// Arguments: id, entry, worker, number of vanished workers after which a job is dead, largest spec in bytes. Returns
// {"run", spec}, {"drop"} for an entry that is no longer needed, or {"dead", reason} for an item that is not a valid
// job.
inline constexpr std::string_view begin = R"lua(
local function refuse(reason)
  drop(ARGV[2])
  die(ARGV[1], 'corrupted', reason)
  return {'dead', reason}
end
if not is(job, 'hash') then
  redis.call('DEL', job)
  return refuse('its record in the queue is not a hash')
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
if state ~= 'queued' and state ~= 'running' then return refuse('its record in the queue has no valid state') end
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
    die(ARGV[1], 'timed_out', ARGV[4] .. ' workers vanished while they worked on it')
    return {'drop'}
  end
end
redis.call('HSET', job, 'state', 'running', 'worker', ARGV[3])
redis.call('ZADD', running, milliseconds(), ARGV[1])
return {'run', field('spec')}
)lua";

// Arguments: id, entry, label, reason. Removes a stream entry that is not a valid job, and leaves a dead record with
// the reason.
inline constexpr std::string_view refuse = R"lua(
drop(ARGV[2])
own(job, 'hash')
redis.call('HSET', job, 'label', ARGV[3])
die(ARGV[1], 'corrupted', ARGV[4])
)lua";

// Arguments: worker, largest entry in bytes. Returns the entries of the worker that are larger.
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

// Arguments: id, entry, hash of the result, size of the result in bytes, milliseconds of work. Returns "done",
// "repeated" (another worker has already delivered the same bytes), "differs" (another worker has already delivered
// other bytes, which are kept) or "unknown" (the queue has no such job).
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

// Arguments: id, entry, worker, kind of the error, its message, "1" if retrying is useless, number of failures after
// which a job is dead. Returns "retry", "dead", or "ignored" if the job no longer belongs to this worker.
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

// Arguments: entry, worker. Renews the lease and returns 1, or returns 0 if another worker has the entry.
inline constexpr std::string_view renew = R"lua(
local held = redis.call('XPENDING', jobs, 'workers', ARGV[1], ARGV[1], 1)
if #held == 0 or held[1][2] ~= ARGV[2] then return 0 end
redis.call('XCLAIM', jobs, 'workers', ARGV[2], 0, ARGV[1], 'IDLE', 0, 'JUSTID')
return 1
)lua";

// Argument: worker. Removes the consumer unless it holds entries: XGROUP DELCONSUMER would also delete its pending
// entries, and nobody would do those jobs.
inline constexpr std::string_view leave = R"lua(
for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', jobs, 'workers')) do
  if c[2] == ARGV[1] and c[4] == 0 then redis.call('XGROUP', 'DELCONSUMER', jobs, 'workers', ARGV[1]) end
end
)lua";

// The scripts below only read and have no prelude. They truncate values to the given length and leave out names that
// are longer than ours can be.

// Keys: jobs. Arguments: longest value in bytes, then names of fields. Returns a list of values for each job.
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

// Key: a sorted set. Arguments: how many, longest name in bytes. Returns the latest members.
inline constexpr std::string_view members = R"lua(
local result = {}
if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  for _, name in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '-inf', 'LIMIT', '0', ARGV[1])) do
    if #name <= tonumber(ARGV[2]) then result[#result + 1] = name end
  end
end
return result
)lua";

// Key: a set. Arguments: how many, longest name in bytes. Returns random members.
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
