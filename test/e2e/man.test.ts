/** `cryptodl man` and the man page of the package. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { VERBS } from '../../src/options/flag-spec.js';
import { flagsOf } from '../../src/options/flags.js';
import { cryptodlOk } from '../helpers/cli.js';

const ROOT = new URL('../../', import.meta.url);

/** Whether the program is installed; a minimal Debian replaces `man` by a script that prints a note. */
function isInstalled(program: string): boolean {
  const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return status === 0 && !stdout.includes('minimized');
}

const isMissing = !isInstalled('man') || !isInstalled('groff');

let page: string;
beforeAll(async () => {
  page = (await cryptodlOk(['man'])).stdout;
});

/** The page as `man` shows it at 80 columns. */
function shown(): { readonly text: string; readonly warnings: string } {
  const env = { ...process.env, MANWIDTH: '80', LC_ALL: 'C.UTF-8' };
  const { stdout, stderr } = spawnSync('man', ['--warnings=w', '-l', '-'], {
    input: page,
    env,
    encoding: 'utf8',
  });
  return { text: stdout, warnings: stderr };
}

describe('the man page', () => {
  it('is the file dist/cryptodl.1 that package.json names', () => {
    const { man, files } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
      man: string;
      files: readonly string[];
    };
    expect(man).toBe('dist/cryptodl.1');
    expect(files).toContain('dist');
    expect(readFileSync(new URL(man, ROOT), 'utf8')).toBe(page);
  });

  describe.skipIf(isMissing)('man and groff (apt-get install man-db groff)', () => {
    it('show it without a warning', () => {
      expect(shown().warnings).toBe('');
      const { status, stderr } = spawnSync('groff', ['-man', '-Tutf8', '-ww'], {
        input: page,
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([0, '']);
    });

    it('show each command with its flags and examples, as the user types them', () => {
      const { text } = shown();
      for (const verb of VERBS) {
        const [, part = ''] = text.split(new RegExp(`^CRYPTODL ${verb.toUpperCase()}$`, 'm'));
        const own = part.split(/^CRYPTODL /m)[0] ?? '';
        const flags = [...own.matchAll(/^ {2}(?:-\w, | {4})--([a-z0-9-]+)/gm)].map(([, name]) => name);
        expect({ verb, flags }).toEqual({ verb, flags: expect.arrayContaining([...flagsOf(verb)]) });
        expect(own).toMatch(/^Examples:\n +cryptodl /m);
      }
      expect(text).toContain("cryptodl vision -m spot -i 1m,1h -s '*USDT' --from 2024-01-01 --to 2024-03-31");
      expect(text).toContain('> ~/.local/share/man/man1/cryptodl.1');
    });
  });
});
