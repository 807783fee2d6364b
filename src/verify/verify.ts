/**
 * `cryptodl verify`: checks the selected series of a lake, under the lock when it fixes, and prints one finding per line on
 * stdout and the summary on stderr.
 */
import { endLookUp, openLookUp, progressPrinter } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import { openLake } from '../download/open-lake.js';
import type { Session } from '../download/session.js';
import { refuseLinkedFolders } from '../lake/layout.js';
import { refuseIfLocked } from '../lake/lock.js';
import { listLeftovers } from '../lake/walk-lake.js';
import type { ExitCode } from '../model/exit-code.js';
import { exitCode } from '../model/exit-code.js';
import { watchSignals } from '../model/io.js';
import type { Io } from '../model/io.js';
import { bytesText, numberText } from '../model/units.js';
import type { Resolved } from '../options/resolve.js';
import { readLists } from '../options/symbols.js';
import type { ReadList } from '../options/symbols.js';
import { selectHeldSeries, nothingHeld } from '../select/held-series.js';
import type { HeldSelection } from '../select/held-series.js';
import { printLines, shownPath, tabbed } from '../text/printable.js';
import { checkLake } from './check-lake.js';
import type { CheckRequest } from './check-lake.js';
import type { LakeFinding, LakeFindingKind } from './lake-finding.js';

/** Resolves with 0 for a sound or fixed lake, 4 if findings remain, 1 for unreadable files, 6 while a run writes. */
export async function verify(run: LookUp): Promise<ExitCode> {
  const { resolved, io } = run;
  const { options } = resolved;
  const signals = watchSignals(io);
  const session = openLookUp(run, signals);
  try {
    const summary = await verifyLake(session, { resolved, read: readLists(io) }, outputTo(resolved, io));
    if (summary === undefined) return 0;
    if (options.json) await writeData(io, [{ event: 'summary', ...summary }]);
    const isWell = summary.exitCode === 0;
    if (!options.quiet || !isWell) printLines(io.stderr, closing(summary, shownPath(session.paths.root)));
    return summary.exitCode;
  } catch (error) {
    return endLookUp(error, run, signals);
  } finally {
    signals.release();
    await session.close();
  }
}

function outputTo({ options }: Resolved, io: Io): VerifyOutput {
  const soFar = progressPrinter(options, io);
  return {
    finding: (finding) => writeData(io, [options.json ? { event: 'finding', ...finding } : lineOf(finding)]),
    progress: (progress) => {
      soFar(() => countsText(progress));
    },
  };
}

function lineOf({ kind, path, line, text, done }: LakeFinding): string {
  const place = line === undefined ? path : `${path}:${line}`;
  return tabbed([kind, place, `${text}${done === undefined ? '' : ` (${done})`}`]);
}

function countsText({ series, files, bytes }: Progress): string {
  const number = numberText(files);
  return `${numberText(series)} series, ${number} file${files === 1 ? '' : 's'}, ${bytesText(bytes)}`;
}

function closing(summary: VerifySummary, out: string): string[] {
  const parts = Object.entries(summary.findings).map(([kind, number]) => `${number} ${kind}`);
  if (parts.length === 0) return [`${countsText(summary)}: all sound`];
  const { fix, repair, 'nothing-known': others } = summary.left;
  const isUpstream = (summary.findings.revised ?? 0) > 0;
  return [
    `${countsText(summary)}: ${parts.join(', ')}`,
    ...(others > 0 ? [`${others} of them cannot be fixed by cryptodl (docs/lake.md)`] : []),
    ...(fix > 0 ? [`next: cryptodl verify --fix --out ${out}`] : []),
    ...(repair > 0 && fix === 0
      ? [`next: cryptodl repair ${isUpstream ? '--upstream ' : ''}--out ${out}`]
      : []),
    ...(fix + repair + others === 0 ? ['everything is fixed'] : []),
  ];
}

// The checks, and the count of their findings.

export interface VerifySummary {
  readonly series: number;
  readonly files: number;
  readonly bytes: number;
  readonly findings: Readonly<Partial<Record<LakeFindingKind, number>>>;
  /** Number of findings that are still to be mended, by the command that mends them. */
  readonly left: { fix: number; repair: number; 'nothing-known': number };
  readonly exitCode: ExitCode;
}

