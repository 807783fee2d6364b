/** The hooks of a call: its signal, and functions that are called while it runs. */
import { usage } from '../model/errors.js';
import { SILENT_OBSERVER } from '../model/observer.js';
import type { Announcement, Observer } from '../model/observer.js';
import { withAddresses } from '../text/mirror-roots.js';
import { inOptionNames } from './options.js';
import type { LibraryVerb } from './options.js';
import type { S3Credentials } from '../lake/s3/client.js';
import { isRecord } from '../text/json.js';

export interface Hooks {
  /** Ends the call. Committed data stays, and the call rejects with the code `interrupted`. */
  readonly signal?: AbortSignal | undefined;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** For a lake in a bucket, or a function that gives them. Default: the places in which the tools of AWS look. */
  readonly s3Credentials?: S3Credentials | undefined;
}

/** The hooks of `vision`, `metrics` and `repair`. */
export interface RunHooks extends Hooks {
  /** Called once, before the first request for an object. */
  readonly onPlan?: ((plan: Announcement) => void) | undefined;
}

const HOOKS: readonly (keyof RunHooks)[] = ['signal', 'onPlan', 'onWarning', 's3Credentials'];

/** Throws a usage error for unknown hooks. */
export function checkHooks(verb: LibraryVerb, hooks: unknown): void {
  const isRun = verb === 'vision' || verb === 'metrics' || verb === 'repair';
  const names: readonly string[] = HOOKS.filter((name) => isRun || name !== 'onPlan');
  const hint = `hooks are ${names.join(', ')}`;
  if (!isRecord(hooks) || hooks instanceof AbortSignal || hooks instanceof AbortController)
    throw usage(`the last argument of ${verb} must be an object of hooks`, hint);
  const unknown = Object.keys(hooks).find((key) => !names.includes(key));
  if (unknown !== undefined) throw usage(`${verb} has no hook "${unknown}"`, hint);
}

export function observerOf({ onPlan, onWarning }: RunHooks): Observer {
  return {
    ...SILENT_OBSERVER,
    announce: (plan) => onPlan?.(plan),
    warn: (message) => onWarning?.(inOptionNames(withAddresses(message))),
  };
}
