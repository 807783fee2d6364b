/**
 * Files of a lake in a bucket that were changed a short time ago. A bucket has no lock: the run that has put such a file may not have put its
 * manifest yet.
 */
import { join } from 'node:path';
import { backedAgeMs } from '../lake/backing.js';
import type { SeriesCheck } from './check-series.js';
import type { LakeFinding, LakeFindingKind } from './lake-finding.js';

/** Longer than a run waits between the put of a file and that of its manifest, with all attempts. */
const SETTLED_MS = 15 * 60_000;
/** Findings about a file that a manifest may name soon. */
const OF_FILES: ReadonlySet<LakeFindingKind> = new Set(['damaged', 'unlisted', 'stranger', 'sidecar']);

/** The finding with a remark, or undefined if its file was not changed in the last minutes. */
export function asRecent(root: string, finding: LakeFinding): LakeFinding | undefined {
  if (!OF_FILES.has(finding.kind) || backedAgeMs(join(root, finding.path)) > SETTLED_MS) return undefined;
  const text = `${finding.text}; changed in the last 15 minutes, so another run may be writing it: try again later`;
  return { ...finding, text, left: 'fix' };
}

/** Divides the findings of a series. The objects in recent files do not count as lost. */
export function separateRecent(
  root: string,
  check: SeriesCheck,
): { readonly settled: SeriesCheck; readonly recent: readonly LakeFinding[] } {
  const recent: LakeFinding[] = [];
  const findings: LakeFinding[] = [];
  for (const finding of check.findings) {
    const found = asRecent(root, finding);
    if (found === undefined) findings.push(finding);
    else recent.push(found);
  }
  const paths = new Set(recent.map(({ path }) => path));
  const pathOf = (file: string): string => (file.includes('/') ? file : `${check.relativePath}/${file}`);
  const broken = check.broken.filter(({ file }) => !paths.has(pathOf(file)));
  return { settled: { ...check, findings, broken }, recent };
}
