import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import { mapWireError } from '../../../src/http/transport/error-map.js';
import { UNLIMITED } from '../../../src/http/transport/bandwidth.js';
import { context, refusal } from '../../helpers/requests.js';
import { wire } from '../../helpers/wire.js';
import { httpAnswer, wireServer } from '../../helpers/wire-server.js';

function transport(bandwidth = UNLIMITED) {
  const fetch = wire({ connections: 1, bandwidth });
  return (url: string) => fetch({ url, bucket: 'archive' }, context());
}

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKS = `${OK}Transfer-Encoding: chunked\r\n`;

describe('transport, when the host misbehaves', () => {
  it.each<[string, string, 'fin' | 'stay', ErrorCode]>([
    ['an end within the headers', `${OK}Content-Le`, 'fin', 'connection-lost'],
    ['an end at once after the headers', `${OK}Content-Length: 9\r\n\r\n`, 'fin', 'connection-lost'],
    ['a length of a chunk that is none', `${CHUNKS}\r\nzz\r\nhalf\r\n`, 'stay', 'http-protocol'],
    ['an end within a chunk', `${CHUNKS}Connection: close\r\n\r\n1\r\na\r\n2\r\nb`, 'fin', 'http-protocol'],
    ['N10: a length that is no number', `${OK}Content-Length: many\r\n\r\n`, 'stay', 'http-protocol'],
    [
      'an upgrade that nobody asked for',
      'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      'stay',
      'connection-lost',
    ],
  ])('calls it retryable and a fault of the host: %s', async (_, bytes, then, code) => {
    const { url } = await wireServer((socket) => {
      socket.write(bytes, () => {
        if (then === 'fin') socket.end();
      });
    });
    // Each chunk waits until the end of the connection has arrived.
    const error = await refusal(transport({ take: () => sleep(20) })(url));
    expect(error).toMatchObject({ code, retryable: true, hostFault: true });
    expect(error.message).toContain(new URL(url).host);
  });

  it.each<[number, ErrorCode]>([
    [204, 'http-protocol'],
    [206, 'http-protocol'],
    [302, 'redirect-refused'],
    [304, 'http-protocol'],
  ])('calls the status %i %s', async (status, code) => {
    const isEmpty = status === 204 || status === 304;
    const location = ['Location: https://elsewhere.test/'];
    const { url, heads } = await wireServer((socket) =>
      socket.write(isEmpty ? `HTTP/1.1 ${status} Said\r\n\r\n` : httpAnswer(status, '', location)),
    );
    const error = await refusal(transport()(url));
    expect(error.code).toBe(code);
    expect(error.message).toContain(`answered ${status}`);
    expect(heads).toHaveLength(1);
  });

  it('has the text of an error document in one line', async () => {
    const slowDown = '<?xml version="1.0"?>\n<Error><Code>SlowDown</Code><Message>Please</Message></Error>';
    const first = await wireServer((socket) => socket.write(httpAnswer(503, slowDown)));
    expect((await refusal(transport()(first.url))).message).toMatch(/answered 503: SlowDown$/);
    const page = `<html><title>Bad\n gateway</title>${'x'.repeat(500_000)}</html>`;
    const second = await wireServer((socket) => socket.write(httpAnswer(502, page)));
    expect((await refusal(transport()(second.url))).message).toMatch(/answered 502: Bad gateway$/);
  });
});

describe('mapWireError', () => {
  const failure = (code: string, syscall: string): Error =>
    Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
  const mapped = (error: Error): unknown => mapWireError(error, 'https://archive.test/a.zip');

  it.each<[string, string, ErrorCode]>([
    ['ENOTFOUND', 'getaddrinfo', 'host-unknown'],
    ['EAI_AGAIN', 'getaddrinfo', 'dns-failed'],
    ['ENETUNREACH', 'connect', 'connect-failed'],
    ['EPERM', 'connect', 'connect-failed'],
    ['EACCES', 'connect', 'connect-failed'],
    ['ETIMEDOUT', 'connect', 'connect-timeout'],
    ['ECONNRESET', 'read', 'connection-lost'],
    ['CERT_HAS_EXPIRED', '', 'tls-failed'],
    ['UNABLE_TO_GET_ISSUER_CERT', '', 'tls-failed'],
    ['WHATEVER_COMES', 'read', 'connection-lost'],
  ])('calls %s from %s by its own name, not a bug or the disk', (code, syscall, expected) => {
    expect(mapped(failure(code, syscall))).toMatchObject({ code: expected });
  });

  it('names the host and keeps the cause; a certificate is trusted with --ca-file, nothing else has that hint', () => {
    const untrusted = failure('SELF_SIGNED_CERT_IN_CHAIN', 'certificate');
    expect(mapped(untrusted)).toMatchObject({
      message: 'archive.test: certificate SELF_SIGNED_CERT_IN_CHAIN',
      cause: untrusted,
      hint: expect.stringContaining('--ca-file FILE') as string,
    });
    expect(mapped(failure('CERT_HAS_EXPIRED', 'certificate'))).toMatchObject({
      hint: expect.stringContaining('check the clock') as string,
    });
    const reset = failure('ECONNRESET', 'read');
    expect(mapped(reset)).toMatchObject({
      message: 'archive.test: read ECONNRESET',
      cause: reset,
      hint: undefined,
    });
    const bare = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
    expect(mapped(bare)).toMatchObject({ message: 'archive.test: ECONNREFUSED' });
  });

  it.each([
    new TypeError('oops'),
    new Error('no code'),
    failure('UND_ERR_INVALID_ARG', ''),
    new CryptodlError('body-encoded', 'ours'),
  ])('does not change errors from elsewhere: %s', (error) => {
    expect(mapped(error)).toBe(error);
  });
});
