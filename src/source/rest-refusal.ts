/**
 * What Binance's REST says in a body of `{"code":-1121,"msg":"Invalid symbol."}` (facts of the REST interface, section 9).
 * Keys come in any order; a body that is something else says nothing.
 */
import type { ErrorCode } from '../model/errors.js';

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

export interface VenueRefusal {
  readonly code: ErrorCode | undefined;
  readonly message: string;
}

/** Undefined: the body is not of that kind. */
export function venueRefusal(head: string): VenueRefusal | undefined {
  const body = parsed(head);
  if (typeof body !== 'object' || body === null) return undefined;
  const { code: number, msg } = body as { code?: unknown; msg?: unknown };
  if (typeof number !== 'number' || typeof msg !== 'string') return undefined;
  // The wall of what is kept; the same number with another parameter is a mistake of ours.
  const isWall = number === INVALID_PARAMETER && /'(?:start|end)Time'/.test(msg);
  const code = isWall ? 'before-history' : BY_NUMBER[number];
  return { code, message: `${number} ${msg}` };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
