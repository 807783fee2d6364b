/** Starts a verb: resolves its options, opens the mirrors of lakes in buckets, makes its request, watches signals, and prints errors. */
import { homeOf, surroundingsOf } from '../../files/environment.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { toCryptodlError } from '../../model/errors.js';
import { watchSignals, type Io } from '../../model/io.js';
import { isLakeAddress } from '../../model/lake-address.js';
import { SILENT_OBSERVER } from '../../model/observer.js';
import type { FlagName } from '../../plan/options/flags.js';
import type { Resolved } from '../../plan/options/resolve.js';
import { listReader } from '../../plan/options/symbols.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import type { VerbSpec } from '../../plan/options/verb-spec.js';
import type { Exchange } from '../../exchange/exchange.js';
import { printLines } from '../../text/printable.js';
import type { Mirrors } from './open-mirrors.js';
import type { Started, Verb, VerbInput } from './verb.js';

export async function startVerb(verb: Verb, started: Started): Promise<ExitCode> {
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
    const resolved = resolveOptions(verb, layers, exchange, listReader(io));
    if (resolved.options.printOptions) return printOptions(verb, resolved, io);
    await removeTempFiles(resolved, io);
    const isInBucket = isLakeAddress(resolved.options.out) && verb.isOfQueue !== true;
    return act(isInBucket ? await lakes.resolve(resolved) : resolved);
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

/** Prints the error of `work`, and resolves with its exit code. */
export async function printingErrors(io: Io, work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    const { printError } = await import('../../terminal/print-error.js');
    return printError(toCryptodlError(error), io);
  }
}

/** The request of a verb on the command line. Warnings are printed on stderr. */
export function verbRequestOf<Names extends FlagName>(
  { exchange, resolved, io }: VerbInput<Names>,
  signal: AbortSignal,
): VerbRequest<Names> {
  return {
    exchange,
    resolved,
    surroundings: surroundingsOf(io.environment),
    observer: { ...SILENT_OBSERVER, warn: (message) => printLines(io.stderr, [`warning: ${message}`]) },
    clock: io.clock,
    signal,
  };
}

/** Calls `act`, which SIGINT and SIGTERM abort. Resolves with the exit code; after a signal, with that of the signal instead of an error. */
export async function withSignals<Names extends FlagName>(
  command: VerbInput<Names>,
  act: (request: VerbRequest<Names>, signals: ReturnType<typeof watchSignals>) => Promise<ExitCode>,
): Promise<ExitCode> {
  const signals = watchSignals(command.io);
  try {
    return await act(verbRequestOf(command, signals.signal), signals);
  } catch (error) {
    const signal = signals.signalled();
    if (signal === undefined) throw error;
    return exitCode({ signal });
  } finally {
    signals.release();
  }
}

/** Removes what killed commands have left in the folder for temporary files. */
export async function removeTempFiles({ options }: Resolved<'temp-dir'>, { environment }: Io): Promise<void> {
  const { removeLeftovers, tempFolderOf } = await import('../../files/temp-files.js');
  await removeLeftovers(tempFolderOf(options.tempDir, homeOf(environment)));
}

export async function printOptions(verb: VerbSpec, resolved: Resolved, io: Io): Promise<0> {
  printLines(io.stdout, (await import('../../plan/options/print-options.js')).optionLines(verb, resolved));
  return 0;
}
