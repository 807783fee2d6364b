/** Answers of a REST venue: the usual ones, and the ones that a test wants in their place. */
import type { VenueAnswer } from './rest-venue-types.js';

const JSON_TYPE = { 'content-type': 'application/json;charset=UTF-8' };
const HTML_TYPE = { 'content-type': 'text/html' };

export function json(body: string): VenueAnswer {
  return { status: 200, headers: JSON_TYPE, body };
}

export function apiError(code: number, message: string, status = 400): VenueAnswer {
  return { status, headers: JSON_TYPE, body: `{"code":${code},"msg":${JSON.stringify(message)}}` };
}

/** The end of history of `/futures/data`, whose messages come before their codes. */
export function wallError(parameter: 'startTime' | 'endTime'): VenueAnswer {
  const body = `{"msg":"parameter '${parameter}' is invalid.","code":-1130}`;
  return { status: 400, headers: JSON_TYPE, body };
}

/** The firewall in front of the exchange. */
export function html403(): VenueAnswer {
  return htmlPage(403, 'ERROR: The request could not be satisfied', 'Request blocked.');
}

/** A path that does not exist. */
export function html404(): VenueAnswer {
  return htmlPage(404, '404 Not Found', 'nginx');
}

function htmlPage(status: number, title: string, text: string): VenueAnswer {
  const body = `<!DOCTYPE html><HTML><HEAD><TITLE>${title}</TITLE></HEAD><BODY>${text}</BODY></HTML>\n`;
  return { status, headers: HTML_TYPE, body };
}

export function serverError(status: 408 | 500 | 502 | 503 | 504): VenueAnswer {
  if (status === 502 || status === 504) return htmlPage(status, `${status}`, 'cloudfront');
  if (status === 408) return apiError(-1007, 'Timeout waiting for response from backend server.', status);
  if (status === 503) return apiError(-1000, 'Service Unavailable.', status);
  return apiError(-1001, 'Internal error; unable to process your request. Please try again.', status);
}

export function restricted(): VenueAnswer {
  return apiError(
    0,
    "Service unavailable from a restricted location according to 'b. Eligibility' in https://www.binance.com/en/terms. Please contact customer service if you believe you received this message in error.",
    451,
  );
}

/** Futures say nothing of how long to wait, and speak of requests where they count weight. */
export function tooMany(limit = 2400, per = 'minute'): VenueAnswer {
  return apiError(
    -1003,
    `Too many requests; current limit of IP(1.2.3.4) is ${limit} requests per ${per}. Please use the websocket for live updates to avoid polling the API.`,
    429,
  );
}

export function tooManyOnSpot(limit: number, retryAfter: number): VenueAnswer {
  const message = `Too much request weight used; current limit is ${limit} request weight per 1 MINUTE. Please use WebSocket Streams for live updates to avoid polling the API.`;
  return withHeaders(apiError(-1003, message, 429), { 'retry-after': `${retryAfter}` });
}

export function bannedAnswer(until: number): VenueAnswer {
  return apiError(
    -1003,
    `Way too many requests; IP(1.2.3.4) banned until ${until}. Please use the websocket for live updates to avoid bans.`,
    418,
  );
}

export function bannedOnSpot(until: number, retryAfter: number): VenueAnswer {
  const message = `Way too much request weight used; IP banned until ${until}. Please use WebSocket Streams for live updates to avoid bans.`;
  return withHeaders(apiError(-1003, message, 418), { 'retry-after': `${retryAfter}` });
}

export function withHeaders(answer: VenueAnswer, headers: Readonly<Record<string, string>>): VenueAnswer {
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** Thrown wherever a request turns out to be wrong. */
export class Refusal extends Error {
  constructor(readonly answer: VenueAnswer) {
    super(answer.body);
  }
}

export function refuse(code: number, message: string): Refusal {
  return new Refusal(apiError(code, message));
}
