import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { FAST, argv, cryptodl } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { expectIntact, fault, faultScene, keyOf, OBJECTS, VICTIM } from '../helpers/faults.js';
import type { FaultRun, FaultScene } from '../helpers/faults.js';
import { filesBelow, leftInternally, readParquet } from '../helpers/lake.js';
import { memberOf, publish, publishZip } from '../helpers/published.js';
import type { SidecarOf } from '../helpers/published.js';
import { firstMember } from '../helpers/samples.js';

const MEMBER = memberOf(VICTIM);
const SIDECAR = `${VICTIM}.CHECKSUM`;
const WRONG_DIGEST = '0'.repeat(64);
const NO_SIDECAR: SidecarOf = () => null;

/** All ten keys, the victim first, then the symbols in turn, so that no series is without a sound object. */
const KEYS = [3, 1, 2, 4, 5].flatMap((day) =>
  ['BTCUSDT', 'ETHUSDT'].map((symbol) => keyOf(symbol, `2026-10-0${day}`)),
);

function zipOf(key: string, csv: Buffer | string): Buffer {
  return makeZip([{ name: memberOf(key), data: csv }]);
}

function reportOf(out: string): string {
  return join(out, '_failures', filesBelow(join(out, '_failures'))[0] ?? '');
}

/** Once the archive is whole again, the failure report is all that it takes. */
async function expectRetryCompletes(scene: FaultScene, out: string): Promise<void> {
  scene.archive().fault = undefined;
  const retried = await cryptodl(['retry', reportOf(out), '--json', ...FAST]);
  expect(retried.stderr).not.toContain('failed');
  expect(retried.code).toBe(0);
  await expectIntact(scene, { out });
}

interface Refusal {
  readonly exit: number;
  readonly code: string;
  readonly cause: RegExp;
}

/** The victim alone failed, and its bytes are kept with what is wrong with them. */
async function expectRefused(scene: FaultScene, run: FaultRun, zip: Buffer, refusal: Refusal): Promise<void> {
  expect(run.code).toBe(refusal.exit);
  expect(run.summary).toMatchObject({
    outcomes: { ok: 9, failed: 1 },
    failed: { [refusal.code]: 1 },
    undone: 0,
  });
  expect(run.stderr).toContain(VICTIM);
  const kept = join(run.out, '_quarantine', VICTIM);
  expect(readFileSync(kept).equals(zip)).toBe(true);
  expect(readFileSync(`${kept}.cause`, 'utf8')).toMatch(refusal.cause);
  await expectIntact(scene, run, 'victim');
}

interface WrongObject {
  readonly what: string;
  readonly zip: (key: string) => Buffer;
  /** Code and message, as the quarantine has them. */
  readonly refusal: RegExp;
}

/** One object of ten is wrong in each of these ways; their checksums are right. */
function refusals(scene: FaultScene, id: string, objects: readonly WrongObject[]): void {
  const keys = KEYS.slice(0, objects.length);
  const codes = objects.map(({ refusal }) => /^\^([a-z-]+)/.exec(refusal.source)?.[1] ?? '');
  const outcome = `failed permanently with ${[...new Set(codes)].join(', ')}, kept in the quarantine, the others arrive; retry completes it`;
  fault({ id, fault: objects.map(({ what }) => what).join('; '), outcome, exit: 4 }, async (exit) => {
    const zips = objects.map(({ zip }, index) => zip(keys[index] ?? ''));
    for (const [index, zip] of zips.entries()) scene.publish(keys[index] ?? '', zip);
    const run = await scene.runTo(exit);
    const failed: Record<string, number> = {};
    for (const code of codes) failed[code] = (failed[code] ?? 0) + 1;
    expect(run.summary).toMatchObject({
      outcomes: { ok: OBJECTS - keys.length, failed: keys.length },
      failed,
      undone: 0,
    });
    for (const [index, key] of keys.entries()) {
      const kept = join(run.out, '_quarantine', key);
      expect(readFileSync(`${kept}.cause`, 'utf8')).toMatch(objects[index]?.refusal ?? /$^/);
      expect(readFileSync(kept).equals(zips[index] ?? Buffer.alloc(0))).toBe(true);
      expect(run.requestsOf(key)).toBe(1);
    }
    await expectIntact(scene, run, keys);
    await expectRetryCompletes(scene, run.out);
  });
}

