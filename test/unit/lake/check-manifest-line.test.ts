/** Each field of a manifest line, with values that another program or damage may put there. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { klinesLine } from '../../../scripts/synthetic-lake.js';
import { createLineReader, NewerVersion } from '../../../src/lake/check-manifest-line.js';
import { readPlainLine } from '../../../src/lake/plain-line.js';
import { areSettings } from '../../../src/model/settings-schema.js';
import type { ManifestLine } from '../../../src/model/manifest-line.js';
import { flagSpec } from '../../../src/plan/options/flags.js';
import { SETTINGS } from '../../helpers/conversion.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

const ARCHIVE = loadBinance().archive;

const FOLDER = '/lake/binance/um/klines/interval=1h/symbol=BTCUSDT';
const DIGEST = 'ab'.repeat(32);
const AT = '2026-11-21T12:00:00.000Z';
const DAY = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-20.zip';
const MONTH = 'data/futures/um/monthly/klines/BTCUSDT/1h/BTCUSDT-1h-2026-10.zip';
const REST = 'rest/um/klines/1h/BTCUSDT/2026-11-20';
const MADE = REST.replace('rest', 'made');
const REVISION = { bytes: 1, sha256: DIGEST };
const GAPS = [[AT, '2026-11-21T13:00:00Z']];

const OBJECT = {
  v: 1,
  kind: 'object',
  key: DAY,
  cadence: 'daily',
  period: '2026-11-20',
  bytes: 0,
  sha256: DIGEST,
  verified: 'sidecar',
  file: '2026-11.parquet',
  fileBytes: 10,
  fileSha256: DIGEST,
  settings: SETTINGS,
  at: AT,
  tool: '0.1.0',
};
const DROPPED = { v: 1, kind: 'dropped', key: DAY, format: 'parquet', at: AT };
const ABSENT = {
  v: 1,
  kind: 'absent',
  cadence: 'daily',
  first: '2026-11-19',
  last: '2026-11-20',
  reason: 'hole',
  asked: 1,
  at: AT,
  tool: '0.1.0',
};
function createLineCheck(...where: Parameters<typeof createLineReader>): (line: unknown) => ManifestLine {
  const read = createLineReader(...where);
  return (line) => read(JSON.stringify(line));
}
const check = (line: unknown): ManifestLine => createLineCheck(FOLDER, ARCHIVE)(line);

describe('a sound line', () => {
  it.each<[string, object]>([
    ['of a day', OBJECT],
    ['of a month', { ...OBJECT, key: MONTH, cadence: 'monthly', period: '2026-10', file: '2026-10.parquet' }],
    ['of a day in a file of its own', { ...OBJECT, file: '2026-11-20.parquet' }],
    ['of rows of REST', { ...OBJECT, key: REST, verified: 'rest' }],
    ['of rows that the program made', { ...OBJECT, key: MADE, verified: 'lake', source: 'klines 1m' }],
    ...[
      'http-server-error',
      'breaker-open',
      'wait-too-long',
      'rate-limited',
      'banned',
      'address-blocked',
    ].map((archiveFailed): [string, object] => [
      `of rows of REST that were taken after ${archiveFailed}`,
      { ...OBJECT, key: REST, verified: 'rest', archiveFailed },
    ]),
    ['of an object without a sidecar', { ...OBJECT, verified: 'etag' }],
    ['of an object that only its CRC vouches for', { ...OBJECT, verified: 'crc' }],
    [
      'with many optional fields',
      {
        ...OBJECT,
        rows: 0,
        fileRows: 24,
        fileBefore: REVISION,
        duplicates: 1,
        idConflicts: 2,
        ids: {
          first: 3,
          last: 9,
          range: { first: 5, last: 20 },
          missing: 1,
          overlapping: 0,
          silent: ['begin'],
        },
        newColumns: ['fee'],
        suspicious: [{ kind: 'order', rows: 2, first: AT }],
        first: AT,
        last: AT,
        gaps: GAPS,
        replaces: REVISION,
        shorter: { ...REVISION, rows: 3 },
        insteadOf: { ...REVISION, rows: 3, gaps: [] },
      },
    ],
    [
      'of a CSV file by day',
      {
        ...OBJECT,
        file: '2026-11-20.csv',
        settings: {
          ...SETTINGS,
          format: 'csv',
          partition: 'day',
          cadence: 'daily',
          numbers: 'string',
          timestamps: 'iso',
          asPublished: true,
        },
      },
    ],
    [
      'of a zip',
      {
        ...OBJECT,
        file: DAY,
        settings: { ...SETTINGS, format: 'zip', cadence: 'monthly', timestamps: 'ms' },
      },
    ],
    ['that drops a day', DROPPED],
    ['that drops a month, with its settings', { ...DROPPED, key: MONTH, settings: SETTINGS }],
    ['that drops rows of REST', { ...DROPPED, key: REST, format: 'csv' }],
    ['that drops rows that the program made', { ...DROPPED, key: MADE }],
    ['of absent days', ABSENT],
    ['of absent months', { ...ABSENT, cadence: 'monthly', first: '2026-09', last: '2026-10' }],
    [
      'of a revision that was refused',
      { ...ABSENT, failed: 'row-malformed', refused: { format: 'zip', etag: 'e', sidecarEtag: '' } },
    ],
    ['of what REST was asked for', { ...ABSENT, rest: { asked: 1, at: AT } }],
    [
      'of what REST lacks',
      { ...ABSENT, rest: { asked: 1, at: AT, isEmpty: true, lacksToo: '0'.repeat(64) } },
    ],
  ])('%s is taken as it is', (_, line) => {
    expect(createLineReader(FOLDER, ARCHIVE)(JSON.stringify(line))).toEqual(line);
  });

  it.each(['before-history', 'delisted', 'dataset-ended', 'hole', 'not-listed-yet', 'not-published-yet'])(
    'of days that are %s is taken',
    (reason) => {
      expect(check({ ...ABSENT, reason })).toMatchObject({ reason });
    },
  );

  it('of a dataset without an interval has a key without one', () => {
    const metrics = createLineCheck('/lake/binance/um/metrics/symbol=BTCUSDT', ARCHIVE);
    const key = 'data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2026-11-20.zip';
    expect(metrics({ ...OBJECT, key })).toMatchObject({ key });
    expect(metrics({ ...OBJECT, key: 'rest/um/metrics/BTCUSDT/2026-11-20' })).toBeDefined();
  });

  it('of the spot market has a key without a folder of futures', () => {
    const spot = createLineCheck('/lake/binance/spot/klines/interval=1h/symbol=BTCUSDT', ARCHIVE);
    const key = DAY.replace('futures/um', 'spot');
    expect(spot({ ...OBJECT, key })).toMatchObject({ key });
  });

  it('that drops a day has the period at the end of its key, not digits of its symbol and interval', () => {
    const delivery = createLineCheck('/lake/binance/cm/klines/interval=15m/symbol=BTCUSD_210625', ARCHIVE);
    const name = 'klines/BTCUSD_210625/15m/BTCUSD_210625-15m-2021-06-20.zip';
    const key = `data/futures/cm/daily/${name}`;
    expect(delivery({ ...DROPPED, key })).toMatchObject({ key });
  });

  it('of a zip names the path of its key', () => {
    const zip = { ...OBJECT, settings: { ...OBJECT.settings, format: 'zip' }, file: OBJECT.key };
    expect(check(zip)).toMatchObject({ file: OBJECT.key });
    for (const file of [
      'binance/um/metrics/symbol=BTCUSDT/2026-11.parquet',
      OBJECT.key.replace('-20.zip', '-21.zip'),
      `${OBJECT.key}.CHECKSUM`,
      OBJECT.key.replace('data/', 'data//'),
      `/${OBJECT.key}`,
      undefined,
    ])
      expect(() => check({ ...zip, file })).toThrow('"file" is not the file of this object');
  });

  it('of a zip names no path out of the folder of the archive, also if the folder is not that of a series', () => {
    const anywhere = createLineCheck('/somewhere', ARCHIVE);
    for (const key of [
      'data/../x.zip',
      'data/./x.zip',
      'data//x.zip',
      '../x.zip',
      '/x.zip',
      'binance/x.zip',
      REST,
    ]) {
      const zip = { ...OBJECT, settings: { ...OBJECT.settings, format: 'zip' }, key, file: key };
      expect(() => anywhere(zip)).toThrow('"file" is not the file of this object');
    }
  });

  it.each([
    ['of another month', OBJECT, '2026-10.parquet'],
    ['of another day', OBJECT, '2026-11-19.parquet'],
    [
      'of one day for a month',
      { ...OBJECT, key: MONTH, cadence: 'monthly', period: '2026-10' },
      '2026-10-01.parquet',
    ],
  ])('names no file %s', (_, line, file) => {
    expect(() => check({ ...line, file })).toThrow('"file" is not the file of this object');
  });

  it('has gaps in its period, or up to a day beside it: the days of an exchange may begin at another hour', () => {
    const gap = ['2026-11-19T16:00:00Z', '2026-11-21T16:00:00Z'];
    expect(check({ ...OBJECT, gaps: [gap] })).toMatchObject({ gaps: [gap] });
    for (const wrong of [
      ['2026-11-18T23:59:00Z', '2026-11-20T16:00:00Z'],
      ['2026-11-20T16:00:00Z', '2026-11-22T00:01:00Z'],
      ['0001-01-01T00:00:00Z', '9999-12-31T00:00:00Z'],
    ]) {
      const problem = '"gaps" are not in the period';
      expect(() => check({ ...OBJECT, gaps: [gap, wrong] })).toThrow(problem);
      const insteadOf = { bytes: 1, sha256: DIGEST, rows: 1, gaps: [wrong] };
      expect(() => check({ ...OBJECT, insteadOf })).toThrow(problem);
    }
  });

  it('of any key is accepted if the folder is not that of a series', () => {
    expect(createLineCheck('/somewhere', ARCHIVE)({ ...OBJECT, key: 'x.zip' })).toBeDefined();
  });
});

const IDS = { first: 1, last: 2 };
const SUSPICIOUS = { kind: 'order', rows: 1, first: AT };
const INVALID_COUNTS = [-1, 0.5, '1', null, 2 ** 53, Number.NaN];
const INVALID_DIGESTS = ['', 'ab', `${DIGEST}0`, DIGEST.toUpperCase(), 5, null, [DIGEST]];
const INVALID_INSTANTS = [
  '2026-11-21',
  '2026-11-21T12:00:00',
  '2026-99-21T12:00:00Z',
  '2026-13-21T12:00:00Z',
  '2026-00-21T12:00:00Z',
  '2026-11-32T12:00:00Z',
  '2026-11-00T12:00:00Z',
  '2026-11-21T24:00:00Z',
  `x${AT}`,
  `${AT} `,
  5,
  null,
  [AT],
];
const INVALID_GAPS = [
  {},
  [AT],
  [[AT]],
  [[AT, AT, AT]],
  [[AT, 'later']],
  [[AT, AT.slice(0, -1)]],
  [[AT.slice(0, -1), AT]],
  [[AT, AT], 5],
];

/** Valid lines, a field of each, and values that this field must not have; undefined: the line lacks the field. */
const WRONG: readonly [base: Readonly<Record<string, unknown>>, field: string, values: readonly unknown[]][] =
  [
    [OBJECT, 'v', [undefined, 0, '1', '2', null, 1.5, Number.POSITIVE_INFINITY]],
    [OBJECT, 'kind', [undefined, 'objects', 1]],
    [OBJECT, 'key', [undefined, 5, null]],
    [
      OBJECT,
      'key',
      [
        'x',
        MONTH,
        DAY.replaceAll('BTC', 'ETH'),
        DAY.replace('1h/', '1m/'),
        DAY.replace('/um/', '/cm/'),
        DAY.replace('11-20', '11-19'),
        `x/${DAY}`,
        DAY.replace('data/futures', 'data/../futures'),
        DAY.replace('data/futures', '/data/futures'),
        `${DAY}x`,
        `${REST}x`,
        `x${REST}`,
        REST.replace('um', 'cm'),
      ],
    ],
    [OBJECT, 'cadence', [undefined, 'hourly', null]],
    [OBJECT, 'cadence', ['monthly']],
    [OBJECT, 'period', [undefined, 20_261_120]],
    [OBJECT, 'period', ['2026-11-19', '2026-11']],
    [OBJECT, 'sha256', INVALID_DIGESTS],
    [OBJECT, 'fileSha256', INVALID_DIGESTS],
    ...['etag', 'lastModified', 'staleSidecar', 'tool', 'source'].map((name): (typeof WRONG)[number] => [
      OBJECT,
      name,
      [5, null, true, {}, ['e'], 'a\nb', '\u001b[2J', '\u0085', 'e'.repeat(257)],
    ]),
    [OBJECT, 'verified', [undefined, 'md5', true]],
    [
      { ...OBJECT, key: REST, verified: 'rest' },
      'archiveFailed',
      // After a code that is none of an archive without answer, rows of REST do not replace its object.
      ['', 'nosuch', '__proto__', 'zip-broken', 'http-refused', 'bug', 503, null, true, ['banned'], {}],
    ],
    [OBJECT, 'bytes', [undefined, ...INVALID_COUNTS]],
    [OBJECT, 'fileBytes', [undefined, ...INVALID_COUNTS]],
    ...['rows', 'fileRows', 'duplicates', 'idConflicts'].map((name): (typeof WRONG)[number] => [
      OBJECT,
      name,
      INVALID_COUNTS,
    ]),
    ...['first', 'last'].map((name): (typeof WRONG)[number] => [OBJECT, name, INVALID_INSTANTS]),
    [OBJECT, 'at', [undefined, ...INVALID_INSTANTS]],
    [OBJECT, 'gaps', INVALID_GAPS],
    [
      OBJECT,
      'ids',
      [
        5,
        null,
        {},
        { first: 1 },
        { last: 1 },
        { ...IDS, missing: -1 },
        { ...IDS, missing: 1, overlapping: '1' },
      ],
    ],
    [OBJECT, 'newColumns', [5, null, {}, 'fee', [5], ['fee', 'a\nb']]],
    [
      OBJECT,
      'suspicious',
      [
        5,
        null,
        SUSPICIOUS,
        [5],
        [{}],
        [{ ...SUSPICIOUS, kind: 'odd' }],
        [{ ...SUSPICIOUS, rows: -1 }],
        [{ ...SUSPICIOUS, first: 'a\nb' }],
        [SUSPICIOUS, { kind: 'order' }],
      ],
    ],
    [OBJECT, 'fileBefore', [5, null, {}, { bytes: 1 }, { sha256: DIGEST }, { ...REVISION, bytes: -1 }]],
    [
      OBJECT,
      'replaces',
      [
        5,
        null,
        {},
        { bytes: 1 },
        { sha256: DIGEST },
        { bytes: -1, sha256: DIGEST },
        { bytes: 1, sha256: [DIGEST] },
        { ...REVISION, etag: 5 },
        { ...REVISION, lastModified: 'a\nb' },
      ],
    ],
    [OBJECT, 'shorter', [5, null, REVISION, { ...REVISION, rows: -1 }, { rows: 1 }]],
    [
      OBJECT,
      'insteadOf',
      [
        5,
        null,
        REVISION,
        { ...REVISION, rows: 1 },
        { ...REVISION, gaps: [] },
        { rows: 1, gaps: [] },
        { ...REVISION, rows: 1, gaps: INVALID_GAPS[1] },
      ],
    ],
    [
      OBJECT,
      'file',
      [
        undefined,
        5,
        '',
        '_manifest.jsonl',
        '../2026-11.parquet',
        '/2026-11.parquet',
        '2026-11.parquet.x',
        'a/2026-11.parquet',
        '.parquet',
      ],
    ],
    [OBJECT, 'settings', [undefined, null, 5]],
    ...Object.keys(SETTINGS).map((name): (typeof WRONG)[number] => [
      OBJECT,
      'settings',
      [
        { ...SETTINGS, [name]: 'x' },
        { ...SETTINGS, [name]: undefined },
        { ...SETTINGS, [name]: null },
      ],
    ]),
    [DROPPED, 'key', [undefined, 5]],
    [
      DROPPED,
      'key',
      [
        'x',
        DAY.replaceAll('BTC', 'ETH'),
        MONTH.replace('monthly', 'daily'),
        `${DAY}x`,
        'rest/um/klines/1h/ETHUSDT/2026-11-20',
      ],
    ],
    [DROPPED, 'format', [undefined, 'json', null]],
    [DROPPED, 'settings', [null, 5]],
    [DROPPED, 'settings', [{ ...SETTINGS, format: 'json' }]],
    [ABSENT, 'cadence', [undefined, 'hourly']],
    ...['first', 'last'].map((name): (typeof WRONG)[number] => [
      ABSENT,
      name,
      [undefined, 5, '0001-01-01', '1999-12-31', '2200-01-01', '9999-12-31', 2100, ['2026-11-19']],
    ]),
    [ABSENT, 'reason', [undefined, 'lost', 5, 'toString', ['hole']]],
    [ABSENT, 'failed', [5, null, {}]],
    [ABSENT, 'refused', [5, null, {}, { format: 'json' }]],
    [ABSENT, 'rest', [5, null, {}, { asked: 1 }, { at: AT }, { asked: -1, at: AT }, { asked: 1, at: 'x' }]],
    [
      ABSENT,
      'rest',
      [
        { isEmpty: false },
        { isEmpty: 1, lacksToo: DIGEST },
        { lacksToo: 'x' },
        { isEmpty: true, lacksToo: 5 },
      ].map((answer) => ({ asked: 1, at: AT, ...answer })),
    ],
  ];

