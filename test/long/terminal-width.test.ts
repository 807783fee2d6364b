/** On a terminal of any width, no line is broken inside a word. */
import { describe, expect, it } from 'vitest';
import { cryptodlOk } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';
import { HAS_TERMINAL, onTerminal, TERMINAL } from '../helpers/terminal.js';

const scene = useScene({
  archive: [
    { from: '2026-11-01', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'] },
    { from: '2026-11-01', to: '2026-11-12', symbols: ['XRPUSDT'] },
  ],
});

describe.skipIf(!HAS_TERMINAL).each([60, 80])(`on ${TERMINAL} of %i columns`, (columns) => {
  const linesOf = async (...args: readonly string[]): Promise<string[]> => {
    const { sent } = await onTerminal(args, { folder: scene.newFolder(), columns, isAllShown: true });
    return sent.split('\n').map((line) => line.split('\r').findLast((part) => part !== '') ?? '');
  };
  const tooLong = (lines: readonly string[]): string[] =>
    lines.filter((line) => bare(line).length > columns && /\S \S/.test(bare(line)));

  it('the plan and the closing block of a run, coverage, runs, and doctor fit', async () => {
    const lake = scene.newFolder();
    const { url } = scene.archive;
    const range = ['--interval', '1h', '--from', '2026-11-01', '--to', '2026-11-20', '--now', scene.now];
    const symbols = 'BTCUSDT,ETHUSDT,XRPUSDT,DOGEUSDT';
    const run = ['vision', '--symbols', symbols, '--skip-unknown', ...range, '--archive-url', url];
    expect(tooLong(await linesOf(...run, '--out', lake))).toEqual([]);
    expect(tooLong(await linesOf('coverage', '--out', lake, '--now', scene.now))).toEqual([]);
    expect(tooLong(await linesOf('runs', '--out', lake))).toEqual([]);
    expect(tooLong(await linesOf('doctor', '--out', lake, '--archive-url', url, '--now', scene.now))).toEqual(
      [],
    );
  });

  it.each(['schema klines', 'list datasets', 'list markets', 'vision --help', '--help-all'])(
    '%s fits, and has each word of a pipe',
    async (line) => {
      const args = line.split(' ');
      const lines = await linesOf(...args);
      expect(tooLong(lines)).toEqual([]);
      const wordsOf = (text: string): Set<string> => new Set(text.split(/[\s,]+/));
      const { stdout } = await cryptodlOk(args);
      const shown = wordsOf(lines.join('\n'));
      expect([...wordsOf(stdout)].filter((word) => !shown.has(word))).toEqual([]);
    },
  );
});

/** Without colours. A quoted word of a command has blanks, but is one word. */
function bare(line: string): string {
  return line
    .replaceAll(/\p{Cc}\[[\d;?]*[a-zA-Z]/gu, '')
    .replaceAll(/'[^']*'/g, (word) => word.replaceAll(' ', '_'))
    .replace(/ \\$/, '');
}