describe('D: checksums and zips', () => {
  const scene = faultScene();

  fault(
    {
      id: 'D1',
      fault: 'a checksum that is wrong once',
      outcome: 'zip and sidecar requested again, ok',
      exit: 0,
    },
    async (exit) => {
      scene.once(SIDECAR, (response) => {
        response.end(`${WRONG_DIGEST}  ${basename(VICTIM)}\n`);
      });
      const run = await scene.runTo(exit);
      expect([run.requestsOf(VICTIM), run.requestsOf(SIDECAR)]).toEqual([2, 2]);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'D1',
      fault: 'a checksum that stays wrong',
      outcome:
        'requested three times, failed with sidecar-stale (size and ETag are right), kept with both digests; retry completes it',
      exit: 3,
    },
    async (exit) => {
      const zip = scene.bytesOf(VICTIM);
      scene.publish(VICTIM, zip, (_, name) => `${WRONG_DIGEST}  ${name}\n`);
      const run = await scene.run();
      expect([run.requestsOf(VICTIM), run.requestsOf(SIDECAR)]).toEqual([3, 3]);
      const cause =
        /^sidecar-stale: SHA-256 is [0-9a-f]{64}, the sidecar says 0{64}, but size and ETag are right \(--stale-checksum warn accepts it\)\n$/;
      await expectRefused(scene, run, zip, { exit, code: 'sidecar-stale', cause });
      await expectRetryCompletes(scene, run.out);
    },
  );

  fault(
    {
      id: 'D2',
      fault: 'sidecars that are a web page, a short digest, of another file, two lines, empty',
      outcome: 'requested once more bypassing caches, then the MD5 of the listing decides',
      exit: 0,
    },
    async (exit) => {
      const malformed: SidecarOf[] = [
        () => '<html>404</html>\n',
        (digest, name) => `${digest.slice(0, 40)}  ${name}\n`,
        (digest) => `${digest}  OTHER-metrics-2026-10-03.zip\n`,
        (digest, name) => `${digest}  ${name}\n${WRONG_DIGEST}  other.zip\n`,
        () => '',
      ];
      for (const [index, sidecar] of malformed.entries()) {
        const key = KEYS[index] ?? '';
        scene.publish(key, scene.bytesOf(key), sidecar);
      }
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, unverified: 0 });
      expect([run.requestsOf(VICTIM), run.requestsOf(SIDECAR)]).toEqual([1, 2]);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'D2',
      fault: 'sidecars in upper case, with CRLF, with the star of a binary sum, without a line end',
      outcome: 'read and obeyed',
      exit: 0,
    },
    async (exit) => {
      const spellings: SidecarOf[] = [
        (digest, name) => `${digest.toUpperCase()}  ${name}\n`,
        (digest, name) => `${digest}  ${name}\r\n`,
        (digest, name) => `${digest} *${name}\n`,
        (digest, name) => `${digest}  ${name}`,
      ];
      for (const [index, sidecar] of spellings.entries()) {
        const key = KEYS[index] ?? '';
        scene.publish(key, scene.bytesOf(key), sidecar);
      }
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, unverified: 0, retries: 0 });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'D3',
      fault: 'one bit flipped on the way, at another place of every object',
      outcome: 'each damaged object is noticed by its digest and requested again, ok',
      exit: 0,
    },
    async (exit) => {
      const flipped = new Set<string>();
      scene.archive().fault = (path, _request, response) => {
        const index = KEYS.indexOf(path.slice(1));
        if (index < 0 || flipped.has(path)) return false;
        flipped.add(path);
        response.end(withFlippedBit(scene.bytesOf(path.slice(1)), index / (KEYS.length - 1)));
        return true;
      };
      const run = await scene.runTo(exit);
      expect(KEYS.map((key) => run.requestsOf(key))).toEqual(KEYS.map(() => 2));
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'D3',
      fault: 'one bit of the data flipped where no checksum is published',
      outcome:
        'noticed by the MD5 of the listing, requested again in three rounds, failed with body-damaged; retry completes it',
      exit: 3,
    },
    async (exit) => {
      const flipped = withFlippedBit(scene.bytesOf(VICTIM), 0.5);
      scene.publish(VICTIM, flipped, NO_SIDECAR);
      const run = await scene.run();
      expect(run.requestsOf(VICTIM)).toBe(12);
      await expectRefused(scene, run, flipped, { exit, code: 'body-damaged', cause: /^body-damaged: / });
      await expectRetryCompletes(scene, run.out);
    },
  );

  fault(
    {
      id: 'D3',
      fault: 'one bit flipped with --verify etag',
      outcome: 'noticed by the MD5 of the listing, requested again in three rounds, failed with body-damaged',
      exit: 3,
    },
    async (exit) => {
      const flipped = withFlippedBit(scene.bytesOf(VICTIM), 0.5);
      scene.publish(VICTIM, flipped, NO_SIDECAR);
      const run = await scene.run(['--verify', 'etag']);
      expect([run.requestsOf(VICTIM), run.requestsOf(SIDECAR)]).toEqual([12, 0]);
      const cause =
        /^body-damaged: MD5 is [0-9a-f]{32}, the listing's ETag says [0-9a-f]{32}; it is not the listed object\n$/;
      await expectRefused(scene, run, flipped, { exit, code: 'body-damaged', cause });
    },
  );

  fault(
    {
      id: 'D4',
      fault: 'a zip that is cut short with a matching Content-Length',
      outcome: 'requested three times, failed with zip-truncated; retry completes it',
      exit: 3,
    },
    async (exit) => {
      const cut = scene.bytesOf(VICTIM).subarray(0, 5000);
      scene.answer(VICTIM, 200, {}, cut);
      const run = await scene.run();
      expect(run.requestsOf(VICTIM)).toBe(3);
      const cause = /^zip-truncated: SHA-256 is .*; the zip is cut, it has no end record\n$/;
      await expectRefused(scene, run, cut, { exit, code: 'zip-truncated', cause });
      await expectRetryCompletes(scene, run.out);
    },
  );

  fault(
    {
      id: 'D4',
      fault: 'an empty answer',
      outcome: 'attempted in every round, failed with not-a-zip; retry completes it',
      exit: 3,
    },
    async (exit) => {
      scene.answer(VICTIM, 200);
      const run = await scene.run();
      // Three attempts in each of four rounds.
      expect(run.requestsOf(VICTIM)).toBe(12);
      const empty = Buffer.alloc(0);
      await expectRefused(scene, run, empty, { exit, code: 'not-a-zip', cause: /^not-a-zip: / });
      await expectRetryCompletes(scene, run.out);
    },
  );

  refusals(scene, 'D4', [
    {
      what: 'a zip that was published without its end',
      zip: (key) => scene.bytesOf(key).subarray(0, 5000),
      refusal: /^zip-broken: .*end of central directory/i,
    },
    {
      what: 'bytes behind the end of a zip',
      zip: (key) => Buffer.concat([scene.bytesOf(key), Buffer.from('more')]),
      refusal: /^zip-broken: .*comment length/i,
    },
    {
      what: 'bytes behind a deflate stream',
      zip: (key) => {
        const { name, data } = memberIn(key);
        return makeZip([
          { name, data, compressed: Buffer.concat([deflateRawSync(data), Buffer.from('more')]) },
        ]);
      },
      refusal: /^zip-broken: 4 bytes follow the deflate stream/,
    },
  ]);

  refusals(scene, 'D5', [
    {
      what: 'a bomb: 256 MB behind a declared size of 1,000 bytes',
      zip: (key) => makeZip([{ name: memberOf(key), data: Buffer.alloc(256e6), both: { size: 1000 } }]),
      refusal: /^zip-bomb: the member unpacks to more than the 1000 bytes that the zip declares/,
    },
    {
      what: 'one that declares more than its stream can hold',
      zip: (key) => makeZip([{ ...memberIn(key), both: { size: 2 ** 31 } }]),
      refusal: /^zip-bomb: .*more than 100 to 1/,
    },
    {
      what: 'one row, a million times',
      zip: (key) =>
        makeZip([{ name: memberOf(key), data: '2026-10-03 00:05:00,BTCUSDT,1,2,3,4,5,6\n'.repeat(1e6) }]),
      refusal: /^zip-bomb: .*more than 100 to 1/,
    },
    {
      what: 'one that declares 4 PB',
      zip: (key) => makeZip([{ ...memberIn(key), zip64: true, both: { size: 2 ** 52 } }]),
      refusal: /^zip-bomb: .*the limit is/,
    },
  ]);

  refusals(scene, 'D6', [
    {
      what: 'the only member named ../../x',
      zip: () => makeZip([{ name: '../../x', data: 'x' }]),
      refusal: /^zip-broken: no member ".*\.csv" in the zip\n$/,
    },
    {
      what: 'the member named in other case',
      zip: (key) => makeZip([{ ...memberIn(key), name: memberOf(key).toLowerCase() }]),
      refusal: /^zip-broken: no member ".*\.csv" in the zip\n$/,
    },
  ]);

  refusals(scene, 'D7', [
    {
      what: 'an encrypted member',
      zip: (key) => makeZip([{ ...memberIn(key), encrypted: true }]),
      refusal: /^zip-unsupported: the member is encrypted/,
    },
    {
      what: 'one packed by method 93',
      zip: (key) => makeZip([{ ...memberIn(key), method: 93 }]),
      refusal: /^zip-unsupported: compression method 93; 0 and 8 are supported/,
    },
    {
      what: 'two of the one name',
      zip: (key) => makeZip([memberIn(key), memberIn(key)]),
      refusal: /^zip-broken: two members are named/,
    },
  ]);

  refusals(scene, 'D8', [
    {
      what: 'a local header that names another file than the directory',
      zip: (key) => makeZip([{ ...memberIn(key), local: { name: 'x' } }]),
      refusal: /^zip-broken: .*disagree about the name/,
    },
    {
      what: 'one that has another size',
      zip: (key) => makeZip([{ ...memberIn(key), local: { size: 7 } }]),
      refusal: /^zip-broken: .*disagree about the size/,
    },
  ]);

  fault(
    {
      id: 'D6',
      fault: 'members named ../../x, /etc/x, C:\\x, with a NUL, of 60,000 letters beside the right member',
      outcome: 'ignored: only the one member is read, nothing else is written; ok',
      exit: 0,
    },
    async (exit) => {
      const names = ['../../x', '/etc/cryptodl-x', 'C:\\x', 'x\0y', 'x'.repeat(60_000), MEMBER.toLowerCase()];
      const traps = names.map((name) => ({ name, data: 'x' }));
      const data = firstMember(scene.bytesOf(VICTIM));
      scene.publish(VICTIM, makeZip([...traps, { name: MEMBER, data }]));
      const run = await scene.runTo(exit);
      expect(run.requestsOf(VICTIM)).toBe(1);
      expect(visibleFiles(run.out)).toEqual(usualFiles);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'D7',
      fault: 'folders, other members, ZIP64, a data descriptor, a comment',
      outcome: 'read like any other, ok',
      exit: 0,
    },
    async (exit) => {
      const shapes: ((key: string) => Buffer)[] = [
        (key) => makeZip([{ name: 'data/', data: '', method: 0 }, memberIn(key)]),
        (key) => makeZip([{ name: 'readme.txt', data: 'x', method: 93 }, memberIn(key)]),
        (key) => makeZip([{ ...memberIn(key), zip64: true }], { zip64: true }),
        (key) => makeZip([{ ...memberIn(key), dataDescriptor: true }]),
        (key) => makeZip([{ ...memberIn(key), dataDescriptor: 'no-signature' }]),
        (key) => makeZip([memberIn(key)], { comment: 'published by somebody' }),
        (key) => makeZip([{ ...memberIn(key), method: 0 }]),
      ];
      for (const [index, shape] of shapes.entries())
        scene.publish(KEYS[index] ?? '', shape(KEYS[index] ?? ''));
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, retries: 0, unverified: 0 });
      await expectIntact(scene, run);
    },
  );

  function memberIn(key: string): { name: string; data: Buffer } {
    return { name: memberOf(key), data: firstMember(scene.bytesOf(key)) };
  }
});

