/** `verify` finds whatever happened to a lake, and `verify --fix` and `repair` make it what it was. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlOk, cryptodlProcess, FAST, found } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, manifestLines, parquetDigests } from '../helpers/lake.js';
import { MISSING, readOnly } from '../helpers/local-faults.js';
import { sql } from '../helpers/sql.js';

const NOW = '2026-10-06T08:00:00Z';
const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const MANIFEST = `_manifests/${SERIES}.jsonl`;
const OCTOBER = `${SERIES}/2026-10.parquet`;
const SEPTEMBER = `${SERIES}/2026-09.parquet`;

const scratch = scratchFolder();
const folder = join(scratch, 'archive');
const sound = join(scratch, 'sound');
let archive: TestArchive;
let digests: string[];
let lakes = 0;

const klines = { market: 'um', dataset: 'klines', interval: '1h', cadence: 'daily' } as const;
beforeAll(async () => {
  makeArchive(folder, { ...klines, symbols: ['BTCUSDT'], from: '2026-09-28', to: '2026-10-05' });
  archive = await startArchive(folder);
  await cryptodlOk([...vision(sound), '--from', '2026-09-28']);
  digests = await parquetDigests(sound);
});
afterAll(() => archive.close());
afterEach(() => {
  archive.fault = undefined;
});

function vision(lake: string): string[] {
  return ['vision', '--interval', '1h', '--symbols', 'BTCUSDT', ...places(lake)];
}

function places(lake: string): string[] {
  return ['--out', lake, '--now', NOW, '--archive-url', archive.url, ...FAST];
}

function newLake(): string {
  lakes += 1;
  return join(scratch, `lake-${lakes}`);
}

/** A copy of the sound lake to be harmed. */
function copy(): string {
  const lake = newLake();
  cpSync(sound, lake, { recursive: true });
  return lake;
}

const NO_PROGRESS = FAST.slice(0, -2);

function verify(lake: string, ...flags: string[]): Promise<CliResult> {
  const where = ['--out', lake, '--now', NOW, '--archive-url', archive.url, ...NO_PROGRESS];
  return cryptodl(['verify', ...where, '--json', ...flags]);
}

function repair(lake: string, ...flags: string[]): Promise<CliResult> {
  return cryptodl(['repair', ...places(lake), '--json', ...flags]);
}

function flipBit(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(file, bytes);
}

async function rewrite(file: string, select: string): Promise<void> {
  const aside = `${file}.made`;
  await sql(`COPY (${select.replaceAll('$FILE', `read_parquet('${file}')`)}) TO '${aside}' (FORMAT parquet)`);
  renameSync(aside, file);
}

function editLines(lake: string, edit: (lines: string[]) => string[]): void {
  const file = join(lake, MANIFEST);
  writeFileSync(file, `${edit(readFileSync(file, 'utf8').trimEnd().split('\n')).join('\n')}\n`);
}

/**
 * `--fix` and `repair` mend it: verify is clean then, and the rows are those of the sound lake. Objects that no manifest line names any
 * more are fetched by a further run.
 */
async function heals(lake: string, hasLostLines: boolean): Promise<void> {
  await verify(lake, '--fix');
  const repaired = await repair(lake);
  expect([repaired.code, repaired.stderr]).toEqual([
    hasLostLines ? expect.any(Number) : 0,
    expect.any(String),
  ]);
  if (hasLostLines) await cryptodlOk([...vision(lake), '--from', '2026-09-28']);
  const after = await verify(lake, '--deep');
  expect([after.code, found(after)]).toEqual([0, []]);
  expect(await parquetDigests(lake)).toEqual(digests);
}

interface Harm {
  readonly what: string;
  readonly harm: (lake: string) => unknown;
  readonly finds: readonly string[];
  /** No manifest line is left that names some objects outside the held days. */
  readonly hasLostLines?: true;
}

