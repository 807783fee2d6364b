/** `--help` and `--help-all`: their size, their examples, and that they speak of the flags and values of their verb only. */
import { VERBS } from '../../../src/main.js';
import type { VerbSpec } from '../../../src/plan/options/verb-spec.js';
import { describe, expect, it } from 'vitest';
import { parseCommandLine } from '../../../src/cli/program.js';
import type { Invocation } from '../../../src/plan/options/resolve.js';
import { FLAG_NAMES, flagSpec } from '../../../src/plan/options/flags.js';
import { flagFor, flagsOf, shownDefault } from '../../../src/plan/options/verb-spec.js';
import type { FlagName } from '../../../src/plan/options/flags.js';

const TIERS = ['--help', '--help-all'] as const;

/** Parses a line; `said`: the help if the line asks for it. */
function parse(
  argv: readonly string[],
  columns?: number,
): { invocation: Invocation | undefined; said: string } {
  let said = '';
  const stdout = {
    write: (text: string) => (said += text),
    ...(columns === undefined ? {} : { columns }),
  };
  const invocation = parseCommandLine(argv, VERBS, stdout);
  return { invocation, said };
}

function linesOf(text: string): string[] {
  return text.trimEnd().split('\n');
}

/** The text in one line. */
function flat(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}

/** The flags that have an entry in a help text. */
function entriesOf(said: string): string[] {
  return [...said.matchAll(/^ {2}(?:-\w, | {4})--([a-z0-9-]+)/gm)].map(([, name = '']) => name);
}

/** The entry of a flag: term, text and default. */
function entryOf(said: string, name: FlagName): string {
  const [, after = ''] = said.split(new RegExp(`^ {2}(?:-\\w, | {4})--${name}\\b`, 'm'));
  return flat(after.split(/^(?: {2}(?:-\w, | {4})--|\S|$)/m)[0] ?? '');
}

/** Text without commands of other verbs: `cryptodl list datasets shows them`. */
function withoutCommands(said: string): string {
  return flat(said).replaceAll(/\bcryptodl [a-z][^;,:.()]*/g, '');
}

function examplesOf(said: string): string[] {
  const [, after = ''] = said.split('Examples:\n');
  return linesOf(after.split('\n\n')[0] ?? '').map((line) => line.trim());
}

/** Parses an example as a shell and the program do. */
function parseExample(line: string): Invocation | undefined {
  const words = (line.split(/ [>|] /)[0] ?? '').match(/'[^']*'|\S+/g) ?? [];
  expect(words[0]).toBe('cryptodl');
  return parse(words.slice(1).map((word) => word.replace(/^'|'$/g, ''))).invocation;
}

describe.each(['program', ...Object.keys(VERBS)])('the help of %s', (subject) => {
  const line = subject === 'program' ? [] : [subject];
  const brief = parse([...line, '--help']).said;
  const all = parse([...line, '--help-all']).said;

  it('has at most 45 lines of at most 80 columns, and names --help-all and the exit codes in a line each', () => {
    expect(linesOf(brief).length, 'shorten the part of `doc` before its first ;').toBeLessThanOrEqual(45);
    expect(linesOf(brief).filter((each) => each.includes('--help-all'))).toHaveLength(1);
    expect(linesOf(brief).filter((each) => /^Exit codes: 0 .*, 2 usage/.test(each))).toHaveLength(1);
  });

  it('--help-all names the exit codes of signals', () => {
    expect(all).toMatch(/^ {2}130 +ended by SIGINT/m);
    expect(all).toMatch(/^ {2}143 +ended by SIGTERM/m);
  });

  it.each(TIERS)('%s has no line wider than the terminal, except for examples and long words', (tier) => {
    for (const columns of [undefined, 60, 80, 120]) {
      const { said } = parse([...line, tier], columns);
      const examples = examplesOf(said);
      const wide = linesOf(said).filter(
        (text) =>
          text.length > (columns ?? 80) &&
          (columns !== 60 || (text.trim().includes(' ') && !examples.includes(text.trim()))),
      );
      expect({ columns, wide }).toEqual({ columns, wide: [] });
    }
  });

  it('has three examples that are parsed, in both tiers', () => {
    expect(examplesOf(brief)).toHaveLength(3);
    for (const example of [...examplesOf(brief), ...examplesOf(all)])
      expect({ example, isParsed: parseExample(example) !== undefined }).toEqual({ example, isParsed: true });
  });

  it('has no colour', () => {
    expect(brief + all).not.toContain('\u001B');
  });
});

describe.each(Object.values(VERBS))('$name', (verb) => {
  const [brief = '', all = ''] = TIERS.map((tier) => parse([verb.name, tier]).said);

  it('--help-all has every flag of the table with its meaning and default, and no other', () => {
    const text = flat(all);
    for (const name of flagsOf(verb)) {
      const preset = shownDefault(name, verb);
      expect(text).toContain(flagFor(name, verb).doc);
      expect(flagFor(name, verb).doc).not.toContain('default:');
      if (preset !== undefined) expect(text).toContain(`(default: ${preset})`);
    }
    expect(entriesOf(all).sort()).toEqual([...flagsOf(verb)].sort());
  });

  it('--help shows at most 24 flags, all of the verb, with the first part of their meaning', () => {
    const shown = flagsOf(verb).filter((name) => entriesOf(brief).includes(name));
    expect(shown).toHaveLength(entriesOf(brief).length);
    expect(shown.length, 'move a flag from flags to moreFlags').toBeLessThanOrEqual(24);
    for (const name of shown) expect(entryOf(brief, name)).toContain(flagFor(name, verb).doc.split('; ')[0]);
  });

  it.each(TIERS)('%s mentions no flag that the verb refuses', (tier) => {
    const said = withoutCommands(tier === '--help' ? brief : all);
    const named = [...said.matchAll(/(?<![\w-])--([a-z][a-z0-9-]*)/g)].map(([, name = '']) => name);
    const known: readonly string[] = [...flagsOf(verb), 'help', 'help-all'];
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });

  it.each(TIERS)('%s mentions no value that the verb refuses', (tier) => {
    const said = tier === '--help' ? brief : all;
    for (const name of flagsOf(verb)) {
      const refused = otherChoices(name, verb);
      const words = entryOf(said, name).match(/[\w-]+/g) ?? [];
      expect({ name, refused: words.filter((word) => refused.includes(word)) }).toEqual({
        name,
        refused: [],
      });
    }
  });
});

/** The values of a flag that other verbs take, and this verb does not. */
function otherChoices(name: FlagName, verb: VerbSpec): string[] {
  const own = flagFor(name, verb).choices ?? [];
  return (flagSpec(name).choices ?? []).filter((choice) => !own.includes(choice));
}

it('the short flags are those of the most used flags, each letter once', () => {
  const shorts = FLAG_NAMES.flatMap((name) => {
    const { short } = flagSpec(name);
    return short === undefined ? [] : [`-${short} ${name}`];
  });
  expect(shorts.sort()).toEqual([
    '-d days',
    '-f format',
    '-i interval',
    '-m market',
    '-n dry-run',
    '-o out',
    '-q quiet',
    '-s symbols',
  ]);
});
