/** `cryptodl doctor`: starts the checks at once, and prints a table with a row for each result, in a fixed order. */
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { printable, printLines, absolutePath, shownPath } from '../../text/printable.js';
import { table } from '../../text/table.js';
import { widthOf } from '../../text/wrap.js';
import { existsSync } from 'node:fs';
import { once, setMaxListeners } from 'node:events';
import { duckdbVersion } from '../../convert/load-duckdb.js';
import { Bans } from '../../http/throttle/bans.js';
import { proxyLabels, proxiesOf } from '../../files/proxies.js';
import { createAttempt } from '../../http/stack.js';
import type { AttemptOptions } from '../../http/stack-options.js';
import { egressGroupOf, type EgressGroup } from '../../http/throttle/group.js';
import { backingOf } from '../../files/backing.js';
import { lakePaths, refuseLinkedFolders } from '../../lake/layout.js';
import { stateFolder } from '../../files/environment.js';
import type { SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { mostInFlight } from '../../run/pacing/concurrency.js';
import { exchangeHosts } from '../../exchange/hosts.js';
import { asResult, bucketResult, checkBans, checkClock, checkFolder, checkLock } from './check-machine.js';
import { checkRedis, checkVersions, clearBans } from './check-machine.js';
import type { CheckResult, Status } from './check-machine.js';
import { checkHosts, checkProxy, LONGEST_PERMIT_WAIT_MS, type HostChecks } from './check-hosts.js';

type Flag = SessionFlag | 'clear-bans' | 'json' | 'quiet';

/** Resolves with 0, with 1 when a check failed, or with the exit code of the signal or error that ended the checks. */
export async function doctor(command: VerbInput<Flag>): Promise<ExitCode> {
  const { resolved, io } = command;
  const { options } = resolved;
  return withSignals(command, async (request) => {
    const results = await checkAll(request);
    const shown = results.filter(({ status }) => !options.quiet || status !== 'ok');
    await writeData(io, options.json ? shown : tableOf(shown, widthOf(io.stdout)));
    const countOf = (wanted: Status): number => results.filter(({ status }) => status === wanted).length;
    if (!options.quiet)
      printLines(io.stderr, [`${countOf('ok')} ok, ${countOf('warn')} warn, ${countOf('fail')} fail`]);
    return exitCode({ failedChecks: countOf('fail') });
  });
}

function tableOf(results: readonly CheckResult[], width: number): string[] {
  const rows = results.map(({ status, check, of, found, next }) => {
    const text = (of === undefined ? '' : `${of}: `) + found + (next === undefined ? '' : `; next: ${next}`);
    return [status, check, printable(text)];
  });
  return table([{}, {}, {}], rows, { width }).lines;
}

/** With `--clear-bans HOST`, runs no check and sends no request. Rejects with usage errors. */
async function checkAll(request: VerbRequest<Flag>): Promise<readonly CheckResult[]> {
  const { resolved, surroundings, clock, observer } = request;
  const { options } = resolved;
  const warn = observer.warn.bind(observer);
  const group = egressGroupOf(options, { clock, warn });
  const bans = new Bans({ folder: stateFolder(options, surroundings), clock, warn, group });
  group?.enter();
  try {
    if (options.clearBans !== undefined) return [await clearBans(bans, options.clearBans)];
    return await runChecks(request, bans, group);
  } finally {
    await group?.leave();
  }
}

async function runChecks(
  request: VerbRequest<Flag>,
  bans: Bans,
  group: EgressGroup | undefined,
): Promise<readonly CheckResult[]> {
  const { resolved, clock, signal } = request;
  // All checks listen for the abort; Node warns of more than 10 listeners.
  setMaxListeners(0, signal);
  const requests = openRequests(request, bans, group);
  try {
    const { redis } = resolved.options;
    const checks = Promise.all([
      checkVersions(duckdbVersion),
      checkNetwork(request, requests),
      ...(redis === undefined ? [] : [asResult('redis', checkRedis(redis, group, clock), signal)]),
      checkDisks(request),
      asResult('bans', checkBans(bans), signal),
    ]);
    return (await Promise.race([checks, whenAborted(signal)])).flat();
  } finally {
    await bans.written();
    await Promise.all(requests.map(({ stack }) => stack.close()));
  }
}

/** Rejects on abort, and never resolves. */
async function whenAborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason as Error;
}

