/** What the relation `rows` tells of each object. */
import { rowSeconds } from '../exchange/exchange-spec.js';
import { startOfDay } from '../model/calendar.js';
import type { ArchiveObject } from '../model/task.js';
import type { Conversion } from './conversion.js';
import { expectedRows } from './expected-rows.js';
import { timesQuery } from './object-stats-sql.js';
import { newColumnsOf, type LoadedInput } from './load-rows.js';
import { isoInstant, timeFacts, longestGaps, type TimeFacts } from './row-times.js';
import { sequenceOf, silencesOf } from './sequences.js';
import { findSuspicious } from './values.js';
import { areOrdered } from './write-target.js';

/** What the relation `rows` tells of each object, in their order. `published`: its rows, of which the file may have fewer. */
export async function describeRows(conversion: Conversion, inputs: readonly LoadedInput[]) {
  const irregular = await findIrregular(conversion, inputs);
  const suspicious = await findSuspicious(conversion);
  const described = [];
  for (const { received, inspected, row } of inputs) {
    const ordinal = Number(row['ord']);
    const { gaps: times = [], extraBars = 0, expected, ids: scheduleMinutes } = irregular.get(ordinal) ?? {};
    // Rows of a schedule have minutes since 1970 in place of ids, see `IdFacts`.
    const { ids = scheduleMinutes, gaps: places } = await sequenceOf(conversion, row);
    const { silent, gaps: silences = [] } = await silencesOf(conversion, received.object, row);
    const gaps = addPlaces(addPlaces(times, places), silences);
    const doubtful = suspicious.get(ordinal);
    described.push({
      key: received.object.key,
      ordinal,
      published: Number(row['rows']),
      first: isoInstant(row, 'first'),
      last: isoInstant(row, 'last'),
      extraBars,
      more: {
        ...newColumnsOf(inspected),
        ...(ids === undefined ? {} : { ids: { ...ids, ...(silent === undefined ? {} : { silent }) } }),
        ...(expected === undefined ? {} : { expectedRows: expected }),
        ...(doubtful === undefined ? {} : { suspicious: doubtful }),
        ...(gaps.length === 0 ? {} : { gaps }),
      },
    });
  }
  return described;
}

/** Gaps and extra rows by ordinal: of objects with an unexpected row count, order or time grid, or rows outside of their period, of months of irregular times, and of scheduled rows. */
async function findIrregular(
  conversion: Conversion,
  inputs: readonly LoadedInput[],
): Promise<ReadonlyMap<number, TimeFacts>> {
  const { spec, series } = conversion;
  const isRegular = rowSeconds(spec, series.interval) !== undefined;
  const isOrdered = areOrdered(inputs);
  const sought = new Map<number, ArchiveObject>();
  for (const { received, row } of inputs) {
    const rows = Number(row['rows']);
    const { from, to } = received.object.period;
    const isExpected =
      rows === (expectedRows(spec, series, received.object) ?? rows) &&
      Date.parse(isoInstant(row, 'first')) >= startOfDay(from, spec) &&
      Date.parse(isoInstant(row, 'last')) < startOfDay(to, spec);
    const isSought = isRegular
      ? !isOrdered || !isExpected || Number(row['off_grid']) > 0
      : spec.hoursSinceLast !== undefined || received.object.period.cadence === 'monthly';
    if (isSought) sought.set(Number(row['ord']), received.object);
  }
  if (sought.size === 0) return new Map();
  const ordinals = [...sought.keys()];
  const read = new Map(
    ordinals.map((ordinal) => [ordinal, { times: [] as number[], hours: [] as number[] }]),
  );
  // In batches, because a month of seconds has millions of rows.
  const found = await conversion.duckdb.select(timesQuery(conversion, ordinals, isOrdered));
  for await (const rows of found?.batches ?? [])
    for (const [ordinal, us, sinceLast] of rows) {
      read.get(Number(ordinal))?.times.push(Number(us));
      if (sinceLast !== undefined) read.get(Number(ordinal))?.hours.push(Number(sinceLast));
    }
  const facts = new Map<number, TimeFacts>();
  for (const [ordinal, object] of sought) {
    const { times = [], hours = [] } = read.get(ordinal) ?? {};
    facts.set(ordinal, timeFacts(Float64Array.from(times).sort(), { spec, series, object, hours }));
  }
  return facts;
}

/** Adds the places of missing ids, or silences, to gaps, except those that overlap one of the gaps. All are in order of time. */
function addPlaces(gaps: TimeFacts['gaps'], places: TimeFacts['gaps']): TimeFacts['gaps'] {
  const others = places.filter(([from, to]) => !gaps.some(([since, until]) => from < until && since < to));
  return longestGaps([...gaps, ...others].sort(([a], [b]) => (a < b ? -1 : 1)));
}
