/** `cryptodl verify`: a whole lake or what flags choose of it, from the lock to the summary. */
import { openLake } from '../download/open-lake.js';
import type { Session } from '../download/session.js';
import { refuseLinkedOwn } from '../lake/layout.js';
import { refuseWriter } from '../lake/lock.js';
import { leftovers } from '../lake/walk-lake.js';
import { exitCode } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Resolved } from '../options/resolve.js';
import { chooseHeld, nothingHeld } from '../select/held-series.js';
import type { HeldSelection } from '../select/held-series.js';
import type { ReadList } from '../select/symbol-patterns.js';
import { shownPath } from '../text/paths.js';
import { checkLake } from './check-lake.js';
import type { CheckRequest } from './check-lake.js';
import type { Finding, FindingKind } from './finding.js';

export interface VerifySummary {
  readonly series: number;
  readonly files: number;
  readonly bytes: number;
  readonly findings: Readonly<Partial<Record<FindingKind, number>>>;
  /** What nothing has been done about, by what helps. */
  readonly left: { fix: number; repair: number; 'nothing-known': number };
  readonly exitCode: ExitCode;
}

/** Numbers so far, after every series. */
export type Progress = Pick<VerifySummary, 'series' | 'files' | 'bytes'>;

export interface VerifyTeller {
  /** Resolves with false when nobody reads on. */
  readonly finding: (finding: Finding) => Promise<boolean>;
  readonly progress: (progress: Progress) => void;
}

/** Resolves with undefined when nobody reads on. Rejects with `locked` while a run is writing, and with usage errors. */
export async function verifyLake(
  session: Session,
  { resolved, read }: { readonly resolved: Resolved; readonly read: ReadList },
  tell: VerifyTeller,
): Promise<VerifySummary | undefined> {
  const fix = session.options.fix;
  const selection = await chooseHeld(session, resolved, read);
  if (session.options.upstream) await session.refuseBanned('verify');
  await refuseLinkedOwn(session.paths);
  await refuseWriter(session.paths.own);
  const left = selection.isWhole ? await leftovers(session.paths) : [];
  const opened = fix ? await openLake(session, 'cryptodl verify --fix') : undefined;
  try {
    const refused = new Map(opened?.refused.map(({ name, kept }) => [`.cryptodl/${name}`, kept]));
    const found = left.map((path) => leftoverAt(path, fix, refused.get(path)));
    const open = opened === undefined ? session : { ...session, lock: opened.lock };
    return await verifyIn(open, { selection, fix, left: found }, tell);
  } finally {
    await opened?.lock.release();
  }
}

async function verifyIn(
  session: Session,
  { selection, fix, left }: { selection: HeldSelection; fix: boolean; left: readonly Finding[] },
  tell: VerifyTeller,
): Promise<VerifySummary | undefined> {
  const { options } = session;
  const count = new Count();
  for (const finding of left) if (!(await tell.finding(count.add(finding)))) return undefined;
  const request: CheckRequest = {
    selection,
    deep: options.deep,
    upstream: options.upstream,
    mode: fix ? 'fix' : 'look',
  };
  for await (const { check, findings } of checkLake(session, request)) {
    for (const finding of findings) if (!(await tell.finding(count.add(finding)))) return undefined;
    if (check === undefined) continue;
    count.series += 1;
    count.files += check.files;
    count.bytes += check.bytes;
    tell.progress(count);
  }
  if (count.series === 0 && count.isSound) throw nothingHeld(options.out);
  return count.summary();
}

/** Opening the lake to write has finished or cleared it. */
function leftoverAt(path: string, isFixed: boolean, kept: string | undefined): Finding {
  const isCommit = path.endsWith('.json');
  const text = isCommit ? 'a run was killed in the middle of a commit' : 'a run that is gone left it';
  const finding: Finding = { kind: 'leftover', path, text };
  if (!isFixed) return { ...finding, left: 'fix' };
  if (kept !== undefined) return { ...finding, done: `not applied, kept in ${shownPath(kept)}` };
  return { ...finding, done: isCommit ? 'the commit is finished' : 'removed' };
}

class Count {
  series = 0;
  files = 0;
  bytes = 0;
  readonly #findings: Partial<Record<FindingKind, number>> = {};
  readonly #left = { fix: 0, repair: 0, 'nothing-known': 0 };

  add(finding: Finding): Finding {
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
      // Nobody can say what is in a file that cannot be read.
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
