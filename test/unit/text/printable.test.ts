/** What is written for people and programs: nothing that steers a terminal, and no password. */
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { jsonText, linesText, printable, shellWord, tabbed } from '../../../src/text/printable.js';

describe('a line of text', () => {
  it.each([
    ['a\u001b[31mb', String.raw`a\x1b[31mb`],
    ['a\nb\r', String.raw`a\nb\r`],
    ['\u0000\u007f\u009b', String.raw`\x00\x7f\x9b`],
    ['a\u2028b\u2029c', String.raw`a\u2028b\u2029c`],
    ['\u202eTDSU\u2066', String.raw`\u202eTDSU\u2066`],
    ['币安人生USDT, ĞÜ, 🚀, a\tb', '币安人生USDT, ĞÜ, 🚀, a\tb'],
    ['--proxy http://u:pw@h:1 is gone', '--proxy http://u:***@h:1 is gone'],
  ])('%j is written as %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
    expect(linesText([text])).toBe(`${shown}\n`);
    expect(printable(shown)).toBe(shown);
  });

  it('has one tab between two cells with any content', () => {
    expect(tabbed(['a\tb', 7, 'c\nd'])).toBe('a\\tb\t7\tc\\nd');
  });
});

describe('a record', () => {
  it('is one line without control characters, and reads as the original', () => {
    const record = { name: 'a\n\u001b\u009b\u2028\u202e"\\', list: ['ü', 1, null] };
    expect(jsonText(record)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
    expect(JSON.parse(jsonText(record))).toEqual(record);
  });

  it('has no password in any of its texts, and loses nothing beside it', () => {
    const record = { url: 'http://u:p"w@h/x', more: { all: ['see http://a:b@c', 'x@y'] } };
    expect(JSON.parse(jsonText(record))).toEqual({
      url: 'http://u:***@h/x',
      more: { all: ['see http://a:***@c', 'x@y'] },
    });
    expect(jsonText({ url: record.url, all: [] }, 2)).toBe('{\n  "url": "http://u:***@h/x",\n  "all": []\n}');
  });
});

describe('a word for a shell', () => {
  const printedBy = (shell: string, word: string): string =>
    execFileSync(shell, ['-c', `printf '%s|' ${printable(shellWord(word))}`], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C.UTF-8' },
    });

  it.each([
    ['plain', '/srv/lake-1/币安人生USDT.jsonl'],
    ['spaces', 'my  lake'],
    ['quotes', `it's "mine"`],
    ['a variable', '$HOME'],
    ['a command', '`id` $(id)'],
    ['backslashes', String.raw`a\n\\b`],
    ['a pattern', '*?[a]{b,c}'],
    ['a history reference', '!!'],
    ['a home folder', '~/lake'],
    ['a comment', '# no'],
    ['operators', 'a;b&c|d>e<f'],
    ['nothing', ''],
  ])('is read unchanged: %s', (_, word) => {
    expect(printedBy('sh', word)).toBe(`${word}|`);
  });

  it.each([['a\nb'], ['\r\t\u001b7\u007f'], ["'\n'"], ['\\\n$HOME'], ['\u202eb\u2028c\u0085']])(
    'is read unchanged by bash: %j',
    (word) => {
      expect(printedBy('bash', word)).toBe(`${word}|`);
    },
  );

  it('has no quotes that it does not need', () => {
    expect(shellWord('/srv/lake-1/币安人生,USDT_@%+=:.jsonl')).toBe('/srv/lake-1/币安人生,USDT_@%+=:.jsonl');
  });
});
