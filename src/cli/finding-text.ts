/** A finding of an audit as a person gets to read it. */
import type { Finding } from '../audit-finding.js';
import { durationText, numberText } from '../units.js';

const MOST_DAYS = 5;

/** Without the series and the month. */
export function findingText(finding: Finding): string {
  const { kind, rows, example } = finding;
  const rowsText = `${numberText(rows)} ${rows === 1 ? 'row' : 'rows'}`;
  switch (kind) {
    case 'short-month':
      return rows === 0
        ? `no row of ${daysText(finding)} between others, and no daily object of it`
        : `no row of ${daysText(finding)}; the daily objects have ${rowsText} of it`;
    case 'rows-missing':
      return `${rowsText} only in the daily objects, of ${daysText(finding)}${firstText(example)}`;
    case 'rows-extra':
      return `${rowsText} only in the monthly object, of ${daysText(finding)}${firstText(example)}`;
    case 'rows-differ':
      return `${rowsText} differ in ${columnsText(finding)}${firstText(example)}`;
    case 'labels-shift':
      return shiftText(finding);
    case 'ids-disordered':
      return `${rowsText} with an id below that of the row before${firstText(example)}`;
    case 'ids-missing':
      return `${numberText(rows)} ids missing${firstText(example)}`;
    case 'ids-conflicting':
      return `${rowsText} with the id of another row and other values${firstText(example)}`;
    case 'columns-constant':
      return `${Object.keys(finding.columns ?? {}).join(', ')} never ${Object.keys(finding.columns ?? {}).length === 1 ? 'changes' : 'change'} in ${rowsText}${finding.days === undefined ? '' : ` of ${daysText(finding)}`}`;
  }
}

function daysText({ days = [] }: Finding): string {
  const more = days.length - MOST_DAYS;
  return days.slice(0, MOST_DAYS).join(', ') + (more > 0 ? ` and ${more} more days` : '');
}

function columnsText({ columns = {} }: Finding): string {
  return Object.entries(columns)
    .map(([name, rows]) => `${name} (${numberText(rows)})`)
    .join(', ');
}

function shiftText({ rows, days = [], shiftMs = 0 }: Finding): string {
  const interval = durationText(Math.abs(shiftMs));
  const [day] = days;
  return day === undefined
    ? `${numberText(rows)} rows are those of the daily objects, labelled ${interval} ${shiftMs > 0 ? 'later' : 'earlier'}`
    : `from ${day} on labels are those of the ${shiftMs > 0 ? 'ends' : 'starts'} of ${interval}, before of the ${shiftMs > 0 ? 'starts' : 'ends'}`;
}

function firstText(example: Finding['example']): string {
  if (example === undefined) return '';
  const cells = Object.entries(example).map(([name, value]) => `${name} ${String(value)}`);
  return `; first ${cells.join(', ')}`;
}
