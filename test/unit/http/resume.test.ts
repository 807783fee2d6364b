/** The rest of a body that was cut, over a real socket: `Range` and `If-Range` (RFC 9110, sections 13.1.5 and 14). */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/model/clock.js';
import type { Fetch, FetchRequest } from '../../../src/model/fetch.js';
import { retryLayer } from '../../../src/http/retry/retry.js';
import { Sink } from '../../../src/http/transport/sink.js';
import { verifyLayer } from '../../../src/http/transport/verify-body.js';
import { openFiles, scratchFolder } from '../../helpers/folders.js';
import { randoms } from '../../helpers/randoms.js';
import { answer, context, refusal } from '../../helpers/requests.js';
import { sized } from '../../helpers/tier-size.js';
import { wire } from '../../helpers/wire.js';
import { httpAnswer, wireServer } from '../../helpers/wire-server.js';

const folder = scratchFolder();
const MIB = 1024 * 1024;
const ETAG = '"one"';

/** Every piece different, so that a lost, doubled or swapped one shows. */
function bytesOf(seed: number, length: number): Buffer {
  const random = randoms(seed);
  const words = Buffer.alloc(Math.ceil(length / 4) * 4);
  for (let at = 0; at < words.length; at += 4) words.writeUInt32LE(Math.floor(random() * 2 ** 32), at);
  return words.subarray(0, length);
}

const WHOLE = bytesOf(1, 4 * MIB + 123);

interface Asked {
  /** First byte that was asked for; undefined: the whole. */
  readonly from: number | undefined;
  readonly etag: string | undefined;
}

type Answering = (socket: Socket, asked: Asked, time: number) => void;

/** Answers with what `act` does, and writes down what was asked for. */
async function rangeServer(act: Answering) {
  const asked: Asked[] = [];
  const server = await wireServer((socket) => {
    const head = server.heads.at(-1) ?? '';
    const from = /^range: bytes=(\d+)-$/im.exec(head)?.[1];
    asked.push({
      from: from === undefined ? undefined : Number(from),
      etag: /^if-range: (.*)$/im.exec(head)?.[1],
    });
    act(socket, asked.at(-1) ?? { from: undefined, etag: undefined }, asked.length);
  });
  return { url: server.url, asked };
}

interface Part {
  readonly from: number;
  readonly etag?: string;
  /** Empty for none. */
  readonly range?: string;
  readonly status?: number;
}

/** An honest 206, but for what the test says. */
function partOf(body: Buffer, { from, etag = ETAG, range, status = 206 }: Part): Buffer {
  const whole = `bytes ${from}-${body.length - 1}/${body.length}`;
  const headers = [`Content-Range: ${range ?? whole}`, `ETag: ${etag}`].filter(
    (line) => !line.endsWith(': '),
  );
  return httpAnswer(status, body.subarray(from), headers);
}

const wholeOf = (body: Buffer, etag = ETAG): Buffer => httpAnswer(200, body, [`ETag: ${etag}`]);

/** So much of an answer, then nothing more. */
function cut(socket: Socket, bytes: Buffer, length: number): void {
  socket.end(bytes.subarray(0, length));
}

function request(url: string, more: Partial<FetchRequest> = {}): FetchRequest & { spoolPath: string } {
  return { url, bucket: 'archive', spoolPath: join(folder, randomUUID()), spoolAboveBytes: MIB, ...more };
}

/** The one retry layer over the wire, without delays. */
function retried(next: Fetch = wire(), retries = 30): Fetch {
  const backoff = { retryStrategy: 'fixed', retryDelayMs: 0, retryFactor: 1, retryMaxDelayMs: 0 } as const;
  return retryLayer({ clock: systemClock, ...backoff, retries, maxWaitMs: 60_000 })(next);
}

async function expectWhole(fetch: Fetch, asked: FetchRequest & { spoolPath: string }, body = WHOLE) {
  const response = await fetch(asked, context());
  expect(response).toMatchObject({ status: 200, sha256: answer(body).sha256 });
  expect(response.body).toEqual({ kind: 'file', path: asked.spoolPath, size: body.length });
  expect(readFileSync(asked.spoolPath).equals(body)).toBe(true);
  return response;
}

