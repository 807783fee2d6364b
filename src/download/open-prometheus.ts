/** `--prometheus-port` and `--prometheus-textfile`: the metrics of a command, opened before its first request. */
import { lakePaths } from '../lake/layout.js';
import type { Clock } from '../model/clock.js';
import type { FollowedRun } from '../monitor/followed-run.js';
import type { SelectedRun } from '../monitor/run-history.js';
import type { Endpoint } from '../options/monitoring.js';
import type { Options } from '../options/flags.js';
import { absolutePath } from '../text/printable.js';

/** The metrics of all runs of a command. */
export interface Prometheus {
  /** `out`: the lake of the run. */
  follow(run: SelectedRun, out: string): Promise<FollowedRun>;
  /** Ends the server and writes the file. Later calls do nothing. */
  close(warn: (message: string) => void): Promise<void>;
}

interface Command {
  readonly clock: Clock;
  readonly startedAt: number;
  readonly home: string | undefined;
}

/** Undefined without one of the flags. Rejects with a usage error if the port cannot be used. */
export async function openPrometheus(
  {
    prometheusPort,
    prometheusTextfile,
    dryRun,
  }: Pick<Options, 'prometheusPort' | 'prometheusTextfile' | 'dryRun'>,
  command: Command,
): Promise<Prometheus | undefined> {
  if (dryRun || (prometheusPort === undefined && prometheusTextfile === undefined)) return undefined;
  return open(prometheusPort, prometheusTextfile, command);
}

async function open(
  endpoint: Endpoint | undefined,
  textfile: string | undefined,
  { clock, startedAt, home }: Command,
): Promise<Prometheus> {
  // Loaded only with a flag: most runs have none.
  const { PrometheusFigures } = await import('../monitor/prometheus.js');
  const { servePage, writeTextfile } = await import('../monitor/prometheus-outputs.js');
  const { NO_HISTORY, readHistory } = await import('../monitor/run-history.js');
  const figures = new PrometheusFigures(clock, startedAt);
  const endServer = endpoint === undefined ? undefined : await servePage(figures, endpoint);
  let isClosed = false;
  return {
    follow: async (run, out) => {
      // A lake whose records cannot be read has no history: the run itself warns of it.
      const history = await readHistory(lakePaths(absolutePath(out, home)), run).catch(() => NO_HISTORY);
      return figures.follow(run.job ?? run.verb, history);
    },
    close: async (warn) => {
      if (isClosed) return;
      isClosed = true;
      await endServer?.();
      if (textfile === undefined) return;
      const warning = await writeTextfile(absolutePath(textfile, home), figures);
      if (warning !== undefined) warn(warning);
    },
  };
}
