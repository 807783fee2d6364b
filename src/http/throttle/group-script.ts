/** The rules of an egress group, as one script that Redis runs atomically (docs/adr/0016). */
import { HOUR_MS } from '../../model/units.js';
import { LONGEST_WAIT_MS } from '../../model/errors.js';

/** A member without a sign of life for so long may have lost Redis, and take its share alone. Milliseconds. */
export const MISSING_MS = 10_000;
/** A missing member is forgotten after this time, because it may have been killed. Milliseconds. */
const FORGOTTEN_MS = 120_000;
/** For so many milliseconds after the first call, members tell their counts and no permit is given: Redis may have lost its data. */
const SETTLING_MS = 2000;
/** Keys of a group that no program uses end after this time. Milliseconds. */
const UNUSED_MS = HOUR_MS;

/** A window of a bucket, as a member knows it. */
export interface ToldWindow {
  /** Bucket, length, and number of the window. */
  readonly key: string;
  readonly windowMs: number;
  /** The last count of Redis, or that of the exchange if it is higher. */
  readonly used: number;
  /** Permits that the member took without Redis, and did not tell yet. */
  readonly alone: number;
  /** Permits that the member wants; a negative number gives permits back. */
  readonly weight?: number;
  readonly limit?: number;
}

export interface Told {
  readonly windows: readonly ToldWindow[];
  /** Bans that Redis does not know yet. */
  readonly bans: readonly ToldBan[];
}

export type ToldBan = readonly [place: string, leftMs: number, why: string];

/** `time`: that of Redis. `counts`: those of the windows, in the order in which they were told. */
export type GroupAnswer = readonly [
  time: number,
  members: number,
  bans: readonly ToldBan[],
  counts: readonly number[],
  result: 'taken' | 'full' | 'soon' | '',
];

/**
 * Key: `cryptodl:{NAME}`. Arguments: id of a member, and JSON of `Told`. All times are those of the clock of Redis. A group has these keys,
 * which lie in one slot:
 *
 *     cryptodl:{NAME}     hash: `begun` → time of the first call; `member ID` → time of its last call; `ban PLACE` → end of the ban, and reason
 *     cryptodl:{NAME}:used:BUCKET:WINDOW_MS:WINDOW     permits that are used
 */
export const CALL = `
local group, id, told = KEYS[1], ARGV[1], cjson.decode(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function time(text) return tonumber(string.match(text or '', '^%d+')) or 0 end

redis.call('HSETNX', group, 'begun', now)
for _, ban in ipairs(told.bans) do
  local place, ends = 'ban ' .. ban[1], now + ban[2]
  if ends > time(redis.call('HGET', group, place)) then
    redis.call('HSET', group, place, ends .. ' ' .. ban[3])
  end
end

local begun, members, missing, bans, unused = 0, 1, 0, {}, ${UNUSED_MS}
local flat = redis.call('HGETALL', group)
for at = 1, #flat, 2 do
  local field, value = flat[at], flat[at + 1]
  local kind, name = string.match(field, '^(%a+) ?(.*)$')
  -- The clock of the server may have been set back.
  local age = math.abs(now - time(value))
  if kind == 'begun' then begun = time(value)
  elseif kind == 'member' and name ~= id then
    if age > ${FORGOTTEN_MS} then redis.call('HDEL', group, field)
    else
      members = members + 1
      if age > ${MISSING_MS} then missing = missing + 1 end
    end
  elseif kind == 'ban' then
    local left = math.min(time(value) - now, ${LONGEST_WAIT_MS})
    if left <= 0 then redis.call('HDEL', group, field)
    else
      table.insert(bans, {name, left, string.match(value, '^%d+ (.*)$') or ''})
      unused = math.max(unused, left)
    end
  end
end

local result, counts = '', {}
for at, window in ipairs(told.windows) do
  local key, weight = group .. ':used:' .. window.key, window.weight or 0
  local used = math.max(redis.call('INCRBY', key, 0), window.used) + window.alone
  if weight > 0 then
    local kept = missing * math.floor(window.limit / members)
    if math.abs(now - begun) < ${SETTLING_MS} then result = 'soon'
    elseif used + weight + kept > window.limit then result = 'full'
    else result, used = 'taken', used + weight end
  else used = math.max(0, used + weight) end
  counts[at] = used
  redis.call('SET', key, used, 'PX', window.windowMs * 2)
end
-- The last write: the member of a call that fails is without Redis, and must become missing.
redis.call('HSET', group, 'member ' .. id, now)
redis.call('PEXPIRE', group, unused)
return {now, members, bans, counts, result}
`;
