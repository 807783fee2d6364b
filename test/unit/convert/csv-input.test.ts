import { closeSync, ftruncateSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { archivedColumns } from '../../../src/exchange/exchange-spec.js';
import { findFirstError } from '../../../src/convert/check-rows.js';
import { inspectCsv, rowLines } from '../../../src/convert/csv-input.js';
import type { Inspected } from '../../../src/convert/csv-input.js';
import { received, specOf } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

const folder = scratchFolder();

it('a huge file without any line end is a wrong first line, and never one text in memory', async () => {
  const path = join(folder, 'zeros.csv');
  const file = openSync(path, 'w');
  // Longer than a string can be; without blocks on disk.
  ftruncateSync(file, 2 ** 30);
  closeSync(file);
  const { size } = statSync(path);
  const object = { ...received('2024-01-15', ''), csv: { kind: 'file' as const, path, size } };
  const checked = { name: object.name, symbol: 'BTCUSDT', headerLines: 0 };
  const columns = archivedColumns(specOf('um', 'fundingRate'));
  const wrong = await findFirstError(columns, checked, rowLines(object, 0));
  expect(wrong?.code).toBe('row-malformed');
  expect(wrong?.message).toMatch(/^2024-01-15\.csv line 1: /);
});

describe('a CSV that lies in a file', () => {
  const ROW = '2024-01-15 00:05:00,BTCUSDT,1,2,3,4,5,6\n';
  const CHUNK = 3 * 1024 * 1024;
  const metrics = specOf('um', 'metrics');

  /** What a sink has in the end. */
  async function gathered(content: string): Promise<Inspected & { rowsAsText: string }> {
    const chunks: Buffer[] = [];
    const sink = (rows: Buffer): Promise<void> => {
      chunks.push(Buffer.from(rows));
      return Promise.resolve();
    };
    const inspected = await inspectCsv(
      received('2024-01-15', content, join(folder, 'rows.csv')),
      metrics,
      'BTCUSDT',
      sink,
    );
    return { ...inspected, rowsAsText: chunks.map((chunk) => chunk.toString('latin1')).join('') };
  }

  it('has every row', async () => {
    const content = ROW.repeat(80_000);
    const { rowsAsText, ...inspected } = await gathered(content);
    expect(rowsAsText === content).toBe(true);
    expect(inspected).toEqual({
      rows: 80_000,
      headerLines: 0,
      needsCheck: false,
      isPlain: true,
      newColumns: [],
    });
  });

  it.each([CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1])(
    'loses no line end that is two bytes long, %i bytes from its start',
    async (at) => {
      const count = Math.floor(CHUNK / ROW.length) - 2;
      const first = `${ROW.repeat(count)}${ROW.trim()}${' '.repeat(at - (count + 1) * ROW.length)}\r\n`;
      const { rowsAsText, rows } = await gathered(first + ROW);
      expect(rows).toBe(count + 2);
      expect(rowsAsText === first.replace('\r', '') + ROW).toBe(true);
    },
  );

  it.each([-2, -1, 0, 1, 2])(
    "is looked at closely for a cell too many at its chunks' border %i",
    async (shift) => {
      const before = ROW.repeat(Math.floor(CHUNK / ROW.length) - 1);
      const filled = (end: string): string => {
        const line = ROW.trim();
        const spare = CHUNK + shift - before.length - line.length - end.length;
        return `${before}${line.slice(0, -1)}${'0'.repeat(spare)}6${end}`;
      };
      expect((await gathered(filled(',\n') + ROW)).needsCheck).toBe(true);
      expect((await gathered(filled(',""\n') + ROW)).needsCheck).toBe(true);
      expect((await gathered(filled('\n') + ROW)).needsCheck).toBe(false);
    },
  );

  it('is looked at closely for a long line, also at a border and at its end', async () => {
    const line = ROW.replace(',6\n', `,${'6'.padStart(300, '0')}\n`);
    const before = ROW.repeat(Math.floor((CHUNK - 200) / ROW.length));
    for (const content of [line, line.trim(), before + line])
      expect((await gathered(content)).needsCheck).toBe(true);
  });

  it('is looked at closely for a comma too many at the end of a last line without line feed', async () => {
    expect((await gathered(ROW.repeat(2).trim())).needsCheck).toBe(false);
    expect((await gathered(`${ROW.repeat(2).trim()},`)).needsCheck).toBe(true);
  });

  it('is looked at closely for a carriage return within a line', async () => {
    expect((await gathered(ROW.replace('\n', '\r\n').repeat(2))).needsCheck).toBe(false);
    expect((await gathered(ROW + ROW.replace(',2,', ',2\r,'))).needsCheck).toBe(true);
  });

  it.each(['1_000', '1e-400', '2\t', '+2', '2\0'])(
    'is looked at closely for the cell %o, also in an early chunk and at a border',
    async (cell) => {
      const line = ROW.replace(',2,', `,${cell},`);
      const many = ROW.repeat(Math.floor(CHUNK / ROW.length) - 2);
      expect((await gathered(line + ROW.repeat(80_000))).needsCheck).toBe(true);
      for (const at of cell.split('').keys()) {
        const digits = CHUNK - many.length - ROW.length - line.indexOf(cell) - at;
        const content = many + ROW.replace(',6\n', `,${'6'.padStart(digits + 1, '0')}\n`) + line;
        expect(content.indexOf(cell) + at).toBe(CHUNK);
        expect((await gathered(content)).needsCheck).toBe(true);
      }
    },
  );

  it('may end lines with a blank cell where one belongs', async () => {
    const blank = ROW.replace(',6\n', ',\n');
    expect((await gathered(blank)).needsCheck).toBe(false);
    expect((await gathered(blank.repeat(80_000))).needsCheck).toBe(false);
    // The last line has no end.
    expect((await gathered(blank.trim())).needsCheck).toBe(true);
    // As many commas as all lines together must have.
    const uneven = ROW.replace('6\n', '6,\n') + ROW.replace(',6', '');
    expect((await gathered(uneven)).needsCheck).toBe(true);
  });
});

const METRIC = '2024-01-15 00:05:00,BNBUSDT,1,2,3,4,5,6\n';

it.each(['"2" ', ' "2"'])(
  'the cell %o is looked at closely, also if a time lacks its space',
  async (cell) => {
    const line = METRIC.replace(' 00:05', 'T00:05');
    const needsCheck = async (content: string): Promise<boolean> =>
      (await inspectCsv(received('2024-01-15', content), specOf('um', 'metrics'), 'BNBUSDT')).needsCheck;
    expect(await needsCheck(METRIC + METRIC.replace(',2,', ',"2",'))).toBe(false);
    expect(await needsCheck(METRIC + line.replace(',2,', `,${cell},`))).toBe(true);
  },
);
