/** Flags of universe: which symbols are members of a period, and the form of the list. `coverage` takes --by too. */
import { DAY_MS } from '../../model/calendar.js';
import { parseDurationMs } from '../../model/units.js';
import { oneOf, section } from './flag-spec.js';
import * as parse from './parsers.js';
import { GRAINS, MEASURES } from './periods.js';

/** `30d` → milliseconds of whole days, at least one. A bare number means days. */
const wholeDays = parse.parser('a number of whole days', ['30d'], (text) => {
  const ms = parseDurationMs(/^\d+$/.test(text) ? `${text}d` : text) ?? 0;
  return ms >= DAY_MS && ms % DAY_MS === 0 ? ms : undefined;
});

export const UNIVERSE_FLAGS = section({ group: 'What' })({
  top: {
    value: 'N',
    doc: 'the N symbols with the largest sums; without this flag, all symbols that were traded',
    parse: parse.integer(1, undefined, 30),
    aka: ['number', 'limit', 'size', 'number-assets', 'count'],
  },
  contract: {
    value: 'KIND',
    doc: 'perpetual, dated or all; contracts of futures; dated ones have a day of delivery',
    ...oneOf(['perpetual', 'dated', 'all']),
    default: 'perpetual',
  },
  by: {
    group: 'When',
    value: 'WHAT',
    doc: 'period of one cell: auto, day or month; auto is day for a range of up to 60 days',
    parse: parse.choice([...GRAINS, ...MEASURES]),
    choices: GRAINS,
    default: 'auto',
  },
  window: {
    group: 'When',
    value: 'TIME',
    doc: 'days before each period whose sums are ranked; later rows are not read for this period',
    parse: wholeDays,
    unit: 'Ms',
    default: '30d',
  },
  'min-age': {
    group: 'When',
    value: 'TIME',
    doc: 'only symbols with a first row at least this long before the period; the first row is that of the lake, or the first one after more than 30 days without rows',
    parse: wholeDays,
    unit: 'Ms',
  },
  as: {
    group: 'How',
    value: 'FORM',
    doc: 'csv, list or freqtrade; csv: a line per period and symbol; list: each symbol once, for --symbols @FILE; freqtrade: a file of pairs for each period',
    ...oneOf(['csv', 'list', 'freqtrade']),
    default: 'csv',
    aka: ['format', 'output-format', 'csv', 'freqtrade'],
  },
});
