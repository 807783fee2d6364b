/** Followers of the runs of a command: metrics of Prometheus, and debug dumps. */
import { openDebugDumps, type Command } from './debug-dumps.js';
import { lakePaths } from '../../lake/layout.js';
import type { Options } from '../../plan/options/flags.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import type { RunIdentity } from './run-history.js';
import type { Reporter } from '../report/reporter.js';
import type { LiveRun } from '../report/live-run.js';
import { absolutePath } from '../../text/printable.js';

interface Followed extends VerbRequest<'out'> {
  readonly observer: Reporter;
  readonly live: LiveRun;
}

export type Monitors = Awaited<ReturnType<typeof openMonitors>>;

type MonitorFlag = 'debug-dump' | 'dry-run' | 'prometheus-port' | 'prometheus-textfile' | 'state-dir';

/** Rejects with a usage error if a port or a file cannot be used. */
export async function openMonitors(options: Options<MonitorFlag>, command: Command) {
  const debug = await openDebugDumps(options, command);
  const prometheus = await openPrometheus(options, command);
  return {
    follow: async (run: RunIdentity, request: Followed): Promise<void> => {
      debug.follow(run, request.live, request.observer);
      await prometheus?.follow(run, request);
    },
    /** Ends the outputs. Resolves with a warning about an output that failed. Later calls do nothing. */
    close: async (): Promise<string | undefined> => {
      const warning = await prometheus?.close();
      await debug.close();
      return warning;
    },
  };
}

/** The metrics of all runs of a command. Undefined without one of the flags. Rejects with a usage error if the port cannot be used. */
async function openPrometheus(
  { prometheusPort, prometheusTextfile, dryRun }: Options<MonitorFlag>,
  { clock, startedAtMs, surroundings: { home } }: Command,
) {
  if (dryRun || (prometheusPort === undefined && prometheusTextfile === undefined)) return undefined;
  // Loaded only with a flag: most runs have none.
  const { PrometheusFigures } = await import('./prometheus.js');
  const { openTextfile, servePage } = await import('./prometheus-outputs.js');
  const { NO_HISTORY, readHistory } = await import('./run-history.js');
  const figures = new PrometheusFigures(clock, startedAtMs);
  const path = prometheusTextfile && absolutePath(prometheusTextfile, home);
  const writePage = path === undefined ? undefined : await openTextfile(path, figures);
  const endServer = prometheusPort === undefined ? undefined : await servePage(figures, prometheusPort);
  let isClosed = false;
  return {
    follow: async (run: RunIdentity, { exchange, resolved, live }: Followed): Promise<void> => {
      // A lake whose records cannot be read has no history: the run itself warns of it.
      const paths = lakePaths(absolutePath(resolved.options.out, home));
      const history = await readHistory(paths, run, exchange).catch(() => NO_HISTORY);
      figures.follow(run.job ?? run.verb, history, live);
    },
    close: async (): Promise<string | undefined> => {
      if (isClosed) return undefined;
      isClosed = true;
      await endServer?.();
      return writePage?.();
    },
  };
}
