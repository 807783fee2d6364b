/** `cryptodl run FILE`: the jobs of a file. */
import type { ExitCode } from '../../model/exit-code.js';
import { readJobs } from '../../run/jobs/jobs.js';
import { runLocally } from '../../run/jobs/run-jobs.js';
import { printOptions, removeTempFiles, withLakes } from '../../run/verb/start-verb.js';
import type { Started } from '../../run/verb/verb.js';
import { printLines } from '../../text/printable.js';

export async function runFile(started: Started): Promise<ExitCode> {
  const { io, verb, verbs } = started;
  const exchange = await started.loadExchange();
  const { resolved, jobs } = await readJobs(started, started, exchange);
  if (resolved.options.printOptions) {
    for (const job of jobs) {
      printLines(io.stdout, [`[${job.name}]`]);
      await printOptions(verbs[job.verb], job.resolved, io);
    }
    return 0;
  }
  await removeTempFiles(resolved, io);
  return withLakes(verb, io, (lakes) => runLocally({ exchange, resolved, jobs, io }, lakes));
}
