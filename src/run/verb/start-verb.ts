/** Starts a verb: resolves its options, opens the mirrors of lakes in buckets, and prints errors. */
import type { ExitCode } from '../../model/exit-code.js';
import { toCryptodlError } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import type { Resolved } from '../../plan/options/resolve.js';
import type { VerbSpec } from '../../plan/options/verb-spec.js';
import type { Exchange } from '../../exchange/exchange.js';
import { printLines } from '../../text/printable.js';
import type { Mirrors } from './open-mirrors.js';
import type { Started, VerbCommand } from './verb.js';

export async function startVerb(verb: VerbCommand, started: Started): Promise<ExitCode> {
  if ('start' in verb) return verb.start(started);
  if ('actOffline' in verb)
    return withResolved(started, undefined, (resolved) => verb.actOffline({ ...started, resolved }));
  const exchange = await started.loadExchange();
  return withResolved(started, exchange, (resolved) => verb.act({ ...started, exchange, resolved }));
}

/** Resolves the options. `--print-options` prints them, and the verb does not run. Without an exchange, markets are those of the flag table. */
export async function withResolved(
  { verb, layers, io }: Pick<Started, 'verb' | 'layers' | 'io'>,
  exchange: Exchange | undefined,
  act: (resolved: Resolved) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { resolveOptions } = await import('../../plan/options/resolve.js');
  return withLakes(verb, io, async (lakes) => {
    const resolved = resolveOptions(verb, layers, exchange);
    if (resolved.options.printOptions) return printOptions(verb, resolved, io);
    await removeTempFiles(resolved, io);
    return act(verb.isOfQueue === true ? resolved : await lakes.resolve(resolved));
  });
}

/** Calls `act`, and prints its errors while the mirrors are open, because they may name files in them. */
export async function withLakes(
  verb: VerbSpec,
  io: Io,
  act: (lakes: Mirrors) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { callerOf, Mirrors: Opened } = await import('./open-mirrors.js');
  const lakes = new Opened(verb, () => callerOf(io));
  try {
    return await printingErrors(io, () => act(lakes));
  } finally {
    await lakes.close();
  }
}

export async function printingErrors(io: Io, work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    const { printError } = await import('../../terminal/print-error.js');
    return printError(toCryptodlError(error), io);
  }
}

/** Removes what killed commands have left in the folder for temporary files. */
export async function removeTempFiles({ options }: Resolved<'temp-dir'>, { environment }: Io): Promise<void> {
  const { removeLeftovers, tempFolderOf } = await import('../../files/temp-files.js');
  const { homeOf } = await import('../../files/environment.js');
  await removeLeftovers(tempFolderOf(options.tempDir, homeOf(environment)));
}

export async function printOptions(verb: VerbSpec, resolved: Resolved, io: Io): Promise<0> {
  const { optionLines } = await import('../../plan/options/option-layers.js');
  printLines(io.stdout, optionLines(verb, resolved));
  return 0;
}