function withFlippedBit(zip: Buffer, part: number): Buffer {
  const flipped = Buffer.from(zip);
  const at = Math.floor(part * (zip.length - 1));
  flipped[at] = (flipped[at] ?? 0) ^ 0x10;
  return flipped;
}

const USUAL_SERIES = ['BTCUSDT', 'ETHUSDT'].map((symbol) => `binance/um/metrics/symbol=${symbol}`);
const usualFiles = [
  '_NOTICE.md',
  ...USUAL_SERIES.map((series) => `_manifests/${series}.jsonl`),
  ...USUAL_SERIES.map((series) => `${series}/2026-10.parquet`),
];

function visibleFiles(out: string): string[] {
  return filesBelow(out).filter((path) => !/^\.cryptodl\/(?:runs|orders)\//.test(path));
}

describe('D: rows', () => {
  const scene = faultScene();
  const csvOf = (key: string): string => firstMember(scene.bytesOf(key)).toString('utf8');
  const linesOf = (key: string): string[] => csvOf(key).trimEnd().split('\n');
  /** The object with one line changed, the hundredth (the header is the first) unless said otherwise. */
  const withLine =
    (change: (line: string) => string, at = 100) =>
    (key: string): Buffer =>
      zipOf(
        key,
        linesOf(key)
          .map((line, index) => (index === at - 1 ? change(line) : line))
          .join('\n'),
      );
  /** Packed well enough to be no larger than a revision of the day may be. */
  const digits = (end: string): string =>
    Array.from({ length: 65_536 }, (_, at) => `${at * 7919}`.padStart(160, '7') + end).join('');
  const withCell = (cell: string): ((key: string) => Buffer) =>
    withLine((line) => line.replace(/[^,]*$/, cell));
  const lastCell = (shown: string): RegExp =>
    new RegExp(
      String.raw`^row-malformed: \S+ line 100: sum_taker_long_short_vol_ratio is ${shown}, not a finite number`,
    );

  refusals(scene, 'D9', [
    {
      what: 'a row with a cell too few',
      zip: withLine((line) => line.slice(0, line.lastIndexOf(','))),
      refusal: /^row-malformed: \S+ line 100: 7 columns, expected 8/,
    },
    {
      what: 'a cell too many',
      zip: withLine((line) => `${line},1`),
      refusal: /^row-malformed: \S+ line 100: 9 columns, expected 8/,
    },
    { what: 'a word for a number', zip: withCell('oops'), refusal: lastCell('"oops"') },
    { what: 'a NUL', zip: withCell('1.\u00005'), refusal: lastCell(String.raw`"1\.\\u00005"`) },
    {
      what: 'bytes that are no UTF-8',
      zip: (key) => zipOf(key, Buffer.from(csvOf(key).replace(/[^,]*\n$/, '\u00ff\u00fe\n'), 'latin1')),
      refusal: /^row-malformed: \S+ line 289: sum_taker_long_short_vol_ratio is "\ufffd\ufffd"/,
    },
    {
      what: 'a last line that is cut',
      zip: withLine((line) => line.slice(0, 40), 289),
      refusal: /^row-malformed: \S+ line 289: [2-7] columns, expected 8/,
    },
    {
      what: 'a web page',
      zip: (key) => zipOf(key, '<html><body>\n<h1>503</h1>\n</body></html>\n'),
      refusal: /^row-malformed: \S+ line 1: 1 columns, expected 8/,
    },
    {
      what: 'rows of another symbol',
      zip: (key) => zipOf(key, csvOf(key).replaceAll('USDT', 'USDC')),
      refusal: /^symbol-mismatch: \S+ line 2: symbol is "...USDC", expected ...USDT/,
    },
  ]);

  refusals(scene, 'D9', [
    {
      what: 'a line of 10 MB',
      zip: (key) => zipOf(key, `${linesOf(key)[0] ?? ''}\n${digits('')}`),
      refusal: /^row-malformed: \S+ line \d+: the line is longer than 2097152 characters/,
    },
    {
      what: '10 MB of digits',
      zip: (key) => zipOf(key, digits('\n')),
      refusal: /^row-malformed: \S+ line 1: 1 columns, expected 8/,
    },
    {
      what: 'rows of another day',
      zip: (key) => zipOf(key, csvOf(key).replaceAll(/^2\d{3}-/gm, '2020-')),
      refusal:
        /^rows-outside-period: \S+: its rows are from 2020-\S+ … 2020-\S+, its period is 2\d{3}-\d\d-\d\d/,
    },
  ]);

  refusals(scene, 'D10', [
    {
      what: 'a header with another name',
      zip: (key) => zipOf(key, csvOf(key).replace('sum_open_interest_value', 'open_interest_usd')),
      refusal: /^header-unknown: .* \(unknown open_interest_usd; missing sum_open_interest_value\)/,
    },
    {
      what: 'a header in another order',
      zip: (key) => zipOf(key, csvOf(key).replace('create_time,symbol', 'symbol,create_time')),
      refusal: /^header-unknown: .* \(the order of columns differs\)/,
    },
  ]);

  refusals(scene, 'D11', [
    { what: 'an empty CSV', zip: (key) => zipOf(key, ''), refusal: /^file-empty: .* holds no row/ },
    {
      what: 'a header alone',
      zip: (key) => zipOf(key, `${linesOf(key)[0] ?? ''}\n`),
      refusal: /^file-empty: .* holds no row/,
    },
  ]);

  refusals(
    scene,
    'D12',
    ['nan', 'inf', '-Infinity', '1e999'].map((cell) => ({
      what: `${cell} for a number`,
      zip: withCell(cell),
      refusal: lastCell(`"${cell}"`),
    })),
  );

  fault(
    {
      id: 'D9',
      fault: 'a row that is wrong in CSV and in string numbers',
      outcome: 'refused in these formats too; retry completes it',
      exit: 4,
    },
    async (exit) => {
      scene.publish(VICTIM, withCell('1_000')(VICTIM));
      const text = await scene.run(['--format', 'csv']);
      expect(text.summary).toMatchObject({ outcomes: { ok: 9, failed: 1 }, failed: { 'row-malformed': 1 } });
      const run = await scene.run(['--numbers', 'string']);
      expect([text.code, run.code]).toEqual([exit, exit]);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9, failed: 1 }, failed: { 'row-malformed': 1 } });
      scene.archive().fault = undefined;
      expect((await cryptodl(['retry', reportOf(text.out), ...FAST])).code).toBe(0);
      const lines = readFileSync(join(text.out, filesBelow(text.out, '.csv')[0] ?? ''), 'utf8').split('\n');
      expect(lines).toHaveLength(5 * 288 + 2);
    },
  );

  fault(
    {
      id: 'D5',
      fault: 'a bomb with its true size: 160 MB of zeros in one line',
      outcome: 'refused before it is unpacked, failed with zip-bomb',
      exit: 4,
    },
    async (exit) => {
      const zip = zipOf(VICTIM, Buffer.alloc(160e6));
      scene.publish(VICTIM, zip);
      const run = await scene.run();
      expect(run.stderr).toContain('the zip declares 160000000 unpacked bytes, but only');
      await expectRefused(scene, run, zip, { exit, code: 'zip-bomb', cause: /^zip-bomb: / });
      expect(leftInternally(run.out)).toEqual([]);
    },
  );

  fault(
    {
      id: 'D10',
      fault: 'half of the objects without a header',
      outcome: 'recognised by the first byte; the same columns, ok',
      exit: 0,
    },
    async (exit) => {
      for (const key of KEYS.slice(0, 5)) scene.publish(key, zipOf(key, linesOf(key).slice(1).join('\n')));
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, rows: 2880 });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'D11',
      fault: 'fewer rows than the day must have',
      outcome: 'written, reported as partial with its name; 4 with --strict',
      exit: 0,
    },
    async (exit) => {
      scene.publish(VICTIM, zipOf(VICTIM, linesOf(VICTIM).slice(0, 101).join('\n')));
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9, partial: 1 }, rows: 9 * 288 + 100 });
      expect(run.stderr).toContain(VICTIM);
      expect((await scene.run(['--strict'])).code).toBe(4);
    },
  );

  fault(
    {
      id: 'D11',
      fault: 'rows twice and in reverse order',
      outcome: 'sorted, exact duplicates dropped and counted, ok',
      exit: 0,
    },
    async (exit) => {
      const [header = '', ...rows] = linesOf(VICTIM);
      scene.publish(VICTIM, zipOf(VICTIM, [header, ...rows.toReversed(), ...rows.slice(0, 50)].join('\n')));
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, rows: 2880, duplicatesDropped: 50 });
      expect(run.stderr).toContain('50 exact duplicate rows');
      await expectIntact(scene, run);
    },
  );

  const spellings: { fault: string; change: (csv: string) => string }[] = [
    { fault: 'a byte order mark', change: (csv) => `\ufeff${csv}` },
    { fault: 'CRLF line ends', change: (csv) => csv.replaceAll('\n', '\r\n') },
    { fault: 'spaces before every cell', change: (csv) => csv.replaceAll(/,(?=\d)/g, ', ') },
    { fault: 'no line end after the last row', change: (csv) => csv.trimEnd() },
    {
      fault: 'exponents',
      change: (csv) =>
        csv.replaceAll(
          /,(\d)\.(\d+)/g,
          (_, whole: string, part: string) => `,${whole}${part}E-${part.length}`,
        ),
    },
  ];
  fault(
    {
      id: 'D12',
      fault: `one object each with ${spellings.map(({ fault: what }) => what).join(', ')}`,
      outcome: 'read correctly, ok',
      exit: 0,
    },
    async (exit) => {
      for (const [index, { change }] of spellings.entries()) {
        const key = KEYS[index] ?? '';
        expect(change(csvOf(key))).not.toBe(csvOf(key));
        scene.publish(key, zipOf(key, change(csvOf(key))));
      }
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, rows: 2880 });
      await expectIntact(scene, run);
    },
  );

  /** aggTrades: ids are whole numbers, times are counted. */
  const TRADES = (day: string): string => `data/spot/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-${day}.zip`;
  const trades = (out: string, flags: readonly string[] = []): Promise<CliResult> =>
    cryptodl(argv`vision --market spot --dataset aggTrades --symbols BTCUSDT --from 2026-10-01 --to 2026-10-02
      --archive-url ${scene.archive().url} --out ${join(scene.folder, '..', out)} --json ${FAST} ${flags}`);
  const tradeRows = (out: string, day: string): ReturnType<typeof readParquet> =>
    readParquet(join(scene.folder, '..', out, `binance/spot/aggTrades/symbol=BTCUSDT/${day}.parquet`));

  fault(
    {
      id: 'D11',
      fault: 'times in ms on one day, in µs on the next',
      outcome: 'recognised by their size, one unit in the lake; ok',
      exit: 0,
    },
    async (exit) => {
      publish(scene.folder, TRADES('2026-10-01'), `1,1.5,2,1,1,${Date.UTC(2026, 9, 1)},True,True\n`);
      publish(scene.folder, TRADES('2026-10-02'), `2,1.5,2,2,2,${Date.UTC(2026, 9, 2)}000,True,True\n`);
      expect((await trades('units')).code).toBe(exit);
      const rows = [...(await tradeRows('units', '2026-10-01')), ...(await tradeRows('units', '2026-10-02'))];
      expect(rows.map((row) => row['transact_time'])).toEqual([
        new Date('2026-10-01T00:00:00Z'),
        new Date('2026-10-02T00:00:00Z'),
      ]);
    },
  );

  fault(
    {
      id: 'D12',
      fault: 'a whole number beyond 2^63, and one that a double cannot hold',
      outcome: 'refused with the line, nothing is rounded; the other day is written',
      exit: 4,
    },
    async (exit) => {
      publish(scene.folder, TRADES('2026-10-01'), `1,1.5,2,1,1,${Date.UTC(2026, 9, 1)},True,True\n`);
      for (const id of ['9223372036854775808', '9007199254740993']) {
        publish(scene.folder, TRADES('2026-10-02'), `${id},1.5,2,1,1,${Date.UTC(2026, 9, 2)},True,True\n`);
        const run = await trades(`whole-${id}`);
        expect(run.code).toBe(exit);
        expect(run.stderr).toContain(`line 1: agg_trade_id is "${id}", not a whole number`);
        expect(await tradeRows(`whole-${id}`, '2026-10-01')).toHaveLength(1);
      }
    },
  );

  fault(
    {
      id: 'D18',
      fault: 'an object too large for memory (zip and CSV of 11 MB), cut in the middle once',
      outcome:
        'spooled, requested again from its start, ok; the spool is empty again (10 GB: npm run test:heavy)',
      exit: 0,
    },
    async (exit) => {
      const day = Date.UTC(2026, 9, 1);
      const rows = Array.from(
        { length: 200_000 },
        (_, id) => `${id},64000.10,0.00100000,${id},${id},${day + id * 431},True,True\n`,
      );
      const data = rows.join('');
      const key = TRADES('2026-10-01');
      publishZip(scene.folder, key, makeZip([{ name: memberOf(key), data, method: 0 }]));
      publish(scene.folder, TRADES('2026-10-02'), `1,1.5,2,1,1,${Date.UTC(2026, 9, 2)},True,True\n`);
      expect(data.length).toBeGreaterThan(9e6);
      const asked: number[] = [];
      scene.onPath(key, (_request, response, time) => {
        asked.push(time);
        if (time > 1) return false;
        const bytes = scene.bytesOf(key);
        response.writeHead(200, { 'content-length': bytes.length });
        response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy());
        return true;
      });
      const run = await trades('large');
      expect(run.code).toBe(exit);
      expect(asked).toEqual([1, 2]);
      expect(run.events.at(-1)).toMatchObject({ outcomes: { ok: 2 }, rows: 200_001 });
      expect(await tradeRows('large', '2026-10-01')).toHaveLength(200_000);
      expect(leftInternally(join(scene.folder, '..', 'large'))).toEqual([]);
    },
  );
});

