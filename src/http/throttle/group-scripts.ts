/**
 * The rules of an egress group, as scripts that Redis runs atomically. All times are those of the clock of Redis. The keys of a
 * group begin with `cryptodl:{NAME}`, so that they lie in one slot:
 *
 *     :epoch                            time and name of the first join; another one means that Redis has lost its data
 *     :members                          hash: id of a member → time of its last sign of life
 *     :bans                             hash: bucket and host → end of the ban, blank, reason
 *     :used:BUCKET:WINDOW_MS:WINDOW     hash: id of a member → permits that it took in this window; `*` → permits of others
 *     :waiting:BUCKET                   hash: id of a member → since, weight and last time of a request that waits
 */

/** A member without a sign of life for so long is missing: it may have lost Redis, and take its share alone. Milliseconds. */
export const MISSING_MS = 10_000;
/** A missing member is forgotten after this time. Milliseconds. */
const FORGOTTEN_MS = 600_000;
/** In so many milliseconds after the first join, members that knew an earlier epoch join again; no permit is given before. */
const SETTLING_MS = 2000;
/** A waiting request that does not ask again within this time has left. Milliseconds. */
const LEFT_MS = 5000;
/** Keys of a group that no program uses end after this time. Milliseconds. */
const UNUSED_MS = 3_600_000;

const NOW = `
local base = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function hash(name)
  local flat = redis.call('HGETALL', base .. name)
  local found = {}
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end
-- A value that no member wrote counts as 0, because a negative one would raise the limit.
local function number(text)
  local value = tonumber(text or '0') or 0
  if value > 0 and value < math.huge then return value end
  return 0
end
local function total(key)
  local sum = 0
  for _, count in ipairs(redis.call('HVALS', key)) do sum = sum + number(count) end
  return sum
end
local function raise(key, used)
  local missing = used - total(key)
  if missing > 0 then redis.call('HINCRBY', key, '*', missing) end
end
`;

const IN_EPOCH = `${NOW}
local epoch = redis.call('GET', base .. ':epoch')
if epoch ~= ARGV[1] then return {'lost'} end
`;

/**
 * Arguments: known epoch or '', id, own part of a new epoch, JSON. With another epoch than the known one, the JSON tells what the
 * member knows: its last `epoch`, `others`, and `counts` of windows. Returns epoch, time, members and bans.
 */
export const JOIN = `${NOW}
local id = ARGV[2]
local epoch = redis.call('GET', base .. ':epoch')
if not epoch or not string.match(epoch, '^%d+ ') then epoch = string.format('%.0f', now) .. ' ' .. ARGV[3] end
redis.call('SET', base .. ':epoch', epoch, 'PX', ${UNUSED_MS})
if epoch ~= ARGV[1] then
  local known = cjson.decode(ARGV[4])
  if known.epoch ~= '' and known.epoch ~= epoch then
    for _, other in ipairs(known.others) do
      redis.call('HSETNX', base .. ':members', other, now - ${MISSING_MS} - 1)
    end
  end
  for _, count in ipairs(known.counts) do
    local key = base .. ':used:' .. count.key
    local earlier = number(redis.call('HGET', key, id))
    redis.call('HSET', key, id, count.own)
    -- In a new epoch, the first members to come counted the permits of this one as those of others.
    local others = number(redis.call('HGET', key, '*'))
    if known.epoch ~= epoch then redis.call('HSET', key, '*', math.max(0, others - math.max(0, count.own - earlier))) end
    raise(key, count.used)
    redis.call('PEXPIRE', key, count.windowMs * 2)
  end
end
redis.call('HSET', base .. ':members', id, now)
redis.call('PEXPIRE', base .. ':members', ${UNUSED_MS})
local members = {}
for other, seen in pairs(hash(':members')) do
  if now - number(seen) > ${FORGOTTEN_MS} then redis.call('HDEL', base .. ':members', other)
  else members[#members + 1] = other end
end
local bans = {}
for place, ban in pairs(hash(':bans')) do
  local left = number(string.match(ban, '^%d+')) - now
  if left <= 0 then redis.call('HDEL', base .. ':bans', place)
  else
    bans[#bans + 1] = place
    bans[#bans + 1] = left
    bans[#bans + 1] = string.match(ban, ' (.*)$') or ''
  end
end
return {epoch, now, members, bans}
`;