describe('a line is damaged', () => {
  it.each(
    WRONG.flatMap(([base, field, values]) =>
      values.map(
        (value) => [base['kind'], field, JSON.stringify(value), { ...base, [field]: value }] as const,
      ),
    ),
  )('of kind %s with %s %s', (_kind, _field, _value, line) => {
    expect(() => check(line)).toThrow(TypeError);
  });

  it('with the file of another format', () => {
    expect(() => check({ ...OBJECT, settings: { ...SETTINGS, format: 'zip' } })).toThrow(
      '"file" is not the file of this object',
    );
    expect(() => check({ ...OBJECT, file: DAY })).toThrow('"file" is not the file of this object');
  });

  it.each([
    ['', 'the line is not JSON'],
    ['{', 'the line is not JSON'],
    ['null', 'the line is not an object'],
    ['5', 'the line is not an object'],
    ['"x"', 'the line is not an object'],
    ['[]', 'the line is not an object'],
  ])('that is %j: %s', (text, says) => {
    expect(() => createLineReader(FOLDER, ARCHIVE)(text)).toThrow(new TypeError(says));
  });

  it('but one of a later version gives NewerVersion, whatever its fields are', () => {
    expect(() => check({ v: 2 })).toThrow(new NewerVersion('2'));
  });
});

