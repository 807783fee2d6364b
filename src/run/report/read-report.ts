/** `cryptodl retry FILE`: the tasks of a failure report and the options of its run. */
import { resolve } from 'node:path';
import { lakeOfReport } from '../../lake/layout.js';
import { usage } from '../../model/errors.js';
import { resolveOptions } from '../../plan/options/resolve.js';
import type { ExchangeWords, RawLayer, RawValues } from '../../plan/options/resolve.js';
import { flagFor, type VerbSpecs } from '../../plan/options/verb-spec.js';
import { readFailureReport, type ReadReport } from './read-failure-report.js';
import { carriedOptions, type PastFailures } from './select-failures.js';
import { marketNames } from '../../exchange/exchange-spec.js';
import { withAddresses } from '../../text/mirror-roots.js';

/**
 * The recorded paths of a report in a lake are those in this lake, which may be a copy or may have been moved since. Rejects with a usage
 * error for a file that is not a report, and for a failure in a market that the exchange does not have.
 */
export async function readReport(operand: string, exchange: ExchangeWords): Promise<ReadReport> {
  const report = await readFailureReport(operand);
  const markets = marketNames(exchange);
  const stray = report.entries.find(({ market }) => !markets.includes(market));
  if (stray === undefined) return inItsLake(report);
  throw usage(
    `${operand} line ${stray.line} is not a failure ("${stray.market}" is not one of the markets ${markets.join(', ')})`,
    'remove that line',
  );
}

function inItsLake(report: ReadReport): ReadReport {
  const { file, header } = report;
  const recorded = header.options['out']?.[0];
  const lake = file === undefined ? undefined : lakeOfReport(resolve(file));
  if (lake === undefined || recorded === undefined) return report;
  const moved = (text: string): string =>
    `${text}/`.startsWith(`${recorded}/`) ? withAddresses(lake) + text.slice(recorded.length) : text;
  const options = Object.entries(header.options).map(([name, texts]) => [name, texts.map(moved)] as const);
  return { ...report, header: { ...header, options: Object.fromEntries(options) } };
}

/** `layers`: the options of this command, its flags first. All layers override the options of the report, but only flags override its paths. */
export function pastRun(
  { path, file, header, entries, cut }: ReadReport,
  layers: readonly RawLayer[],
  { verbs, exchange }: { readonly verbs: VerbSpecs; readonly exchange: ExchangeWords },
) {
  const { options, verb } = header;
  const ofReport: RawLayer = {
    origin: 'failure report',
    values: { ...(verb === 'metrics' ? paceOfMetrics(verbs) : {}), ...carriedOptions(options) },
    nameOf: (name) => `${path}: ${name}`,
  };
  // The environment and the config file may be made for another lake, so the paths of the report override theirs.
  const paths = Object.entries(ofReport.values).filter(([name]) => ['out', 'temp-dir'].includes(name));
  const ofLake = { ...ofReport, values: Object.fromEntries(paths) };
  const ordered = [...layers.slice(0, 1), ofLake, ...layers.slice(1), ofReport];
  const failures: PastFailures = { path, file, entries, cut, options };
  return { verb, resolved: resolveOptions(verbs.retry, ordered, exchange), failures };
}

/** A retry of `metrics` uses the default concurrency and the default retry preset of `metrics`, unless the report has others. */
function paceOfMetrics({ metrics }: VerbSpecs): RawValues {
  const names = ['concurrency', 'retry-preset'] as const;
  return Object.fromEntries(names.map((name) => [name, [flagFor(name, metrics).default ?? '']]));
}