const HARMS: readonly Harm[] = [
  {
    what: 'a partition that was deleted',
    harm: (lake) => {
      rmSync(join(lake, SEPTEMBER));
    },
    finds: [`missing ${SEPTEMBER}`],
  },
  {
    what: 'a truncated partition',
    harm: (lake) => {
      truncateSync(join(lake, OCTOBER), 3000);
    },
    finds: [`damaged ${OCTOBER}`],
  },
  {
    what: 'one flipped bit',
    harm: (lake) => {
      flipBit(join(lake, OCTOBER), 700);
    },
    finds: [`damaged ${OCTOBER}`],
  },
  {
    what: 'damaged manifest lines, each of them',
    harm: (lake) => {
      editLines(lake, (lines) =>
        lines.map((line) => (/2026-09-29|2026-10-03/.test(line) ? line.replace('"v":1', '"v":1;') : line)),
      );
    },
    finds: [
      `damaged ${SEPTEMBER}`,
      `damaged ${OCTOBER}`,
      `line-damaged ${MANIFEST}`,
      `line-damaged ${MANIFEST}`,
    ],
  },
  {
    what: 'a manifest line that makes no sense',
    harm: (lake) => {
      editLines(lake, (lines) =>
        lines.map((line) =>
          line.includes('2026-10-04') ? line.replace('2026-10.parquet', '../../2026-10.parquet') : line,
        ),
      );
    },
    finds: [`damaged ${OCTOBER}`, `line-damaged ${MANIFEST}`],
  },
  {
    what: 'a manifest line that is missing',
    harm: (lake) => {
      editLines(lake, (lines) => lines.filter((line) => !line.includes('2026-10-02')));
    },
    finds: [`damaged ${OCTOBER}`],
  },
  {
    what: 'all lines of a file that are missing',
    harm: (lake) => {
      editLines(lake, (lines) => lines.filter((line) => !line.includes('2026-10.parquet')));
    },
    finds: [`unlisted ${OCTOBER}`],
    hasLostLines: true,
  },
  {
    what: 'a manifest that is missing',
    harm: (lake) => {
      rmSync(join(lake, MANIFEST));
    },
    finds: [`unlisted ${SEPTEMBER}`, `unlisted ${OCTOBER}`],
    hasLostLines: true,
  },
  {
    what: 'a manifest without its last line feed',
    harm: (lake) => {
      const lines = readFileSync(join(lake, MANIFEST), 'utf8').trimEnd().split('\n');
      // Which month was committed last is chance.
      const isOctober = (line: string): boolean => line.includes('"file":"2026-10.parquet"');
      const ordered = [...lines.filter((line) => !isOctober(line)), ...lines.filter(isOctober)];
      writeFileSync(join(lake, MANIFEST), ordered.join('\n'));
    },
    finds: [`damaged ${OCTOBER}`, `line-damaged ${MANIFEST}`],
    hasLostLines: true,
  },
  {
    what: 'files of the user',
    harm: (lake) => {
      writeFileSync(join(lake, SERIES, 'notes.txt'), 'mine');
      mkdirSync(join(lake, 'binance/um/klines/old/deep'), { recursive: true });
      writeFileSync(join(lake, 'binance/um/klines/old/deep/2026-10.parquet'), 'mine');
    },
    finds: [`unlisted ${SERIES}/notes.txt`, 'unlisted binance/um/klines/old/deep/2026-10.parquet'],
  },
  {
    what: 'what a killed run left',
    harm: (lake) => {
      mkdirSync(join(lake, '.cryptodl/tmp/run-1'), { recursive: true });
      writeFileSync(join(lake, '.cryptodl/tmp/a.partial'), 'half');
      writeFileSync(join(lake, '.cryptodl/tmp/run-1/b.zip'), 'half');
    },
    finds: ['leftover .cryptodl/tmp/a.partial', 'leftover .cryptodl/tmp/run-1/b.zip'],
  },
];