/** Counts so far, after each series. */
export type Progress = Pick<VerifySummary, 'series' | 'files' | 'bytes'>;

export interface VerifyOutput {
  /** Resolves with false when the reader of stdout has closed it. */
  readonly finding: (finding: LakeFinding) => Promise<boolean>;
  readonly progress: (progress: Progress) => void;
}

/** Resolves with undefined when the reader of stdout has closed it. Rejects with `locked` while a run is writing, and with usage errors. */
export async function verifyLake(
  session: Session,
  { resolved, read }: { readonly resolved: Resolved; readonly read: ReadList },
  output: VerifyOutput,
): Promise<VerifySummary | undefined> {
  const fix = session.options.fix;
  const selection = await selectHeldSeries(session, resolved, read);
  if (session.options.upstream) await session.refuseBanned('verify');
  await refuseLinkedFolders(session.paths);
  await refuseIfLocked(session.paths.internal, session.clock);
  const left = selection.isWhole ? await listLeftovers(session.paths) : [];
  const opened = fix ? await openLake(session, 'cryptodl verify --fix') : undefined;
  try {
    const refused = new Map(opened?.refused.map(({ name, kept }) => [`.cryptodl/${name}`, kept]));
    const found = left.map((path) => leftoverAt(path, fix, refused.get(path)));
    const open = opened === undefined ? session : { ...session, lock: opened.lock };
    return await verifyIn(open, { selection, fix, left: found }, output);
  } finally {
    await opened?.lock.release();
  }
}

async function verifyIn(
  session: Session,
  { selection, fix, left }: { selection: HeldSelection; fix: boolean; left: readonly LakeFinding[] },
  output: VerifyOutput,
): Promise<VerifySummary | undefined> {
  const { options } = session;
  const count = new Count();
  for (const finding of left) if (!(await output.finding(count.add(finding)))) return undefined;
  const request: CheckRequest = {
    selection,
    deep: options.deep,
    upstream: options.upstream,
    mode: fix ? 'fix' : 'look',
  };
  for await (const { check, findings } of checkLake(session, request)) {
    for (const finding of findings) if (!(await output.finding(count.add(finding)))) return undefined;
    if (check === undefined) continue;
    count.series += 1;
    count.files += check.files;
    count.bytes += check.bytes;
    output.progress(count);
  }
  if (count.series === 0 && count.isSound) throw nothingHeld(options.out);
  return count.summary();
}

/** With `--fix`, opening the lake has already finished or removed the leftover, or moved it to `kept`. */
function leftoverAt(path: string, isFixed: boolean, kept: string | undefined): LakeFinding {
  const isCommit = path.endsWith('.json');
  const text = isCommit ? 'a run was killed during a commit' : 'a run was killed and left this file';
  const finding: LakeFinding = { kind: 'leftover', path, text };
  if (!isFixed) return { ...finding, left: 'fix' };
  if (kept !== undefined) return { ...finding, done: `not applied; kept in ${shownPath(kept)}` };
  return { ...finding, done: isCommit ? 'the commit was completed' : 'removed' };
}

class Count {
  series = 0;
  files = 0;
  bytes = 0;
  readonly #findings: Partial<Record<LakeFindingKind, number>> = {};
  readonly #left = { fix: 0, repair: 0, 'nothing-known': 0 };

  add(finding: LakeFinding): LakeFinding {
    this.#findings[finding.kind] = (this.#findings[finding.kind] ?? 0) + 1;
    if (finding.left !== undefined) this.#left[finding.left] += 1;
    return finding;
  }

  get isSound(): boolean {
    return Object.keys(this.#findings).length === 0;
  }

  summary(): VerifySummary {
    const { series, files, bytes } = this;
    const wrong = Object.values(this.#left).reduce((sum, number) => sum + number, 0);
    const code = exitCode({
      // The content of an unreadable file is unknown, which is an error of the disk, not a finding to repair.
      ended: (this.#findings.unreadable ?? 0) > 0 ? 'disk' : undefined,
      signal: undefined,
      waitedTooLong: 0,
      failedRetryable: 0,
      failedPermanent: wrong,
      holes: 0,
      partial: 0,
      strict: false,
      written: 0,
      nothingIsError: false,
    });
    return { series, files, bytes, findings: { ...this.#findings }, left: { ...this.#left }, exitCode: code };
  }
}
