/** The hooks of a call: its signal, and functions that are called while it runs. */
import { usage } from '../model/errors.js';
import { SILENT_OBSERVER } from '../model/observer.js';
import type { Announcement, Observer } from '../model/observer.js';
import { didYouMean } from '../text/did-you-mean.js';
import { withAddresses } from '../text/mirror-roots.js';
import { isObject, inOptionNames } from './options.js';
import type { LibraryVerb } from './options.js';

export interface Hooks {
  /** Ends the call. Committed data stays, and the call rejects with the code `interrupted`. */
  readonly signal?: AbortSignal | undefined;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** For a lake in a bucket, or a function that gives them. Default: the places in which the tools of AWS look. */
  readonly s3Credentials?: S3Credentials | undefined;
}

/** In the form that the packages of AWS use. A function is called again before the credentials expire. */
interface S3Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

export type S3Credentials = S3Keys | (() => S3Keys | Promise<S3Keys>);

/** The hooks of `vision`, `metrics` and `repair`. */
export interface RunHooks extends Hooks {
  /** Called once, before the first request for an object. */
  readonly onPlan?: ((plan: Announcement) => void) | undefined;
}

interface HookSpec {
  readonly is: (value: unknown) => boolean;
  readonly kind: string;
  /** The value in an example. */
  readonly example: string;
}

const isFunction = (value: unknown): boolean => typeof value === 'function';

const HOOKS: Readonly<Record<keyof Hooks, HookSpec>> = {
  signal: {
    is: (value) => value instanceof AbortSignal,
    kind: 'an AbortSignal',
    example: 'AbortSignal.timeout(60_000)',
  },
  onWarning: { is: isFunction, kind: 'a function', example: '(message) => console.warn(message)' },
  s3Credentials: {
    is: (value) => isFunction(value) || isObject(value),
    kind: 'an object or a function',
    example: '{ accessKeyId, secretAccessKey }',
  },
};

const RUN_HOOKS: Readonly<Record<keyof RunHooks, HookSpec>> = {
  signal: HOOKS.signal,
  onPlan: { is: isFunction, kind: 'a function', example: '(plan) => console.log(plan)' },
  onWarning: HOOKS.onWarning,
  s3Credentials: HOOKS.s3Credentials,
};

/** The arguments of a verb before its hooks, for messages. */
const ARGUMENTS: Readonly<Partial<Record<LibraryVerb, string>>> = {
  list: 'what, options',
  sql: 'query, options',
};

/** Throws a usage error for unknown hooks and for hooks of a wrong type. */
export function checkHooks(verb: LibraryVerb, hooks: unknown): void {
  const specs: Readonly<Record<string, HookSpec>> = isRun(verb) ? RUN_HOOKS : HOOKS;
  const call = (hook: string): string => `${verb}(${ARGUMENTS[verb] ?? 'options'}, { ${hook} })`;
  const place = `the ${ARGUMENTS[verb] === undefined ? 'second' : 'third'} argument of ${verb}`;
  if (!isObject(hooks)) throw usage(`${place} must be an object of hooks`, call('signal'));
  for (const wrong of [AbortSignal, AbortController])
    if (hooks instanceof wrong)
      throw usage(`${place} is an ${wrong.name} instead of an object of hooks`, call('signal'));
  for (const [key, value] of Object.entries(hooks)) {
    const spec = Object.hasOwn(specs, key) ? specs[key] : undefined;
    if (spec === undefined) {
      const names = Object.keys(specs);
      throw usage(`${verb} has no hook "${key}"`, didYouMean(key, names) ?? `hooks are ${names.join(', ')}`);
    }
    if (value !== undefined && !spec.is(value))
      throw usage(`${key} is not ${spec.kind}`, call(`${key}: ${spec.example}`));
  }
}

function isRun(verb: LibraryVerb): boolean {
  return verb === 'vision' || verb === 'metrics' || verb === 'repair';
}

export function observerOf({ onPlan, onWarning }: RunHooks): Observer {
  return {
    ...SILENT_OBSERVER,
    announce: (plan) => onPlan?.(plan),
    warn: (message) => onWarning?.(inOptionNames(withAddresses(message))),
  };
}
