import { ZIP as ZIP_FORMAT } from '../../../src/exchange/zip/unzip.js';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { CryptodlError, toCryptodlError } from '../../../src/model/errors.js';
import type { FetchContext, FetchRequest, FetchResponse, Sign } from '../../../src/model/fetch.js';
import { Sink } from '../../../src/http/transport/sink.js';
import { openFiles, scratchFolder } from '../../helpers/folders.js';
import { answer, context, refusal } from '../../helpers/requests.js';
import { wire } from '../../helpers/wire.js';
import { httpAnswer, wireServer } from '../../helpers/wire-server.js';

const folder = scratchFolder();
const MIB = 1024 * 1024;
/** Every megabyte different, so that a lost or swapped piece shows. */
const LARGE = Buffer.from(
  Uint8Array.from({ length: 5 * MIB }, (_, index) => (index * 31 + (index >> 20) * 7) % 251),
);

/** The real wire: `connections` sockets at most, closed when the test is over. */
function transport(connections = 4) {
  const fetch = wire({ connections });
  return (
    url: string,
    more: Partial<FetchRequest> = {},
    how: FetchContext = context(),
  ): Promise<FetchResponse> => fetch({ url, bucket: 'archive', ...more }, how);
}

const answering =
  (...given: Parameters<typeof httpAnswer>) =>
  (socket: Socket): void =>
    void socket.write(httpAnswer(...given));

describe('transport, when the host answers', () => {
  it('resolves with the body, its digests and the headers', async () => {
    const { url, heads } = await wireServer(
      answering(200, 'hello', ['ETag: "abc"', 'X-Many: a', 'X-Many: b']),
    );
    const response = await transport()(`${url}/a.zip?x=1`);
    const { sha256 } = answer('hello');
    expect(response).toMatchObject({ status: 200, sha256, body: { kind: 'memory' } });
    expect(response.body).toEqual({ kind: 'memory', bytes: Buffer.from('hello') });
    expect(response.headers).toMatchObject({ etag: '"abc"', 'x-many': 'a, b' });
    expect(heads[0]).toMatch(/^GET \/a\.zip\?x=1 HTTP\/1\.1\r\n/);
    expect(heads[0]).toContain('accept-encoding: identity');
  });
});

