/** Values that cannot be right, by the rules of a dataset in config/. Their rows are counted and kept. */
import type { Suspicious } from '../model/outcome.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import { instantExpression, keepsText } from './columns.js';
import type { Conversion } from './conversion.js';
import type { ResultRow } from './duckdb.js';
import { isoInstant } from './row-times.js';
import { quoteName } from './sql.js';
import { NUMBER, ORDINAL } from './statements.js';

type Context = Pick<Conversion, 'spec' | 'settings'>;

/** What is true of the values of a sound row, or NULL where a cell is blank. */
interface Rule {
  readonly kind: Exclude<Suspicious['kind'], 'constant'>;
  readonly sound: string;
  readonly broken: string;
  readonly columns: readonly string[];
}

/** One rule per column where that is possible: DuckDB skips row groups by their least value. */
function rulesOf({ spec: { values = {} }, settings }: Context): Rule[] {
  const { ordered = [], positive = [], notNegative = [] } = values;
  const value = (name: string): string =>
    keepsText(settings) ? `TRY_CAST(${quoteName(name)} AS DOUBLE)` : quoteName(name);
  const pairs = ordered.flatMap((names) => names.slice(1).map((name, index) => [names[index] ?? '', name]));
  const compared = (sign: string): string[] =>
    pairs.map(([low = '', high = '']) => `${value(low)} ${sign} ${value(high)}`);
  const bound = (name: string, sound: string, broken: string): Omit<Rule, 'kind'> => ({
    sound: `${value(name)} ${sound} 0`,
    broken: `${value(name)} ${broken} 0`,
    columns: [name],
  });
  const columns = [...new Set(ordered.flat())];
  const [sound, broken] = [compared('<=').join(' AND '), compared('>').join(' OR ')];
  return [
    ...(pairs.length === 0 ? [] : [{ kind: 'order', sound, broken, columns } as const]),
    ...positive.map((name) => ({ ...bound(name, '>', '<='), kind: 'zero' }) as const),
    ...notNegative.map((name) => ({ ...bound(name, '>=', '<'), kind: 'negative' }) as const),
  ];
}

/** Expression that is true for a sound row of a published CSV; never NULL. Values of a whole day are not compared. */
export function soundExpression(context: Context): string {
  // Where the lowest of ordered prices is above 0, the others are too.
  const higher = new Set((context.spec.values?.ordered ?? []).flatMap((names) => names.slice(1)));
  const needed = rulesOf(context).filter(
    ({ kind, columns: [name = ''] }) => kind !== 'zero' || !higher.has(name),
  );
  return needed.length === 0 ? 'true' : `coalesce(${needed.map(({ sound }) => sound).join(' AND ')}, true)`;
}

/** The suspicious rows of each object of the relation `rows`, by ordinal: their number, and the first one, for each kind. */
export async function findSuspicious(
  context: Context & Pick<Conversion, 'duckdb'>,
): Promise<ReadonlyMap<number, Suspicious[]>> {
  const { duckdb } = context;
  const rules = rulesOf(context);
  const found = new Map<number, Suspicious[]>();
  const add = (row: ResultRow, kind: Suspicious['kind'], names: readonly string[]): void => {
    const cells = names.map((name) => `${name} ${String(row[name])}`);
    const first = `${isoInstant(row, '.instant')} ${cells.join(', ')}`;
    const ordinal = Number(row['.ord']);
    found.set(ordinal, [...(found.get(ordinal) ?? []), { kind, rows: Number(row['.rows']), first }]);
  };
  const counted = rules.length === 0 ? [] : await duckdb.rows(countQuery(rules));
  for (const count of counted) {
    const [row = {}] = await duckdb.rows(
      `SELECT *, ${instantExpression(context.spec)} AS ".instant" FROM rows WHERE ${NUMBER} = ${String(count['first'])}`,
    );
    const broken = rules.filter(({ kind, columns: [name = ''] }) => {
      const isBroken =
        kind === 'order' || Number(row[name]) < 0 || (kind === 'zero' && Number(row[name]) === 0);
      return kind === count['kind'] && isBroken;
    });
    const names = [...new Set(broken.flatMap(({ columns }) => columns))];
    add({ ...row, '.ord': count['ord'], '.rows': count['rows'] }, broken[0]?.kind ?? 'order', names);
  }
  const constant = context.spec.values?.constant ?? [];
  if (constant.length > 0)
    for (const row of await duckdb.rows(constantQuery(context, constant)))
      add(row, 'constant', [...otherKeys(context.spec), ...constant]);
  return found;
}

function countQuery(rules: readonly Rule[]): string {
  const numbered = `SELECT ${ORDINAL} AS ord, ${NUMBER} AS number`;
  const parts = rules.map(({ kind, broken }) => `${numbered}, '${kind}' AS kind FROM rows WHERE ${broken}`);
  return `SELECT ord, kind, count(DISTINCT number) AS rows, min(number) AS first
    FROM (${parts.join(' UNION ALL ')}) GROUP BY ord, kind ORDER BY ord, kind`;
}

/** The columns of the sort order that are no time: they tell the bands of a book. */
const otherKeys = ({ sort, columns }: DatasetSpec): string[] =>
  sort.filter((name) => columns.some((column) => column.name === name && column.type === 'number'));

/**
 * Rows of a day with one value in all of these columns, by the other key columns, with the first of them. Only values other than 0, which is an
 * empty band. The keys of an object count together.
 */
function constantQuery({ spec }: Context, names: readonly string[]): string {
  const time = instantExpression(spec);
  const keys = otherKeys(spec).map(quoteName);
  const isConstant = names.map((name) => `min(${quoteName(name)}) = max(${quoteName(name)})`);
  const first = [...otherKeys(spec), ...names].map(
    (name) => `arg_min(${quoteName(name)}, ${time}) AS ${quoteName(name)}`,
  );
  const days = `SELECT ${ORDINAL} AS ".ord", count(*) AS rows, min(${time}) AS ".instant", ${first.join(', ')}
    FROM rows GROUP BY ${[ORDINAL, `date_trunc('day', ${time})`, ...keys].join(', ')}
    HAVING count(*) >= 20 AND ${isConstant.join(' AND ')} AND max(abs(TRY_CAST(${quoteName(names[0] ?? '')} AS DOUBLE))) > 0`;
  return `SELECT DISTINCT ON (".ord") *, sum(rows) OVER (PARTITION BY ".ord") AS ".rows" FROM (${days}) ORDER BY ".ord", ".instant"`;
}
