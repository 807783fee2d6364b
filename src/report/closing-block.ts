/** The last lines of a run: what came of everything, where it is, and what to type next. */
import type { ErrorCode } from '../errors.js';
import { CryptodlError } from '../errors.js';
import type { AbsenceReason } from '../task.js';
import { OUTCOME_KINDS } from '../outcome.js';
import { bytesText, durationText } from '../units.js';
import type { WireFigures } from './figures.js';
import { EXAMPLES } from './tally.js';
import type { Tally } from './tally.js';

export interface Closing {
  readonly tally: Tally;
  readonly network: Pick<WireFigures, 'requests' | 'retries'>;
  readonly elapsedMs: number;
  readonly dataPath: string;
  readonly reportPath: string | undefined;
  readonly quarantinePath: string | undefined;
  /** Tasks that nobody got to, because the run was ended. */
  readonly undone: number;
  readonly next: string | undefined;
}

export function closingBlock(closing: Closing): string[] {
  const { tally } = closing;
  const kinds = OUTCOME_KINDS.filter((kind) => tally.outcomes[kind] > 0).map(
    (kind) => `${number(tally.outcomes[kind])} ${kind}`,
  );
  if (closing.undone > 0) kinds.push(`${number(closing.undone)} not done`);
  return [
    `${kinds.length === 0 ? 'nothing to do' : kinds.join(', ')} in ${durationText(closing.elapsedMs)}`,
    ...work(closing),
    ...overlapLines(tally),
    ...reasons(tally),
    ...place('data', closing.dataPath),
    ...place('failures', closing.reportPath),
    ...place('quarantine', closing.quarantinePath),
    ...place('next', closing.next),
  ];
}

function overlapLines({ overlap }: Tally): string[] {
  const { compared, differing, onlyRest, onlyArchive, shifted } = overlap;
  if (compared + onlyRest + onlyArchive === 0) return [];
  const parts = [
    `${number(differing)} differ`,
    ...(onlyRest > 0 ? [`${number(onlyRest)} only REST had`] : []),
    ...(onlyArchive > 0 ? [`${number(onlyArchive)} only the archive has`] : []),
    ...(shifted > 0 ? [`in ${number(shifted)} files the archive's labels are an interval off`] : []),
  ];
  return [`  compared   ${number(compared)} rows of REST with the archive's: ${parts.join(', ')}`];
}

function place(name: string, path: string | undefined): string[] {
  return path === undefined ? [] : [`  ${name.padEnd(11)}${path}`];
}

function work({ tally, network, elapsedMs }: Closing): string[] {
  if (tally.files === 0) return [];
  const speed = elapsedMs > 0 ? ` at ${bytesText(Math.round((tally.bytes / elapsedMs) * 1000))}/s` : '';
  const rows = tally.rows > 0 ? `${number(tally.rows)} rows in ` : '';
  return [
    `  fetched    ${bytesText(tally.bytes)}${speed}, ${number(network.requests)} requests, ${number(network.retries.total)} retried`,
    `  written    ${rows}${number(tally.files)} file${tally.files === 1 ? '' : 's'}, ${bytesText(tally.fileBytes)}`,
    ...(tally.duplicates > 0
      ? [`  dropped    ${number(tally.duplicates)} exact duplicate rows within one object`]
      : []),
    ...(tally.duplicatesAcross > 0
      ? [`  kept       ${number(tally.duplicatesAcross)} exact duplicate rows across objects`]
      : []),
  ];
}

function reasons(tally: Tally): string[] {
  const absent = (Object.entries(tally.absentBy) as [AbsenceReason, number][]).map(([reason, count]) =>
    named(tally, `absent, ${reason}`, reason, count),
  );
  const failed = (Object.entries(tally.failedBy) as [ErrorCode, number][]).map(([code, count]) => {
    const may = new CryptodlError(code, '').retryable ? ' (retrying may help)' : '';
    const shown = tally.records.examples(code, EXAMPLES).map(({ key, message }) => `${key}: ${message}`);
    return listed(`failed, ${code}${may}`, shown, count);
  });
  const partial =
    tally.outcomes.partial > 0
      ? [named(tally, 'partial, fewer rows than the period has', 'partial', tally.outcomes.partial)]
      : [];
  const unverified =
    tally.unverified > 0
      ? [named(tally, 'no checksum published, only the zip itself vouches', 'unverified', tally.unverified)]
      : [];
  const stale =
    tally.staleSidecars > 0
      ? [named(tally, 'stale checksum, taken by size and ETag', 'staleSidecar', tally.staleSidecars)]
      : [];
  const changed =
    tally.changed > 0 ? [named(tally, 'changed upstream, fetched again', 'changed', tally.changed)] : [];
  const { dropped } = tally.records;
  const untold = dropped > 0 ? [[`  ${number(dropped)} of the failures are told in the report only`]] : [];
  return [...changed, ...partial, ...absent, ...unverified, ...stale, ...failed, ...untold].flat();
}

/** Routine absences say their number; what a person should look at is shown by example. */
const ROUTINE: ReadonlySet<string> = new Set(['not-listed-yet', 'not-published-yet', 'delisted']);

function named(tally: Tally, title: string, key: string, count: number): string[] {
  const examples = tally.examples.get(key) ?? [];
  return listed(title, ROUTINE.has(key) ? examples.slice(0, 1) : examples, count);
}

function listed(title: string, shown: readonly string[], count: number): string[] {
  const more = count > shown.length ? [`      … and ${number(count - shown.length)} more`] : [];
  return [`  ${number(count)} ${title}`, ...shown.map((text) => `      ${text}`), ...more];
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
