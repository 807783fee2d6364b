/** What a verb is: its flags and help, and what it does. Each folder of `verbs/` exports one, `verbs/queue` three, and `cli` those of help. */
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import type { FlagName } from '../../plan/options/flags.js';
import type { Invocation, RawLayer, Resolved } from '../../plan/options/resolve.js';
import type { CoverageFlag, QueryFlag, RunFlag, SessionFlag } from '../../plan/options/verb-request.js';
import type { VerbSpec, VerbSpecs } from '../../plan/options/verb-spec.js';
import type { Exchange } from '../../exchange/exchange.js';

/** What a verb does with the options of these flags. Each verb loads its own modules when it acts. */
type Acts<Names extends FlagName> =
  | { readonly act: (command: VerbCall<Names>) => Promise<ExitCode> }
  /** Needs no facts of an exchange. */
  | { readonly actOffline: (command: OfflineCommand<Names>) => Promise<ExitCode> }
  /** Resolves its options itself. */
  | { readonly start: (started: Started) => Promise<ExitCode> };

export type Verb = VerbSpec & Acts<FlagName>;

/**
 * A verb gets the options of the flags that it lists, and of `Shared`: flags that code of several verbs reads. Their values are the
 * defaults if the verb does not take them.
 */
type CommandOf<Shared extends FlagName> = <
  const Verb extends Omit<VerbSpec, 'flags' | 'moreFlags'>,
  const Flag extends FlagName,
>(
  verb: Verb & Pick<VerbSpec<Flag>, 'flags' | 'moreFlags'> & Acts<NoInfer<Flag | Shared>>,
) => typeof verb;

export const defineVerb: CommandOf<never> = (verb) => verb;
/** Of a verb that reads the lake. */
export const defineReader: CommandOf<QueryFlag | CoverageFlag> = (verb) => verb;
/** Of a verb that opens a session. */
export const defineSessionVerb: CommandOf<SessionFlag> = (verb) => verb;
/** Of a verb that makes runs. */
export const defineRunVerb: CommandOf<RunFlag> = (verb) => verb;

/** Parses another command line of the program. Undefined after help was printed. */
export type ParseLine = (argv: readonly string[], io: Io) => Invocation | undefined;

/** Reads the facts of an exchange. Only the verbs that need them call it, because it takes longer than the whole of `--help`. */
export type LoadExchange = () => Promise<Exchange>;

export interface Started extends Invocation {
  /** In order of precedence. */
  readonly layers: readonly RawLayer[];
  readonly io: Io;
  readonly verbs: VerbSpecs;
  readonly parseLine: ParseLine;
  readonly loadExchange: LoadExchange;
}

export interface OfflineCommand<Names extends FlagName = FlagName> extends Omit<Started, 'loadExchange'> {
  readonly resolved: Resolved<Names>;
}

/** The parts of a command from which the request of its verb is made. */
export interface VerbInput<Names extends FlagName = FlagName> {
  readonly exchange: Exchange;
  readonly resolved: Resolved<Names>;
  readonly io: Io;
}

export type VerbCall<Names extends FlagName = FlagName> = OfflineCommand<Names> & VerbInput<Names>;
