/** `cryptodl audit`: prints findings about the archive, or about the lake against REST; with --prefer daily, rebuilds faulty months of the lake from daily objects. */
import { forEachItem, progressPrinter } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { runAndPrint } from '../../run/download.js';
import { withLog, openLogOf } from '../../run/report/log.js';
import type { ExitCode } from '../../model/exit-code.js';
import { seriesName } from '../../model/task.js';
import { countText } from '../../model/units.js';
import type { RunFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { printLines } from '../../text/printable.js';
import { verbEngine } from '../../convert/duckdb.js';
import { openSession } from '../../run/session/session.js';
import { makeTempFolder } from '../../files/temp-files.js';
import { refuseFile } from '../../lake/layout.js';
import { usage } from '../../model/errors.js';
import { auditArchive } from './audit-archive.js';
import { asUnreachable } from '../../exchange/listing.js';
import { auditRest } from './audit-rest.js';
import { itemsOfMonth, type AuditItem } from './findings.js';
import { AuditTally, summaryText } from './audit-tally.js';
import { rebuildOf, selectRebuilds } from './rebuilds.js';

type Flag = RunFlag | 'against' | 'prefer' | 'sample';

/**
 * Resolves with 7 or 3 if a later audit may read the failed objects, else with 4 for findings and permanent failures, else with 0.
 * The rebuild is a part of the command (`exitCode`). An error or a signal that ends the audit has its own code.
 */
export async function audit(command: VerbInput<Flag>): Promise<ExitCode> {
  return withSignals(command, async (request, signals) => {
    const tally = await withLog(request, command.io, (logged) => printItems(command, logged));
    const { io, resolved } = command;
    const isDaily = resolved.options.prefer === 'daily';
    if (!isDaily || tally.rebuilds.length === 0) return conclude(command, tally, isDaily ? 0 : undefined);
    // An ordinary run with plan, outcomes and summary.
    const rebuild = { ...request, verb: 'vision' as const, select: selectRebuilds(tally.rebuilds) };
    const log = openLogOf(resolved.options, io);
    const { exitCode } = await runAndPrint(rebuild, { io, log, signalled: signals.signalled });
    return conclude(command, tally, exitCode);
  });
}

async function printItems(
  { io, resolved }: VerbInput<Flag>,
  request: VerbRequest<Flag>,
): Promise<AuditTally> {
  const { options } = resolved;
  const printProgress = progressPrinter(options, io);
  const onProgress = (tally: AuditTally): void => printProgress(() => summaryText(tally.summary(), options));
  return forEachItem(auditSelected(request, onProgress), async (item) => {
    if (item.event === 'failed') printLines(io.stderr, [`failed  ${item.key}: ${item.message}`]);
    if (options.json) await writeData(io, [item]);
    else if (item.event === 'finding')
      await writeData(io, [`${seriesName(item)} ${item.month}  ${item.kind}  ${item.text}`]);
  });
}

async function conclude(
  { io, resolved }: VerbInput<'against' | 'json' | 'quiet'>,
  tally: AuditTally,
  rebuilt: ExitCode | undefined,
): Promise<ExitCode> {
  const { options } = resolved;
  const summary = tally.summary(rebuilt);
  const { exitCode, rebuildable, mended } = summary;
  if (options.json) await writeData(io, [{ event: 'audit', ...summary }]);
  if (options.quiet && exitCode === 0) return exitCode;
  printLines(io.stderr, [
    `${summaryText(summary, options)}${mended > 0 ? `; ${mended} fixed in the lake` : ''}`,
  ]);
  if (rebuildable > 0 && rebuilt === undefined)
    printLines(io.stderr, [
      `${countText(rebuildable, 'month')} of the lake should be rebuilt from daily objects`,
      'next  the same command with --prefer daily',
    ]);
  return exitCode;
}

/**
 * Yields the findings and failed objects, and returns the counts. Calls `onProgress` after each month. With --prefer daily, warns of months
 * that stay although their daily objects are better. Rejects with usage errors and fatal errors.
 */
export async function* auditSelected(
  request: VerbRequest<Flag>,
  onProgress: (tally: AuditTally) => void = () => undefined,
): AsyncGenerator<AuditItem, AuditTally> {
  const { options } = request.resolved;
  const isRest = options.against === 'rest';
  if (isRest && options.prefer !== undefined)
    throw usage('--prefer rebuilds months from objects of the archive', 'leave --prefer or --against out');
  if (!isRest && options.sample !== undefined)
    throw usage('--sample draws days and months that are compared with REST', 'add --against rest');
  const { sample: given } = options;
  const session = openSession(request);
  const seed = (): string => Math.floor(session.clock.random() * 2 ** 32).toString(16);
  const sample = given && { ...given, seed: given.seed ?? seed() };
  const tally = new AuditTally(sample);
  const engine = verbEngine('audit', { ...request, signal: session.stop.signal }, ENGINE_MEMORY_BYTES);
  try {
    refuseFile(session.paths.root);
    await session.refuseBanned(isRest ? 'metrics' : 'audit');
    await makeTempFolder(engine.folder);
    const months = isRest
      ? auditRest(session, request, { engine, sample })
      : auditArchive(session, request, engine);
    for await (const month of months) {
      yield* itemsOfMonth(month);
      const rebuild = isRest ? undefined : await rebuildOf(session, month);
      tally.add(month, rebuild);
      if (options.prefer === 'daily' && rebuild?.note !== undefined) session.observer.warn(rebuild.note);
      onProgress(tally);
    }
    return tally;
  } catch (error) {
    throw asUnreachable(error);
  } finally {
    await engine.end();
    await session.close();
  }
}

const ENGINE_MEMORY_BYTES = 600e6;
