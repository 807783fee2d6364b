/** The items of a verb: reads them, and prints its progress. */
import type { Io } from '../../model/io.js';
import type { Options } from '../../plan/options/flags.js';
import { printLines } from '../../text/printable.js';

const PROGRESS_MS = 10_000;

/** Returns a function that prints the progress of long work, at most every ten seconds and never with `--quiet`. */
export function progressPrinter({ quiet }: Options<'quiet'>, io: Io): (text: () => string) => void {
  let printedAtMs = io.clock.monotonic();
  return (text) => {
    const now = io.clock.monotonic();
    if (quiet || now - printedAtMs < PROGRESS_MS) return;
    printedAtMs = now;
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

/** Calls `act` for each item until it resolves with false. Resolves with the summary of the items; undefined if `act` ended the iteration. */
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
