/** Audits one month of a series: compares the monthly object with the daily ones, and checks each object by itself. */
import { parsePeriod } from '../model/calendar.js';
import type { Engine, DuckDbSession } from '../convert/duckdb.js';
import type { CryptodlError } from '../model/errors.js';
import type { AuditFinding, MonthAudit } from './audit-finding.js';
import type { Series, Settings } from '../model/task.js';
import type { DatasetSpec } from '../source/venue.js';
import { compareCadences, MONTHLY, rowsOfHoles, rowsWithoutDay } from './compare-cadences.js';
import type { Comparison } from './compare-cadences.js';
import type { Conversion } from '../convert/conversion.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import { inspectDays, inspectIds } from './inspect-objects.js';
import type { Input } from '../convert/load-rows.js';
import { readObjects, removeScratch } from '../convert/read-objects.js';

export interface MonthObjects {
  readonly spec: DatasetSpec;
  readonly series: Series;
  /** `2024-01` */
  readonly month: string;
  /** The monthly object, if it exists, and the daily objects. */
  readonly received: readonly ReceivedObject[];
  /** Days without a daily object between days that have one. */
  readonly holes: readonly number[];
  /** Prefix of the paths of temporary files. */
  readonly scratchPath: string;
}

export interface AuditResult {
  readonly audit: MonthAudit;
  /** Objects that cannot be read, by key. */
  readonly failed: ReadonlyMap<string, CryptodlError>;
}

/** Rows are loaded in their published order, with numbers as doubles. */
export const AUDITED: Settings = {
  format: 'parquet',
  partition: 'month',
  cadence: 'auto',
  numbers: 'double',
  timestamps: 'us',
  asPublished: true,
};

/** Rejects with errors that do not concern the content of the objects (disk, memory, interruption, bugs). */
export async function auditMonth(engine: Engine, objects: MonthObjects): Promise<AuditResult> {
  const failed = new Map<string, CryptodlError>();
  const conversion = conversionOf(objects);
  const session = await engine.session();
  try {
    const ordinalsOf = (inputs: readonly Input[]): number[] => inputs.map(ordinalOf);
    const read = await readObjects(session, conversion, { failed, ordinalsOf });
    if (read === undefined) return { audit: auditOf(objects), failed };
    return { audit: await inspectMonth(session, objects, read.inputs), failed };
  } finally {
    session.close();
    await removeScratch(conversion);
  }
}

function ordinalOf({ received: { object } }: Pick<Input, 'received'>): number {
  return object.period.cadence === 'monthly' ? MONTHLY : object.period.from;
}

function conversionOf({ spec, series, received, scratchPath }: MonthObjects): Conversion {
  return {
    spec,
    series,
    received,
    settings: AUDITED,
    csvPath: `${scratchPath}.csv`,
    targetPath: scratchPath,
    memoryCsvBytes: MEMORY_CSV_BYTES,
    metadata: () => ({ cryptodl: '{}' }),
  };
}

/** About six months of 1m bars. */
const MEMORY_CSV_BYTES = 32 * 1024 * 1024;

async function inspectMonth(
  session: DuckDbSession,
  objects: MonthObjects,
  inputs: readonly Input[],
): Promise<MonthAudit> {
  const keys = new Map(inputs.map((input) => [ordinalOf(input), input.received.object.key]));
  const keyOf = (ordinal: number): string => keys.get(ordinal) ?? '';
  const days = [...keys.keys()].filter((ordinal) => ordinal !== MONTHLY).sort((a, b) => a - b);
  const monthly = keys.get(MONTHLY);
  const compared: Comparison =
    monthly === undefined || days.length === 0
      ? { findings: [], rows: 0 }
      : await compareCadences(session, objects, { days, key: monthly });
  const holes = monthly === undefined ? [] : await inspectDays(session, objects, { days, key: monthly });
  const extra = monthly === undefined ? [] : await rowsOfHoles(session, objects, monthly);
  const ids = await inspectIds(session, objects, keyOf);
  const period = parsePeriod('monthly', objects.month) ?? { from: 0, to: 0 };
  const month = Array.from({ length: period.to - period.from }, (_, index) => period.from + index);
  const daysCompared = monthly === undefined ? 0 : days.length;
  const findings = [...compared.findings, ...extra, ...holes, ...ids];
  return {
    ...auditOf(objects),
    findings,
    daysCompared,
    rows: compared.rows,
    isMonthlyWorse: isWorse(compared.findings),
    rowsWithoutDay: monthly === undefined ? 0 : await rowsWithoutDay(session, objects, { days, month }),
  };
}

/** False when the monthly object has rows that the daily objects lack: then neither is known to be right. */
function isWorse(findings: readonly AuditFinding[]): boolean {
  const isAbout = (...kinds: AuditFinding['kind'][]): boolean =>
    findings.some(({ kind }) => kinds.includes(kind));
  return isAbout('short-month', 'rows-missing', 'rows-differ') && !isAbout('rows-extra', 'labels-shift');
}

function auditOf({ series, month }: MonthObjects): MonthAudit {
  return { series, month, findings: [], daysCompared: 0, rows: 0, isMonthlyWorse: false, rowsWithoutDay: 0 };
}