describe('verify', () => {
  it('reports a sound lake as sound, also with --deep', async () => {
    const result = await verify(sound, '--deep');
    expect([result.code, found(result)]).toEqual([0, []]);
    expect(result.events.at(-1)).toMatchObject({ event: 'summary', series: 1, files: 2, exitCode: 0 });
    expect((await verify(sound, '--quiet')).stderr).toBe('');
  });

  it.each(HARMS)('finds $what; --fix and repair mend it', async ({ harm, finds, hasLostLines = false }) => {
    const lake = copy();
    await harm(lake);
    const before = filesBelow(lake);
    const result = await verify(lake);
    expect([result.code, found(result)]).toEqual([4, finds]);
    expect(filesBelow(lake)).toEqual(before);
    await heals(lake, hasLostLines);
  });

  it('finds a manifest line whose file is missing; repair fetches the objects of the line', async () => {
    const lake = copy();
    makeArchive(folder, { ...klines, symbols: ['BTCUSDT'], from: '2026-08-31', to: '2026-09-27' });
    editLines(lake, (lines) => {
      const line = lines.find((text) => text.includes('2026-09-28')) ?? '';
      return [
        line.replaceAll('2026-09-28', '2026-08-31').replace('2026-09.parquet', '2026-08.parquet'),
        ...lines,
      ];
    });
    const result = await verify(lake);
    expect([result.code, found(result)]).toEqual([4, [`missing ${SERIES}/2026-08.parquet`]]);
    expect((await repair(lake)).code).toBe(0);
    expect(found(await verify(lake, '--deep'))).toEqual([]);
    const rows = (count: number): unknown => expect.stringContaining(`"rows":"${count}"`);
    expect(await parquetDigests(lake)).toEqual([rows(24), rows(30 * 24), digests[1]]);
  });

  it('does not change a series that a later version of cryptodl has written', async () => {
    const lake = copy();
    editLines(lake, (lines) =>
      lines.map((line) => (line.includes('2026-10-02') ? line.replace('"v":1', '"v":2') : line)),
    );
    const before = filesBelow(lake);
    const fixed = await verify(lake, '--fix');
    expect([fixed.code, found(fixed), filesBelow(lake)]).toEqual([4, [`line-newer ${MANIFEST}`], before]);
    const repaired = await repair(lake);
    expect([repaired.code, repaired.stderr]).toEqual([
      4,
      expect.stringContaining('use the newer cryptodl that wrote it, then run repair again'),
    ]);
  });

  it('--fix keeps every file that it removes in the quarantine', async () => {
    const lake = copy();
    flipBit(join(lake, OCTOBER), 700);
    writeFileSync(join(lake, SERIES, 'notes.txt'), 'mine');
    const damaged = readFileSync(join(lake, OCTOBER));
    await verify(lake, '--fix');
    writeFileSync(join(lake, SERIES, 'notes.txt'), 'mine too');
    await verify(lake, '--fix');
    const kept = filesBelow(join(lake, '_quarantine'))
      .filter((path) => !path.endsWith('.cause'))
      .map((path) => readFileSync(join(lake, '_quarantine', path)));
    expect(kept.map(String).sort()).toEqual([String(damaged), 'mine', 'mine too'].sort());
  });

  it('a day downloaded while the manifest is lost does not remove other days of the month', async () => {
    const lake = copy();
    rmSync(join(lake, MANIFEST));
    const before = readFileSync(join(lake, OCTOBER));
    expect((await cryptodl([...vision(lake), '--days', '1', '--exact'])).code).toBe(0);
    const kept = filesBelow(join(lake, '_quarantine'), '.parquet');
    expect(kept.map((path) => readFileSync(join(lake, '_quarantine', path)))).toEqual([before]);
    await cryptodlOk([...vision(lake), '--from', '2026-09-28']);
    expect(await parquetDigests(lake)).toEqual(digests);
    expect(found(await verify(lake, '--deep'))).toEqual([]);
  });

  it.each([
    ['--format', 'csv'],
    ['--numbers', 'string'],
    ['--partition', 'day'],
    ['--format', 'zip'],
  ])('finds and mends damage in a series with %s %s, also without its manifest', async (...flags) => {
    const lake = newLake();
    await cryptodlOk([...vision(lake), '--from', '2026-10-01', ...flags]);
    const ending = flags[1] === 'csv' ? '.csv' : flags[1] === 'zip' ? '.zip' : '.parquet';
    const content = (): string[] =>
      filesBelow(lake, ending)
        .filter((path) => !path.startsWith('_quarantine'))
        .map((path) => `${path} ${readFileSync(join(lake, path)).toString('base64')}`);
    const before = content();
    expect(found(await verify(lake, '--deep'))).toEqual([]);
    const [file = ''] = filesBelow(lake, ending);
    flipBit(join(lake, file), 60);
    const result = await verify(lake);
    expect([result.code, found(result)]).toEqual([4, [`damaged ${file.replaceAll('\\', '/')}`]]);
    expect((await repair(lake)).code).toBe(0);
    expect(content()).toEqual(before);
    rmSync(join(lake, MANIFEST));
    expect((await verify(lake, '--fix')).code).toBe(0);
    expect(content()).toEqual([]);
    await cryptodlOk([...vision(lake), '--from', '2026-10-01', ...flags]);
    expect([content(), found(await verify(lake, '--deep'))]).toEqual([before, []]);
  });

  it('--deep finds rows out of order in a file whose size and digest match the manifest', async () => {
    const lake = copy();
    const file = join(lake, OCTOBER);
    await rewrite(file, 'SELECT * FROM $FILE ORDER BY open_time DESC');
    const { createHash } = await import('node:crypto');
    const bytes = readFileSync(file);
    const digest = createHash('sha256').update(bytes).digest('hex');
    editLines(lake, (lines) =>
      lines.map((line) => {
        const fields = JSON.parse(line) as Record<string, unknown>;
        if (fields['file'] !== '2026-10.parquet') return line;
        return JSON.stringify({ ...fields, fileBytes: bytes.length, fileSha256: digest });
      }),
    );
    expect(found(await verify(lake))).toEqual([]);
    const deep = await verify(lake, '--deep');
    expect([deep.code, found(deep)]).toEqual([4, [`damaged ${OCTOBER}`]]);
    expect(deep.stdout).toContain('not in the order of open_time');
  });
});

