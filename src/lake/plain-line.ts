/**
 * Reads manifest lines of the most frequent form with one expression, which takes half the time of `JSON.parse` and the checks of the fields: a check of
 * a lake reads hundreds of thousands of lines.
 */
import type { Cadence, Settings } from '../model/task.js';
import type { IdFacts } from '../model/outcome.js';
import type { ObjectLine } from '../model/manifest-line.js';

/** Patterns of values, without anchors. `TEXT` and `COUNT` are groups of the expression below; the other two are not. */
export const DIGEST = '[0-9a-f]{64}';
export const INSTANT = String.raw`\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z`;
const TEXT = String.raw`"([^"\\\u0000-\u001f\u007f-\u009f]{0,256})"`;
const COUNT = String.raw`(0|[1-9]\d{0,14})`;

/** The fields in the order in which a commit writes them. */
const PLAIN = new RegExp(
  String.raw`^\{"v":1,"kind":"object","key":${TEXT},"cadence":"(daily|monthly)","period":${TEXT},"etag":${TEXT},` +
    String.raw`"lastModified":${TEXT},"bytes":${COUNT},"sha256":"(${DIGEST})","verified":"(sidecar|etag|crc)","settings":(\{[^{}]*\}),` +
    String.raw`"at":"(${INSTANT})","tool":${TEXT},"rows":${COUNT},"first":"(${INSTANT})","last":"(${INSTANT})","duplicates":${COUNT},` +
    String.raw`(?:"ids":\{"first":${COUNT},"last":${COUNT}(?:,"range":\{"first":${COUNT},"last":${COUNT}\})?\},)?"file":${TEXT},"fileBytes":${COUNT},"fileSha256":"(${DIGEST})",` +
    String.raw`"fileRows":${COUNT}(?:,"fileBefore":\{"bytes":${COUNT},"sha256":"(${DIGEST})"\})?\}$`,
);

/** The groups of the expression that each line has. */
type Group = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 20 | 21 | 22 | 23;
type Found = Readonly<Record<Group, string> & Partial<Record<16 | 17 | 18 | 19 | 24 | 25, string>>>;

/**
 * Undefined for a line of any other form. `settingsOf`: the settings of a text, undefined if they are wrong. Whether the period is a date, and
 * whether the key and the file are those of the series, is not checked.
 */
export function readPlainLine(
  text: string,
  settingsOf: (text: string) => Settings | undefined,
): ObjectLine | undefined {
  const found = PLAIN.exec(text) as Found | null;
  const settings = found === null ? undefined : settingsOf(found[9]);
  if (found === null || settings === undefined) return undefined;
  return {
    v: 1,
    kind: 'object',
    key: found[1],
    cadence: found[2] as Cadence,
    period: found[3],
    etag: found[4],
    lastModified: found[5],
    bytes: Number(found[6]),
    sha256: found[7],
    verified: found[8] as ObjectLine['verified'],
    settings,
    at: found[10],
    tool: found[11],
    rows: Number(found[12]),
    first: found[13],
    last: found[14],
    duplicates: Number(found[15]),
    ...(found[16] === undefined ? {} : { ids: idsOf(found) }),
    file: found[20],
    fileBytes: Number(found[21]),
    fileSha256: found[22],
    fileRows: Number(found[23]),
    ...(found[25] === undefined ? {} : { fileBefore: { bytes: Number(found[24]), sha256: found[25] } }),
  };
}

function idsOf(found: Found): IdFacts {
  const ids = { first: Number(found[16]), last: Number(found[17]) };
  if (found[18] === undefined) return ids;
  return { ...ids, range: { first: Number(found[18]), last: Number(found[19]) } };
}
