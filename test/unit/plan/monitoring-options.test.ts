/** The value of `--prometheus-textfile`. */
import { expect, it } from 'vitest';
import { promFile } from '../../../src/plan/options/message-flags.js';

it('--prometheus-textfile takes names that end in .prom', () => {
  expect(promFile('/var/lib/x/cryptodl.prom', '--x')).toBe('/var/lib/x/cryptodl.prom');
  for (const text of ['cryptodl', 'a.b/cryptodl.txt', 'folder/', 'folder/.prom', ''])
    expect(() => promFile(text, '--x')).toThrow('is not a file with the ending .prom');
});