describe('the rest of a body that was cut', () => {
  it('goes on from the other object when that is cut too', async () => {
    const other = bytesOf(2, 3 * MIB);
    const { url, asked } = await rangeServer((socket, { from = 0 }, time) => {
      if (time === 1) cut(socket, wholeOf(WHOLE), 3.5 * MIB);
      else if (time === 2) cut(socket, wholeOf(other, '"two"'), 1.5 * MIB);
      else socket.write(partOf(other, { from, etag: '"two"' }));
    });
    await expectWhole(retried(), request(url), other);
    expect(asked.map(({ etag }) => etag)).toEqual([undefined, ETAG, '"two"']);
  });

  const END = `${WHOLE.length - 1}/${WHOLE.length}`;
  it.each<[string, (from: number) => Partial<Part>]>([
    ['an unknown length', (from) => ({ range: `bytes ${from}-${WHOLE.length - 1}/*` })],
    ['another unit', (from) => ({ range: `lines ${from}-9/10` })],
    ['a range behind a word', (from) => ({ range: `x bytes ${from}-${END}` })],
    ['two ranges', (from) => ({ range: `bytes ${from}-${END}, bytes 0-9/10` })],
    ['a weak ETag', () => ({ etag: `W/${ETAG}` })],
    ['no ETag', () => ({ etag: '' })],
    ['an ETag, but another status: 416', () => ({ status: 416 })],
  ])('is never spliced from an answer with %s: the next attempt asks for the whole', async (_, lie) => {
    const { url, asked } = await rangeServer((socket, { from }, time) => {
      if (time === 1) cut(socket, wholeOf(WHOLE), 2 * MIB);
      else socket.write(from === undefined ? wholeOf(WHOLE) : partOf(WHOLE, { from, ...lie(from) }));
    });
    await expectWhole(retried(), request(url));
    expect(asked.map(({ from }) => from !== undefined)).toEqual([false, true, false]);
  });

  it.each([
    [`bytes 5-9/11`, ETAG, 'Content-Range "bytes 5-9/11" to a request for the rest from byte 5 on'],
    ['bytes 5-9/10', '"two"', 'for "two" to a request for "one"'],
    ['bytes 5-9/10', '', 'for no ETag to a request for "one"'],
  ])('a refusal of a 206 names its fault: %s of %s', async (range, etag, said) => {
    const { url } = await rangeServer((socket) => {
      socket.write(partOf(WHOLE.subarray(0, 10), { from: 5, etag, range }));
    });
    const asked = request(url, { partial: { bytes: 5, etag: ETAG } });
    writeFileSync(asked.spoolPath, WHOLE.subarray(0, 5));
    expect((await refusal(wire()(asked, context()))).message).toContain(said);
  });

  it.each<[string, (socket: Socket) => void]>([
    ['503', (socket) => void socket.write(httpAnswer(503, 'SlowDown'))],
    ['429', (socket) => void socket.write(httpAnswer(429, ''))],
    ['a page of a firewall', (socket) => void socket.write(httpAnswer(403, '<html>no</html>'))],
    ['a connection that ends before the headers', (socket) => void socket.end()],
    ['a reset', (socket) => void socket.resetAndDestroy()],
  ])('the received part survives %s in between', async (_, act) => {
    const { url, asked } = await rangeServer((socket, { from }, time) => {
      if (time === 1) cut(socket, wholeOf(WHOLE), 2 * MIB);
      else if (time < 4) act(socket);
      else socket.write(from === undefined ? wholeOf(WHOLE) : partOf(WHOLE, { from }));
    });
    await expectWhole(retried(), request(url));
    const [, second, ...rest] = asked;
    expect(second?.from).toBeGreaterThan(MIB);
    expect(rest).toEqual([second, second]);
  });

  it.each(['', `W/${ETAG}`, 'one', '""', `${ETAG}, "two"`])(
    'is not asked for when the ETag %j promises nothing about bytes',
    async (etag) => {
      const headers = etag === '' ? [] : [`ETag: ${etag}`];
      const { url, asked } = await rangeServer((socket, _, time) => {
        const bytes = httpAnswer(200, WHOLE, headers);
        if (time === 1) cut(socket, bytes, 2 * MIB);
        else socket.write(bytes);
      });
      await expectWhole(retried(), request(url));
      expect(asked[1]?.from).toBeUndefined();
    },
  );

  it('is not asked for when it was small enough for the memory, or has no file', async () => {
    const { url, asked } = await rangeServer((socket, _, time) => {
      if (time % 2 === 1) cut(socket, wholeOf(WHOLE), 0.9 * MIB);
      else socket.write(wholeOf(WHOLE));
    });
    const small = request(url);
    await retried()({ ...small, spoolAboveBytes: 8 * MIB }, context());
    expect(existsSync(small.spoolPath)).toBe(false);
    await expectWhole(retried(), request(url));
    await retried()({ url, bucket: 'archive' }, context());
    expect(asked).toHaveLength(6);
    expect(asked.every(({ from }) => from === undefined)).toBe(true);
  });
});

