/** What a verb is: its flags and help, and what it does. Each folder of `verbs/` exports one. */
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import type { Invocation, RawLayer, Resolved } from '../../plan/options/resolve.js';
import type { VerbSpec, VerbSpecs } from '../../plan/options/verb-spec.js';
import type { Exchange } from '../../exchange/exchange.js';

/** Each verb loads its own modules when it acts. */
export type VerbCommand = VerbSpec &
  (
    | { readonly act: (command: Command) => Promise<ExitCode> }
    /** Needs no facts of an exchange. */
    | { readonly actOffline: (command: OfflineCommand) => Promise<ExitCode> }
    /** Resolves its options itself. */
    | { readonly start: (started: Started) => Promise<ExitCode> }
  );

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

export interface OfflineCommand extends Omit<Started, 'loadExchange'> {
  readonly resolved: Resolved;
}

export interface Command extends OfflineCommand {
  readonly exchange: Exchange;
}
