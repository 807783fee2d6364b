/** The flags of a command line again, for the next command. */
import { flagsOf, flagSpec } from './flags.js';
import type { FlagName } from './flags.js';
import type { Verb } from './flag-spec.js';
import type { Resolved } from './resolve.js';

/** The given flags of these names that the verb takes, without those of the environment: the next command has them from there. */
export function givenWords({ texts, origins }: Resolved, verb: Verb, names: readonly FlagName[]): string[] {
  const known = flagsOf(verb);
  return names.flatMap((name) => {
    const values = texts[name];
    if (values === undefined || origins[name] === 'environment' || !known.includes(name)) return [];
    // For a flag that takes one value, the last one counts.
    const given = flagSpec(name).list === undefined ? values.slice(-1) : values;
    return [`--${name}`, given.join(',')];
  });
}