type Requests = ReturnType<typeof openRequests>[number];

/** The requests of the checks: once for each of several proxies, which `via` names, else once. */
function openRequests(request: VerbRequest<Flag>, bans: Bans, group: EgressGroup | undefined) {
  const { resolved, surroundings, clock, signal, observer, exchange } = request;
  const { options } = resolved;
  const folder = stateFolder(options, surroundings);
  const proxies = proxiesOf(options.proxy, surroundings);
  const attempt: AttemptOptions = {
    options: {
      ...options,
      mostInFlight: mostInFlight(options.concurrency),
      maxWaitMs: LONGEST_PERMIT_WAIT_MS,
      // With socket limits, the checks would wait for each other.
      poolLimit: undefined,
      poolLimitPerHost: undefined,
    },
    clock,
    hosts: exchangeHosts(options, exchange),
    bans,
    group,
    proxies,
    signal,
    // The checks create no folder. Without one, no other run counts there either.
    stateFolder: existsSync(folder) ? folder : undefined,
    observer,
  };
  if (proxies.several.length === 0) return [{ stack: createAttempt(attempt), via: undefined }];
  const labels = proxyLabels(proxies.several);
  return proxies.several.map((proxy, at) => {
    const own = { ...proxies, http: proxy, https: proxy, several: [] };
    return { stack: createAttempt({ ...attempt, proxies: own, via: labels[at] }), via: labels[at] };
  });
}

/** Checks the hosts through the first of several proxies that works. A run leaves out those that do not work. */
async function checkNetwork(
  request: VerbRequest<Flag>,
  requests: readonly Requests[],
): Promise<readonly CheckResult[]> {
  const contextOf = ({ stack }: Requests): HostChecks => ({ ...request, fetch: stack.fetch, clocks: [] });
  const several = requests.filter(({ via }) => via !== undefined);
  const proxies = await Promise.all(several.map((each) => checkProxy(contextOf(each), each.via ?? '')));
  const working = proxies.findIndex(({ status }) => status !== 'fail');
  const [first] = requests.slice(Math.max(working, 0));
  if (first === undefined) return [];
  const context = contextOf(first);
  const hosts = await Promise.all(checkHosts(context));
  return [
    ...proxies.map((found) =>
      found.status === 'fail' && working >= 0 ? { ...found, status: 'warn' as const } : found,
    ),
    ...hosts,
    checkClock(context.clocks),
  ];
}

/** The folders of a run, then the lock. */
async function checkDisks(request: VerbRequest<Flag>): Promise<readonly CheckResult[]> {
  const { resolved, surroundings, signal } = request;
  const { options } = resolved;
  const { home } = surroundings;
  const paths = lakePaths(absolutePath(options.out, home));
  const { root } = paths;
  const inside = refuseLinkedFolders(paths);
  const resultOf = (check: string, found: Promise<CheckResult>): Promise<CheckResult> =>
    asResult(check, found, signal);
  const out = async (): Promise<CheckResult> => {
    await inside;
    const trial = await backingOf(root)?.tryOut();
    if (trial !== undefined) return bucketResult(shownPath(root), trial);
    return checkFolder('out', root, paths.staging);
  };
  const found = await Promise.all([
    resultOf('out', out()),
    ...(options.tempDir === undefined
      ? []
      : [resultOf('temp', checkFolder('temp', absolutePath(options.tempDir, home)))]),
    resultOf('state', checkFolder('state', stateFolder(options, surroundings))),
  ]);
  const lock = inside.then(() => checkLock(paths));
  return [...found, await resultOf('lock', lock)];
}
