/** The mirror of a lake in a bucket, beside what runs show. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RequestCounts } from '../../../src/http/request-counts.js';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import { systemClock } from '../../../src/model/clock.js';
import { FileCopies } from '../../../src/lake/mirror/file-copies.js';
import { zipFolders, joinManifests } from '../../../src/lake/mirror/manifest-text.js';
import { Mirror } from '../../../src/lake/mirror/mirror.js';
import { bucketOf, s3Server } from '../../helpers/bucket.js';
import { SETTINGS } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import type { S3Server } from '../../helpers/s3-server.js';

const FOLDER = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const FILE = `${FOLDER}/2026-11.parquet`;
const MANIFEST = `_manifests/${FOLDER}.jsonl`;

const nothing = (): Promise<void> => Promise.resolve();

const dayOf = (day: number): string => `2026-11-0${day}`;

function lineOf(day: number): ObjectLine {
  const digest = String(day).repeat(64);
  return {
    v: 1,
    kind: 'object',
    key: `data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-${dayOf(day)}.zip`,
    cadence: 'daily',
    period: dayOf(day),
    bytes: 1,
    sha256: digest,
    verified: 'sidecar',
    rows: 24,
    file: `${dayOf(day)}.parquet`,
    fileBytes: 1,
    fileSha256: digest,
    fileRows: 24,
    settings: { ...SETTINGS, partition: 'day' },
    at: '2026-11-10T00:00:00.000Z',
    tool: 'test',
  };
}

describe('a mirror', () => {
  const scratch = scratchFolder();

  async function open(
    isReadOnly = false,
    options: Parameters<typeof s3Server>[0] = {},
  ): Promise<{
    readonly server: S3Server;
    readonly mirror: Mirror;
    readonly root: string;
    readonly folder: string;
    readonly warnings: string[];
  }> {
    const server = await s3Server(options);
    server.store(`data/${FILE}`, 'from the bucket');
    server.store(`data/${MANIFEST}`, 'line 1\n');
    const root = mkdtempSync(join(scratch, 'mirror-'));
    mkdirSync(join(root, '.cryptodl/mirror'), { recursive: true });
    const warnings: string[] = [];
    const mirror = new Mirror({
      bucket: bucketOf({ environment: server.environment }).bucket,
      root,
      isReadOnly,
      comparesVersions: !isReadOnly,
      clock: systemClock,
      requests: new RequestCounts(),
      warn: (message) => warnings.push(message),
    });
    const folder = join(root, FOLDER);
    await mirror.openSeries(folder);
    return { server, mirror, root, folder, warnings };
  }

  /** As a commit does. */
  function write(path: string, text: string): void {
    writeFileSync(`${path}.partial`, text);
    renameSync(`${path}.partial`, path);
  }

  it('has stubs of the right size, and the bytes when they are needed', async () => {
    const { mirror, root, server } = await open();
    const path = join(root, FILE);
    expect(lstatSync(path)).toMatchObject({ size: 15, blocks: 0 });
    expect(readFileSync(join(root, MANIFEST), 'utf8')).toBe('line 1\n');
    await Promise.all([mirror.bringIn([path]), mirror.bringIn([path])]);
    expect(readFileSync(path, 'utf8')).toBe('from the bucket');
    expect(server.requests.filter(({ key }) => key.endsWith('.parquet'))).toHaveLength(1);
    mirror.release([join(root, FOLDER)]);
    expect(lstatSync(path)).toMatchObject({ size: 15, blocks: 0 });
  });

  it('keeps a file that was written in place of a stub', async () => {
    const { mirror, root } = await open();
    write(join(root, FILE), 'written here');
    await mirror.bringIn([join(root, FILE)]);
    mirror.release([join(root, FOLDER)]);
    expect(readFileSync(join(root, FILE), 'utf8')).toBe('written here');
  });

  it.each([
    ['takes an object away', undefined],
    ['replaces an object', 'written here'],
  ])('%s only after its copy in the quarantine is published', async (_, replacement) => {
    const { mirror, root, folder, server } = await open();
    const kept = `_quarantine/${FOLDER}/kept.parquet`;
    mkdirSync(join(root, `_quarantine/${FOLDER}`), { recursive: true });
    await mirror.bringIn([join(root, FILE)]);
    mirror.removes(join(root, FILE));
    renameSync(join(root, FILE), join(root, kept));
    if (replacement !== undefined) write(join(root, FILE), replacement);
    server.fault = ({ method, key }) =>
      method === 'PUT' && key.includes('_quarantine') ? { status: 403, code: 'AccessDenied' } : undefined;
    await mirror.changeManifest(folder, nothing);
    await expect(mirror.published(folder)).rejects.toMatchObject({ code: 'lake-refused' });
    const textOf = (key: string): string | undefined => server.objects.get(`data/${key}`)?.bytes.toString();
    expect(textOf(FILE)).toBe('from the bucket');
    server.fault = undefined;
    await mirror.changeManifest(folder, nothing);
    await mirror.published(folder);
    expect([FILE, kept, MANIFEST].map(textOf)).toEqual([replacement, 'from the bucket', 'line 1\n']);
  });

  it('puts a zip and its sidecar after the manifest if they replace a zip, and before it otherwise', async () => {
    const { mirror, root, folder, server } = await open();
    const zips = 'data/futures/um/daily/klines/BTCUSDT/1h';
    const keyOf = (day: number): string => `${zips}/BTCUSDT-1h-${dayOf(day)}.zip`;
    const line = (day: number): ObjectLine => ({
      ...lineOf(day),
      file: keyOf(day),
      settings: { ...lineOf(day).settings, format: 'zip' },
    });
    mkdirSync(join(root, zips), { recursive: true });
    const commit = async (lines: readonly ObjectLine[], text: string): Promise<string[]> => {
      for (const { file } of lines) {
        write(join(root, file), text);
        write(join(root, `${file}.CHECKSUM`), text);
      }
      write(join(root, MANIFEST), `${lines.map((each) => JSON.stringify(each)).join('\n')}\n`);
      server.requests.length = 0;
      await mirror.changeManifest(folder, nothing);
      await mirror.published(folder);
      const puts = server.requests.filter(({ method }) => method === 'PUT');
      return puts.map(({ key }) => key.replace(/.*(?:\/BTCUSDT-1h-|\/symbol=)/, ''));
    };
    await commit([line(1)], 'first');
    const fileBefore = { bytes: 5, sha256: '0'.repeat(64) };
    const puts = await commit([{ ...line(1), fileBefore }, line(2)], 'second');
    const namesOf = (day: number): string[] => [`${dayOf(day)}.zip`, `${dayOf(day)}.zip.CHECKSUM`];
    expect(puts.slice(0, 2).sort()).toEqual(namesOf(2));
    expect(puts[2]).toBe('BTCUSDT.jsonl');
    expect(puts.slice(3).sort()).toEqual(namesOf(1));
  });

  it.each([
    ['that another writer has changed', FILE, 'kept'],
    ['that another writer has changed in a bucket without conditions', FILE, 'ignored'],
    ['while another writer has changed the manifest', MANIFEST, 'kept'],
  ] as const)('removes no object %s', async (_, changed, conditions) => {
    const { mirror, root, folder, server } = await open(false, { conditions });
    mirror.removes(join(root, FILE));
    rmSync(join(root, FILE));
    server.store(`data/${changed}`, 'of another writer');
    const before = server.objects.get(`data/${FILE}`);
    await mirror.changeManifest(folder, nothing);
    await expect(mirror.published(folder)).rejects.toMatchObject({ code: 'lake-conflict' });
    expect(server.objects.get(`data/${FILE}`)).toEqual(before);
    await mirror.openSeries(folder);
    expect(lstatSync(join(root, FILE)).size).toBe(before?.bytes.length);
  });

  it.each([
    ['data file', FILE, undefined],
    ['manifest', MANIFEST, undefined],
    ['new file that is not published', undefined, `${FOLDER}/2026-12.parquet`],
  ])('publishes nothing after another program has removed a %s', async (_, known, written) => {
    const { mirror, root, folder, server } = await open();
    const lost = join(root, written ?? known ?? '');
    if (written !== undefined) mirror.wrote(lost);
    else rmSync(lost);
    write(join(root, `${FOLDER}/2026-10.parquet`), 'new');
    await mirror.changeManifest(folder, nothing);
    const error = { code: 'disk', message: expect.stringContaining(scratch) as string };
    await expect(mirror.published(folder)).rejects.toMatchObject(error);
    await expect(mirror.publishFolder(dirname(lost))).rejects.toMatchObject(error);
    expect(server.requests.filter(({ method }) => ['PUT', 'DELETE'].includes(method))).toEqual([]);
    await expect(mirror.bringIn([lost])).rejects.toMatchObject(error);
  });

  it('counts the lines of another writer as a change, so that the manifest is read again', async () => {
    const { mirror, root, folder, server } = await open();
    const read = (): string => readFileSync(join(root, MANIFEST), 'utf8');
    await mirror.changeManifest(folder, async () => {
      server.store(`data/${MANIFEST}`, 'line 1\ntheirs\n');
      write(join(root, MANIFEST), 'line 1\nours\n');
      return nothing();
    });
    expect(mirror.timesChanged(folder)).toBe(0);
    await mirror.published(folder);
    expect([mirror.timesChanged(folder), read()]).toEqual([1, 'line 1\ntheirs\nours\n']);
  });

  it('forgets an object that another writer has removed', async () => {
    const reader = await open(true);
    reader.server.objects.delete(`data/${FILE}`);
    await reader.mirror.bringIn([join(reader.root, FILE)]);
    expect(existsSync(join(reader.root, FILE))).toBe(false);
    const writer = await open();
    writer.server.objects.delete(`data/${FILE}`);
    await expect(writer.mirror.bringIn([join(writer.root, FILE)])).rejects.toMatchObject({
      code: 'lake-conflict',
    });
    await writer.mirror.reopenSeries(writer.folder);
    await writer.mirror.openSeries(writer.folder);
    expect(existsSync(join(writer.root, FILE))).toBe(false);
  });

  it('keeps lines that are not published yet when it reads a series again', async () => {
    const { mirror, root, folder } = await open();
    write(join(root, MANIFEST), 'line 1\nours\n');
    await mirror.reopenSeries(folder);
    await mirror.openSeries(folder);
    expect(readFileSync(join(root, MANIFEST), 'utf8')).toBe('line 1\nours\n');
  });

  it('keeps the bytes of files in use, and begins no other use before it has forgotten them', async () => {
    const { mirror, root, folder } = await open();
    const path = join(root, FILE);
    await mirror.bringIn([path]);
    const read: string[] = [];
    let end = nothing;
    const first = mirror.using(folder, async () => {
      await new Promise<void>((resolve) => {
        end = () => Promise.resolve(resolve());
      });
      read.push(readFileSync(path, 'utf8'));
    });
    const forgotten = mirror.reopenSeries(folder);
    await systemClock.sleep(20);
    const next = mirror.using(folder, () => {
      read.push(existsSync(path) ? 'kept' : 'forgotten');
      return nothing();
    });
    await systemClock.sleep(20);
    expect([mirror.timesChanged(folder), readFileSync(path, 'utf8')]).toEqual([0, 'from the bucket']);
    await end();
    await Promise.all([first, forgotten, next]);
    expect([mirror.timesChanged(folder), ...read]).toEqual([1, 'from the bucket', 'forgotten']);
  });

  it('leaves out objects that cannot be files, with one warning', async () => {
    const { mirror, root, server, warnings } = await open();
    server.store('data/other/folder', '');
    server.store('data/other/folder/file', '');
    server.store(`data/other/${'x'.repeat(300)}`, '');
    server.store('data/other/sound', '');
    await mirror.openFolders([join(root, 'other')]);
    for (const name of ['sound', 'folder/file']) expect(existsSync(join(root, 'other', name))).toBe(true);
    expect(warnings).toHaveLength(1);
  });

  it('repeats a publication at the end that has failed without a reader of its error', async () => {
    const { mirror, root, folder, server } = await open();
    write(join(root, MANIFEST), 'line 1\nline 2\n');
    server.fault = ({ method }) => (method === 'PUT' ? { status: 403, code: 'AccessDenied' } : undefined);
    await mirror.changeManifest(folder, nothing);
    await expect(mirror.endPublications()).rejects.toMatchObject({ code: 'lake-refused' });
    server.fault = undefined;
    await mirror.changeManifest(folder, nothing);
    await mirror.endPublications();
    expect(server.objects.get(`data/${MANIFEST}`)?.bytes.toString()).toBe('line 1\nline 2\n');
    rmSync(root, { recursive: true });
  });
});

