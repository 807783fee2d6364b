import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdtemp, open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { completeLinesLength, completeLines } from '../../../src/lake/complete-lines.js';
import { refuse, withBlockingReads } from '../../helpers/file-handles.js';
import { openFiles, scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();
/** Read at once: from the start of a file, and from its end. */
const CHUNK = 256 * 1024;
const TAIL = 64 * 1024;

async function fileOf(content: string): Promise<string> {
  const path = join(await mkdtemp(join(scratch, 'lines-')), 'file');
  writeFileSync(path, content);
  return path;
}

async function linesOf(path: string): Promise<string[]> {
  const parts: string[][] = [];
  for await (const lines of completeLines(path)) parts.push(lines);
  return parts.flat();
}

it.each([
  ['one that fills what is read at once', ['x'.repeat(CHUNK - 1), 'y']],
  ['one that is longer than what is read at once', ['a', 'x'.repeat(CHUNK), 'y']],
  ['two that are several times as long', ['x'.repeat(3 * CHUNK), '币'.repeat(CHUNK), 'y']],
  ['many, one of which lies across the border', Array.from({ length: 50_000 }, (_, at) => `line ${at}`)],
])('lines are read whole: %s', async (_, lines) => {
  expect((await linesOf(await fileOf(`${lines.join('\n')}\n`))).join('\n') === lines.join('\n')).toBe(true);
});

it.each(['b', 'bb', 'bbb'])(
  'a torn last line %j behind all that is read at once is left out',
  async (torn) => {
    const lines = await linesOf(await fileOf(`${'a\n'.repeat(CHUNK / 2)}${torn}`));
    expect([lines.length, lines.at(-1)]).toEqual([CHUNK / 2, 'a']);
  },
);

it('an absent file has no lines; an unreadable file is not absent', async () => {
  const path = await fileOf('a\n');
  mkdirSync(`${path}.folder`);
  symlinkSync(path, `${path}.link`);
  expect(await linesOf(`${path}.none`)).toEqual([]);
  await expect(linesOf(`${path}.folder`)).rejects.toThrow('is not a regular file');
  await expect(linesOf(`${path}.link`)).rejects.toThrow('is a symbolic link');
});

it('a line of more than 64 MiB is refused, so that a damaged file does not take all memory', async () => {
  const path = await fileOf('a\n');
  truncateSync(path, 300 * 1024 * 1024);
  await expect(linesOf(path)).rejects.toMatchObject({
    message: expect.stringContaining('has a line of more than 64 MiB') as string,
    hint: expect.stringContaining('from a copy') as string,
  });
  expect(openFiles(path)).toEqual([]);
});

it('a read error in the middle of a file is not its end', async () => {
  const path = await fileOf('a\n'.repeat(CHUNK));
  let reads = 0;
  await withBlockingReads(
    async () => {
      await expect(linesOf(path)).rejects.toThrow(`EIO: refused '${path}'`);
    },
    () => {
      reads += 1;
      if (reads === 2) refuse('EIO');
    },
  );
  expect(openFiles(path)).toEqual([]);
});

it('a file is closed after its last line, and when its reader leaves before', async () => {
  const path = await fileOf('a\nb\n'.repeat(CHUNK));
  for await (const lines of completeLines(path)) {
    expect([lines.length > 0, openFiles(path)]).toEqual([true, [path]]);
    break;
  }
  expect(openFiles(path)).toEqual([]);
  await linesOf(path);
  expect(openFiles(path)).toEqual([]);
});

it.each([
  ['nothing', '', 0],
  ['no whole line', 'x'.repeat(TAIL + 1), 0],
  ['an empty first line', '\nx', 1],
  ['a newline where the last part begins', `${'x'.repeat(9)}\n${'y'.repeat(TAIL - 1)}`, 10],
  ['a newline before the last part', `${'x'.repeat(9)}\n${'y'.repeat(TAIL)}`, 10],
  ['lines before both', `a\nb\n${'y'.repeat(TAIL - 1)}`, 4],
  ['nothing torn', 'a\nb\n', 4],
])('the length up to the last newline: %s', async (_, content, length) => {
  const file = await open(await fileOf(content));
  try {
    expect(await completeLinesLength(file, Buffer.byteLength(content))).toBe(length);
  } finally {
    await file.close();
  }
});
