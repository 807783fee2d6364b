/** `cryptodl doctor`: prints a table with a row for each result of a check. */
import { runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import type { ExitCode } from '../model/exit-code.js';
import { printable, printLines } from '../text/printable.js';
import { table } from '../text/table.js';
import { widthOf } from '../text/wrap.js';
import type { CheckResult, Status } from './check-result.js';
import { runChecks, runClearBans } from './run-checks.js';

/** Resolves with 0, with 1 when a check failed, or with the exit code of the signal or error that ended the checks. */
export async function doctor(run: LookUp): Promise<ExitCode> {
  const { resolved, io } = run;
  const { options } = resolved;
  return runVerb(run, async (request) => {
    const counts: Record<Status, number> = { ok: 0, warn: 0, fail: 0 };
    const shown: CheckResult[] = [];
    const host = options.clearBans;
    const results = host === undefined ? runChecks(request) : runClearBans(request, host);
    for await (const result of results) {
      counts[result.status] += 1;
      if (!options.quiet || result.status !== 'ok') shown.push(result);
    }
    await writeData(io, options.json ? shown.map(fieldsOf) : tableOf(shown, widthOf(io.stdout)));
    const { ok, warn, fail } = counts;
    if (!options.quiet) printLines(io.stderr, [`${ok} ok, ${warn} warn, ${fail} fail`]);
    return fail > 0 ? 1 : 0;
  });
}

function tableOf(results: readonly CheckResult[], width: number): string[] {
  const rows = results.map(({ status, check, of, found, next }) => {
    const text = [...(of === '' ? [] : [`${of}:`]), next === '' ? found : `${found}; next: ${next}`];
    return [status, check, printable(text.join(' '))];
  });
  return table([{}, {}, {}], rows, { width }).lines;
}

function fieldsOf({ check, of, status, found, next }: CheckResult): object {
  return { check, ...(of === '' ? {} : { of }), status, found, ...(next === '' ? {} : { next }) };
}
