/** The engine: its connections, its settings, and its interruption. */
import { getEventListeners } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createEngine } from '../../../src/convert/duckdb.js';
import { isFileError } from '../../../src/convert/load-duckdb.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { scratchFolder } from '../../helpers/folders.js';
import { refusal } from '../../helpers/requests.js';

describe('the engine', () => {
  const tempFolder = scratchFolder();

  it.each(['interrupt()', 'the signal'] as const)(
    '%s ends running queries and refuses new ones',
    async (by) => {
      const stop = new AbortController();
      const engine = createEngine({ threads: 2, memoryBytes: 100e6, tempFolder, signal: stop.signal });
      const duckdb = await engine.connect();
      // Hours of work.
      const endless = refusal(
        duckdb.rows('SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = -1'),
      );
      // When this answer is there, the first query is running.
      const other = await engine.connect();
      await other.rows('SELECT 1');
      if (by === 'interrupt()') engine.interrupt();
      else stop.abort();
      expect((await endless).code).toBe('interrupted');
      expect((await refusal(engine.connect())).code).toBe('interrupted');
      duckdb.close();
      other.close();
      engine.close();
    },
  );

  it('refuses later statements of open connections after an interruption', async () => {
    const engine = createEngine({ threads: 2, memoryBytes: 100e6, tempFolder });
    const duckdb = await engine.connect();
    engine.interrupt();
    expect((await refusal(duckdb.run('SELECT 1'))).code).toBe('interrupted');
    expect((await refusal(duckdb.rows('SELECT 1'))).code).toBe('interrupted');
    expect((await refusal(duckdb.select('SELECT 1'))).code).toBe('interrupted');
    duckdb.close();
    engine.close();
  });

  it('works on as many large things at once as it has threads; small ones, and refusals, do not wait', async () => {
    const engine = createEngine({ threads: 2, memoryBytes: 100e6, tempFolder });
    const first = await engine.connect('large');
    const second = await engine.connect('large');
    const order: string[] = [];
    const third = engine.connect('large').then((connection) => {
      order.push('large');
      return connection;
    });
    const small = await engine.connect('small');
    await small.rows('SELECT 1');
    order.push('small');
    second.close();
    (await third).close();
    expect(order).toEqual(['small', 'large']);
    const fifth = await engine.connect('large');
    const refused = refusal(engine.connect('large'));
    engine.interrupt();
    expect((await refused).code).toBe('interrupted');
    for (const connection of [first, small, fifth]) connection.close();
    engine.close();
  });

  const SETTINGS_READ = [
    'threads',
    'memory_limit',
    'autoinstall_known_extensions',
    'autoload_known_extensions',
  ]
    .map((name) => `current_setting('${name}') AS ${name}`)
    .join(', ');

  it.each(['small', 'large'] as const)(
    'has a memory limit and downloads no extensions by default (%s connections)',
    async (work) => {
      const engine = createEngine({ tempFolder });
      const duckdb = await engine.connect(work);
      expect(await duckdb.rows(`SELECT ${SETTINGS_READ}`)).toEqual([
        {
          threads: String(work === 'small' ? 1 : availableParallelism()),
          memory_limit: '286.1 MiB',
          autoinstall_known_extensions: false,
          autoload_known_extensions: false,
        },
      ]);
      duckdb.close();
      engine.close();
    },
  );

  it('rejects when a file is damaged behind the rows that were read', async () => {
    const engine = createEngine({ tempFolder });
    const duckdb = await engine.connect();
    const file = join(tempFolder, 'damaged.parquet');
    await duckdb.run(
      `COPY (SELECT range AS a, (range * 7919) % 1000003 AS b FROM range(2000000)) TO '${file}' (COMPRESSION zstd)`,
    );
    const bytes = readFileSync(file);
    const from = Math.floor(bytes.length * 0.7);
    writeFileSync(file, bytes.fill(0xa5, from, from + 5000));
    const result = await duckdb.select(`FROM '${file}'`);
    let read = 0;
    const reading = (async () => {
      for await (const rows of result?.batches ?? []) read += rows.length;
    })();
    await expect(reading).rejects.toThrow('Failed to read file');
    expect(read).toBeGreaterThan(100_000);
    duckdb.close();
    engine.close();
  });

  it('listens to its signal until it is closed', () => {
    const { signal } = new AbortController();
    const engine = createEngine({ tempFolder, signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    engine.close();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('an error of a query', () => {
  const tempFolder = scratchFolder();
  const file = (name: string, content: string): string => {
    const path = join(tempFolder, name);
    writeFileSync(path, content);
    return path;
  };

  it.each<[string, boolean, () => string]>([
    [
      'a file of another kind',
      true,
      () => `FROM read_parquet('${file('text.parquet', 'a text of some length')}')`,
    ],
    ['a missing file', true, () => `FROM read_parquet('${join(tempFolder, 'none.parquet')}')`],
    ['a value that is no number', true, () => `SELECT CAST('x' AS INTEGER)`],
    ['a missing column', true, () => 'SELECT price FROM range(1)'],
    ['a wrong query', false, () => 'SELEC 1'],
    ['a missing table', false, () => 'FROM nothing'],
  ])('about %s concerns the file: %s', async (_, isOfFile, sql) => {
    const engine = createEngine({ threads: 1, tempFolder });
    const duckdb = await engine.connect();
    const error: unknown = await duckdb.rows(sql()).catch((cause: unknown) => cause);
    duckdb.close();
    engine.close();
    expect(error).toBeInstanceOf(Error);
    expect(isFileError(error)).toBe(isOfFile);
  });

  it.each([
    new TypeError('x is not a function'),
    Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' }),
    new CryptodlError('interrupted', 'the statement was interrupted'),
    new Error('FATAL Error: Failed: database has been invalidated'),
  ])('does not concern the file: %s', (error) => {
    expect(isFileError(error)).toBe(false);
  });
});
