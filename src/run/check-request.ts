/** Whether a run can be understood: found out before anything is begun, by its options alone. */
import type { Clock } from '../clock.js';
import type { Resolved } from '../options/resolve.js';
import { readPatterns } from '../plan/symbols.js';
import type { ReadList } from '../plan/symbols.js';
import { loadVenue } from '../venue/venue.js';
import { askMetrics } from './want-metrics.js';
import { askSeries } from './want-series.js';

/** Throws the usage error that the run would end with. What only archive, exchange or lake know is not looked at. */
export async function checkRequest(
  verb: 'vision' | 'metrics',
  { options }: Resolved,
  { clock, read }: { readonly clock: Clock; readonly read: ReadList },
): Promise<void> {
  const asking = { options, venue: loadVenue(), nowMs: options.now ?? clock.now() };
  if (verb === 'metrics') askMetrics(asking);
  else askSeries(asking);
  if (options.symbols !== undefined) await readPatterns(options.symbols, read);
}
