/** Checks the selected series of a lake, under the lock when it fixes, and counts the findings. */
import { join } from 'node:path';
import { openLake } from '../session/open-lake.js';
import { openSession, type Session } from '../session/session.js';
import { refuseLinkedFolders, type LakePaths } from '../../lake/layout.js';
import { entryAt } from '../../files/path-checks.js';
import { refuseIfLocked } from '../../lake/lock.js';
import { listLeftovers } from '../../lake/walk-lake.js';
import { Counters } from '../../model/counters.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import type { HeldFlag, SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { selectHeldSeries, nothingHeld, type HeldSelection } from '../../plan/select/held-series.js';
import { checkLake } from './check-lake.js';
import type { LakeFinding, LakeFindingKind } from './lake-finding.js';

export interface VerifySummary {
  readonly series: number;
  readonly files: number;
  readonly bytes: number;
  readonly findings: Readonly<Partial<Record<LakeFindingKind, number>>>;
  /** Number of findings that are still to be mended, by the command that mends them. */
  readonly left: { fix: number; repair: number; 'nothing-known': number };
  readonly exitCode: ExitCode;
}

export type VerifyFlag = SessionFlag | HeldFlag | 'deep' | 'fix' | 'format' | 'shard';

/** Counts so far, after each series. */
export type Progress = Pick<VerifySummary, 'series' | 'files' | 'bytes'>;

/** Yields the findings, returns the summary, calls `onProgress` after each series. Rejects with `locked` while a run writes, and with usage errors. */
export async function* verifyLake(
  request: VerbRequest<VerifyFlag>,
  onProgress: (progress: Progress) => void = () => undefined,
): AsyncGenerator<LakeFinding, VerifySummary> {
  const session = openSession(request);
  const { paths, options } = session;
  try {
    const selection = await selectHeldSeries(session, request.resolved);
    await refuseLinkedFolders(paths);
    await refuseIfLocked(paths.internal);
    const left = selection.isWhole ? listLeftovers(paths) : [];
    const opened = options.fix ? await openLake(session, 'cryptodl verify --fix') : undefined;
    try {
      const found = await Promise.all(left.map((path) => leftoverAt(paths, path, options.fix)));
      const open = opened === undefined ? session : { ...session, lock: opened.lock };
      return yield* verifyIn(open, { selection, left: found }, onProgress);
    } finally {
      await opened?.lock.release();
    }
  } finally {
    await session.close();
  }
}

async function* verifyIn(
  session: Session<'deep' | 'fix'>,
  { selection, left }: { readonly selection: HeldSelection; readonly left: readonly LakeFinding[] },
  onProgress: (progress: Progress) => void,
): AsyncGenerator<LakeFinding, VerifySummary> {
  const { out, fix } = session.options;
  const counts = { series: 0, files: 0, bytes: 0 };
  const found = new Counters<`kind.${LakeFindingKind}` | `left.${keyof VerifySummary['left']}`>();
  const counted = (finding: LakeFinding): LakeFinding => {
    found.add(`kind.${finding.kind}`);
    if (finding.left !== undefined) found.add(`left.${finding.left}`);
    return finding;
  };
  for (const finding of left) yield counted(finding);
  for await (const { check, findings } of checkLake(session, { selection, fix })) {
    for (const finding of findings) yield counted(finding);
    if (check === undefined) continue;
    counts.series += 1;
    counts.files += check.files;
    counts.bytes += check.bytes;
    onProgress(counts);
  }
  const findings = found.by('kind');
  const isSound = Object.keys(findings).length === 0;
  if (counts.series === 0 && isSound && selection.names?.size !== 0) throw nothingHeld(out);
  const code = exitCode({
    // The content of an unreadable file is unknown, which is an error of the disk, not a finding to repair.
    ended: found.of('kind.unreadable') > 0 ? 'disk' : undefined,
    failedPermanent: Object.values(found.by('left')).reduce((sum, number) => sum + number, 0),
  });
  const none = { fix: 0, repair: 0, 'nothing-known': 0 };
  return { ...counts, findings, left: { ...none, ...found.by('left') }, exitCode: code };
}

/** With `--fix`, opening the lake has already finished or removed the leftover. */
async function leftoverAt({ root }: LakePaths, path: string, fix: boolean): Promise<LakeFinding> {
  const isCommit = path.endsWith('.json');
  const text = isCommit ? 'a run was killed during a commit' : 'a run was killed and left this file';
  const finding: LakeFinding = { kind: 'leftover', path, text };
  if (!fix) return { ...finding, left: 'fix' };
  if ((await entryAt(join(root, path))) !== undefined) return { ...finding, left: 'nothing-known' };
  return { ...finding, done: isCommit ? 'completed or set aside' : 'removed or set aside' };
}