describe('a spool file that has changed', () => {
  /** A file with the first bytes of the whole, as an earlier attempt left it. */
  function kept(url: string, bytes: number): FetchRequest & { spoolPath: string } {
    const asked = request(url, { partial: { bytes, etag: ETAG } });
    writeFileSync(asked.spoolPath, WHOLE.subarray(0, bytes));
    return asked;
  }

  const honest: Answering = (socket, { from }) =>
    void socket.write(from === undefined ? wholeOf(WHOLE) : partOf(WHOLE, { from }));

  it.each([
    ['was made shorter behind our back', 2 * MIB - 1],
    ['is gone', undefined],
  ])('is fetched from the beginning when it %s', async (_, bytesLeft) => {
    const { url, asked } = await rangeServer(honest);
    const changed = kept(url, 2 * MIB);
    if (bytesLeft === undefined) rmSync(changed.spoolPath);
    else truncateSync(changed.spoolPath, bytesLeft);
    await expectWhole(wire(), changed);
    expect(asked).toEqual([{ from: undefined, etag: undefined }]);
    if (process.platform === 'linux') expect(openFiles(folder)).toEqual([]);
  });

  it('is not taken for the beginning of a rest that comes unasked', async () => {
    const { url, asked } = await rangeServer((socket) => void socket.write(partOf(WHOLE, { from: 2 * MIB })));
    const gone = request(url, { partial: { bytes: 2 * MIB, etag: ETAG } });
    const error = await refusal(wire()(gone, context()));
    expect([error.code, error.message, error.partial]).toEqual([
      'http-protocol',
      `${new URL(url).host} answered 206 to a request for the whole body`,
      undefined,
    ]);
    expect(asked).toEqual([{ from: undefined, etag: undefined }]);
  });

  it('loses the bytes behind the kept ones', async () => {
    const { url, asked } = await rangeServer(honest);
    const longer = kept(url, 2 * MIB);
    writeFileSync(longer.spoolPath, Buffer.concat([WHOLE.subarray(0, 2 * MIB), Buffer.alloc(4 * MIB)]));
    await expectWhole(wire(), longer);
    expect(statSync(longer.spoolPath).size).toBe(WHOLE.length);
    expect(asked).toEqual([{ from: 2 * MIB, etag: ETAG }]);
  });

  it('is told by the digest when its bytes were changed, and fetched from the beginning', async () => {
    const { url, asked } = await rangeServer((socket, { from }, time) => {
      if (time === 1) cut(socket, wholeOf(WHOLE), 2 * MIB);
      else socket.write(from === undefined ? wholeOf(WHOLE) : partOf(WHOLE, { from }));
    });
    const sha256 = (): Promise<string> => Promise.resolve(answer(WHOLE).sha256);
    const changed = request(url, { expect: { sha256 } });
    const next = wire();
    const tampering: Fetch = (inner, how) => {
      if (inner.partial !== undefined) {
        const bytes = readFileSync(changed.spoolPath);
        bytes[5] = (bytes[5] ?? 0) ^ 1;
        writeFileSync(changed.spoolPath, bytes);
      }
      return next(inner, how);
    };
    await expectWhole(retried(verifyLayer(tampering)), changed);
    expect(asked.map(({ from }) => from !== undefined)).toEqual([false, true, false]);
  });
});

