/** `cryptodl check`: the verdict about a lake, its orders compared with what it holds. Sends no request. */
import { runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import { lakePaths } from '../lake/layout.js';
import { readOrders } from '../lake/orders.js';
import { usage } from '../model/errors.js';
import type { CryptodlError } from '../model/errors.js';
import { exitCodeOfError } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { VerbRequest } from '../options/verb-request.js';
import { readVerbLake } from '../select/held-series.js';
import { readLastFailures } from '../select/last-failures.js';
import { lakeFlag, printLines, shownPath } from '../text/printable.js';
import { widthOf } from '../text/wrap.js';
import { isRunning, lastRun } from '../monitor/last-run.js';
import { judgeOrders } from './judge-orders.js';
import { checkLines, checkRecord } from './print-check.js';
import { verdictOf } from './verdict.js';

/**
 * Resolves with 0 if nothing is missing, 3 if a run may mend what is missing, and 4 if it cannot be had. Rejects with a usage error for a
 * lake without orders.
 */
export async function check(command: LookUp): Promise<ExitCode> {
  const { io } = command;
  const { options } = command.resolved;
  return runVerb(command, async (request) => {
    const { refused, ...found } = await judged(request);
    const verdict = verdictOf(found);
    const lines = options.json
      ? [checkRecord(found, verdict)]
      : checkLines(found, verdict, { width: widthOf(io.stdout), isQuiet: options.quiet });
    await writeData(io, lines);
    for (const { message } of refused) printLines(io.stderr, [`cryptodl: ${message}`]);
    return refused.length > 0 ? exitCodeOfError('manifest-damaged') : verdict.exitCode;
  });
}

async function judged(request: VerbRequest) {
  const { source: venue, resolved, clock, observer, signal } = request;
  const nowMs = resolved.options.nowMs ?? clock.now();
  const warn = (message: string): void => {
    observer.warn(message);
  };
  const { root, held } = await readVerbLake(request, warn);
  const paths = lakePaths(root);
  const running = await isRunning(paths, clock);
  const run = await lastRun(paths, running);
  const { orders, unreadable } = await readOrders(paths);
  for (const path of unreadable) warn(`${path} is not an order: it is left out`);
  const own = orders.filter(({ exchange }) => exchange === venue.name);
  if (own.length === 0)
    throw usage(
      `${shownPath(root)} has no order, so nothing tells what it should hold`,
      `each vision and metrics leaves one, for example: cryptodl vision -s BTCUSDT -d 7${lakeFlag(root)}`,
    );
  const failures = await readLastFailures(paths, warn);
  const refused: CryptodlError[] = [];
  const onRefused = (error: CryptodlError): void => {
    refused.push(error);
  };
  const lake = { root, venue, held, failures, nowMs, signal, onRefused };
  return { root, nowMs, running, run, orders: await judgeOrders(lake, own), refused };
}
