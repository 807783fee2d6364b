/** What the options of a verb ask for, with its signals, and the printing of its items, progress and errors. */
import { exitCodeOfSignal } from '../../model/exit-code.js';
import type { ExitCode } from '../../model/exit-code.js';
import { watchSignals } from '../../model/io.js';
import type { Io } from '../../model/io.js';
import { SILENT_OBSERVER } from '../../model/observer.js';
import { surroundingsOf } from '../../files/environment.js';
import type { FlagName, Options } from '../../plan/options/flags.js';
import type { Resolved } from '../../plan/options/resolve.js';
import { readLists } from '../../plan/options/symbols.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import type { Exchange } from '../../exchange/exchange.js';
import { printLines } from '../../text/printable.js';

export interface LookUp<Names extends FlagName = FlagName> {
  readonly exchange: Exchange;
  readonly resolved: Resolved<Names>;
  readonly io: Io;
}

export type Signals = ReturnType<typeof watchSignals>;

/** The request of a verb on the command line. Warnings are printed on stderr. */
export function requestOf<Names extends FlagName>(
  { exchange, resolved, io }: LookUp<Names>,
  signal: AbortSignal,
): VerbRequest<Names> {
  return {
    exchange,
    resolved,
    surroundings: surroundingsOf(io.environment),
    read: readLists(io),
    observer: {
      ...SILENT_OBSERVER,
      warn: (message) => printLines(io.stderr, [`warning: ${message}`]),
    },
    clock: io.clock,
    signal,
  };
}

/** Calls `act`, which SIGINT and SIGTERM abort. Resolves with the exit code; after a signal, with that of the signal instead of an error. */
export async function withSignals<Names extends FlagName>(
  command: LookUp<Names>,
  act: (request: VerbRequest<Names>, signals: Signals) => Promise<ExitCode>,
): Promise<ExitCode> {
  const signals = watchSignals(command.io);
  try {
    return await act(requestOf(command, signals.signal), signals);
  } catch (error) {
    const signal = signals.signalled();
    if (signal === undefined) throw error;
    return exitCodeOfSignal(signal);
  } finally {
    signals.release();
  }
}

const PROGRESS_MS = 10_000;

/** Returns a function that prints the progress of long work, at most every ten seconds and never with `--quiet`. */
export function progressPrinter({ quiet }: Options<'quiet'>, io: Io): (text: () => string) => void {
  let printedAt = io.clock.monotonic();
  return (text) => {
    const now = io.clock.monotonic();
    if (quiet || now - printedAt < PROGRESS_MS) return;
    printedAt = now;
    printLines(io.stderr, [`${text()} so far`]);
  };
}

/** The same items. Calls `act` with each of them before it is passed on. */
export async function* tapped<Item>(
  items: AsyncIterable<Item>,
  act: (item: Item) => void,
): AsyncGenerator<Item> {
  for await (const item of items) {
    act(item);
    yield item;
  }
}

/**
 * Calls `act` for each item until it resolves with false. Resolves with the summary of the items; with undefined if `act` ended the
 * iteration.
 */
export async function forEachItem<Item, Summary>(
  items: AsyncGenerator<Item, Summary>,
  act: (item: Item) => Promise<void> | void,
): Promise<Summary>;
export async function forEachItem<Item, Summary>(
  items: AsyncGenerator<Item, Summary>,
  act: (item: Item) => Promise<boolean>,
): Promise<Summary | undefined>;
export async function forEachItem<Item, Summary>(
  items: AsyncGenerator<Item, Summary>,
  act: (item: Item) => unknown,
): Promise<Summary | undefined> {
  for (;;) {
    const { done, value } = await items.next();
    if (done === true) return value;
    if ((await act(value)) !== false) continue;
    await items.return(undefined as never);
    return undefined;
  }
}