/** What a host does with one request. */
const HAPPENINGS = [
  'cut',
  'reset',
  'silent',
  '503',
  '416',
  'whole',
  'elsewhere',
  'weak',
  'replaced',
] as const;

describe('however often and wherever it is cut', () => {
  it('the file holds exactly the bytes of the object as it was when it came to its end', async () => {
    const happening = fc.record({
      what: fc.constantFrom(...HAPPENINGS),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(happening, { maxLength: 8 }),
        fc.integer({ min: 1, max: 3 * MIB }),
        async (happenings, length) => {
          let version = 1;
          const current = (): Buffer => bytesOf(version, length);
          const { url } = await rangeServer((socket, { from, etag }, time) => {
            const { what = 'none', share = 1 } = happenings[time - 1] ?? {};
            if (what === 'replaced') version += 1;
            const body = current();
            const isKnown = from !== undefined && from < length && etag === `"${version}"`;
            const honest = isKnown
              ? partOf(body, { from, etag: `"${version}"` })
              : wholeOf(body, `"${version}"`);
            if (what === '503') socket.write(httpAnswer(503, ''));
            else if (what === '416') socket.write(httpAnswer(416, ''));
            else if (what === 'silent') socket.end();
            else if (what === 'whole') cut(socket, wholeOf(body, `"${version}"`), share * length);
            else if (what === 'elsewhere' && isKnown)
              socket.write(partOf(body, { from: Math.floor(from * share), etag: `"${version}"` }));
            else if (what === 'weak') cut(socket, wholeOf(body, `W/"${version}"`), share * length);
            else if (what === 'none') socket.write(honest);
            else
              socket.write(honest.subarray(0, share * honest.length), () => {
                if (what === 'reset') setImmediate(() => socket.resetAndDestroy());
                else socket.end();
              });
          });
          const asked = request(url, { spoolAboveBytes: 1 });
          const response = await retried()(asked, context());
          const { body } = response;
          const bytes = body.kind === 'memory' ? body.bytes : readFileSync(body.path);
          expect(response.sha256).toBe(answer(current()).sha256);
          expect(bytes.equals(current())).toBe(true);
        },
      ),
      { numRuns: sized(40, 8) },
    );
  });

  it('a sink that is let go and resumed at any point has the digest of the whole', async () => {
    const pieces = fc.array(fc.integer({ min: 1, max: MIB }), { minLength: 2, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(
        pieces,
        fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
        async (lengths, cuts) => {
          const spoolPath = join(folder, randomUUID());
          const options = { spoolPath, spoolAboveBytes: 1 };
          const chunks: Buffer[] = [];
          let sink = new Sink(options);
          let at = 0;
          for (const [index, length] of lengths.entries()) {
            const chunk = WHOLE.subarray(at % MIB, (at % MIB) + length);
            chunks.push(chunk);
            await sink.write(chunk);
            at += length;
            if (cuts[index] !== true) continue;
            const kept = await sink.discard();
            expect([0, at]).toContain(kept);
            // Too little for the file: only the memory had it.
            if (kept === 0) return;
            sink = (await Sink.resume(options, kept)) ?? new Sink(options);
            expect(sink.size).toBe(at);
          }
          const { sha256, body } = await sink.end();
          const bytes = body.kind === 'memory' ? body.bytes : readFileSync(body.path);
          expect(bytes.equals(Buffer.concat(chunks))).toBe(true);
          expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
        },
      ),
      { numRuns: 40 },
    );
  });
});
