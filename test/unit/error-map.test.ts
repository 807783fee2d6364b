/** What proxies, firewalls and odd statuses are called; the rest is in transport-faults.test.ts. */
import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/errors.js';
import { mapWireError, statusError } from '../../src/transport/error-map.js';
import { answer, context, refusal } from '../helpers/requests.js';
import { wire } from '../helpers/wire.js';
import { httpAnswer, wireServer } from '../helpers/wire-server.js';

const URL_ = 'https://archive.test/data/a.zip';

/** What an answer with this status and body is called. */
const errorOf = (status: number, head = '', headers: Record<string, string> = {}) =>
  statusError({ status, headers, head, receivedAt: 0 }, URL_);

const S3_403 = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>';
const PAGE = '<html>\n<head><title>403 Forbidden</title></head>';

describe('D19 D22 a 403', () => {
  it.each<[string, string, ErrorCode]>([
    ['the XML of S3', S3_403, 'http-forbidden'],
    ['nothing', '', 'http-forbidden'],
    ['text', 'Forbidden', 'http-forbidden'],
    ['a page', PAGE, 'address-blocked'],
    ['a page in capitals', '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01">', 'address-blocked'],
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
  it('451 is about a place, whatever the body says, and final', () => {
    const error = errorOf(451, '{"code":0,"msg":"Service unavailable from a restricted location"}');
    expect(error).toMatchObject({ code: 'location-restricted', retryable: false, hostFault: false });
    expect(error?.message).toBe(
      'archive.test answered 451: it does not serve the place that this address is in',
    );
  });

  it.each<[number, string, ErrorCode]>([
    [400, '{"code":-1121,"msg":"Invalid symbol."}', 'symbol-unknown'],
    [400, '{"msg":"Invalid symbol.","code":-1121}', 'symbol-unknown'],
    [400, '{"code":-1122,"msg":"Invalid symbol status."}', 'symbol-closed'],
    [400, '{"code":-1130,"msg":"parameter \'startTime\' is invalid."}', 'before-history'],
    [400, '{"code":-1130,"msg":"parameter \'limit\' is invalid."}', 'http-refused'],
    [400, '{"code":-1001,"msg":"Internal error"}', 'http-server-error'],
    [401, '{"code":-2014,"msg":"API-key format invalid."}', 'key-required'],
    [400, '{"code":"-1121","msg":"Invalid symbol."}', 'http-refused'],
    [400, '[]', 'http-refused'],
    [400, 'null', 'http-refused'],
    [400, '{"code":-1121', 'http-refused'],
  ])('%d with %s', (status, body, code) => {
    expect(errorOf(status, body)?.code).toBe(code);
  });

  it('what REST says of a refusal is in the message', () => {
    expect(errorOf(400, '{"code":-1121,"msg":"Invalid symbol."}')?.message).toBe(
      'archive.test answered 400: -1121 Invalid symbol.',
    );
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

describe('names', () => {
  const failure = (code: string): Error => Object.assign(new Error(`getaddrinfo ${code} x`), { code });
  it.each<[string, ErrorCode]>([
    ['ENOTFOUND', 'host-unknown'],
    ['EAI_AGAIN', 'dns-failed'],
    ['EAI_FAIL', 'dns-failed'],
    ['EAI_NODATA', 'dns-failed'],
  ])('%s is %s, which may be over later', (code, expected) => {
    expect(mapWireError(failure(code), URL_)).toMatchObject({ code: expected, retryable: true });
  });
});

describe('a proxy', () => {
  const tunnel = (status: number): unknown =>
    mapWireError(new Error(`Proxy response (${status}) !== 200 when HTTP Tunneling`), URL_);

  it.each<[number, ErrorCode, boolean]>([
    [400, 'proxy-refused', true],
    [403, 'proxy-refused', true],
    [407, 'proxy-refused', true],
    [502, 'connect-failed', false],
    [503, 'connect-failed', false],
    [504, 'connect-failed', false],
  ])('that answers %d for a tunnel is %s; the run ends: %s', (status, code, fatal) => {
    expect(tunnel(status)).toMatchObject({ code, fatal });
  });

  it('that wants a password is told apart, with what to do', () => {
    expect(errorOf(407)).toMatchObject({ code: 'proxy-refused', fatal: true });
    expect(errorOf(407)?.hint).toContain('http://user:password@host:port');
  });

  it.each<[string, number, ErrorCode]>([
    ['over the wire: 407 to CONNECT', 407, 'proxy-refused'],
    ['over the wire: 403 to CONNECT', 403, 'proxy-refused'],
    ['over the wire: 502 to CONNECT', 502, 'connect-failed'],
  ])('%s', async (_, status, code) => {
    const { url, heads } = await wireServer((socket) => socket.end(httpAnswer(status, '')));
    const proxies = { http: '', https: url.replace('//', '//user:secret@'), except: '' };
    const error = await refusal(wire({ proxies })({ url: URL_, bucket: 'archive' }, context()));
    expect(error.code).toBe(code);
    expect(error.message).toBe(`the proxy answered ${status} when asked for archive.test`);
    expect(heads[0]).toMatch(/^CONNECT archive\.test:443 HTTP\/1\.1/);
    expect(heads[0]).toMatch(/proxy-authorization: Basic dXNlcjpzZWNyZXQ=/i);
    expect(JSON.stringify([error.message, error.hint])).not.toContain('secret');
  });

  it('over the wire: gets whole addresses of http, and its answers are those of the host', async () => {
    const { url, heads } = await wireServer((socket) =>
      socket.write(heads.length === 1 ? httpAnswer(200, 'it') : httpAnswer(407, '')),
    );
    const fetch = wire({ proxies: { http: url, https: '', except: '' } });
    const asked = { url: 'http://archive.test/data/a.zip?x=1', bucket: 'archive' };
    expect((await fetch(asked, context())).sha256).toBe(answer('it').sha256);
    expect(heads[0]).toMatch(/^GET http:\/\/archive\.test\/data\/a\.zip\?x=1 HTTP\/1\.1/);
    expect((await refusal(fetch(asked, context()))).code).toBe('proxy-refused');
  });

  it('over the wire: is not asked for hosts that are excepted, nor for the other scheme', async () => {
    const proxy = await wireServer((socket) => socket.write(httpAnswer(200, 'by proxy')));
    const host = await wireServer((socket) => socket.write(httpAnswer(200, 'direct')));
    const asked = { url: host.url, bucket: 'archive' };
    for (const proxies of [
      { http: proxy.url, https: '', except: 'localhost,127.0.0.1' },
      { http: proxy.url, https: '', except: '*' },
      { http: '', https: proxy.url, except: '' },
    ])
      expect((await wire({ proxies })(asked, context())).sha256).toBe(answer('direct').sha256);
    expect(proxy.heads).toEqual([]);
    const proxied = wire({ proxies: { http: proxy.url, https: '', except: '.test' } });
    expect((await proxied(asked, context())).sha256).toBe(answer('by proxy').sha256);
  });
});
