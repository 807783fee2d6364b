/** How Binance's hosts refuse, and what they tell of their limits. */
import type { AnswerRules } from '../../http/exchange-hosts.js';
import type { Refusal } from '../../http/transport/error-map.js';
import type { ErrorCode } from '../../model/errors.js';

export const BINANCE_ANSWERS: AnswerRules = { readRefusal, usedPermits };

/** Numbers that mean the same on every host; all others of a 400 are a request that was not right. */
const BY_NUMBER: Readonly<Record<number, ErrorCode>> = {
  [-1000]: 'http-server-error',
  [-1001]: 'http-server-error',
  [-1006]: 'http-server-error',
  [-1007]: 'http-server-error',
  [-1008]: 'http-server-error',
  [-1016]: 'http-server-error',
  [-1121]: 'symbol-unknown',
  [-4087]: 'symbol-unknown',
  [-4144]: 'symbol-unknown',
  [-4104]: 'contract-unknown',
  [-1122]: 'symbol-closed',
  [-4141]: 'symbol-closed',
  [-4166]: 'before-history',
  [-2014]: 'key-required',
  [-2015]: 'key-required',
};

const INVALID_PARAMETER = -1130;

/** A ban (418) without any deadline lasts at least this long. */
const BAN_MS = 120_000;

/**
 * REST refuses with a body of `{"code":-1121,"msg":"Invalid symbol."}`; its keys come in any order. The text of a ban says
 * until when: `IP banned until 1734000000000`. A body that is something else says nothing.
 */
function readRefusal({ status, head }: { readonly status: number; readonly head: string }): Refusal {
  const until = /banned until (\d{13})/i.exec(head)?.[1];
  return {
    ...inBody(head),
    ...(status === 418 ? { code: 'banned', leastMs: BAN_MS } : {}),
    ...(until === undefined ? {} : { until: Number(until) }),
  };
}

function inBody(head: string): Pick<Refusal, 'code' | 'message'> {
  const body = parsed(head);
  if (typeof body !== 'object' || body === null) return {};
  const { code: number, msg } = body as { code?: unknown; msg?: unknown };
  if (typeof number !== 'number' || typeof msg !== 'string') return {};
  // The wall of what is kept; the same number with another parameter is a mistake of ours.
  const isWall = number === INVALID_PARAMETER && /'(?:start|end)Time'/.test(msg);
  const code = isWall ? 'before-history' : BY_NUMBER[number];
  return { message: `${number} ${msg}`, ...(code === undefined ? {} : { code }) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * `X-MBX-USED-WEIGHT-1M: 27`. The weight of a minute is another budget than the requests of five minutes, so a window
 * takes only the header of its own length.
 */
function usedPermits(headers: Readonly<Record<string, string>>, windowMs: number): number {
  const used = Object.entries(headers).flatMap(([name, value]) => {
    const [, count, unit = ''] = /^x-mbx-used-weight-(\d+)([smhd])$/.exec(name) ?? [];
    return Number(count) * (UNIT_MS[unit] ?? 0) === windowMs ? [Number(value)] : [];
  });
  return Math.max(0, ...used.filter((value) => Number.isFinite(value)));
}
