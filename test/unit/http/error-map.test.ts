/** What proxies, firewalls and odd statuses are called; the rest is in transport-faults.test.ts. */
import { BINANCE_ANSWERS } from '../../../src/exchange/binance/answers.js';
import { describe, expect, it } from 'vitest';
import type { CryptodlError, ErrorCode } from '../../../src/model/errors.js';
import { mapWireError, statusError, type Refusal } from '../../../src/http/transport/error-map.js';
import { context, refusal } from '../../helpers/requests.js';
import { wire } from '../../helpers/wire.js';
import { closedPort, wireServer } from '../../helpers/wire-server.js';

const URL_ = 'https://archive.test/data/a.zip';

/** What an answer with this status and body is called. */
const errorOf = (status: number, head = '', headers: Record<string, string> = {}) =>
  statusError({ status, headers, head, receivedAtMs: 0 }, URL_, BINANCE_ANSWERS.readRefusal);

const S3_403 = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>';
const PAGE = '<html>\n<head><title>403 Forbidden</title></head>';

describe('a 403', () => {
  it.each<[string, string, ErrorCode]>([
    ['the XML of S3', S3_403, 'http-forbidden'],
    ['text', 'Forbidden', 'http-forbidden'],
    ['a page', PAGE, 'address-blocked'],
    ['a page after white space', '\r\n\r\n  <HTML lang="en">', 'address-blocked'],
  ])('with %s', (_, body, code) => {
    expect(errorOf(403, body)?.code).toBe(code);
  });

  it('about the object is final; about the address it is waited for, and is no fault of the host', () => {
    expect(errorOf(403, S3_403)).toMatchObject({ retryable: false, hostFault: false, fatal: false });
    expect(errorOf(403, PAGE)).toMatchObject({ retryable: true, hostFault: false, rounds: true });
    expect(errorOf(403, PAGE)?.message).toBe('archive.test answered 403: 403 Forbidden');
  });

  it('a page with another status is not a refusal of the address', () => {
    expect(errorOf(503, PAGE)?.code).toBe('http-server-error');
    expect(errorOf(401, PAGE)?.code).toBe('http-refused');
  });
});

describe('statuses', () => {
  it('451 is a permanent refusal of a place, with any body', () => {
    const error = errorOf(451, '{"code":0,"msg":"Service unavailable from a restricted location"}');
    expect(error).toMatchObject({ code: 'location-restricted', retryable: false, hostFault: false });
    expect(error?.message).toBe(
      'archive.test answered 451: it does not serve the location of this IP address',
    );
  });

  it.each<[number, string, ErrorCode]>([
    [400, '{"code":-1121,"msg":"Invalid symbol."}', 'symbol-unknown'],
    [400, '{"code":-1122,"msg":"Invalid symbol status."}', 'symbol-closed'],
    [400, '{"code":-1130,"msg":"parameter \'startTime\' is invalid."}', 'before-history'],
    [400, '{"code":-1130,"msg":"parameter \'limit\' is invalid."}', 'http-refused'],
    [400, '{"code":-1001,"msg":"Internal error"}', 'http-server-error'],
    [401, '{"code":-2014,"msg":"API-key format invalid."}', 'key-required'],
    [400, '{"code":"-1121","msg":"Invalid symbol."}', 'http-refused'],
    [400, '{"code":-1121}', 'http-refused'],
    [400, '{"code":-1121,"msg":["Invalid symbol."]}', 'http-refused'],
    [400, '[]', 'http-refused'],
    [400, 'null', 'http-refused'],
    [400, '{"code":-1121', 'http-refused'],
  ])('%d with %s', (status, body, code) => {
    expect(errorOf(status, body)?.code).toBe(code);
  });

  it.each<[string, string, string]>([
    ['nothing', '', ''],
    ['white space around the text', '\r\n\r\n  oh  no \n', ': oh no'],
    ['a long text', `oh\r\n  ${'x'.repeat(300)}`, `: oh ${'x'.repeat(77)}`],
    ['a long text of REST', JSON.stringify({ code: -1, msg: 'x'.repeat(300) }), `: -1 ${'x'.repeat(197)}`],
  ])('a message has the start of the body, in one line: %s', (_, body, said) => {
    expect(errorOf(500, body)?.message).toBe(`archive.test answered 500${said}`);
  });

  it('408 is a failure of the host, and 503 is one unless the exchange decides otherwise', () => {
    expect(errorOf(408)?.code).toBe('http-server-error');
    const answered = { status: 503, headers: {}, head: '', receivedAtMs: 0 };
    const codeOf = (read: Refusal) => statusError(answered, URL_, () => read)?.code;
    const code = 'rate-limited';
    const refusals = [{ code, isDecided: true }, { code }, { isDecided: true }] as const;
    expect(refusals.map(codeOf)).toEqual([code, 'http-server-error', 'http-server-error']);
  });

  it.each([200, 206, 404])('%d is an answer', (status) => {
    expect(errorOf(status)).toBeUndefined();
  });

  it('416 may be asked for again: only the rest of an object that has changed was refused', () => {
    expect(errorOf(416)).toMatchObject({ code: 'http-protocol', retryable: true });
  });

  it.each([300, 301, 302, 303, 305, 307, 308])('%d tells where it points to', (status) => {
    const error = errorOf(status, '', { location: '/there' });
    expect([error?.code, error?.location]).toEqual(['redirect-refused', '/there']);
  });

  it.each([201, 204, 304, 400, 403, 416, 500])('%d points nowhere', (status) => {
    expect(errorOf(status, '', { location: '/there' })?.location).toBeUndefined();
  });
});

