/** Where the options of an invocation come from. */
import type { Io } from '../model/io.js';
import { configLayer, environmentLayer } from '../options/resolve.js';
import type { RawLayer } from '../options/resolve.js';
import type { Invocation } from './program.js';

/** What was typed, the environment and the config file; the first wins. */
export async function layersOf(invocation: Invocation, io: Io): Promise<RawLayer[]> {
  const { verb } = invocation;
  const flags = typedLayer(invocation);
  const environment = environmentLayer(io.environment, verb);
  const file = flags.values.config?.at(-1) ?? environment.values.config?.at(-1);
  if (file === undefined) return [flags, environment];
  const { readConfigFile } = await import('../options/config-file.js');
  return [flags, environment, configLayer(file, await readConfigFile(file), verb)];
}

export function typedLayer({ values }: Invocation): RawLayer {
  return { origin: 'flag', values, nameOf: (name) => `--${name}` };
}
