/** The findings of an audit, as data and as text. */
import type { CryptodlError, ErrorCode } from '../../model/errors.js';
import type { Series } from '../../model/task.js';
import { listText, numberText } from '../../model/units.js';

export interface AuditFinding {
  /**
   * - `rows-missing`: rows that only the daily objects have. `rows-extra`: rows that only the monthly object has.
   * - `rows-differ`: rows with the same key and different values.
   * - `ids-missing`: ids that no object has.
   * Against REST, `rows-missing` are rows that only REST has, and `rows-extra` rows that only the lake has.
   */
  readonly kind: 'rows-missing' | 'rows-extra' | 'rows-differ' | 'ids-missing';
  readonly key: string;
  /** Number of affected rows (or ids). */
  readonly rows: number;
  /** `2024-01-15`, ascending. */
  readonly days?: readonly string[];
  /** Columns that differ, with the number of rows. */
  readonly columns?: Readonly<Record<string, number>>;
  /** The first case: sort key, ids, values of both sides. */
  readonly example?: Readonly<Record<string, unknown>>;
}

/** The result for one month of one series; against REST, for a day or a month. */
export interface AuditedMonth {
  readonly series: Series;
  /** `2024-01`, or `2024-01-15` */
  readonly month: string;
  readonly findings: readonly AuditFinding[];
  /** Objects that could not be downloaded or read, by key. */
  readonly failed: ReadonlyMap<string, CryptodlError>;
  /** Days with a daily object. */
  readonly days: ReadonlySet<number>;
  /** Rows of the compared daily objects, or of the lake; 0: nothing was compared. */
  readonly rows: number;
  /** Rows of the monthly object on days that have no readable daily object. */
  readonly rowsWithoutDay: number;
}

/** The result where nothing was compared. */
export const NOTHING_COMPARED = { findings: [], rows: 0, days: new Set<number>(), rowsWithoutDay: 0 };

/** A finding, or an object that could not be read, as it is printed with --json and given by the library. */
export type AuditItem = Series & { /** `2024-01`, or `2024-01-15` */ readonly month: string } & (
    | ({ readonly event: 'finding'; readonly text: string } & AuditFinding)
    | {
        readonly event: 'failed';
        readonly key: string;
        readonly code: ErrorCode;
        readonly retryable: boolean;
        readonly message: string;
      }
  );

/** The findings of a month, then its failed objects. */
export function* itemsOfMonth({ series, month, findings, failed }: AuditedMonth): Generator<AuditItem> {
  for (const finding of findings)
    yield { event: 'finding', ...series, month, ...finding, text: findingText(finding) };
  for (const [key, { code, retryable, message }] of failed)
    yield { event: 'failed', ...series, month, key, code, retryable, message };
}

/** The text without series, month and kind: `2 rows, close (2); first open_time 2024-01-05 04:00:00, …`. */
function findingText({ kind, rows, days = [], columns = {}, example }: AuditFinding): string {
  const unit = kind === 'ids-missing' ? 'id' : 'row';
  const parts = [
    `${numberText(rows)} ${unit}${rows === 1 ? '' : 's'}`,
    listText(days),
    ...Object.entries(columns).map(([name, count]) => `${name} (${numberText(count)})`),
  ];
  const cells = Object.entries(example ?? {}).map(([name, value]) => `${name} ${String(value)}`);
  const first = cells.length === 0 ? '' : `; first ${cells.join(', ')}`;
  return `${parts.filter(Boolean).join(', ')}${first}`;
}
