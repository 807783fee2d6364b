/** `cryptodl retry [REPORT]`: downloads the failures of a report again. */
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import type { Options } from '../../plan/options/flags.js';
import { resolveOptions } from '../../plan/options/resolve.js';
import { download } from '../../run/download.js';
import { pastRun, readReport } from '../../run/failures/select-failures.js';
import { lastReportOf } from '../../run/failures/last-failures.js';
import { printOptions, removeTempFiles, withLakes, withResolved } from '../../run/verb/start-verb.js';
import type { Started } from '../../run/verb/verb.js';

export type RetryJobs = (options: Options, io: Io) => Promise<ExitCode>;

/**
 * By default, the failures of the newest report of the lake. With --redis and without a report, those of a queue.
 */
export async function retry(started: Started, retryJobs: RetryJobs): Promise<ExitCode> {
  const { operand: path = '', verb, verbs, layers, io } = started;
  const exchange = await started.loadExchange();
  if (path === '' && layers.some(({ values }) => values.redis !== undefined))
    return withResolved(started, exchange, ({ options }) => retryJobs(options, io));
  return withLakes(verb, io, async (lakes) => {
    const own = resolveOptions(verb, layers, exchange);
    const local =
      path === ''
        ? await lastReportOf((await lakes.resolve(own)).options.out, io.environment)
        : await lakes.fileAt(path, own.options);
    const report = await readReport(local, exchange);
    const { resolved, verb: repeated, failures } = pastRun(report, layers, { verbs, exchange });
    if (resolved.options.printOptions) return printOptions(verb, resolved, io);
    await removeTempFiles(resolved, io);
    return download({ exchange, resolved: await lakes.resolve(resolved), io, verb: repeated, failures });
  });
}
