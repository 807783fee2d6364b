/** The outcomes and the summary of a run, as a call of the library gives them. */
import { startRun } from '../download/run.js';
import { inOptionNames } from './options.js';
import type { Run as StartedRun, RunRequest } from '../download/run.js';
import type { TaskOutcome } from '../model/outcome.js';
import { summaryOf } from '../report/run-summary.js';
import type { RunSummary } from '../report/run-summary.js';
import { libraryError } from './error.js';
import type { RunHooks } from './hooks.js';
import { arrayOf, enter } from './items.js';
import type { Begun, ItemsWithSummary } from './items.js';
import { openLake } from './lake-in-bucket.js';

interface BegunRun {
  readonly started: StartedRun;
  readonly shown: <T>(value: T) => T;
  readonly leave: () => Promise<void>;
}

/** The run begins when the first outcome is read. */
export function runItems(
  request: Omit<RunRequest, keyof Begun>,
  hooks: RunHooks,
): ItemsWithSummary<TaskOutcome, RunSummary> {
  let begun: Promise<BegunRun> | undefined;
  const begin = (): Promise<BegunRun> => (begun ??= beginRun(request, hooks));
  const outcomes = async function* (): AsyncGenerator<TaskOutcome> {
    const { started, shown, leave } = await begin();
    try {
      for await (const outcome of started) yield withOptionNames(shown(outcome));
      await summaryOfRun(started);
    } catch (error) {
      throw await left(error, leave);
    } finally {
      await leave();
    }
  };
  return {
    [Symbol.asyncIterator]: outcomes,
    toArray: async () => arrayOf(outcomes()),
    summary: async () => {
      const { started, shown, leave } = await begin();
      try {
        return shown(await summaryOfRun(started));
      } catch (error) {
        throw await left(error, leave);
      } finally {
        await leave();
      }
    },
  };
}

async function beginRun(request: Omit<RunRequest, keyof Begun>, hooks: RunHooks): Promise<BegunRun> {
  const { common, leave } = enter();
  const signal = hooks.signal ?? new AbortController().signal;
  try {
    const { resolved, shown, close } = await openLake(request.verb, request, hooks);
    const end = async (): Promise<void> => {
      try {
        await close();
      } catch (error) {
        throw libraryError(error);
      } finally {
        leave();
      }
    };
    return { started: startRun({ ...request, resolved, signal, common }), shown, leave: end };
  } catch (error) {
    leave();
    throw libraryError(error);
  }
}

/** The error that ended a run, which is more important than that of its end. It is converted while the mirror of a bucket is open. */
async function left(error: unknown, leave: BegunRun['leave']): Promise<unknown> {
  const known = libraryError(error);
  await leave().catch(() => undefined);
  return known;
}

export async function summaryOfRun(started: StartedRun): Promise<RunSummary> {
  const end = await started.end();
  if (end.ended !== undefined) throw end.ended;
  return summaryOf(end);
}

function withOptionNames(outcome: TaskOutcome): TaskOutcome {
  if (outcome.outcome !== 'failed') return outcome;
  return { ...outcome, message: inOptionNames(outcome.message) };
}