describe('transport, with a large body', () => {
  it('has all chunks in order in its spool file, also if they arrive while others are written', async () => {
    const spoolPath = join(folder, 'in-order');
    const sink = new Sink({ spoolPath, spoolAboveBytes: 1 });
    const chunks = ['a', 'b', 'c'].map((letter) => Buffer.alloc(1024 * 1024 + 1, letter));
    for (const chunk of chunks) void sink.write(chunk);
    await sink.end();
    expect(readFileSync(spoolPath).equals(Buffer.concat(chunks))).toBe(true);
    if (process.platform === 'linux') expect(openFiles(spoolPath)).toEqual([]);
  });

  it('is not copied if it is one chunk, and leaves nothing for the next attempt after an error of the disk', async () => {
    const [chunk, held] = [Buffer.from('it'), new Sink({})];
    void held.write(chunk);
    expect((await held.end()).body).toSatisfy((body: { bytes: Buffer }) => body.bytes === chunk);
    const broken = new Sink({ spoolPath: join(folder, 'none', 'a'), spoolAboveBytes: 1 });
    await expect(broken.write(LARGE)).rejects.toThrow('ENOENT');
    expect(await broken.discard()).toBe(0);
  });

  it('overwrites the file that a cut attempt left', async () => {
    let requests = 0;
    const { url } = await wireServer((socket) => {
      requests += 1;
      const whole = httpAnswer(200, LARGE);
      if (requests === 1) socket.end(whole.subarray(0, 4 * MIB));
      else socket.write(httpAnswer(200, LARGE.subarray(0, 3 * MIB)));
    });
    const spoolPath = join(folder, 'again.zip');
    const fetch = transport();
    const more = { spoolPath, spoolAboveBytes: MIB };
    expect((await refusal(fetch(url, more))).code).toBe('connection-lost');
    if (process.platform === 'linux') expect(openFiles(folder)).toEqual([]);
    const response = await fetch(url, more);
    expect(response.sha256).toBe(answer(LARGE.subarray(0, 3 * MIB)).sha256);
    expect(readFileSync(spoolPath).equals(LARGE.subarray(0, 3 * MIB))).toBe(true);
  });

  it('keeps a body below the limit, or without a path, in memory', async () => {
    const { url } = await wireServer(answering(200, LARGE));
    const fetch = transport();
    const spoolPath = join(folder, 'small.zip');
    expect((await fetch(url, { spoolPath, spoolAboveBytes: 6 * MIB })).body.kind).toBe('memory');
    expect(existsSync(spoolPath)).toBe(false);
    const { body, sha256 } = await fetch(url, { spoolAboveBytes: 1 });
    expect(body.kind).toBe('memory');
    expect(sha256).toBe(answer(LARGE).sha256);
  });

  it('fails with the error of the disk, which is no fault of the host, and hangs up', async () => {
    const { url, sockets } = await wireServer(answering(200, LARGE));
    const more = { spoolPath: join(folder, 'no such folder', 'a.zip'), spoolAboveBytes: 1 };
    const error: unknown = await transport()(url, more).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ENOENT' });
    expect(toCryptodlError(error).code).toBe('disk');
    await gone(sockets[0]);
  });

  it('ends a body without a length that grows beyond the limit, and keeps nothing for the next attempt', async () => {
    let sent = 0;
    const { url, sockets } = await wireServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nETag: "e"\r\n\r\n');
      const more = (): void => {
        while (!socket.destroyed && sent < 256 * MIB) {
          sent += MIB;
          if (!socket.write(Buffer.alloc(MIB))) {
            socket.once('drain', more);
            return;
          }
        }
      };
      more();
    });
    const more = { spoolPath: join(folder, 'endless.zip'), spoolAboveBytes: 1, maxBytes: 3 * MIB };
    const error = await refusal(transport()(url, { ...more, expect: { format: ZIP_FORMAT, bytes: 414 } }));
    expect([error.code, error.partial]).toEqual(['length-mismatch', undefined]);
    expect(error.message).toContain('more than 3145728 bytes, the listing says 414');
    await gone(sockets[0]);
    expect(statSync(more.spoolPath).size).toBeLessThan(8 * MIB);
  });

  it('refuses a length that is more than allowed before a byte of the body is kept', async () => {
    const { url } = await wireServer((socket) => {
      socket.write(httpAnswer(200, 'x', ['Content-Length: 1000000000']));
    });
    const error = await refusal(transport()(url, { maxBytes: 1999 }));
    expect(error.code).toBe('length-mismatch');
    expect(error.message).toBe(`${new URL(url).host} sent more than 1999 bytes`);
  });

  it('has no limit for the length in an answer to HEAD, which has no body', async () => {
    const { url } = await wireServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n');
    });
    const { status, headers } = await transport()(url, { method: 'HEAD', maxBytes: 1999 });
    expect([status, headers['content-length']]).toEqual([200, '1000000000']);
  });

  it('does not measure a refusal by the size of the object: it is still a refusal, with its wait', async () => {
    const page = 'x'.repeat(100_000);
    for (const headers of [['Retry-After: 7'], ['Retry-After: 7', 'Transfer-Encoding: chunked']]) {
      const chunked = `${page.length.toString(16)}\r\n${page}\r\n0\r\n\r\n`;
      const { url } = await wireServer(answering(429, headers.length === 1 ? page : chunked, headers));
      const error = await refusal(transport()(url, { maxBytes: 1999 }));
      expect([error.code, error.retryAfterMs]).toEqual(['rate-limited', 7000]);
    }
  });

  it('keeps only the beginning of a refusal, however long it is, and no file of it', async () => {
    const { url } = await wireServer(answering(503, LARGE));
    const more = { spoolPath: join(folder, 'refusal.html'), spoolAboveBytes: 1 };
    expect((await refusal(transport()(url, more))).code).toBe('http-server-error');
    expect(existsSync(more.spoolPath)).toBe(false);
  });

  it('goes on when both the disk and the bandwidth have room', async () => {
    const { url } = await wireServer(answering(200, LARGE));
    const spoolPath = join(folder, 'both.zip');
    let asked = 0;
    let isGranted = false;
    const take = (): Promise<void> => {
      asked += 1;
      // Long after the disk has written a piece.
      return sleep(asked % 16 === 0 ? 20 : 0).then(() => {
        isGranted = true;
      });
    };
    const early: number[] = [];
    const onActivity = (sign: Sign): void => {
      if (sign === 'paused') isGranted = false;
      if (sign === 'resumed' && !isGranted) early.push(asked);
    };
    const more = { spoolPath, spoolAboveBytes: 1 };
    const fetch = wire({ bandwidth: { take } });
    const response = await fetch({ url, bucket: 'archive', ...more }, { ...context(), onActivity });
    expect(response.sha256).toBe(answer(LARGE).sha256);
    expect(early).toEqual([]);
  });

  const BODY = 'x'.repeat(100 * 1024);
  const [CHUNKED, CLOSE] = ['Transfer-Encoding: chunked', 'Connection: close'];
  const IN_CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
  it.each<[string, Buffer | string]>([
    ['of a known length', httpAnswer(200, BODY)],
    ['of a known length, with Connection: close', httpAnswer(200, BODY, [CLOSE])],
    ['in chunks', httpAnswer(200, IN_CHUNKS, [CHUNKED])],
    ['in chunks, with Connection: close', httpAnswer(200, IN_CHUNKS, [CHUNKED, CLOSE])],
    ['up to the end of the connection', `HTTP/1.1 200 OK\r\n\r\n${BODY}`],
  ])(
    'waits for bandwidth after a whole body %s, though the server closes the connection',
    async (_, whole) => {
      const signs: Sign[] = [];
      const { url, sockets } = await wireServer((socket) => socket.end(whole));
      // Long after the end of the connection has arrived.
      const take = async (): Promise<void> => {
        while (sockets[0]?.writableFinished !== true) await sleep(1);
        await sleep(30);
      };
      const fetch = wire({ bandwidth: { take } });
      const onActivity = (sign: Sign): void => void signs.push(sign);
      const response = await fetch({ url, bucket: 'archive' }, { ...context(), onActivity });
      expect(response.sha256).toBe(answer(BODY).sha256);
      const waits = signs.filter((sign) => sign === 'paused' || sign === 'resumed');
      expect(waits.join(' ')).toMatch(/^(paused resumed ?)+$/);
      expect(signs.at(-1)).toBe('resumed');
    },
  );

  it('allows exactly as many bytes as allowed', async () => {
    const { url } = await wireServer(answering(200, 'x'.repeat(2000)));
    expect((await transport()(url, { maxBytes: 2000 })).status).toBe(200);
  });
});

