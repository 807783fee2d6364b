/** Which of the held series `verify` and `repair` look at. */
import type { Resolved } from '../options/resolve.js';
import { readPatterns } from '../plan/symbols.js';
import type { ReadList } from '../plan/symbols.js';
import { seriesName } from '../task.js';
import type { Format, Series } from '../task.js';
import { walkLake } from '../lake/walk-lake.js';
import { givenFlags } from './describe-wanted.js';
import { narrowHeld } from './narrow-held.js';
import type { Session } from './session.js';

export interface HeldSelection {
  /** Nothing was said: the whole lake, also what is in no series. */
  readonly isWhole: boolean;
  readonly has: (series: Series) => boolean;
  readonly format: Format | undefined;
}

const NARROWING = ['market', 'dataset', 'interval', 'symbols', 'quote'] as const;

/** Explicit flags choose. Throws usage errors for what the lake does not hold. */
export async function chooseHeld(
  { options, paths, venue }: Session,
  resolved: Resolved,
  read: ReadList,
): Promise<HeldSelection> {
  const given = givenFlags(resolved);
  const format = given.has('format') ? options.format : undefined;
  if (!NARROWING.some((name) => given.has(name)))
    return { isWhole: format === undefined, has: () => true, format };
  const patterns = options.symbols === undefined ? undefined : await readPatterns(options.symbols, read);
  const held: Series[] = [];
  for await (const found of walkLake(paths.root, venue)) if (found.kind === 'series') held.push(found.series);
  const names = new Set(narrowHeld(held, resolved, patterns).map(seriesName));
  return { isWhole: false, has: (series) => names.has(seriesName(series)), format };
}
