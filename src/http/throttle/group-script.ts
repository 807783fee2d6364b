/** The rules of an egress group, as one script that Redis runs atomically (docs/adr/0016). */
import { LONGEST_WAIT_MS } from '../../model/errors.js';

/** A member without a sign of life for so long is missing: it may have lost Redis, and take its share alone. Milliseconds. */
export const MISSING_MS = 10_000;
/** A missing member is forgotten after this time, because it may have been killed. Milliseconds. */
const FORGOTTEN_MS = 120_000;
/** For so many milliseconds after Redis lost data, members tell what they know, and no permit is given. */
const SETTLING_MS = 2000;
/** Keys of a group that no program uses end after this time. Milliseconds. */
const UNUSED_MS = 3_600_000;

/** A window of a bucket, as a member knows it. */
export interface ToldWindow {
  /** Bucket, length, and number of the window. */
  readonly key: string;
  readonly windowMs: number;
  /** The last count that Redis told. */
  readonly used: number;
  /** Permits that the member took without Redis, and did not tell yet. */
  readonly alone: number;
  /** The count of the exchange. */
  readonly ofExchange: number;
  /** Permits that the member wants; a negative number gives permits back. */
  readonly weight?: number;
  readonly limit?: number;
}

/** What a member tells with each call. */
export interface Told {
  /** The member would divide the limits by this number if it lost Redis now. */
  readonly size: number;
  /** The members of the last answer, with their sizes. */
  readonly others: Readonly<Record<string, number>>;
  readonly windows: readonly ToldWindow[];
  /** Bans that Redis does not know yet, and those of the last answer. */
  readonly bans: readonly ToldBan[];
  readonly knownBans: readonly ToldBan[];
}

export type ToldBan = readonly [place: string, leftMs: number, why: string];

/** `time`: that of Redis. `counts`: those of the windows, in the order in which they were told. */
export type GroupAnswer = readonly [
  time: number,
  members: readonly (readonly [id: string, size: number])[],
  bans: readonly ToldBan[],
  counts: readonly number[],
  result: 'taken' | 'full' | 'soon' | '',
];

/**
 * Key: `cryptodl:{NAME}`. Arguments: id of a member, and JSON of `Told`. All times are those of the clock of Redis. A group has these keys,
 * which lie in one slot:
 *
 *     cryptodl:{NAME}     hash: `begun` → time of the first call, or of the last one that found data lost;
 *                         `member ID` → time of its last call, and its size; `ban PLACE` → end of the ban, and reason;
 *                         `last BUCKET` → the window that was told last
 *     cryptodl:{NAME}:used:BUCKET:WINDOW_MS:WINDOW     permits that are used
 */
export const CALL = `
local group, id, told = KEYS[1], ARGV[1], cjson.decode(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- A value that no member wrote counts as 0, because a negative one would raise the limit.
local function number(text)
  local value = tonumber(text or '') or 0
  if value > 0 and value < math.huge then return value end
  return 0
end
local function last(window) return 'last ' .. string.match(window.key, '^[^:]*') end
local function entry(time, rest) return string.format('%.0f ', time) .. rest end

-- The clock of the server may have been set back.
local begun = math.min(now, number(redis.call('HGET', group, 'begun') or now))
local counts = {}
for at, window in ipairs(told.windows) do
  local used = redis.call('GET', group .. ':used:' .. window.key)
  -- The counter was there.
  if not used and redis.call('HGET', group, last(window)) == window.key then begun = now end
  counts[at] = math.max(math.max(number(used), window.used) + window.alone, window.ofExchange)
end
local isSettling = now - begun < ${SETTLING_MS}

-- Later, the members that left and the bans that were removed must not come back.
if isSettling then
  for other, size in pairs(told.others) do
    redis.call('HSETNX', group, 'member ' .. other, entry(now - ${MISSING_MS} - 1, size))
  end
  for _, ban in ipairs(told.knownBans) do table.insert(told.bans, ban) end
end
for _, ban in ipairs(told.bans) do
  local place, ends, why = 'ban ' .. ban[1], now + ban[2], ban[3]
  local known = redis.call('HGET', group, place) or ''
  if ends > number(string.match(known, '^%d+')) then redis.call('HSET', group, place, entry(ends, why)) end
end

local members, missing, bans, unused = {{id, told.size}}, {}, {}, ${UNUSED_MS}
local flat = redis.call('HGETALL', group)
for at = 1, #flat, 2 do
  local kind, name = string.match(flat[at], '^(%a+) (.*)$')
  local time, rest = string.match(flat[at + 1], '^(%d+) (.*)$')
  if kind == 'member' and name ~= id then
    local age, size = math.abs(now - number(time)), number(rest)
    if age > ${FORGOTTEN_MS} then redis.call('HDEL', group, flat[at])
    else
      table.insert(members, {name, size})
      if age > ${MISSING_MS} then table.insert(missing, size) end
    end
  elseif kind == 'ban' then
    local left = math.min(number(time) - now, ${LONGEST_WAIT_MS})
    if left <= 0 then redis.call('HDEL', group, flat[at])
    else table.insert(bans, {name, left, rest}) end
    unused = math.max(unused, left)
  end
end

local result = ''
for at, window in ipairs(told.windows) do
  local weight = window.weight or 0
  if weight > 0 then
    local after = counts[at] + weight
    local kept = 0
    for _, size in ipairs(missing) do kept = kept + math.floor(window.limit / size) end
    if isSettling then result = 'soon'
    elseif after + kept > window.limit then result = 'full'
    else result, counts[at] = 'taken', after end
  else counts[at] = math.max(0, counts[at] + weight) end
  redis.call('SET', group .. ':used:' .. window.key, string.format('%.0f', counts[at]), 'PX', window.windowMs * 2)
  redis.call('HSET', group, last(window), window.key)
end
-- The last write: the member of a call that fails is without Redis, and must become missing.
redis.call('HSET', group, 'begun', string.format('%.0f', begun), 'member ' .. id, entry(now, told.size))
redis.call('PEXPIRE', group, unused)
return {now, members, bans, counts, result}
`;
