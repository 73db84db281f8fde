// The transitions of a farm job, as scripts that the Redis server runs: each has all of its effects or none, also on the disk of a server with an append-only
// file, and may be repeated. States: queued → running → done, or back to queued after a failure, or dead.
//
//   job      hash at kiln:farm:VERSION:job:ID: state, spec, label, attempts (failures that somebody reported), lost (workers that vanished), worker, entry (its place in
//            the stream), keep, error_kind, error, result, result_bytes, ms, differing
//   jobs     stream of entries {job = ID}, consumer group `workers`: an entry is there as long as its job is queued or running; its lease is its idle time
//   running, dead, flaky   sorted sets of IDs by time; dead: not tried again; flaky: failed, then worked, or gave different bytes
//   counts   hash: submitted, done, failed, lost, repeated
//
// Times are milliseconds since 1970 of the server's clock.
#pragma once

#include <string_view>

namespace kiln::farm_scripts {

// Keys job, jobs, running, dead, flaky, counts; arguments id, spec, label, keep in seconds, whether dead jobs are revived.
// Returns {state before, or "new"; state now}.
inline constexpr std::string_view submit = R"lua(
local state = redis.call('HGET', KEYS[1], 'state')
if state == 'queued' or state == 'running' then return {state, state} end
if state == 'done' then
  local result = redis.call('HGET', KEYS[1], 'result')
  if redis.call('EXISTS', 'kiln:blob:' .. result) == 1 then
    redis.call('EXPIRE', KEYS[1], ARGV[4])
    return {'done', 'done'}
  end
elseif state == 'dead' and ARGV[5] == '0' and redis.call('HGET', KEYS[1], 'error_kind') ~= 'missing_file' then
  return {'dead', 'dead'}
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('HSET', KEYS[1], 'state', 'queued', 'spec', ARGV[2], 'label', ARGV[3], 'keep', ARGV[4], 'attempts', 0, 'lost', 0)
redis.call('HSET', KEYS[1], 'entry', redis.call('XADD', KEYS[2], '*', 'job', ARGV[1]))
redis.call('HINCRBY', KEYS[6], 'submitted', 1)
return {state or 'new', 'queued'}
)lua";

// Keys as above; arguments id, entry, worker, how many vanished workers make a job dead. Returns {"run", spec} or {"drop"}.
inline constexpr std::string_view begin = R"lua(
local function drop()
  redis.call('XACK', KEYS[2], 'workers', ARGV[2])
  redis.call('XDEL', KEYS[2], ARGV[2])
  return {'drop'}
end
local state = redis.call('HGET', KEYS[1], 'state')
if state ~= 'queued' and state ~= 'running' or redis.call('HGET', KEYS[1], 'entry') ~= ARGV[2] then return drop() end
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
if state == 'running' and redis.call('HGET', KEYS[1], 'worker') ~= ARGV[3] then
  redis.call('HINCRBY', KEYS[6], 'lost', 1)
  if redis.call('HINCRBY', KEYS[1], 'lost', 1) >= tonumber(ARGV[4]) then
    redis.call('HSET', KEYS[1], 'state', 'dead', 'error_kind', 'timed_out', 'error', ARGV[4] .. ' workers vanished while they were at it')
    redis.call('EXPIRE', KEYS[1], redis.call('HGET', KEYS[1], 'keep'))
    redis.call('ZADD', KEYS[4], ms, ARGV[1])
    redis.call('ZREM', KEYS[3], ARGV[1])
    return drop()
  end
end
redis.call('HSET', KEYS[1], 'state', 'running', 'worker', ARGV[3])
redis.call('ZADD', KEYS[3], ms, ARGV[1])
return {'run', redis.call('HGET', KEYS[1], 'spec')}
)lua";

// Keys as above; arguments id, entry, result hash, its bytes, milliseconds of work. Returns "done", "repeated" (somebody was faster, with the same bytes),
// "differs" (with other bytes; the first stay) or "unknown".
inline constexpr std::string_view finish = R"lua(
redis.call('XACK', KEYS[2], 'workers', ARGV[2])
redis.call('XDEL', KEYS[2], ARGV[2])
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return 'unknown' end
if state == 'done' then
  redis.call('HINCRBY', KEYS[6], 'repeated', 1)
  if redis.call('HGET', KEYS[1], 'result') == ARGV[3] then return 'repeated' end
  redis.call('HSET', KEYS[1], 'differing', ARGV[3])
  redis.call('ZADD', KEYS[5], ms, ARGV[1])
  return 'differs'
end
redis.call('HSET', KEYS[1], 'state', 'done', 'result', ARGV[3], 'result_bytes', ARGV[4], 'ms', ARGV[5])
redis.call('EXPIRE', KEYS[1], redis.call('HGET', KEYS[1], 'keep'))
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
if redis.call('HGET', KEYS[1], 'attempts') ~= '0' then redis.call('ZADD', KEYS[5], ms, ARGV[1]) end
redis.call('HINCRBY', KEYS[6], 'done', 1)
return 'done'
)lua";

// Keys as above; arguments id, entry, worker, error's kind, its words, whether trying again is useless, how many failures make a job dead.
// Returns "retry", "dead", or "ignored" where the job is not this worker's any more.
inline constexpr std::string_view fail = R"lua(
if redis.call('HGET', KEYS[1], 'state') ~= 'running' or redis.call('HGET', KEYS[1], 'worker') ~= ARGV[3] then return 'ignored' end
redis.call('XACK', KEYS[2], 'workers', ARGV[2])
redis.call('XDEL', KEYS[2], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('HINCRBY', KEYS[6], 'failed', 1)
local attempts = redis.call('HINCRBY', KEYS[1], 'attempts', 1)
redis.call('HSET', KEYS[1], 'error_kind', ARGV[4], 'error', ARGV[5])
if ARGV[6] == '1' or attempts >= tonumber(ARGV[7]) then
  local now = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'state', 'dead')
  redis.call('EXPIRE', KEYS[1], redis.call('HGET', KEYS[1], 'keep'))
  redis.call('ZADD', KEYS[4], now[1] * 1000 + math.floor(now[2] / 1000), ARGV[1])
  return 'dead'
end
redis.call('HSET', KEYS[1], 'state', 'queued', 'entry', redis.call('XADD', KEYS[2], '*', 'job', ARGV[1]))
return 'retry'
)lua";

// Key jobs; arguments entry, worker. Starts the lease anew, unless it is somebody else's by now: 1 or 0.
inline constexpr std::string_view renew = R"lua(
local held = redis.call('XPENDING', KEYS[1], 'workers', ARGV[1], ARGV[1], 1)
if #held == 0 or held[1][2] ~= ARGV[2] then return 0 end
redis.call('XCLAIM', KEYS[1], 'workers', ARGV[2], 0, ARGV[1], 'IDLE', 0, 'JUSTID')
return 1
)lua";

}  // namespace kiln::farm_scripts
