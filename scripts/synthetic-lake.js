// Makes lakes of manifests with empty data files, for verbs that read no data file.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const DAY_MS = 86_400_000;
/** @type {import('../src/model/task.js').Settings} */
export const SETTINGS = {
  format: 'parquet',
  partition: 'month',
  cadence: 'auto',
  numbers: 'double',
  timestamps: 'us',
  asPublished: false,
};

/**
 * Manifest line of one day of um klines 1m, complete unless told otherwise. The order of its fields is that of the program.
 * @param {string} symbol
 * @param {string} day
 * @param {Record<string, unknown>} [differences]
 */
export function klinesLine(symbol, day, differences = {}) {
  const start = Date.parse(day);
  return {
    v: 1,
    kind: 'object',
    key: `data/futures/um/daily/klines/${symbol}/1m/${symbol}-1m-${day}.zip`,
    cadence: 'daily',
    period: day,
    etag: 'd41d8cd98f00b204e9800998ecf8427e',
    lastModified: new Date(start + DAY_MS + 27_000_000).toISOString(),
    bytes: 61_234,
    sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    verified: 'sidecar',
    settings: SETTINGS,
    at: new Date(start + DAY_MS + 30_000_000).toISOString(),
    tool: '0.1.0',
    rows: 1440,
    first: new Date(start).toISOString(),
    last: new Date(start + DAY_MS - 60_000).toISOString(),
    duplicates: 0,
    file: `${day.slice(0, 7)}.parquet`,
    fileBytes: 1_812_345,
    fileSha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    fileRows: 44_640,
    ...differences,
  };
}

/**
 * The folder of a series of um klines 1m below a lake.
 * @param {string} lake
 * @param {string} symbol
 */
export function klinesFolder(lake, symbol) {
  return join(lake, 'binance', 'um', 'klines', 'interval=1m', `symbol=${symbol}`);
}

/**
 * Writes a manifest, and an empty file for each data file that it names.
 * @param {string} folder of the series
 * @param {readonly (object | string)[]} lines Texts are written as they are.
 */
export function writeManifest(folder, lines) {
  const at = folder.lastIndexOf('/binance/');
  // A folder is a lake only if it has a folder for the data of an exchange.
  mkdirSync(folder, { recursive: true });
  const manifest = `${folder.slice(0, at)}/_manifests${folder.slice(at)}.jsonl`;
  mkdirSync(dirname(manifest), { recursive: true });
  const texts = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`);
  writeFileSync(manifest, texts.join(''));
  const files = lines.flatMap((line) =>
    typeof line === 'object' && 'file' in line ? [String(line.file)] : [],
  );
  for (const file of new Set(files)) {
    const path = file.includes('/') ? join(folder.slice(0, at), file) : join(folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '');
  }
}

export const LARGE_LAKE_NOW = '2026-09-27T12:00:00Z';

/**
 * Series × 1,000 lines of um klines 1m: 999 days, the 1,000th is missing, and a revision of the first.
 * @param {string} lake
 * @param {number} series
 */
export function makeLargeLake(lake, series) {
  const firstDay = Date.parse('2024-01-01');
  const days = Array.from({ length: 1000 }, (_, i) =>
    new Date(firstDay + i * DAY_MS).toISOString().slice(0, 10),
  );
  for (let index = 0; index < series; index += 1) {
    const symbol = `S${String(index).padStart(4, '0')}USDT`;
    // Neither the first nor the last day, nor one of the two with gaps.
    const missing = 600 + (index % 300);
    const own = 300 + (index % 200);
    const lines = days.flatMap((day, at) => {
      if (at === missing) return [];
      if (at === 100) return [klinesLine(symbol, day, { rows: 1380, gaps: [gapOf(day, 3, 0, 60)] })];
      if (at === own)
        return [klinesLine(symbol, day, { rows: 1430, gaps: [gapOf(day, index % 24, 20, 10)] })];
      return [klinesLine(symbol, day)];
    });
    const replaces = { bytes: 61_000, sha256: '0'.repeat(64), at: '2024-01-02T08:00:00.000Z' };
    lines.push(klinesLine(symbol, days[0] ?? '', { replaces }));
    writeManifest(klinesFolder(lake, symbol), lines);
  }
}

/**
 * @param {string} day
 * @param {number} hour
 * @param {number} minute
 * @param {number} minutes
 * @returns {[string, string]}
 */
function gapOf(day, hour, minute, minutes) {
  const from = Date.parse(day) + hour * 3_600_000 + minute * 60_000;
  return [new Date(from).toISOString(), new Date(from + minutes * 60_000).toISOString()];
}
