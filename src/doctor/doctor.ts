/** `cryptodl doctor`: prints one line for each result of a check. */
import { toCryptodlError } from '../model/errors.js';
import type { CheckResult, Status } from './check-result.js';
import { exitCodeOfSignal } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import type { Resolved } from '../options/resolve.js';
import { surroundingsOf } from '../options/environment.js';
import { printLines } from '../text/printable.js';
import { runChecks, runClearBans } from './run-checks.js';
import type { DoctorRequest } from './run-checks.js';
import { printError } from '../cli/print-error.js';
import type { Typed } from '../cli/print-error.js';
import { watchSignals } from '../model/io.js';
import { writeData } from '../cli/write-data.js';
import type { Source } from '../source/source.js';

export interface DoctorRun {
  readonly source: Source;
  readonly resolved: Resolved;
  readonly io: Io;
  readonly typed: Typed;
}

/** Resolves with 0, with 1 when a check failed, or with the exit code of the signal or error that ended the checks. */
export async function doctor({ source, resolved, io, typed }: DoctorRun): Promise<ExitCode> {
  const { options } = resolved;
  const signals = watchSignals(io);
  const counts: Record<Status, number> = { ok: 0, warn: 0, fail: 0 };
  let isRead = true;
  try {
    const request: DoctorRequest = {
      source,
      options,
      surroundings: surroundingsOf(io.environment),
      clock: io.clock,
      signal: signals.signal,
      limits: io.limits,
      warn: (message) => {
        printLines(io.stderr, [`warning: ${message}`]);
      },
    };
    const host = options.clearBans;
    const findings = host === undefined ? runChecks(request) : runClearBans(request, host);
    for await (const found of findings) {
      counts[found.status] += 1;
      if (!isRead || (options.quiet && found.status === 'ok')) continue;
      const line = options.json ? fieldsOf(found) : lineOf(found);
      // Checks go on when the reader closes stdout, because the exit code depends on all of them.
      isRead = await writeData(io, [line]);
    }
  } catch (error) {
    const signal = signals.signalled();
    if (signal !== undefined) return exitCodeOfSignal(signal);
    return await printError(toCryptodlError(error), typed);
  } finally {
    signals.release();
  }
  const { ok, warn, fail } = counts;
  if (!options.quiet) printLines(io.stderr, [`${ok} ok, ${warn} warn, ${fail} fail`]);
  return fail > 0 ? 1 : 0;
}

function lineOf({ status, check, of, found, next }: CheckResult): string {
  const what = of === '' ? check : `${check} ${of}`;
  const text = next === '' ? found : `${found}; next: ${next}`;
  return `${status.padEnd(4)}  ${what}  ${text}`;
}

function fieldsOf({ check, of, status, found, next, figures }: CheckResult): object {
  return {
    check,
    ...(of === '' ? {} : { of }),
    status,
    found,
    ...(next === '' ? {} : { next }),
    ...(Object.keys(figures).length === 0 ? {} : { figures }),
  };
}
