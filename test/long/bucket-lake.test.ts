/** A lake in a bucket: what a run leaves in the bucket and on the machine when something goes wrong. */
import type { ChildProcess } from 'node:child_process';
import { lstatSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { bucketScene, dayOf, FOLDER, isPut, MANIFEST, MONTH, SYMBOLS } from '../helpers/bucket-scene.js';
import { cryptodl, cryptodlProcess, FAST, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import type { TestLake } from '../helpers/lake-kinds.js';
import { MISSING, mounted } from '../helpers/local-faults.js';

describe('a lake in a bucket', () => {
  const scene = bucketScene();
  const { scratch, server, archive, args, vision, days, isSound, newLake, mirrors } = scene;
  let lake: TestLake;
  let temp = '';
  beforeEach(() => {
    ({ lake, temp } = scene.begin());
  });

  it('is published by several series at a time, with fewer manifests than files', async () => {
    const all = ['--symbols', SYMBOLS.join(','), '--partition', 'day'];
    let most = 0;
    server.fault = ({ method }) => {
      const puts = server.requests.filter((each) => each.method === 'PUT' && each.status === 0);
      most = Math.max(most, puts.length);
      return method === 'PUT' ? { delayMs: 100 } : undefined;
    };
    expect((await vision(1, 5, all)).code).toBe(0);
    expect(most).toBeGreaterThan(4);
    const puts = server.requests.filter(({ method }) => method === 'PUT').map(({ key }) => key);
    expect(puts.filter((key) => key.endsWith('.parquet'))).toHaveLength(20);
    expect(puts.filter((key) => key.includes('/_manifests/')).length).toBeLessThan(16);
    expect(await isSound()).toBe(true);
  });

  it('takes no space on the machine for files that are published, and leaves nothing there', async () => {
    let blocks: number[] | undefined;
    server.fault = ({ method, key }) => {
      if (method !== 'PUT' || !key.includes('/.cryptodl/runs/')) return undefined;
      const [name = ''] = mirrors();
      const data = join(temp, name, 'binance');
      blocks = filesBelow(data, '.parquet').map((file) => lstatSync(join(data, file)).blocks);
      return undefined;
    };
    expect((await vision(1, 10, ['--partition', 'day'])).code).toBe(0);
    expect(blocks).toEqual(Array.from({ length: 10 }, () => 0));
    expect(readdirSync(temp)).toEqual([]);
  });

  it('brings in the file that a run adds to, and no other', async () => {
    await vision(1, 3);
    await vision(1, 3, ['--symbols', 'ETHUSDT']);
    server.requests.length = 0;
    expect((await vision(4, 5)).code).toBe(0);
    const gets = server.requests.filter(({ method, key }) => method === 'GET' && key.endsWith('.parquet'));
    expect(gets.map(({ key }) => key)).toEqual([expect.stringMatching(`${MONTH}$`)]);
    expect(await days()).toEqual([1, 2, 3, 4, 5]);
  });

  it('gives a file to the first of two queries only, until a run changes it, and to a plot or a query with days the files of these', async () => {
    const env = { ...lake.environment, CRYPTODL_STATE_DIR: mkdtempSync(join(scratch, 'state-')) };
    const ask = async (words: readonly string[], { out }: TestLake): Promise<[string, number]> => {
      server.requests.length = 0;
      const { stdout } = await cryptodl([...words, '--out', out], { env });
      return [stdout, server.requests.filter(({ key }) => key.endsWith('.parquet')).length];
    };
    const count = ['sql', 'SELECT count(*) AS c FROM um_klines', '--csv'];
    await vision(1, 3);
    expect(await ask(count, lake)).toEqual(['c\n72\n', 1]);
    expect(await ask(count, lake)).toEqual(['c\n72\n', 0]);
    await vision(4, 5);
    expect(await ask(count, lake)).toEqual(['c\n120\n', 1]);
    const byDay = newLake();
    await vision(1, 10, ['--partition', 'day'], byDay.out);
    const plot = ['plot', 'BTCUSDT', '--from', dayOf(2), '--to', dayOf(3)];
    // The files beside may have rows some seconds outside of their day.
    expect(await ask(plot, byDay)).toEqual([expect.stringContaining('BTCUSDT'), 4]);
    const ofDays = [...count, '--from', dayOf(6), '--to', dayOf(7)];
    expect(await ask(ofDays, byDay)).toEqual(['c\n48\n', 4]);
  });

  interface Cut {
    readonly method: string;
    readonly path: string;
    readonly cut: 'before' | 'after';
  }

  /** Kills a command at a request. */
  async function killAt(words: readonly string[], { method, path, cut }: Cut): Promise<void> {
    const onSpawn = (child: ChildProcess): void => {
      server.fault = (record) => {
        if (record.method !== method || !record.key.endsWith(path)) return undefined;
        child.kill('SIGKILL');
        return { cut };
      };
    };
    const killed = await cryptodlProcess(words, { env: lake.environment, onSpawn });
    server.fault = undefined;
    expect(killed.signal).toBe('SIGKILL');
  }

  it('has the order of a run that was killed before its first file', async () => {
    await killAt(args(1, 3), { method: 'PUT', path: MONTH, cut: 'before' });
    const checked = await cryptodl(['check', '--json', '--out', lake.out], { env: lake.environment });
    expect(checked).toMatchObject({
      code: 3,
      events: [{ verdict: 'incomplete', orders: [{ first: dayOf(1), last: dayOf(3), lacking: 1 }] }],
    });
  });

  /** Readers of the manifest find them at once, and after `verify --fix`. */
  async function findsRows(rows: number): Promise<void> {
    const read = (words: readonly string[]): Promise<CliResult> =>
      cryptodl([...words, '--out', lake.out], { env: lake.environment });
    const look = async (): Promise<void> => {
      const found = await read(['sql', 'SELECT count(*) AS c FROM um_klines', '--csv']);
      expect(found).toMatchObject({ code: 0, stdout: `c\n${rows}\n`, stderr: '1 row\n' });
      const { events } = await read(['coverage', '--json']);
      expect(events[0]).toMatchObject({ held: rows });
    };
    await look();
    // An hour later: for some minutes, another run could still be at work on these files.
    for (const [key, { bytes, metadata }] of server.objects) server.store(key, bytes, metadata);
    expect((await read(['verify', '--fix'])).code).toBe(0);
    await look();
  }

  it.each([
    ['before the put of its manifest', MANIFEST, 'before'],
    ['after the put of its manifest', MANIFEST, 'after'],
    ['before the put of its file', MONTH, 'before'],
    ['after the put of its file', MONTH, 'after'],
  ] as const)(
    'keeps its committed rows, and is completed on another machine, after a kill %s',
    async (_, path, cut) => {
      await vision(1, 3);
      await killAt(args(4, 5), { method: 'PUT', path, cut });
      expect(mirrors()).toHaveLength(1);
      await findsRows(path === MONTH && cut === 'after' ? 5 * 24 : 3 * 24);
      const other = mkdtempSync(join(scratch, 'other-'));
      expect((await vision(4, 5, ['--temp-dir', other])).code).toBe(0);
      expect(await days()).toEqual([1, 2, 3, 4, 5]);
      expect(await isSound()).toBe(true);
      // The next command on the same machine removes the mirror of the killed one.
      expect((await vision(4, 5)).code).toBe(0);
      expect(mirrors()).toEqual([]);
    },
  );

  it.each([
    ['before the put of a file', 'PUT', `/${dayOf(2)}.parquet`, 'before'],
    ['before the put of its manifest', 'PUT', MANIFEST, 'before'],
    ['after the put of its manifest', 'PUT', MANIFEST, 'after'],
    ['before the removal of a file', 'DELETE', MONTH, 'before'],
    ['after the removal of a file', 'DELETE', MONTH, 'after'],
  ] as const)(
    'keeps its committed rows when day files replace a month file that a killed run has not changed, after a kill %s',
    async (_, method, path, cut) => {
      await vision(1, 3);
      await killAt(args(4, 5), { method: 'PUT', path: MANIFEST, cut: 'after' });
      const flags = ['--partition', 'day', '--force'];
      await killAt(args(1, 3, flags), { method, path, cut });
      await findsRows(3 * 24);
      const other = mkdtempSync(join(scratch, 'other-'));
      expect((await vision(1, 3, [...flags, '--temp-dir', other])).code).toBe(0);
      expect(await days()).toEqual([1, 2, 3]);
      expect(await isSound()).toBe(true);
      expect((await vision(4, 5, ['--partition', 'day'])).code).toBe(0);
      expect(await days()).toEqual([1, 2, 3, 4, 5]);
    },
  );

  it('keeps the lines that another writer has added to the manifest', async () => {
    const flags = ['--partition', 'day'];
    await vision(1, 2, flags);
    const other = newLake();
    await vision(3, 4, flags, other.out);
    let isDone = false;
    server.fault = (record) => {
      if (isDone || !isPut(record, MANIFEST)) return undefined;
      isDone = true;
      for (const day of [3, 4]) {
        const path = `${FOLDER}/symbol=BTCUSDT/${dayOf(day)}.parquet`;
        lake.change(path, other.read(path));
      }
      lake.change(MANIFEST, Buffer.concat([lake.read(MANIFEST), other.read(MANIFEST)]));
      return undefined;
    };
    expect((await vision(5, 6, flags)).code).toBe(0);
    expect(isDone).toBe(true);
    expect(await days()).toEqual([1, 2, 3, 4, 5, 6]);
    expect(lake.read(MANIFEST).toString().trimEnd().split('\n')).toHaveLength(6);
    expect(await isSound()).toBe(true);
  });

  it.each([
    ['file', MONTH],
    ['manifest', MANIFEST],
  ])(
    'tries a partition again that another writer has changed before the put of its %s, and requests no other day',
    async (_, put) => {
      await vision(1, 2);
      const other = newLake();
      await vision(1, 4, [], other.out);
      archive().requests.length = 0;
      let isDone = false;
      server.fault = (record) => {
        if (isDone || !isPut(record, put)) return undefined;
        isDone = true;
        for (const path of [MONTH, MANIFEST]) lake.change(path, other.read(path));
        return undefined;
      };
      expect((await vision(5, 6)).code).toBe(0);
      expect(isDone).toBe(true);
      const asked = archive()
        .objectRequests()
        .flatMap((path) => /-(\d\d)\.zip$/.exec(path)?.[1] ?? []);
      expect([...new Set(asked)].sort()).toEqual(['05', '06']);
      expect(await days()).toEqual([1, 2, 3, 4, 5, 6]);
      expect(await isSound()).toBe(true);
    },
  );

  it('loses a file that repair moves to the quarantine', async () => {
    await vision(1, 2);
    lake.change(`${FOLDER}/symbol=BTCUSDT/mine.bin`, 'of another program');
    const repair = ['repair', '--out', lake.out, '--archive-url', archive().url, ...FAST];
    for (let count = 1; count <= 2; count += 1)
      expect((await cryptodl(repair, { env: lake.environment })).code).toBe(0);
    const found = filesBelow(lake.content()).filter((path) => /mine[^/]*\.bin$/.test(path));
    expect(found).toEqual([expect.stringMatching(/^_quarantine\//)]);
    expect(await days()).toEqual([1, 2]);
  });

  it('is sound when another writer begins and ends between the put of a file and that of its manifest', async () => {
    await vision(1, 2);
    let other: number | null | undefined;
    let isHeld = false;
    server.fault = async (record) => {
      if (isHeld || !isPut(record, MANIFEST)) return undefined;
      isHeld = true;
      const elsewhere = ['--temp-dir', mkdtempSync(join(scratch, 'other-'))];
      other = (await cryptodlProcess(args(5, 6, elsewhere), { env: lake.environment })).code;
      return undefined;
    };
    expect((await vision(3, 4)).code).toBe(0);
    expect(other).toBe(0);
    expect(await days()).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await isSound()).toBe(true);
  });

  it('takes no file of another writer for a damaged one, if the writer ends after the series was opened', async () => {
    await vision(1, 2);
    const other = newLake();
    await vision(1, 4, [], other.out);
    let isDone = false;
    server.fault = ({ method, key }) => {
      if (isDone || method !== 'GET' || !key.endsWith(MONTH)) return undefined;
      isDone = true;
      for (const path of [MONTH, MANIFEST]) lake.change(path, other.read(path));
      return undefined;
    };
    expect((await vision(5, 6)).code).toBe(0);
    expect(isDone).toBe(true);
    expect(await days()).toEqual([1, 2, 3, 4, 5, 6]);
    expect(filesBelow(lake.content()).filter((path) => path.startsWith('_quarantine/'))).toEqual([]);
    expect(await isSound()).toBe(true);
  });

  it('is complete although the server answers SlowDown and loses connections', async () => {
    let count = 0;
    server.fault = () => {
      count += 1;
      if (count === 3 || count === 9) return { status: 503, code: 'SlowDown' };
      return [6, 12, 15].includes(count) ? { cut: count === 12 ? 'before' : 'after' } : undefined;
    };
    expect((await vision(1, 5, ['--partition', 'day'])).code).toBe(0);
    server.fault = undefined;
    expect(await days()).toEqual([1, 2, 3, 4, 5]);
    expect(await isSound()).toBe(true);
  });

  it('ends a run with exit code 3 when the server stays away, and the next run completes it', async () => {
    server.fault = ({ method }) => (method === 'PUT' ? { cut: 'before' } : undefined);
    const away = await vision(1, 3, ['--retries', '1']);
    expect(away.code).toBe(3);
    expect(away.stderr).not.toContain(server.options.secretAccessKey);
    expect(mirrors()).toEqual([]);
    server.fault = undefined;
    expect((await vision(1, 3)).code).toBe(0);
    expect(await days()).toEqual([1, 2, 3]);
  });

  it('compares again when another writer has changed a file just before its removal', async () => {
    await vision(1, 3);
    const removals = (): number[] =>
      server.requests
        .filter(({ method, key }) => method === 'DELETE' && key.endsWith('2026-11.parquet'))
        .map(({ status }) => status);
    server.fault = ({ method, key }) => {
      if (method === 'DELETE' && removals().length === 1) server.store(key, 'of another writer');
      return undefined;
    };
    expect((await vision(1, 3, ['--force', '--partition', 'day'])).code).toBe(0);
    expect(removals()).toEqual([412, 204]);
    expect(await isSound()).toBe(true);
  });

  it('is waited for no longer after Ctrl-C when its server does not answer', async () => {
    const hung: (() => void)[] = [];
    let interrupt = (): void => undefined;
    server.fault = ({ method }) => {
      if (method !== 'PUT') return undefined;
      interrupt();
      return new Promise((resolve) => {
        hung.push(() => {
          resolve({ cut: 'before' });
        });
      });
    };
    // One signal only: a second one would end the process at once.
    const { code, stderr } = await cryptodlProcess(args(1, 3), {
      env: lake.environment,
      onSpawn: (child) => {
        interrupt = () => {
          interrupt = () => undefined;
          child.kill('SIGINT');
        };
      },
    });
    for (const end of hung) end();
    expect(code).toBe(130);
    expect(stderr).toContain(`${lake.out} does not have all changes of this command`);
    expect(mirrors()).toEqual([]);
    server.fault = undefined;
    expect((await vision(1, 3)).code).toBe(0);
    expect(await days()).toEqual([1, 2, 3]);
  }, 60_000);

  it.each(['PUT', 'GET'])('ends a run with exit code 3 when the server answers no %s', async (method) => {
    await vision(1, 1);
    const hung: (() => void)[] = [];
    server.fault = (request) =>
      request.method === method && request.query['prefix'] === undefined
        ? new Promise((resolve) => {
            hung.push(() => {
              resolve({ cut: 'before' });
            });
          })
        : undefined;
    const ended = await vision(1, 3, ['--retries', '1', '--headers-timeout', '300ms', '--max-wait', '2s']);
    for (const end of hung) end();
    expect(hung.length).toBeGreaterThan(1);
    expect(ended.code).toBe(3);
    expect(mirrors()).toEqual([]);
    server.fault = undefined;
    expect((await vision(1, 3)).code).toBe(0);
    expect(await days()).toEqual([1, 2, 3]);
    expect(await isSound()).toBe(true);
  });

  it.skipIf(MISSING.mount !== undefined)(
    `ends a run when the disk of --temp-dir is full${MISSING.mount === undefined ? '' : ` (${MISSING.mount})`}`,
    async () => {
      const disk = mounted('size=24k');
      const { code, stderr } = await vision(1, 10, ['--temp-dir', disk, '--partition', 'day']);
      expect(stderr).toContain('the disk is full');
      expect(code).toBe(1);
      expect(filesBelow(disk)).toEqual([]);
      expect((await vision(1, 10)).code).toBe(0);
      expect(await days()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      expect(await isSound()).toBe(true);
    },
  );

  it('never leads a path out of the mirror', async () => {
    await vision(1, 3);
    const prefix = lake.out.slice(`s3://${server.bucket}/`.length);
    const before = filesBelow(scratch).filter((path) => !path.startsWith('copy-'));
    for (const key of ['../evil', 'um/../../evil', 'um//evil', 'um/klines/interval=1h/evil\u0000', '/evil'])
      server.store(`${prefix}/binance/${key}`, 'evil');
    // Its key is that of a folder.
    server.store(`${prefix}/binance/um/klines`, 'evil');
    const line = lake.read(MANIFEST).toString().split('\n')[0] ?? '';
    const lines = [line.replace('"2026-11.parquet"', '"../../../../evil.parquet"'), ''].join('\n');
    lake.change(MANIFEST, lake.read(MANIFEST).toString() + lines);
    const verified = await cryptodl(['verify', '--fix', '--out', lake.out], { env: lake.environment });
    expect(verified.stdout).toContain('line-damaged');
    expect(verified.stderr).toContain('warning');
    expect(filesBelow(scratch).filter((path) => !path.startsWith('copy-'))).toEqual(before);
    const repair = ['repair', '--out', lake.out, '--archive-url', archive().url, ...FAST];
    expect((await cryptodl(repair, { env: lake.environment })).code).toBe(0);
    const evil = [...server.objects].filter(([, { bytes }]) => bytes.toString() === 'evil');
    expect(evil).toHaveLength(6);
    for (const [key] of evil) server.objects.delete(key);
    expect(await days()).toEqual([1, 2, 3]);
  });

  it('is listed only as far as the markets and datasets select', async () => {
    await vision(1, 2);
    const prefix = lake.out.slice(`s3://${server.bucket}/`.length);
    const listed = async (
      words: readonly string[],
    ): Promise<{ code: number | null; prefixes: string[]; stderr: string }> => {
      server.requests.length = 0;
      const { code, stderr } = await cryptodl([...words, '--out', lake.out], { env: lake.environment });
      const prefixes = server.requests.map(({ query }) => query['prefix'] ?? '');
      // The lists are requested at the same time.
      return { code, stderr, prefixes: prefixes.filter((each) => each.includes('binance/')).toSorted() };
    };
    const one = await listed(['coverage', '--market', 'um', '--dataset', 'klines']);
    expect(one).toMatchObject({
      code: 0,
      prefixes: [`${prefix}/_manifests/binance/um/klines/`, `${prefix}/binance/um/klines/`],
    });
    const target = ['--target', join(mkdtempSync(join(scratch, 'target-')), 'csv')];
    const exported = await listed(['export', 'csv', '--market', 'um', '--dataset', 'klines', ...target]);
    expect(exported).toEqual({ ...one, stderr: exported.stderr });
    const ranked = await listed(['universe', '--every', 'day', '--window', '1d', '--from', dayOf(2)]);
    expect(ranked).toEqual({ ...one, stderr: ranked.stderr });
    const none = await listed(['coverage', '--market', 'spot']);
    expect(none.code).toBe(2);
    expect(none.stderr).toContain('holds no spot; it holds um');
  });

  it('is exported also when another writer sends a file again after the lists', async () => {
    await vision(1, 3);
    const key = `${lake.out.slice(`s3://${server.bucket}/`.length)}/${MONTH}`;
    const file = server.objects.get(key);
    if (file === undefined) throw new Error('the lake has no file');
    server.fault = (record) => {
      // The same bytes in two parts have another tag.
      if (record.key.endsWith(MANIFEST)) server.objects.set(key, { ...file, etag: `${'0'.repeat(32)}-2` });
      return undefined;
    };
    const target = join(mkdtempSync(join(scratch, 'target-')), 'csv');
    const { code, stderr } = await cryptodl(['export', 'csv', '--target', target, '--out', lake.out], {
      env: lake.environment,
    });
    expect([code, stderr]).toEqual([0, expect.stringContaining('1 file written') as string]);
    expect(server.objects.get(key)?.etag).toContain('-2');
  });

  it('gets bars of its klines, and no request to write when there is nothing new', async () => {
    await vision(1, 3);
    const words = ['bars', '2h', '--out', lake.out];
    const made = await cryptodl([...words, '--json'], { env: lake.environment });
    expect(made.code).toBe(0);
    expect(made.events[0]).toMatchObject({ outcome: 'made', days: 3, bars: 36 });
    expect(filesBelow(lake.content(), '.parquet').filter((path) => path.includes('/bars/'))).toHaveLength(1);
    expect(await isSound()).toBe(true);
    server.requests.length = 0;
    expect((await cryptodl(words, { env: lake.environment })).stderr).toContain('nothing new for 1 series');
    const written = server.requests.filter(({ method, key }) => method === 'PUT' && key.includes('/bars/'));
    expect(written).toEqual([]);
    await vision(4, 5);
    const more = await cryptodl([...words, '--json'], { env: lake.environment });
    expect(more.events[0]).toMatchObject({ outcome: 'made', days: 5, bars: 60 });
    expect(await isSound()).toBe(true);
  });

  it('is repaired after the bytes of an object were changed, and not its metadata', async () => {
    await vision(1, 3);
    const key = `${lake.out.slice(`s3://${server.bucket}/`.length)}/${MONTH}`;
    const { bytes, metadata } = server.objects.get(key) ?? { bytes: Buffer.alloc(0), metadata: {} };
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(40) ^ 255, 40);
    server.store(key, changed, metadata);
    const { environment: env } = lake;
    const found = await cryptodl(['verify', '--out', lake.out], { env });
    expect(found.stdout).toContain(`damaged\t${MONTH}`);
    const read = await cryptodl(['sql', 'SELECT count(*) FROM klines', '--out', lake.out], { env });
    expect(read.code).toBe(1);
    expect(read.stderr).toContain('cryptodl verify --fix');
    await cryptodl(['verify', '--fix', '--out', lake.out], { env });
    await cryptodlOk(['repair', '--archive-url', archive().url, '--out', lake.out], { env });
    expect(await days()).toEqual([1, 2, 3]);
    expect(await isSound()).toBe(true);
  });

  it('is tried by doctor, which leaves nothing behind', async () => {
    const keys = [...server.objects.keys()];
    const rest = ['fapi', 'dapi', 'spot'].flatMap((host) => [`--${host}-url`, archive().url]);
    const words = ['doctor', '--out', lake.out, '--json', '--archive-url', archive().url, ...rest];
    const of = ({ events }: CliResult): unknown => events.find(({ check }) => check === 'out');
    expect(of(await cryptodl(words, { env: lake.environment }))).toMatchObject({ status: 'ok' });
    const env = { ...lake.environment, AWS_SECRET_ACCESS_KEY: 'wrong-secret' };
    expect(of(await cryptodl(words, { env }))).toMatchObject({
      status: 'fail',
      next: expect.stringContaining('AWS_SECRET_ACCESS_KEY') as string,
    });
    expect([...server.objects.keys()]).toEqual(keys);
  });

  it('is not written with --dry-run and by verbs that read', async () => {
    await vision(1, 3);
    server.requests.length = 0;
    expect((await vision(1, 6, ['-n'])).code).toBe(0);
    const target = join(mkdtempSync(join(scratch, 'target-')), 'csv');
    const universe = ['universe', '--every', 'day', '--window', '1d', '--from', dayOf(2)];
    for (const words of [
      ['coverage'],
      ['verify'],
      ['sql', 'select 1'],
      ['runs'],
      ['export', 'csv', '--target', target, '--temp-dir', temp],
      ['bars', '2h', '--dry-run'],
      universe,
    ])
      expect((await cryptodl([...words, '--out', lake.out], { env: lake.environment })).code).toBe(0);
    expect(server.requests.filter(({ method }) => !['GET', 'HEAD'].includes(method))).toEqual([]);
  });
});