describe('the wait that an answer asks for', () => {
  const NOW = Date.UTC(2024, 0, 15, 12);
  const DATE = new Date(NOW).toUTCString();
  const HOUR = 3600_000;
  const banned = (ms: number): string => `{"code":-1003,"msg":"Way too much; IP banned until ${NOW + ms}."}`;
  /** `receivedAtMs`: by our own clock. */
  const refused = (status: number, head: string, headers: Record<string, string>, receivedAtMs = NOW) =>
    statusError({ status, head, headers, receivedAtMs }, URL_, BINANCE_ANSWERS.readRefusal);

  it.each<[string, number, string, Record<string, string>, number | undefined]>([
    ['429 with a header', 429, '', { 'retry-after': '7' }, 7000],
    ['429 with neither', 429, '', {}, undefined],
    ['418 with neither: two minutes', 418, '', {}, 120_000],
    ['429 with a ban in its body', 429, banned(60_000), {}, 61_000],
    ['418 with a ban in its body', 418, banned(60_000), {}, 61_000],
    ['503 with a ban in its body: only a limit bans', 503, banned(60_000), {}, undefined],
    ['a ban that is longer than the header says', 429, banned(60_000), { 'retry-after': '7' }, 61_000],
    ['a header that is longer than the ban', 418, banned(60_000), { 'retry-after': '600' }, 600_000],
    ['418 with a ban that is over', 418, banned(-60_000), {}, 120_000],
    ['418 with a ban that ends now', 418, banned(-1000), {}, 120_000],
    ['418 with a ban in seconds', 418, 'IP banned until 1705320060.', {}, 120_000],
  ])('%s', (_, status, head, headers, waitMs) => {
    expect(refused(status, head, headers)?.retryAfterMs).toBe(waitMs);
  });

  it("a ban is counted from the server's clock, and from ours where it has none", () => {
    for (const skew of [-HOUR, HOUR]) {
      const error = refused(418, banned(60_000), { date: DATE }, NOW + skew);
      expect(error?.retryAfterMs).toBe(61_000);
    }
    expect(refused(418, banned(HOUR), { date: 'yesterday' }, NOW + 60_000)?.retryAfterMs).toBe(HOUR - 59_000);
  });

  it('is at most seven days: a longer one is cut, and the message says so', () => {
    const longest = 7 * 24 * HOUR;
    const asks = (seconds: number) => refused(429, '', { 'retry-after': String(seconds) });
    expect(asks(longest / 1000)?.retryAfterMs).toBe(longest);
    expect(asks(longest / 1000)?.message).toBe('archive.test answered 429');
    expect(asks(longest / 1000 + 1)?.retryAfterMs).toBe(longest);
    expect(asks(longest / 1000 + 1)?.message).toBe(
      'archive.test answered 429 (it asks for a longer wait than 7 days)',
    );
    expect(refused(418, banned(longest), {})).toMatchObject({
      retryAfterMs: longest,
      message: expect.stringContaining('longer wait than 7 days') as string,
    });
  });
});