describe('D: files, listings and names', () => {
  const scene = faultScene();
  const SERIES = 'binance/um/metrics/symbol=BTCUSDT';
  const FILE = `${SERIES}/2026-10.parquet`;
  const untilThird = ['--to', '2026-10-03'];

  fault(
    {
      id: 'D14',
      fault: 'one bit of a committed file flipped, then a day is added',
      outcome: 'noticed by its digest: rebuilt from all its objects, ok',
      exit: 0,
    },
    async (exit) => {
      const { out } = await scene.run(untilThird);
      const file = join(out, FILE);
      writeFileSync(file, withFlippedBit(readFileSync(file), 0.4));
      const run = await scene.runTo(exit, [], { out });
      expect(run.requestsOf(keyOf('BTCUSDT', '2026-10-01'))).toBe(1);
      expect(run.requestsOf(keyOf('ETHUSDT', '2026-10-01'))).toBe(0);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'D14',
      fault: 'a committed file is cut short',
      outcome: 'noticed by its size: rebuilt from all its objects; the other is skipped; ok',
      exit: 0,
    },
    async (exit) => {
      const { out } = await scene.run();
      truncateSync(join(out, FILE), 500);
      const run = await scene.runTo(exit, [], { out });
      expect(run.summary).toMatchObject({ outcomes: { ok: 5, skipped: 5 } });
      await expectIntact(scene, run);
    },
  );

  /** Every listing page as the archive has it, but changed. */
  const changeListing = (change: (xml: string, time: number) => string): void => {
    const { url } = scene.archive();
    let time = 0;
    scene.archive().fault = (path, request, response) => {
      if (!path.includes('prefix=') || request.headers['x-unchanged'] !== undefined) return false;
      time += 1;
      const which = time;
      fetch(`${url}${request.url ?? ''}`, { headers: { 'x-unchanged': 'yes' } })
        .then((answer) => answer.text())
        .then(
          (xml) => response.end(change(xml, which)),
          () => response.destroy(),
        );
      return true;
    };
  };

  fault(
    { id: 'D15', fault: 'a listing page that is cut, once', outcome: 'requested again, ok', exit: 0 },
    async (exit) => {
      changeListing((xml, time) => (time > 1 ? xml : xml.slice(0, xml.length >> 1)));
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, retries: 1 });
      await expectIntact(scene, run);
    },
  );

  const lies: { what: string; change: (xml: string) => string; outcome: string }[] = [
    {
      what: 'a web page instead of the listing, always',
      change: () => '<html><body>busy</body></html>',
      outcome: 'a warning, and the objects of each day are requested one by one; ok',
    },
    {
      what: 'a listing of 20 MB',
      change: (xml) => xml.replace('<Contents>', `<!--${'x'.repeat(20e6)}--><Contents>`),
      outcome: 'refused at 16 MB, and the objects of each day are requested one by one; ok',
    },
    {
      what: 'a truncated listing whose next page is always its first page',
      change: (xml) => xml.replace('<IsTruncated>false', '<IsTruncated>true'),
      outcome: 'noticed on the second page, and the objects of each day are requested one by one; ok',
    },
    {
      what: 'a truncated listing without objects',
      change: () => '<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>',
      outcome: 'noticed on the first page, and the objects of each day are requested one by one; ok',
    },
  ];
  for (const { what, change, outcome } of lies) {
    fault({ id: 'D15', fault: what, outcome, exit: 0 }, async (exit) => {
      changeListing(change);
      const run = await scene.runTo(exit);
      expect(run.stderr).toContain('listing');
      await expectIntact(scene, run);
    });
  }

  fault(
    {
      id: 'D15',
      fault: 'a listing with an entity bomb, unknown tags and every object twice',
      outcome: 'no entity is expanded, unknown tags are ignored, objects counted once; ok',
      exit: 0,
    },
    async (exit) => {
      const entities = Array.from(
        { length: 9 },
        (_, level) => `<!ENTITY l${level + 1} "${`&l${level};`.repeat(10)}">`,
      );
      changeListing((xml) =>
        xml
          .replace(
            '<ListBucketResult',
            `<!DOCTYPE l [<!ENTITY l0 "lol">${entities.join('')}]><ListBucketResult`,
          )
          .replaceAll(
            /<Contents>.*?<\/Contents>/gs,
            (block) => `${block}<Surprise a="1"><Key>x</Key></Surprise>${block}`,
          )
          .replace('<Contents>', '<Contents><Key>data/&l9;.zip</Key><Size>1</Size></Contents><Contents>'),
      );
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10, absent: 0 } });
      await expectIntact(scene, run);
    },
  );

  const names = [
    'CON',
    'aux.v1',
    'NUL',
    'TAIL.',
    '%2e%2e',
    'a b',
    'btcusdt',
    'BTCUSDT',
    '🚀USDT',
    '币安人生USDT',
    "'; --",
    'a..%2f..%2fx',
  ];
  const dailyBar = (symbol: string): string =>
    `data/futures/um/daily/markPriceKlines/${symbol}/1d/${symbol}-1d-2026-10-01.zip`;

  fault(
    {
      id: 'D17',
      fault: `symbols named ${names.join(' ')}`,
      outcome: 'each in a folder of its own that can be read back, nothing outside the lake; ok',
      exit: 0,
    },
    async (exit) => {
      const open = Date.UTC(2026, 9, 1);
      for (const symbol of names) {
        const row = `${open},1.5,1.5,1.5,1.5,0,${open + 86_399_999},0,1,0,0,0\n`;
        publish(scene.folder, dailyBar(symbol), row);
      }
      const out = join(scene.folder, '..', 'names', 'lake');
      const run = await cryptodl(argv`vision --dataset markPriceKlines --interval 1d --symbols all
        --from 2026-10-01 --to 2026-10-01 --archive-url ${scene.archive().url} --out ${out} --json ${FAST}`);
      expect(run.stderr).not.toContain('failed');
      expect(run.code).toBe(exit);
      expect(run.events.at(-1)).toMatchObject({ outcomes: { ok: names.length } });
      const folders = readdirSync(join(out, 'binance/um/markPriceKlines/interval=1d'));
      expect(folders.map((name) => decodeURIComponent(name.replace('symbol=', ''))).sort()).toEqual(
        [...names].sort(),
      );
      expect(folders.filter((name) => /^symbol=(con|nul|aux\..*|.*[. ])$/i.test(name))).toEqual([]);
      expect(readdirSync(join(scene.folder, '..', 'names'))).toEqual(['lake']);
    },
  );

  fault(
    {
      id: 'D17',
      fault: 'a listing that offers the symbols .., . and one of 300 letters',
      outcome: 'dots are not symbols; the long name cannot be a folder and is left out with a warning',
      exit: 0,
    },
    async (exit) => {
      const long = 'X'.repeat(300);
      const folder = 'data/futures/um/daily/metrics/';
      const offered = (name: string): string =>
        `<CommonPrefixes><Prefix>${folder}${name}/</Prefix></CommonPrefixes>`;
      const key = `${folder}${long}/${long}-metrics-2026-10-03.zip`;
      const row = firstMember(scene.bytesOf(VICTIM)).toString('utf8').replaceAll('BTCUSDT', long);
      const zip = zipOf(key, row);
      const answers: Record<string, Buffer | string> = {
        [`/${key}`]: zip,
        [`/${key}.CHECKSUM`]: `${createHash('sha256').update(zip).digest('hex')}  ${basename(key)}\n`,
      };
      changeListing((xml) =>
        xml.includes(`<Prefix>${folder}${long}/</Prefix>`)
          ? `<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>${key}</Key><Size>${zip.length}</Size></Contents></ListBucketResult>`
          : xml
              .replace('<CommonPrefixes>', `${offered('..')}${offered('.')}<CommonPrefixes>`)
              .replace('</ListBucketResult>', `${offered(long)}</ListBucketResult>`),
      );
      const listing = scene.archive().fault;
      scene.archive().fault = (path, request, response) => {
        const bytes = answers[path];
        if (bytes === undefined) return listing?.(path, request, response) ?? false;
        response.end(bytes);
        return true;
      };
      const out = join(scene.folder, '..', 'dots', 'lake');
      const run = await cryptodl(argv`vision --dataset metrics --symbols all
        --from 2026-10-01 --to 2026-10-05 --archive-url ${scene.archive().url} --out ${out} --json ${FAST}`);
      expect(run.code).toBe(exit);
      expect(run.events).toContainEqual({
        event: 'warning',
        message: expect.stringMatching(
          /left out of the archive, because the name is too long for a folder/,
        ) as string,
      });
      const visible = filesBelow(join(scene.folder, '..', 'dots'));
      expect(
        visible.filter(
          (path) =>
            !/^lake\/(_NOTICE\.md$|\.cryptodl\/(runs|orders)\/|(_manifests\/)?binance\/um\/metrics\/symbol=(BTC|ETH)USDT(\/|\.jsonl$))/.test(
              path,
            ),
        ),
      ).toEqual([]);
      const named = await scene.runTo(0, [], { out });
      await expectIntact(scene, named);
    },
  );
});
