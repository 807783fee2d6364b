/** The items of a call, read while it runs, and its summary. */
import { CryptodlError as ProgramError, usage, toCryptodlError, type ErrorCode } from '../model/errors.js';
import { SharedResources } from '../model/shared-resources.js';
import { exitCode, type ExitCode } from '../model/exit-code.js';
import { withAddresses } from '../text/mirror-roots.js';

/** The call begins when the first item is read. Leaving the loop ends the call. */
export interface Items<Item> extends AsyncIterable<Item> {
  /** Reads all items. */
  toArray(): Promise<Item[]>;
}

export interface ItemsWithSummary<Item, Summary> extends Items<Item> {
  /** The summary after the last item. Without a loop, it reads all items and drops them. */
  summary(): Promise<Summary>;
}

/** The calls that are under way at the same time share their limits, because servers count the requests of the process. */
const UNDER_WAY = { calls: 0, common: new SharedResources() };

async function close(items: AsyncGenerator): Promise<void> {
  try {
    await items.return(undefined);
  } catch (error) {
    throw libraryError(error);
  } finally {
    UNDER_WAY.calls -= 1;
    // Nothing of a call that is over reaches a later call.
    if (UNDER_WAY.calls === 0) UNDER_WAY.common = new SharedResources();
  }
}

/** The parts of a call that exist from its first item on. */
export interface Begun {
  /** Aborts by the signal of the caller, and when the caller leaves the loop. */
  readonly signal: AbortSignal;
  readonly common: SharedResources;
}

const refuse = (message: string, hint = 'call summary() without a loop'): CryptodlError =>
  new CryptodlError(usage(message, hint));

/** The items of a generator, which `begin` makes when the first item is read. `given`: the signal of the caller. */
export function itemsOf<Item, Summary>(
  begin: (begun: Begun) => AsyncGenerator<Item, Summary>,
  given: AbortSignal | undefined,
): ItemsWithSummary<Item, Summary> {
  let isBegun = false;
  let end: { readonly summary: Summary } | { readonly error: unknown } | undefined;
  let dropped: Promise<void> | undefined;
  async function* read(): AsyncGenerator<Item, void> {
    if (isBegun) throw refuse('the items of a call can be read only once', 'call the function again');
    isBegun = true;
    const stop = new AbortController();
    const signal = given === undefined ? stop.signal : AbortSignal.any([given, stop.signal]);
    UNDER_WAY.calls += 1;
    const items = begin({ signal, common: UNDER_WAY.common });
    try {
      for (;;) {
        if (signal.aborted) throw new ProgramError('interrupted', 'the call was ended by its signal');
        const { done, value } = await items.next();
        if (done === true) {
          end = { summary: value };
          return;
        }
        yield value;
      }
    } catch (error) {
      end = { error: libraryError(error) };
      throw end.error;
    } finally {
      stop.abort();
      end ??= { error: refuse('the summary is not known: the loop ended before the last item') };
      await close(items);
    }
  }
  return {
    [Symbol.asyncIterator]: read,
    toArray: async () => {
      const all: Item[] = [];
      for await (const item of read()) all.push(item);
      return all;
    },
    summary: async () => {
      if (!isBegun) dropped = drop(read());
      await dropped;
      if (end === undefined) throw refuse('the summary is known after the last item');
      if ('error' in end) throw end.error;
      return end.summary;
    },
  };
}

async function drop(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

// The error of the library: a code, an exit code, and messages that name options.

/** Errors that end a call, but not the same call at a later time. */
const PASSING: ReadonlySet<ErrorCode> = new Set(['locked', 'unreachable', 'interrupted']);

/** Compare `code`, not the message. */
export class CryptodlError extends Error {
  override readonly name = 'CryptodlError';
  readonly code: ErrorCode;
  /** The next step, if one is known. */
  readonly hint: string | undefined;
  /** The exit code of a command that ends with this error. */
  readonly exitCode: ExitCode;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;

  constructor(error: ProgramError) {
    const { code, message, hint, cause } = error;
    super(withAddresses(message), cause === undefined ? undefined : { cause });
    this.code = code;
    this.hint = hint === undefined ? undefined : withAddresses(hint);
    this.exitCode = exitCode({ ended: code });
    this.retryable = error.retryable || PASSING.has(code);
  }
}

/** Converts errors of the program and of disks. Errors of hooks and bugs stay as they are. */
export function libraryError(error: unknown): unknown {
  const known = toCryptodlError(error);
  return known.code === 'bug' && known !== error ? error : new CryptodlError(known);
}

export function inLibraryErrors<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw libraryError(error);
  }
}