describe('a proxy', () => {
  const tunnel = (status: number): unknown =>
    mapWireError(new Error(`Proxy response (${status}) !== 200 when HTTP Tunneling`), URL_);

  it.each<[number, ErrorCode, boolean]>([
    [400, 'proxy-refused', true],
    [407, 'proxy-refused', true],
    [500, 'connect-failed', false],
  ])('that answers %d for a tunnel is %s; the run ends: %s', (status, code, fatal) => {
    expect(tunnel(status)).toMatchObject({
      code,
      fatal,
      message: `the proxy answered ${status} to a request for archive.test`,
      proxyFault: `answered ${status} to a request for archive.test`,
      cause: { message: `Proxy response (${status}) !== 200 when HTTP Tunneling` },
    });
  });

  it('that asks for a password has an error of its own, with the next step', () => {
    expect(errorOf(407)).toMatchObject({ code: 'proxy-refused', fatal: true });
    expect(errorOf(407)?.hint).toContain('http://user:password@host:port');
    expect(tunnel(407)).toMatchObject({ hint: errorOf(407)?.hint });
    expect(tunnel(403)).toMatchObject({ hint: 'see --proxy' });
  });

  it('is not blamed for an error that only quotes one', () => {
    const error = Object.assign(new Error('read ECONNRESET: Proxy response (403)'), { code: 'ECONNRESET' });
    expect(mapWireError(error, URL_)).toMatchObject({ code: 'connection-lost', cause: error });
  });

  const failure = (code: string, message: string, more: object = {}): Error =>
    Object.assign(new Error(message), { code, ...more });
  const refusedAt = (address: string, port: number): Error =>
    failure('ECONNREFUSED', `connect ECONNREFUSED ${address}:${port}`, { address, port });

  it.each<[string, string, Error]>([
    ['whose name is unknown', 'http://proxy.test:3128', failure('ENOTFOUND', 'getaddrinfo ENOTFOUND')],
    ['that refuses', 'http://proxy.test:3128', refusedAt('192.0.2.1', 3128)],
    ['at the usual port of http', 'http://proxy.test', refusedAt('192.0.2.1', 80)],
    ['at the usual port of https', 'https://proxy.test', refusedAt('192.0.2.1', 443)],
    ['for https, at a port of its own', 'https://proxy.test:3128', refusedAt('192.0.2.1', 3128)],
    ['that does not answer', 'http://proxy.test:3128', failure('UND_ERR_CONNECT_TIMEOUT', 'Connect Timeout')],
    [
      'that refuses at all of its addresses',
      'http://proxy.test:3128',
      Object.assign(new AggregateError([refusedAt('192.0.2.1', 3128), refusedAt('2001:db8::1', 3128)]), {
        code: 'ECONNREFUSED',
      }),
    ],
  ])('%s is named, and is no fault of the host', (_, proxy, error) => {
    const { host } = new URL(proxy);
    const mapped = mapWireError(error, URL_, new URL(proxy));
    expect(mapped).toMatchObject({ code: 'proxy-unreachable', cause: error });
    const detail = error.message === '' ? 'ECONNREFUSED' : error.message;
    expect(mapped.message).toBe(`the proxy ${host} cannot be reached: ${detail}`);
    expect((mapped as CryptodlError).hint).toContain('--proxy none connects directly');
  });

  it.each<[string, Error, ErrorCode]>([
    ['breaks a connection of the proxy', failure('ECONNRESET', 'reset', { port: 3128 }), 'connection-lost'],
    ['has a certificate that is over', failure('CERT_HAS_EXPIRED', 'over', { port: 3128 }), 'tls-failed'],
  ])('is not blamed where the host %s', (_, error, code) => {
    const mapped = mapWireError(error, URL_, new URL('http://proxy.test:3128'));
    expect(mapped).toMatchObject({ code, cause: error, message: `archive.test: ${error.message}` });
  });

  it('over the wire: where nothing listens, it is named; a host that is asked directly is not taken for it', async () => {
    const closed = `http://127.0.0.1:${await closedPort()}`;
    const asked = { url: 'http://archive.test/a.zip', bucket: 'archive' };
    const proxied = wire({ proxies: { http: closed, https: '', except: '' } });
    const error = await refusal(proxied(asked, context()));
    expect(error.code).toBe('proxy-unreachable');
    expect(error.message).toContain(new URL(closed).host);
    const host = `http://127.0.0.1:${await closedPort()}`;
    const direct = wire({ proxies: { http: 'http://proxy.test:3128', https: '', except: '127.0.0.1' } });
    expect((await refusal(direct({ ...asked, url: host }, context()))).code).toBe('connect-failed');
  });

  it('over the wire: a proxy that closes the connection is asked once', async () => {
    const { url, heads } = await wireServer((socket) => socket.end());
    const proxied = wire({ proxies: { http: '', https: url, except: '' } });
    const error = await refusal(proxied({ url: URL_, bucket: 'archive' }, context()));
    expect([error.code, heads.length]).toEqual(['proxy-unreachable', 1]);
  });
});
