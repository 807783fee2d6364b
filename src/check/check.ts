/** `cryptodl check`: the verdict about a lake, its orders compared with what it holds. Sends no request. */
import { runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import { lakePaths, refuseFile } from '../lake/layout.js';
import { usage } from '../model/errors.js';
import { exitCodeOfError } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import { absolutePath, lakeFlag, printLines, shownPath } from '../text/printable.js';
import { widthOf } from '../text/wrap.js';
import { judgeLake } from './judge-lake.js';
import { checkLines, checkRecord } from './print-check.js';

/**
 * Resolves with 0 if nothing is missing, 3 if a run may mend what is missing, and 4 if it cannot be had. Rejects with a usage error for a
 * lake without orders.
 */
export async function check(command: LookUp): Promise<ExitCode> {
  const { io, resolved } = command;
  const { options } = resolved;
  return runVerb(command, async (request) => {
    const { source: venue, clock, observer, signal, surroundings } = request;
    const paths = lakePaths(absolutePath(options.out, surroundings.home));
    refuseFile(paths.root);
    const warn = observer.warn.bind(observer);
    const nowMs = options.nowMs ?? clock.now();
    const judged = await judgeLake({ paths, venue, nowMs, clock, signal, warn });
    if (judged === undefined)
      throw usage(
        `${shownPath(paths.root)} has no order, so nothing tells what it should hold`,
        `each vision and metrics leaves one, for example: cryptodl vision -s BTCUSDT -d 7${lakeFlag(paths.root)}`,
      );
    const { found, verdict, refused } = judged;
    const lines = options.json
      ? [checkRecord(found, verdict)]
      : checkLines(found, verdict, { width: widthOf(io.stdout), isQuiet: options.quiet });
    await writeData(io, lines);
    for (const { message } of refused) printLines(io.stderr, [`cryptodl: ${message}`]);
    return refused.length > 0 ? exitCodeOfError('manifest-damaged') : verdict.exitCode;
  });
}
