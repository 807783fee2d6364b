/** The roff source of the man page, read back without groff. */
import { VERBS } from '../../../src/main.js';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { helpText, manPage, roff } from '../../../src/cli/help.js';

/** The text that roff prints for a source of our escapes. */
function printed(source: string): string {
  const characters: Readonly<Record<string, string>> = {
    '\\e': '\\',
    '\\-': '-',
    '\\(aq': "'",
    '\\(dq': '"',
    '\\(ga': '`',
    '\\(ha': '^',
    '\\(ti': '~',
    '\\(mu': '×',
    '\\&': '',
  };
  return source.replaceAll(/\\(?:\(..|.)/g, (escape) => characters[escape] ?? `?${escape}?`);
}

describe('a text in roff', () => {
  it.each([
    ['--out', String.raw`\-\-out`],
    ['a\\b\\n', String.raw`a\eb\en`],
    ['.TH', String.raw`\&.TH`],
    ['./lake.sh', String.raw`\&./lake.sh`],
    ['\'quoted\' "text"', String.raw`\(aqquoted\(aq \(dqtext\(dq`],
    ['`^~×', String.raw`\(ga\(ha\(ti\(mu`],
    ['a … b', 'a ... b'],
  ])('%s is %s', (text, source) => {
    expect(roff(text)).toBe(source);
    expect(printed(source)).toBe(text.replace('…', '...'));
  });
});

const page = manPage(VERBS);
const lines = page.split('\n');

describe('the source of the man page', () => {
  it('is the file that `cryptodl man` has printed, and that package.json names', () => {
    const { man } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly man: string };
    expect(readFileSync(man, 'utf8').trimEnd()).toBe(page.trimEnd());
  });

  it('has only known commands, and no text that begins like one', () => {
    const commands = new Set(lines.filter((line) => /^[.']/.test(line)).map((line) => line.split(' ')[0]));
    expect(commands).toEqual(new Set(['.TH', '.SH', '.in', '.nf', '.fi']));
  });

  it('has no character that roff changes', () => {
    const texts = lines.filter((line) => !/^\.(TH|SH)/.test(line));
    expect(texts.filter((line) => /['"`^~×…]|(?<!\\)-/.test(line))).toEqual([]);
    expect(printed(page)).not.toContain('?\\');
  });

  it.each(Object.values(VERBS))('has the whole help of $name', (verb) => {
    const from = lines.indexOf(`.SH CRYPTODL ${verb.name.toUpperCase()}`);
    const shown = lines.slice(from + 3, lines.indexOf('.fi', from)).map(printed);
    expect(shown).toEqual(helpText(verb, VERBS, 'all').trimEnd().replaceAll('…', '...').split('\n'));
  });
});
