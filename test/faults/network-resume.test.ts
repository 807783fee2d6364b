/** N4, N17: a body that is too large for the memory and is cut is gone on from, or begun anew, never patched together. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { makeArchive, makeCsv } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { fault, sayRaw } from '../helpers/faults.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';

const PREFIX = 'data/spot/daily/aggTrades/BTCUSDT';
const DAY = '2026-10-02';
const LARGE = `${PREFIX}/BTCUSDT-aggTrades-${DAY}.zip`;
const MIB = 1024 * 1024;

describe('N: a large body that is cut', () => {
  const scratch = scratchFolder();
  const folder = join(scratch, 'archive');
  let archive: TestArchive;
  let object: Buffer;
  let asked: IncomingHttpHeaders[] = [];
  let runs = 0;
  beforeAll(async () => {
    const spec = { market: 'spot', dataset: 'aggTrades', cadence: 'daily' } as const;
    makeArchive(folder, { ...spec, symbols: ['BTCUSDT'], from: '2026-10-01', to: '2026-10-03' });
    object = publish(1);
    archive = await startArchive(folder);
  });
  afterAll(() => archive.close());
  afterEach(() => {
    archive.fault = undefined;
  });

  /** Rows that are stored, not deflated: more than the 8 MiB above which bodies are spooled. */
  function publish(seed: number): Buffer {
    const spec = { market: 'spot', dataset: 'aggTrades', symbol: 'BTCUSDT', period: DAY } as const;
    const { csv } = makeCsv({ ...spec, rowsPerDay: 190_000, seed });
    const bytes = makeZip([{ name: `BTCUSDT-aggTrades-${DAY}.csv`, data: csv, method: 0 }]);
    const file = join(folder, LARGE);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes);
    const digest = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(`${file}.CHECKSUM`, `${digest}  BTCUSDT-aggTrades-${DAY}.zip\n`);
    return bytes;
  }

  type Act = (request: IncomingMessage, response: ServerResponse, time: number) => boolean;

  /** The archive's own files, so that what arrived can be compared byte for byte. */
  async function run(act: Act): Promise<CliResult & { out: string; causes: unknown[] }> {
    asked = [];
    archive.fault = (path, request, response) => {
      if (path !== `/${LARGE}`) return false;
      asked.push({ ...request.headers });
      return act(request, response, asked.length);
    };
    runs += 1;
    const out = join(scratch, `lake-${runs}`);
    const what = ['vision', '--market', 'spot', '--dataset', 'aggTrades', '--symbols', 'BTCUSDT'];
    const range = ['--from', '2026-10-01', '--to', '2026-10-03', '--format', 'zip'];
    const where = ['--archive-url', archive.url, '--out', out, '--json'];
    const result = await cryptodl([...what, ...range, ...where, ...FAST]);
    const retries = result.events.filter(({ event }) => event === 'retry');
    return { ...result, out, causes: retries.map((event) => event['original_error']) };
  }

  /** Sends so much of the object, from `from` on, under this head; an end loses nothing on its way, a reset might. */
  function cut(response: ServerResponse, head: readonly string[], from: number, to: number): void {
    sayRaw(
      response,
      Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), object.subarray(from, to)]),
      'end',
    );
  }
  const etagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`;
  const whole = (...more: readonly string[]): string[] => [
    'HTTP/1.1 200 OK',
    `Content-Length: ${object.length}`,
    `ETag: ${etagOf(object)}`,
    ...more,
  ];

  function expectPublished(out: string): void {
    for (const path of filesBelow(join(folder, 'data'), '.zip'))
      expect(readFileSync(join(out, 'data', path)).equals(readFileSync(join(folder, 'data', path)))).toBe(
        true,
      );
    expect(filesBelow(out).filter((path) => /\.partial|staged|tmp/.test(path))).toEqual([]);
  }
  const rangeOf = (headers: IncomingHttpHeaders | undefined): number =>
    Number(/^bytes=(\d+)-$/.exec(headers?.range ?? '')?.[1] ?? Number.NaN);

  fault(
    {
      id: 'N4',
      fault: 'end of the connection within a large body, once',
      outcome: 'only the rest is requested, ok',
      exit: 0,
    },
    async (exit) => {
      const result = await run((_request, response, time) => {
        if (time === 1) cut(response, whole(), 0, 10 * MIB);
        return time === 1;
      });
      expect(result.code).toBe(exit);
      expect(result.causes).toEqual(['connection-lost']);
      expect(asked).toHaveLength(2);
      expect(asked[0]?.range).toBeUndefined();
      expect(rangeOf(asked[1])).toBeGreaterThan(8 * MIB);
      expect(asked[1]?.['if-range']).toBe(etagOf(object));
      expectPublished(result.out);
    },
  );

  fault(
    {
      id: 'N4',
      fault: 'end of the connection within a large body and twice within its rest',
      outcome: 'only the rest is requested each time, ok',
      exit: 0,
    },
    async (exit) => {
      const result = await run((_request, response, time) => {
        const from = rangeOf(asked.at(-1));
        const part = [
          'HTTP/1.1 206 Partial Content',
          `Content-Range: bytes ${from}-${object.length - 1}/${object.length}`,
          `Content-Length: ${object.length - from}`,
          `ETag: ${etagOf(object)}`,
        ];
        if (time === 1) cut(response, whole(), 0, 9 * MIB);
        if (time === 2 || time === 3) cut(response, part, from, from + MIB / 2);
        return time <= 3;
      });
      expect(result.code).toBe(exit);
      expect(result.causes.every((cause) => cause === 'connection-lost')).toBe(true);
      const [, ...positions] = asked.map(rangeOf);
      expect(positions).toEqual([...positions].sort((a, b) => a - b));
      expectPublished(result.out);
    },
  );

  fault(
    {
      id: 'N4',
      fault: 'end of the connection within a large body with a weak ETag',
      outcome: 'the whole object is requested again, ok',
      exit: 0,
    },
    async (exit) => {
      const weak = whole().map((line) => line.replace('ETag: ', 'ETag: W/'));
      const result = await run((_request, response, time) => {
        if (time === 1) cut(response, weak, 0, 10 * MIB);
        return time === 1;
      });
      expect(result.code).toBe(exit);
      expect(asked.map(({ range }) => range)).toEqual([undefined, undefined]);
      expectPublished(result.out);
    },
  );

  fault(
    {
      id: 'N17',
      fault: '200 with the whole object to a request for the rest',
      outcome: 'the object is taken from this answer, ok',
      exit: 0,
    },
    async (exit) => {
      const result = await run((request, response, time) => {
        if (time === 1) cut(response, whole(), 0, 10 * MIB);
        delete request.headers.range;
        return time === 1;
      });
      expect(result.code).toBe(exit);
      expect(result.causes).toEqual(['connection-lost']);
      expect(asked.map(rangeOf).map(Number.isNaN)).toEqual([true, false]);
      expectPublished(result.out);
    },
  );

  const WRONG: readonly [string, (from: number) => readonly string[]][] = [
    [
      'another Content-Range',
      (from) => [`Content-Range: bytes ${from + 1}-${object.length - 1}/${object.length}`],
    ],
    [
      'a Content-Range that ends early',
      (from) => [`Content-Range: bytes ${from}-${from + 99}/${object.length}`],
    ],
    ['no Content-Range', () => []],
    ['another ETag', (from) => [`Content-Range: bytes ${from}-${object.length - 1}/${object.length}`]],
  ];
  for (const [what, headersOf] of WRONG) {
    fault(
      {
        id: 'N17',
        fault: `206 with ${what} to a request for the rest`,
        outcome: 'refused with http-protocol and never appended to the first part, ok',
        exit: 0,
      },
      async (exit) => {
        const etag = what === 'another ETag' ? '"another"' : etagOf(object);
        const result = await run((_request, response, time) => {
          if (time === 1) cut(response, whole(), 0, 10 * MIB);
          if (time !== 2) return time === 1;
          const from = rangeOf(asked.at(-1));
          const head = [
            'HTTP/1.1 206 Partial Content',
            `Content-Length: ${object.length - from}`,
            `ETag: ${etag}`,
            ...headersOf(from),
          ];
          sayRaw(
            response,
            Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), object.subarray(from)]),
          );
          return true;
        });
        expect(result.code).toBe(exit);
        expect(result.causes).toEqual(['connection-lost', 'http-protocol']);
        expect(asked).toHaveLength(3);
        expectPublished(result.out);
      },
    );
  }

  fault(
    {
      id: 'N17',
      fault: 'another object under the key when the rest is requested',
      outcome:
        'If-Range makes the server send the whole new object, which is checked against its new digest, ok',
      exit: 0,
    },
    async (exit) => {
      const result = await run((_request, response, time) => {
        if (time !== 1) return false;
        cut(response, whole(), 0, 10 * MIB);
        object = publish(2);
        return true;
      });
      expect(result.code).toBe(exit);
      expect(asked[1]?.['if-range']).not.toBe(etagOf(object));
      expectPublished(result.out);
    },
  );

  fault(
    {
      id: 'N17',
      fault: '416 to a request for the rest',
      outcome: 'the whole object is requested again, ok',
      exit: 0,
    },
    async (exit) => {
      const result = await run((_request, response, time) => {
        if (time === 1) cut(response, whole(), 0, 10 * MIB);
        if (time === 2) response.writeHead(416, { 'content-range': `bytes */${object.length}` }).end();
        return time <= 2;
      });
      expect(result.code).toBe(exit);
      expect(asked.map(rangeOf).map(Number.isNaN)).toEqual([true, false, true]);
      expectPublished(result.out);
    },
  );
});
