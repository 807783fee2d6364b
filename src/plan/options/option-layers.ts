/** The sources of options (flags, environment, config file), and the lines of `--print-options`. */
import type { Io } from '../../model/io.js';
import { environmentName, FLAG_NAMES, isSwitch, optionName } from './flags.js';
import { environmentLayer } from './resolve.js';
import type { Invocation, RawLayer, Resolved } from './resolve.js';
import { sharedText } from './value-text.js';
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

/** Warns of variables whose name is similar to that of an option. Other unknown variables may belong to scripts of the user. */
export function warnOfVariables({ environment, stderr }: Io): void {
  const known = FLAG_NAMES.map(environmentName);
  for (const name of Object.keys(environment)) {
    if (!name.startsWith(PREFIX) || known.includes(name)) continue;
    const near = nearest(
      name.slice(PREFIX.length),
      known.map((each) => each.slice(PREFIX.length)),
    );
    if (near !== undefined)
      printLines(stderr, [`warning: ${name} is not an option; did you mean ${PREFIX}${near}?`]);
  }
}

const PREFIX = 'CRYPTODL_';

/** The flags of a command line. */
export function flagLayer({ values }: Pick<Invocation, 'values'>): RawLayer {
  return { origin: 'flag', values, nameOf: (name) => `--${name}` };
}

/** The lines of `--print-options`, one per option: `market  um  (default)`. */
export function optionLines(verb: VerbSpec, resolved: Resolved): string[] {
  const names = flagsOf(verb).filter((name) => name !== 'print-options');
  const width = Math.max(...names.map((name) => name.length));
  return names.map((name) => {
    const isLeftOut = isSwitch(name) && resolved.origins[name] === 'default';
    const value = isLeftOut ? undefined : resolved.options[optionName(name)];
    const shown = value === undefined ? (flagFor(name, verb).unset ?? '-') : sharedText(name, value);
    return `${name.padEnd(width)}  ${shown}  (${resolved.origins[name]})`;
  });
}
