/** Options as texts: the lines of `--print-options`, and the flags of a next command. */
import { hiddenAddress } from './addresses.js';
import { flagSpec, isSwitch, optionName, type FlagName } from './flags.js';
import type { Resolved } from './resolve.js';
import { flagFor, flagsOf, type VerbSpec } from './verb-spec.js';

/** Addresses with a secret: each program that has the path can send messages in the name of the user; that of Redis has its password. */
export const SECRET_ADDRESSES: ReadonlySet<string> = new Set<FlagName>(['ping', 'alert-webhook', 'redis']);

/** The lines of `--print-options`, one per option: `market  um  (default)`. A secret address is hidden, because users pass the text on. */
export function optionLines(verb: VerbSpec, resolved: Resolved): string[] {
  const names = flagsOf(verb).filter((name) => name !== 'print-options');
  const width = Math.max(...names.map((name) => name.length));
  return names.map((name) => {
    const text = shownText(name, verb, resolved);
    const shown =
      SECRET_ADDRESSES.has(name) && resolved.options[optionName(name)] ? hiddenAddress(text) : text;
    return `${name.padEnd(width)}  ${shown}  (${resolved.origins[name]})`;
  });
}

/** The text of a value that is a text; else the given text, or the default. */
function shownText(name: FlagName, verb: VerbSpec, { options, origins, texts }: Resolved): string {
  const value: unknown = options[optionName(name)];
  const { default: fixed, unset = '-' } = flagFor(name, verb);
  const items: readonly unknown[] = value === undefined ? [] : [value].flat();
  if (items.length === 0 || (isSwitch(name) && origins[name] === 'default')) return unset;
  if (items.every((item) => typeof item === 'string')) return items.join(',');
  if (texts[name] !== undefined) return givenText(name, texts[name]);
  return fixed ?? `${Number(value)}${flagSpec(name).unit === 'Ms' ? 'ms' : ''}`;
}

/** For a flag that takes one value, the last one counts. */
const givenText = (name: FlagName, values: readonly string[]): string =>
  (flagSpec(name).list === undefined ? values.slice(-1) : values).join(',');

/** The given flags of these names that the verb takes, without those of the environment: the next command has them from there. */
export function givenWords(
  { texts, origins }: Resolved<never>,
  verb: VerbSpec,
  names: readonly FlagName[],
): string[] {
  const known = flagsOf(verb);
  return names.flatMap((name) => {
    const values = texts[name];
    if (values === undefined || origins[name] === 'environment' || !known.includes(name)) return [];
    return [`--${name}`, givenText(name, values)];
  });
}