describe('repair', () => {
  it('fetches the missing days between the first and the last held day, once', async () => {
    const lake = newLake();
    await cryptodlOk([...vision(lake), '--from', '2026-09-28', '--to', '2026-09-28']);
    await cryptodlOk([...vision(lake), '--from', '2026-10-05', '--to', '2026-10-05']);
    const planned = await cryptodl(['repair', ...places(lake), '--dry-run']);
    expect(planned.stdout.match(/^fetch\t/gm)).toHaveLength(6);
    expect((await repair(lake)).events.at(-1)).toMatchObject({ outcomes: { ok: 6 }, exitCode: 0 });
    expect(await parquetDigests(lake)).toEqual(digests);
    const again = await repair(lake);
    expect(again.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 0 }, exitCode: 0 });
  });

  it('reports a day that neither the archive nor REST has, and keeps the other days', async () => {
    const lake = newLake();
    archive.fault = (path, _request, response) => {
      if (!path.includes('2026-10-02')) return false;
      response.writeHead(404).end();
      return true;
    };
    await cryptodl([...vision(lake), '--from', '2026-10-01']);
    const result = await repair(lake, '--fapi-url', 'http://127.0.0.1:9', '--strict');
    expect(result.code).not.toBe(0);
    archive.fault = undefined;
    expect((await repair(lake)).code).toBe(0);
    expect(await parquetDigests(lake)).toEqual([digests[1]]);
  });
});

describe('a lake', () => {
  it('copied to another path and with other file times is sound', async () => {
    const lake = join(scratch, 'other place', 'deeper', 'ünïcode');
    mkdirSync(dirname(lake), { recursive: true });
    cpSync(sound, lake, { recursive: true });
    for (const file of filesBelow(lake)) utimesSync(join(lake, file), 1, 1);
    const result = await verify(lake, '--deep');
    expect([result.code, found(result)]).toEqual([0, []]);
    const run = await cryptodl([...vision(lake), '--from', '2026-09-28', '--json']);
    expect(run.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 8 } });
  });

  it.skipIf(MISSING.mount !== undefined)(
    'on a read-only file system can be verified; --fix names the error',
    async () => {
      const lake = copy();
      flipBit(join(lake, OCTOBER), 700);
      readOnly(lake);
      expect(found(await verify(lake, '--deep'))).toEqual([`damaged ${OCTOBER}`]);
      const refused = await verify(lake, '--fix');
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringContaining('the file system is read-only'),
      ]);
    },
  );

  it('is sound and keeps its rows when the clock is set back', async () => {
    const lake = copy();
    const then = ['--now', '2026-09-30T08:00:00Z'];
    expect(found(await verify(lake, '--deep', ...then))).toEqual([]);
    expect((await repair(lake, ...then)).code).toBe(0);
    expect((await cryptodl(['vision', ...places(lake), ...then])).code).toBe(0);
    expect(await parquetDigests(lake)).toEqual(digests);
    expect(manifestLines(join(lake, SERIES))).toHaveLength(8);
  });

  it('that another run is writing is not verified (exit 6), and the files of that run are no leftovers', async () => {
    const lake = copy();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const asked = new Promise<void>((resolve) => {
      archive.fault = (path, request, response) => {
        if (!path.endsWith('2026-10-05.zip')) return false;
        resolve();
        void held.then(() => {
          archive.serve(request, response);
        });
        return true;
      };
    });
    rmSync(join(lake, OCTOBER));
    const writing = cryptodlProcess([...vision(lake), '--from', '2026-10-01']);
    await asked;
    const [looked, fixed] = [await verify(lake), await verify(lake, '--fix')];
    release();
    expect([looked.code, found(looked), fixed.code]).toEqual([6, [], 6]);
    expect((await writing).code).toBe(0);
    expect(existsSync(join(lake, OCTOBER))).toBe(true);
    appendFileSync(join(lake, 'note'), 'the root is not ours');
    expect((await verify(lake)).code).toBe(0);
  });
});
