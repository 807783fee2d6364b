/** The sources of options: flags, environment and config file. */
import type { Io } from '../model/io.js';
import { configLayer, environmentLayer } from '../options/resolve.js';
import type { RawLayer } from '../options/resolve.js';
import type { Invocation } from './program.js';

/** Flags, environment and config file of an invocation, in order of precedence. */
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
