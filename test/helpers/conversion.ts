/** Conversions of published CSVs, without archive and lake around them. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dayOf, parsePeriod, UTC } from '../../src/model/calendar.js';
import type { ObjectLine } from '../../src/model/manifest-line.js';
import type { Cadence, Market, Period, Series, Settings } from '../../src/model/task.js';
import type { DatasetSpec } from '../../src/exchange/exchange-spec.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { findDataset } from '../../src/exchange/exchange-spec.js';
import { convert, convertInSteps } from '../../src/convert/convert.js';
import type { ConversionResult } from '../../src/convert/conversion.js';
import type { ReceivedObject } from '../../src/convert/csv-input.js';
import { createEngine } from '../../src/convert/duckdb.js';
import type { DuckDb, Engine } from '../../src/convert/duckdb.js';

export const SETTINGS: Settings = {
  format: 'parquet',
  partition: 'month',
  cadence: 'auto',
  numbers: 'double',
  timestamps: 'us',
  asPublished: false,
};

const exchange = loadBinance();

export function specOf(market: Market, dataset: string): DatasetSpec {
  const spec = findDataset(exchange, market, dataset);
  if (spec === undefined) throw new RangeError(`no dataset ${dataset}`);
  return spec;
}

export function period(text: string): Period {
  const cadence: Cadence = text.length === 10 ? 'daily' : 'monthly';
  const found = parsePeriod(cadence, text);
  if (found === undefined) throw new RangeError(`no period ${text}`);
  return found;
}

/** An object as the download hands it over; `path` keeps its CSV in a file. */
export function received(label: string, content: string | Buffer, path?: string): ReceivedObject {
  const bytes = Buffer.from(content);
  if (path !== undefined) writeFileSync(path, bytes);
  const csv = path === undefined ? { kind: 'memory' as const, bytes } : { kind: 'file' as const, path };
  return {
    object: { key: `${label}.zip`, period: period(label) },
    body: { kind: 'memory', bytes: Buffer.alloc(0) },
    csv: csv.kind === 'file' ? { ...csv, size: bytes.length } : csv,
    name: `${label}.csv`,
    bytes: 0,
    sha256: '0'.repeat(64),
    verified: 'crc',
  };
}

export interface Made extends ConversionResult {
  readonly file: string;
  /** Statements of the conversion. */
  readonly statements: number;
}

const NONE = { replaced: [], compared: [], revised: [], days: [] } as const;

export interface ConvertRequest {
  readonly series: Series;
  readonly settings?: Partial<Settings>;
  readonly received: readonly ReceivedObject[];
  /** Converted like a large partition: through a file instead of memory. */
  readonly staged?: boolean;
  /** Never in one statement. */
  readonly inSteps?: boolean;
  /** Called before each statement. An error of it is the error of the statement. */
  readonly onStatement?: (sql: string) => void;
  /** Changes the row count that the engine reports for a COPY. */
  readonly copiedRows?: (rows: number) => number;
  /** How far rows may be outside of the period of their object; without it, any time is legal. */
  readonly edgeSeconds?: number;
  /** The file that stays in, with the rows of each of its objects by label. */
  readonly kept?: { readonly file: string; readonly objects: Readonly<Record<string, number>> };
  /** The file with days that the received month replaces. */
  readonly days?: { readonly file: string; readonly lines: readonly ObjectLine[] };
}

export class Converter {
  readonly #engine: Engine;
  readonly #folder: string;

  constructor(folder: string, memoryBytes = 500e6) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
    this.#engine = createEngine({ threads: 1, memoryBytes, tempFolder: folder });
  }

  async convert(request: ConvertRequest): Promise<Made> {
    const settings = { ...SETTINGS, ...request.settings };
    const name = join(this.#folder, randomUUID());
    const file = `${name}.${settings.format}`;
    const duckdb = await this.#engine.connect();
    const { kept } = request;
    try {
      const way = request.inSteps === true ? convertInSteps : convert;
      let statements = 0;
      const before = (sql: string): void => {
        statements += 1;
        request.onStatement?.(sql);
      };
      const counted: DuckDb = {
        ...duckdb,
        run: async (sql) => {
          before(sql);
          await duckdb.run(sql);
        },
        rows: async (sql) => {
          before(sql);
          const rows = await duckdb.rows(sql);
          const { copiedRows } = request;
          return copiedRows === undefined || !sql.startsWith('COPY')
            ? rows
            : rows.map((row) => ({ ...row, Count: copiedRows(Number(row['Count'])) }));
        },
      };
      const result = await way({
        duckdb: counted,
        failed: new Map(),
        spec: {
          ...specOf(request.series.market, request.series.dataset),
          edgeSeconds: request.edgeSeconds ?? Number.POSITIVE_INFINITY,
        },
        settings,
        series: request.series,
        received: request.received,
        csvPath: `${name}.input`,
        targetPath: file,
        memoryCsvBytes: request.staged === true ? 0 : Number.POSITIVE_INFINITY,
        metadata: (written) => ({
          cryptodl: JSON.stringify({ keys: written.map(({ object }) => object.key) }),
        }),
        ...(kept === undefined
          ? {}
          : { existing: { ...NONE, file: kept.file, kept: linesOf(kept.objects, settings) } }),
        ...(request.days && {
          existing: { ...NONE, kept: [], file: request.days.file, days: request.days.lines },
        }),
      });
      return { ...result, file, statements };
    } finally {
      duckdb.close();
    }
  }

  close(): void {
    this.#engine.close();
  }
}

function linesOf(objects: Readonly<Record<string, number>>, settings: Settings): ObjectLine[] {
  return Object.entries(objects).map(([label, rows]) => objectLine(label, { rows, settings }));
}

/** A manifest line as a commit writes it. */
export function objectLine(label: string, fields: Partial<ObjectLine> = {}): ObjectLine {
  const { cadence } = period(label);
  const settings = fields.settings ?? SETTINGS;
  return {
    v: 1,
    kind: 'object',
    key: `${label}.zip`,
    cadence,
    period: label,
    bytes: 100,
    sha256: 'a'.repeat(64),
    verified: 'sidecar',
    file: `${label.slice(0, 7)}.${settings.format}`,
    fileBytes: 1000,
    fileSha256: 'b'.repeat(64),
    at: '2024-02-02T00:00:00.000Z',
    tool: 'test',
    ...fields,
    settings,
  };
}

/** Day number of `2024-01-15`. */
export function day(text: string): number {
  return dayOf(Date.parse(`${text}T00:00:00Z`), UTC);
}