/**
 * Arguments: epoch, id, bucket, window length, window, weight, limit. Returns the result and the count of the window: `taken`;
 * `full`: too few permits are left; `soon`: older requests come first, or the epoch has just begun; `banned`; `lost`: another epoch.
 */
export const TAKE = `${IN_EPOCH}
local id, bucket = ARGV[2], ARGV[3]
local weight, limit = tonumber(ARGV[6]), tonumber(ARGV[7])
for place, ban in pairs(hash(':bans')) do
  local isOfBucket = string.sub(place, 1, #bucket + 1) == bucket .. ' '
  if isOfBucket and number(string.match(ban, '^%d+')) > now then return {'banned', 0} end
end
local name = ':used:' .. bucket .. ':' .. ARGV[4] .. ':' .. ARGV[5]
local counts = hash(name)
local used = total(base .. name)
-- The clock of the server may have been set back.
local age = now - number(string.match(epoch, '^%d+'))
if age >= 0 and age < ${SETTLING_MS} then return {'soon', used} end

-- A missing member may take its share alone.
local kept, size, missing = 0, 0, {}
for member, seen in pairs(hash(':members')) do
  size = size + 1
  if now - number(seen) > ${MISSING_MS} then missing[#missing + 1] = member end
end
for _, member in ipairs(missing) do
  kept = kept + math.max(0, math.floor(limit / size) - number(counts[member]))
end

-- Requests that wait longer get their permits first, if they fit into this window.
local since = now * 1000 + time[2] % 1000
local older = {}
for member, entry in pairs(hash(':waiting:' .. bucket)) do
  local began, heavy, last = string.match(entry, '^(%d+) (%d+) (%d+)$')
  if not began or now - number(last) > ${LEFT_MS} then redis.call('HDEL', base .. ':waiting:' .. bucket, member)
  elseif member == id then since = tonumber(began)
  else older[#older + 1] = {tonumber(began), tonumber(heavy)} end
end
table.sort(older, function(a, b) return a[1] < b[1] end)
local before = used + kept
for _, entry in ipairs(older) do
  if entry[1] < since and before + entry[2] <= limit then before = before + entry[2] end
end

if before + weight <= limit then
  redis.call('HINCRBY', base .. name, id, weight)
  redis.call('PEXPIRE', base .. name, ARGV[4] * 2)
  redis.call('HDEL', base .. ':waiting:' .. bucket, id)
  return {'taken', used + weight}
end
redis.call('HSET', base .. ':waiting:' .. bucket, id, string.format('%.0f %d %.0f', since, weight, now))
redis.call('PEXPIRE', base .. ':waiting:' .. bucket, ${LEFT_MS})
return {used + kept + weight <= limit and 'soon' or 'full', used}
`;

/** Arguments: epoch, bucket, window length, window, count of the venue. The count of a window never falls below that of the venue. */
export const RAISE = `${IN_EPOCH}
local key = base .. ':used:' .. ARGV[2] .. ':' .. ARGV[3] .. ':' .. ARGV[4]
raise(key, tonumber(ARGV[5]))
redis.call('PEXPIRE', key, ARGV[3] * 2)
return {'raised'}
`;

/** Arguments: epoch, id, bucket, window length, window, weight. */
export const GIVE_BACK = `${IN_EPOCH}
local key = base .. ':used:' .. ARGV[3] .. ':' .. ARGV[4] .. ':' .. ARGV[5]
local own = number(redis.call('HGET', key, ARGV[2]))
if own > 0 then redis.call('HSET', key, ARGV[2], math.max(0, own - ARGV[6])) end
return {'given'}
`;

/** Arguments: place, milliseconds, reason. A shorter ban does not end a longer one. */
export const BAN = `${NOW}
local known = redis.call('HGET', base .. ':bans', ARGV[1]) or '0'
local ends = now + ARGV[2]
if ends > number(string.match(known, '^%d+')) then
  redis.call('HSET', base .. ':bans', ARGV[1], string.format('%.0f', ends) .. ' ' .. ARGV[3])
  local left = redis.call('PTTL', base .. ':bans')
  if left < tonumber(ARGV[2]) then redis.call('PEXPIRE', base .. ':bans', ARGV[2]) end
end
return {'banned'}
`;

/** Arguments: id. */
export const LEAVE = `${NOW}
redis.call('HDEL', base .. ':members', ARGV[1])
return {'left'}
`;
