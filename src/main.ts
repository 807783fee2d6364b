/** Runs a command line: arguments in, exit code out. `run` may be called several times in one process. */
import { completionVerb, manVerb } from './cli/commands.js';
import { parseCommandLine } from './cli/program.js';
import type { ExitCode } from './model/exit-code.js';
import type { Io } from './model/io.js';
import { environmentName, FLAG_NAMES } from './plan/options/flags.js';
import type { VerbName } from './plan/options/verb-spec.js';
import { printingErrors, startVerb } from './run/verb/start-verb.js';
import type { LoadExchange, ParseLine, Verb } from './run/verb/verb.js';
import { nearest } from './text/did-you-mean.js';
import { printLines } from './text/printable.js';
import { auditVerb } from './verbs/audit/command.js';
import { barsVerb } from './verbs/bars/command.js';
import { checkVerb } from './verbs/check/command.js';
import { coverageVerb } from './verbs/coverage/command.js';
import { doctorVerb } from './verbs/doctor/command.js';
import { exportVerb } from './verbs/export/command.js';
import { listVerb } from './verbs/list/command.js';
import { metricsVerb } from './verbs/metrics/command.js';
import { plotVerb } from './verbs/plot/command.js';
import { enqueueVerb, statusVerb, workerVerb } from './verbs/queue/commands.js';
import { removeVerb } from './verbs/remove/command.js';
import { repairVerb } from './verbs/repair/command.js';
import { reportVerb } from './verbs/report/command.js';
import { retryVerb } from './verbs/retry/command.js';
import { runVerb } from './verbs/run/command.js';
import { runsVerb } from './verbs/runs/command.js';
import { scheduleVerb } from './verbs/schedule/command.js';
import { schemaVerb } from './verbs/schema/command.js';
import { serveVerb } from './verbs/serve/command.js';
import { sqlVerb } from './verbs/sql/command.js';
import { universeVerb } from './verbs/universe/command.js';
import { verifyVerb } from './verbs/verify/command.js';
import { visionVerb } from './verbs/vision/command.js';

/** In the order of help. */
export const VERBS: Readonly<Record<VerbName, Verb>> = {
  vision: visionVerb,
  metrics: metricsVerb,
  run: runVerb,
  retry: retryVerb(async (options, io) =>
    (await import('./verbs/queue/retry-jobs.js')).retryJobs(options, io),
  ),
  verify: verifyVerb,
  repair: repairVerb,
  remove: removeVerb,
  schedule: scheduleVerb,
  list: listVerb,
  schema: schemaVerb,
  audit: auditVerb,
  sql: sqlVerb,
  check: checkVerb,
  coverage: coverageVerb,
  runs: runsVerb,
  report: reportVerb,
  plot: plotVerb,
  bars: barsVerb,
  export: exportVerb,
  universe: universeVerb,
  serve: serveVerb,
  doctor: doctorVerb,
  enqueue: enqueueVerb,
  worker: workerVerb,
  status: statusVerb,
  completion: completionVerb,
  man: manVerb,
};

const loadDefault: LoadExchange = async () => {
  const { loadBinance } = await import('./exchange/binance/binance.js');
  return loadBinance();
};

/** Resolves with the exit code. Errors are printed on stderr. */
export async function run(
  argv: readonly string[],
  io: Io,
  loadExchange: LoadExchange = loadDefault,
): Promise<ExitCode> {
  return printingErrors(io, async () => {
    if (argv[0] === '__complete')
      return (await import('./cli/completion.js')).complete(argv.slice(1), VERBS, io);
    const parseLine: ParseLine = (words, { stdout }) => parseCommandLine(words, VERBS, stdout);
    const invocation = parseLine(argv, io);
    if (invocation === undefined) return 0;
    warnOfVariables(io);
    const { layersOf } = await import('./plan/options/resolve.js');
    const layers = await layersOf(invocation, io);
    const started = { ...invocation, layers, io, verbs: VERBS, parseLine, loadExchange };
    return startVerb(VERBS[invocation.verb.name], started);
  });
}

const PREFIX = 'CRYPTODL_';

/** Warns of variables whose name is similar to that of an option, because a mistyped one would do nothing. Others may belong to scripts of the user. */
function warnOfVariables({ environment, stderr }: Io): void {
  const known = FLAG_NAMES.map((name) => environmentName(name).slice(PREFIX.length));
  for (const name of Object.keys(environment)) {
    const word = name.slice(PREFIX.length);
    const near = name.startsWith(PREFIX) && !known.includes(word) ? nearest(word, known) : undefined;
    if (near !== undefined)
      printLines(stderr, [`warning: ${name} is not an option; did you mean ${PREFIX}${near}?`]);
  }
}
