/** The lines of `--print-options`: readable, and valid as lines of a config file. */
import { VERBS } from '../../../src/main.js';
import type { VerbSpec } from '../../../src/plan/options/verb-spec.js';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { optionLines, SECRET_ADDRESSES } from '../../../src/plan/options/print-options.js';
import { flagFor, flagsOf } from '../../../src/plan/options/verb-spec.js';
import { configLayer } from '../../../src/plan/options/config-file.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import type { RawLayer, RawValues, Resolved } from '../../../src/plan/options/resolve.js';
import { flagValue } from '../../helpers/flag-values.js';

function flags(values: RawValues): RawLayer {
  return { origin: 'flag', values, nameOf: (name) => `--${name}` };
}

/** Each flag of the verb with a value that is not its default. */
function valuesOf(verb: VerbSpec): RawValues {
  const values: RawValues = {};
  // Secret addresses are not printed.
  const left = flagsOf(verb).filter((name) => !SECRET_ADDRESSES.has(name));
  for (const name of left.filter((one) => one !== 'config' && one !== 'print-options')) {
    const { choices, default: usual } = flagFor(name, verb);
    values[name] = [choices?.find((one) => one !== usual) ?? flagValue(name)[0]];
  }
  return values;
}

/** A config file with the lines of the options that were given. */
function printedFile(verb: VerbSpec, resolved: Resolved): string {
  return optionLines(verb, resolved)
    .map((line) => /^(\S+) +(.*) {2}\(flag\)$/.exec(line))
    .flatMap((found) => (found === null ? [] : [`${found[1] ?? ''}: ${JSON.stringify(found[2])}\n`]))
    .join('');
}

it.each(Object.values(VERBS).filter((verb) => flagsOf(verb).includes('print-options')))(
  'the options of %s, written into a config file, give the same values',
  (verb) => {
    const values = valuesOf(verb);
    // An egress group needs a server, whose address is not printed.
    const server = { origin: 'environment', values: { redis: ['redis://queue'] }, nameOf: String } as const;
    const resolved = resolveOptions(verb, [flags(values), server]);
    const file = printedFile(verb, resolved);
    expect(file.split('\n').length - 1).toBe(Object.keys(values).length);
    const again = resolveOptions(verb, [configLayer('c.yaml', parse(file), verb.name), server]);
    expect(again.options).toEqual(resolved.options);
  },
);

it('shows values as they are given, and those that other options decide', () => {
  const given = { 'idle-timeout': ['90000ms'], 'max-bytes': ['2048MiB'], now: ['2026-11-21'] } as const;
  const lines = optionLines(VERBS.vision, resolveOptions(VERBS.vision, [flags(given)]));
  for (const line of ['idle-timeout +90000ms', 'max-bytes +2048MiB', 'now +2026-11-21'])
    expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^${line} {2}\\(flag\\)$`)));
  expect(lines).toContainEqual(expect.stringMatching(/^retry-delay +100ms {2}\(default\)$/));
});
