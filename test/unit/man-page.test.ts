/** The roff source of the man page, read back without groff. */
import { describe, expect, it } from 'vitest';
import { flagItem, RUN_CODES, SIGNAL_EXITS, usageOf } from '../../src/cli/help.js';
import { manPage, roff } from '../../src/cli/man.js';
import { VERB_TEXTS } from '../../src/cli/verbs.js';
import { VERBS } from '../../src/options/flag-spec.js';
import { flagsOf, shownDefault } from '../../src/options/flags.js';

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

const page = manPage();
const lines = page.split('\n');

/** The source of the section of this title. */
function sectionOf(title: string): string[] {
  const from = lines.indexOf(`.SH ${title}`) + 1;
  expect(from).toBeGreaterThan(0);
  const length = lines.slice(from).findIndex((line) => line.startsWith('.SH '));
  return lines.slice(from, length < 0 ? undefined : from + length);
}

/** Terms and texts. */
function itemsOf(section: readonly string[]): string[][] {
  return section.flatMap((line, at) =>
    line === '.TP' ? [[section[at + 1] ?? '', section[at + 2] ?? ''].map(printed)] : [],
  );
}

const itemOf = ([term, text]: readonly [string, string]): string[] => [
  `.B ${term.trim()}`,
  text.replaceAll('…', '...'),
];

describe('the source of the man page', () => {
  it('has only known commands, and no text that begins like one', () => {
    const commands = new Set(lines.filter((line) => /^[.']/.test(line)).map((line) => line.split(' ')[0]));
    expect(commands).toEqual(new Set(['.TH', '.nh', '.ad', '.SH', '.B', '.br', '.TP', '.PP', '.nf', '.fi']));
  });

  it('has no character that roff changes', () => {
    const texts = lines.filter((line) => !/^\.(TH|SH)/.test(line));
    expect(texts.filter((line) => /['"`^~×…]|(?<!\\)-/.test(line))).toEqual([]);
    expect(printed(page)).not.toContain('?\\');
  });

  it('has each command with its words, its flags with their defaults, and its examples', () => {
    const synopsis = sectionOf('SYNOPSIS').map(printed);
    for (const verb of VERBS) {
      expect(synopsis).toContain(`.B cryptodl ${usageOf(verb)}`);
      const section = sectionOf(`CRYPTODL ${verb.toUpperCase()}`);
      const { doc, examples } = VERB_TEXTS[verb];
      expect(printed(section[0] ?? '').toLowerCase()).toBe(`${doc.replaceAll('…', '...')}.`.toLowerCase());
      expect(itemsOf(section)).toEqual(flagsOf(verb).map((name) => itemOf(flagItem(name, verb, 'all'))));
      const shown = section.slice(section.indexOf('.nf') + 1, section.indexOf('.fi'));
      expect(shown.map(printed)).toEqual(examples.map((line) => `    ${line.replaceAll('…', '...')}`));
    }
    const [, text = ''] =
      itemsOf(sectionOf('CRYPTODL VISION')).find(([term]) => term === '.B --retries N') ?? [];
    expect(text).toContain(`(default: ${shownDefault('retries', 'vision') ?? '?'})`);
  });

  it('has the exit codes, also those of signals', () => {
    const items = [...Object.entries(RUN_CODES), ...SIGNAL_EXITS].map(([code, text]) => itemOf([code, text]));
    expect(itemsOf(sectionOf('EXIT STATUS'))).toEqual(items);
    expect(items.map(([code]) => code)).toEqual(expect.arrayContaining(['.B 0', '.B 130', '.B 143']));
  });
});
