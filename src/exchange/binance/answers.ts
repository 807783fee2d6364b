/** The refusals of Binance hosts, and the headers that report used permits. */
import type { AnswerRules } from '../../http/throttle/exchange-hosts.js';
import type { Refusal } from '../../http/transport/error-map.js';
import type { ErrorCode } from '../../model/errors.js';
import { DURATION_MS } from '../../model/units.js';
import { fieldsOf, parseJson } from '../../text/json.js';

export const BINANCE_ANSWERS: AnswerRules = { readRefusal, usedPermits };

/** Binance error numbers that have the same meaning on every host. With another number, a 400 means a wrong request. */
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

/** The duration of a ban (418) for which the answer gives no end, in milliseconds. */
const BAN_MS = 120_000;

/**
 * REST refuses with a body like `{"code":-1121,"msg":"Invalid symbol."}`; the order of the keys varies. The text of a ban contains its
 * end: `IP banned until 1734000000000`. Any other body gives no information.
 */
function readRefusal({ status, head }: { readonly status: number; readonly head: string }): Refusal {
  const until = /banned until (\d{13})/i.exec(head)?.[1];
  return {
    ...inBody(head),
    ...(status === 418 ? { code: 'banned', leastMs: BAN_MS } : {}),
    ...(until === undefined ? {} : { untilMs: Number(until) }),
  };
}

function inBody(head: string): Pick<Refusal, 'code' | 'message'> {
  const { code: number, msg } = fieldsOf(parseJson(head));
  if (typeof number !== 'number' || typeof msg !== 'string') return {};
  // A time before the kept history. With another parameter, the same number means a wrong request.
  const isBeforeHistory = number === INVALID_PARAMETER && /'(?:start|end)Time'/.test(msg);
  const code = isBeforeHistory ? 'before-history' : BY_NUMBER[number];
  return { message: `${number} ${msg}`, ...(code === undefined ? {} : { code }) };
}

/** Reads `X-MBX-USED-WEIGHT-1M: 27`, only with the length of the window: a minute's weight and five minutes' requests are different budgets. */
function usedPermits(headers: Readonly<Record<string, string>>, windowMs: number): number {
  const used = Object.entries(headers).flatMap(([name, value]) => {
    const [, count, unit = ''] = /^x-mbx-used-weight-(\d+)([smhd])$/.exec(name) ?? [];
    return Number(count) * (DURATION_MS[unit] ?? 0) === windowMs ? [Number(value)] : [];
  });
  return Math.max(0, ...used.filter((value) => Number.isFinite(value)));
}