it('of the copies of files, those that were not used for longest go', async () => {
  const folder = mkdtempSync(join(scratchFolder(), 'copies-'));
  const versionOf = (etag: string): { key: string; etag: string; bytes: number } => ({
    key: 'a',
    etag,
    bytes: 4,
  });
  const open = (): FileCopies => new FileCopies(join(folder, 'kept'), 's3://lake/data', 8);
  const take = (etag: string): Promise<boolean> =>
    open().take(versionOf(etag), join(folder, `${etag}-taken`));
  let last = open();
  for (const etag of ['1', '2', '3']) {
    writeFileSync(join(folder, etag), '1234');
    last = open();
    await last.keep(versionOf(etag), join(folder, etag));
  }
  for (const [at, etag] of ['2', '1', '3'].entries()) utimesSync(join(folder, etag), at + 1, 0);
  await last.prune();
  expect([await take('1'), await take('2'), await take('3')]).toEqual([true, false, true]);
});

describe('manifests as text', () => {
  const joined = (local: string, remote: string, common: number): string | undefined =>
    joinManifests(Buffer.from(local), Buffer.from(remote), common, new Set(['put.parquet']))?.toString();

  it('are joined after the lines that both have', () => {
    expect(joined('a\nb\n', 'a\nc\n', 2)).toBe('a\nc\nb\n');
    // The bucket has our lines already, and others after them; a line was added here since.
    expect(joined('a\nb\nd\n', 'a\nb\nc\n', 2)).toBe('a\nb\nc\nd\n');
    expect(joined('a\nb\n', 'x\n', 2)).toBeUndefined();
  });

  it('are not joined if both writers have written the same data', () => {
    const line = (day: string, file: string, digest: string, format = 'parquet'): string =>
      `${JSON.stringify({ kind: 'object', key: day, period: day, file, fileSha256: digest, settings: { format } })}\n`;
    const dropped = `${JSON.stringify({ kind: 'dropped', key: '2026-11-01', format: 'parquet' })}\n`;
    const own = line('2026-11-01', 'a.parquet', 'A');
    const isJoined = (remote: string): boolean => joined(own, remote, 0) !== undefined;
    expect(isJoined(line('2026-11-02', 'b.parquet', 'B'))).toBe(true);
    expect(isJoined(line('2026-11-01', 'a.parquet', 'A'))).toBe(true);
    expect(isJoined(line('2026-11-02', 'a.parquet', 'B'))).toBe(false);
    expect(isJoined(line('2026-11-02', 'put.parquet', 'B'))).toBe(false);
    expect(isJoined(line('2026-11-01', 'b.parquet', 'B'))).toBe(false);
    expect(isJoined(line('2026-11', 'b.parquet', 'B'))).toBe(false);
    expect(isJoined(line('2026-10', 'b.parquet', 'B'))).toBe(true);
    expect(isJoined(dropped)).toBe(false);
    const zip = (period: string): string => line(period, `${period}.zip`, period, 'zip');
    expect(joined(zip('2026-11-01'), zip('2026-11-02'), 0)).toBeDefined();
    expect(joined(zip('2026-11-01'), zip('2026-11'), 0)).toBeUndefined();
  });

  it('have an object of both writers once, and end with the last line of a file', () => {
    const object = (key: string, fileSha256: string, tool: string, sha256 = `${key}1`): string =>
      `${JSON.stringify({ kind: 'object', key, sha256, file: '2026-10.parquet', fileSha256, tool })}\n`;
    const theirs = object('b', 'x', 'other') + object('c', 'x', 'other');
    // Of two commits, the first one has an earlier digest of the file.
    expect(joined(object('b', 'w', '1') + object('c', 'x', '1'), theirs, 0)).toBe(theirs);
    const another = object('b', 'x', '1', 'b2');
    expect(joined(another, theirs, 0)).toBe(theirs + another);
    const line = (at: string): string => `{"key":"c","at":"${at}"}\n`;
    expect(joined(line('2'), line('3'), 0)).toBe(line('3'));
  });

  it('name the folders of zips that are paths in the lake', async () => {
    const path = join(mkdtempSync(join(scratchFolder(), 'x-')), 'manifest.jsonl');
    const line = (file: string): string => `${JSON.stringify({ settings: { format: 'zip' }, file })}\n`;
    writeFileSync(path, ['data/a/x.zip', 'data/a/y.zip', '../evil/x.zip', '/etc/x.zip'].map(line).join(''));
    expect(await zipFolders(path)).toEqual(['data/a']);
    expect(await zipFolders(`${path}.missing`)).toEqual([]);
  });
});
