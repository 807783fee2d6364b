import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import type { Cell } from '../../src/convert/query-stream.js';
import type { Io } from '../../src/model/io.js';
import { printTable } from '../../src/query/print-table.js';

async function tableOf(names: readonly string[], rows: readonly (readonly Cell[])[]): Promise<string[]> {
  const stdout = new PassThrough();
  const batches = (async function* () {
    await Promise.resolve();
    yield rows;
  })();
  const columns = names.map((name) => ({ name, isNumber: false }));
  await printTable({ stdout, isRead: () => true } as unknown as Io, { columns, batches });
  stdout.end();
  return (await text(stdout)).trimEnd().split('\n').slice(2);
}

it('shows the times of a column in one form: with microseconds if one of them has a fraction', async () => {
  expect(
    await tableOf(
      ['whole', 'mixed'],
      [
        ['2026-11-20T00:00:00.000000Z', '2026-11-20T00:00:00.000000Z'],
        [null, '2026-11-20T00:00:00.500000Z'],
        ['2026-11-20T08:00:00.000000Z', 'infinity'],
      ],
    ),
  ).toEqual([
    '2026-11-20 00:00:00  2026-11-20 00:00:00.000000',
    'NULL                 2026-11-20 00:00:00.500000',
    '2026-11-20 08:00:00  infinity',
  ]);
});
