/** The verdict about the lake after a run, for the outputs of the run that show it. */
import { judgeLake, summaryOfVerdict } from '../check/judge-lake.js';
import { lakePaths } from '../lake/layout.js';
import { toCryptodlError } from '../model/errors.js';
import type { Options } from '../options/flags.js';
import type { VerbRequest } from '../options/verb-request.js';
import type { VerdictSummary } from '../report/run-summary.js';
import { absolutePath } from '../text/printable.js';

/** Whether an output of the run shows the verdict, which takes a reading of all manifests. */
export function wantsVerdict(options: Options): boolean {
  const { ping, alertWebhook, prometheusPort, prometheusTextfile, dryRun } = options;
  return !dryRun && [ping, alertWebhook, prometheusPort, prometheusTextfile].some((one) => one !== undefined);
}

/** Undefined for a lake without orders, and after a warning for one that cannot be read. */
export async function verdictAfter({
  source: venue,
  resolved: { options },
  surroundings,
  observer,
  clock,
}: Pick<VerbRequest, 'source' | 'resolved' | 'surroundings' | 'observer' | 'clock'>): Promise<
  VerdictSummary | undefined
> {
  const warn = (message: string): void => {
    observer.warn(message);
  };
  try {
    const paths = lakePaths(absolutePath(options.out, surroundings.home));
    const nowMs = options.nowMs ?? clock.now();
    // Also after a signal: the message about the run needs it.
    const { signal } = new AbortController();
    const judged = await judgeLake({ paths, venue, nowMs, clock, signal, warn });
    return judged === undefined ? undefined : summaryOfVerdict(judged);
  } catch (error) {
    warn(`the lake has no verdict: ${toCryptodlError(error).message}`);
    return undefined;
  }
}