describe('settings', () => {
  it.each(['format', 'partition', 'cadence', 'numbers', 'timestamps'] as const)(
    'have every value that --%s takes',
    (name) => {
      // A run chooses the partition that auto means before it writes.
      const choices = (flagSpec(name).choices ?? []).filter(
        (value) => name !== 'partition' || value !== 'auto',
      );
      expect(choices.length).toBeGreaterThan(1);
      for (const value of choices) {
        expect(areSettings({ ...SETTINGS, [name]: value })).toBe(true);
      }
    },
  );

  it.each([{ ...SETTINGS, numbers: 'x' }, {}, null, 5, 'x', [SETTINGS]])('%j are not taken', (value) => {
    expect(areSettings(value)).toBe(false);
  });
});

describe('a line of the most frequent form', () => {
  const LINE = JSON.stringify({ ...klinesLine('BTCUSDT', '2026-11-20'), fileBefore: REVISION }).replace(
    '"file"',
    '"ids":{"first":1,"last":2,"range":{"first":4,"last":8}},"file"',
  );
  const parsed = JSON.parse(LINE) as object;
  const read = createLineReader(FOLDER.replace('1h', '1m'), ARCHIVE);
  const resultOf = (text: string): string => {
    try {
      return JSON.stringify(read(text));
    } catch (error) {
      return String(error);
    }
  };
  /** The expression does not match a line with a space at its end, so that the checks of the fields read it. */
  const isSame = (text: string): boolean => resultOf(text) === resultOf(`${text} `);

  it('is read by the expression', () => {
    expect(readPlainLine(LINE, () => SETTINGS)).toEqual({ ...parsed, settings: SETTINGS });
    expect(readPlainLine(LINE, () => undefined)).toBeUndefined();
    expect(readPlainLine(`${LINE} `, () => SETTINGS)).toBeUndefined();
  });

  it('gives the same as the checks of its fields, after any edit and with any values', () => {
    const pieces = fc.constantFrom(
      '',
      '"',
      '}',
      '{',
      ',',
      '\\',
      '0',
      '-',
      '.',
      ' ',
      '\0',
      '\u0085',
      '币',
      '"v":2,',
    );
    const values = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom('2026-11-31', 2 ** 53, '../x.parquet', 'x'.repeat(257)),
    );
    const edits = [
      fc.nat(LINE.length),
      fc.nat(30),
      pieces,
      fc.constantFrom(...Object.keys(parsed)),
      values,
    ] as const;
    const holds = fc.property(...edits, (from, length, inserted, name, value) => {
      expect(isSame(LINE.slice(0, from) + inserted + LINE.slice(from + length))).toBe(true);
      expect(isSame(JSON.stringify({ ...parsed, [name]: value }))).toBe(true);
    });
    fc.assert(holds, { numRuns: 3000 });
  });

  it('keeps its own settings after a line with others', () => {
    const other = LINE.replace('"double"', '"string"');
    // In this order, because the reader keeps the settings of the line before.
    for (const text of [LINE, other, LINE, `${other} `, LINE]) expect(isSame(text)).toBe(true);
  });
});
