/** The sources of options (flags, environment, config file), and the lines of `--print-options`. */
import type { Io } from '../../model/io.js';
import { hiddenAddress } from './addresses.js';
import { environmentName, FLAG_NAMES, flagSpec, isSwitch, optionName } from './flags.js';
import type { FlagName } from './flags.js';
import { environmentLayer } from './resolve.js';
import type { Invocation, RawLayer, Resolved } from './resolve.js';
import { flagFor, flagsOf } from './verb-spec.js';
import type { VerbSpec } from './verb-spec.js';
import { nearest } from '../../text/did-you-mean.js';
import { printLines } from '../../text/printable.js';

/** Flags, environment and config file of an invocation, in order of precedence. */
export async function layersOf(invocation: Invocation, io: Io): Promise<RawLayer[]> {
  const { verb } = invocation;
  const flags = flagLayer(invocation);
  const environment = environmentLayer(io.environment, verb);
  const source = [flags, environment].find(({ values }) => values.config !== undefined);
  const file = source?.values.config?.at(-1);
  if (source === undefined || file === undefined) return [flags, environment];
  const { configLayer, readConfigFile } = await import('./config-file.js');
  const content = await readConfigFile(file, source.nameOf('config'));
  return [flags, environment, configLayer(file, content, verb.name)];
}

const PREFIX = 'CRYPTODL_';

/** Warns of variables whose name is similar to that of an option, because a mistyped one would do nothing. Others may belong to scripts of the user. */
export function warnOfVariables({ environment, stderr }: Io): void {
  const known = FLAG_NAMES.map((name) => environmentName(name).slice(PREFIX.length));
  for (const name of Object.keys(environment)) {
    const word = name.slice(PREFIX.length);
    const near = name.startsWith(PREFIX) && !known.includes(word) ? nearest(word, known) : undefined;
    if (near !== undefined)
      printLines(stderr, [`warning: ${name} is not an option; did you mean ${PREFIX}${near}?`]);
  }
}

export function flagLayer({ values }: Pick<Invocation, 'values'>): RawLayer {
  return { origin: 'flag', values, nameOf: (name) => `--${name}` };
}

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
  if (value === undefined || (isSwitch(name) && origins[name] === 'default')) return unset;
  const items: readonly unknown[] = [value].flat();
  if (items.every((item) => typeof item === 'string')) return items.join(',');
  if (texts[name] !== undefined) return givenText(name, texts[name]);
  return fixed ?? `${Number(value)}${flagSpec(name).unit === 'Ms' ? 'ms' : ''}`;
}

/** For a flag that takes one value, the last one counts. */
function givenText(name: FlagName, values: readonly string[]): string {
  return (flagSpec(name).list === undefined ? values.slice(-1) : values).join(',');
}

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