describe('transport, when it is aborted', () => {
  const interrupted = new CryptodlError('interrupted', 'ended by SIGINT');

  const frozen = Object.freeze(new Error('of a caller'));

  it.each([
    ['before the headers', '', frozen],
    ['within the body', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', interrupted],
  ])('fails with this reason and closes the socket, as the server sees, %s', async (_, bytes, reason) => {
    const stop = new AbortController();
    let progress = (): void => undefined;
    const underWay = new Promise<void>((resolve) => {
      progress = resolve;
    });
    const { url, sockets } = await wireServer((socket) => {
      if (bytes === '') progress();
      else socket.write(bytes);
    });
    const onActivity = (what: string): void => {
      if (what === 'bytes') progress();
    };
    const response = transport()(url, {}, { ...context(stop.signal), onActivity });
    response.catch(() => undefined);
    await underWay;
    stop.abort(reason);
    await expect(response).rejects.toBe(reason);
    await gone(sockets[0]);
  });

  it('fails with the reason when the whole body has just got its share of the bandwidth', async () => {
    const stop = new AbortController();
    const { url } = await wireServer(answering(200, 'x'));
    const take = async (): Promise<void> => {
      await sleep(1);
      stop.abort(interrupted);
    };
    const ended = wire({ bandwidth: { take } })({ url, bucket: 'archive' }, context(stop.signal));
    expect(await refusal(ended)).toBe(interrupted);
  });

  it('never sends a request that was aborted while it waited for a socket', async () => {
    const stop = new AbortController();
    const { url, heads, sockets } = await wireServer((socket) => {
      if (heads.length > 1) socket.write(httpAnswer(200, 'x'));
    });
    const fetch = transport(1);
    const first = fetch(`${url}/first`);
    const waiting = refusal(fetch(`${url}/waiting`, {}, context(stop.signal)));
    const last = fetch(`${url}/last`);
    while (heads.length === 0) await new Promise((resolve) => setImmediate(resolve));
    stop.abort(interrupted);
    expect(await waiting).toBe(interrupted);
    sockets[0]?.write(httpAnswer(200, 'x'));
    await Promise.all([first, last]);
    expect(heads.map((head) => head.split(' ')[1])).toEqual(['/first', '/last']);
  });

  it('sends nothing when it is aborted while it reads the file of an earlier attempt', async () => {
    const stop = new AbortController();
    const { url, heads } = await wireServer(answering(200, 'x'));
    const fetch = transport(1);
    const spoolPath = join(folder, 'left.zip');
    writeFileSync(spoolPath, LARGE);
    const partial = { bytes: LARGE.length, etag: '"e"' };
    const ended = refusal(fetch(`${url}/left`, { spoolPath, partial }, context(stop.signal)));
    stop.abort(interrupted);
    expect(await ended).toBe(interrupted);
    await fetch(`${url}/next`);
    expect(heads.map((head) => head.split(' ')[1])).toEqual(['/next']);
  });

  it('sends nothing when it is aborted already', async () => {
    const { url, heads } = await wireServer(answering(200, 'x'));
    const fetch = transport(1);
    const path = `/${randomUUID()}`;
    expect(await refusal(fetch(url + path, {}, context(AbortSignal.abort(interrupted))))).toBe(interrupted);
    await fetch(`${url}/next`);
    expect(heads.map((head) => head.split(' ')[1])).toEqual(['/next']);
  });
});

/** The server has seen the connection end. */
async function gone(socket: Socket | undefined): Promise<void> {
  expect(socket).toBeDefined();
  if (socket === undefined || socket.destroyed) return;
  // Not events.once: a reset is as good an end as any.
  await new Promise((resolve) => socket.once('close', resolve));
}
