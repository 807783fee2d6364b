/** Parsers for numbers: counts, percentages, durations in milliseconds, sizes in bytes. */
import { parser, type Parse } from './parsers.js';
import { parseBytes, parseDurationMs } from '../../model/units.js';

/** The number if it is in the range; undefined for any other. */
export function within(least: number, most: number, number = Number.NaN): number | undefined {
  return number >= least && number <= most ? number : undefined;
}

/** `7` or `1.5`. */
function plainNumber(text: string): number | undefined {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** A whole number, with or without its `unit`: `7`, `7d`, `7 days`. `example`: a usual number, for messages. */
export function integer(least: number, unit?: string, example = 7): Parse<number> {
  const valid = [String(Math.max(least, example))];
  return parser(`a whole number of at least ${least}`, valid, (value) => {
    const [, digits, word = ''] = /^(\d+)(?:\.0+)?\s*([a-z]*)$/i.exec(value) ?? [];
    const isUnit = word === '' || (unit !== undefined && `${unit}s`.startsWith(word.toLowerCase()));
    return isUnit ? within(least, Number.MAX_SAFE_INTEGER, Number(digits)) : undefined;
  });
}

export const port = parser('a port from 0 to 65535', ['8090'], (value) =>
  within(0, 65_535, /^\d{1,5}$/.test(value) ? Number(value) : undefined),
);

export const factor = parser('a factor from 1 to 100', ['2'], (value) => within(1, 100, plainNumber(value)));

/** `99`, `99.9` or `99.9%` → the number. */
export const percent = parser('a percentage from 0 to 100', ['99.9'], (value) =>
  within(0, 100, plainNumber(value.replace(/ ?%$/, ''))),
);

/** `500ms`, `30s` or `5 min` → milliseconds. A bare number means seconds. */
export const duration = parser('a duration', ['500ms', '30s', '5m'], parseDurationMs);

/** A duration of at least 1ms, because a timeout of 0 would end every attempt at its start. */
export const timeout = parser('a duration of at least 1ms', ['30s'], (value) =>
  within(1, Infinity, parseDurationMs(value)),
);

/** `500MB` or `2GiB` → bytes. */
export const bytes = parser('a size in bytes', ['500MB', '2GiB'], parseBytes);

/** Bytes per second, at least 1000, because a run with a lower limit would seem to hang. */
export const byteRate = parser('at least 1kB per second', ['10MB'], (value) =>
  within(1000, Infinity, parseBytes(value)),
);
