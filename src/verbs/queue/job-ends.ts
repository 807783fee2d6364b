/** The jobs that a worker has ended: one line each, and the summary. */
import type { CryptodlError } from '../../model/errors.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import type { Io, Signalled } from '../../model/io.js';
import { countText, numberText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import { peakMemoryBytes } from '../../run/report/run-summary.js';
import { printLines } from '../../text/printable.js';
import type { ProcessContext } from './end-attempt.js';

export class JobEnds {
  readonly #ended = { jobs: 0, failed: 0, written: 0 };
  #retryable = 0;

  constructor(
    private readonly options: Options<'json' | 'log-level' | 'quiet'>,
    private readonly io: Io,
  ) {}

  readonly add: ProcessContext['onEnd'] = ({ id, written, failure, isPutOff = false }) => {
    const { json, logLevel } = this.options;
    this.#ended.written += written;
    if (failure === undefined) this.#ended.jobs += 1;
    else if (!isPutOff) {
      this.#ended.failed += 1;
      this.#retryable += failure.retryable ? 1 : 0;
    }
    if (json) this.#print({ event: 'job', id, written, failure: failure?.code ?? null, isPutOff });
    else if (failure !== undefined)
      this.say(`${isPutOff ? 'put off' : 'failed '} ${id}: ${failure.code}: ${failure.message}`);
    else if (logLevel === 'debug') this.say(`done    ${id}: ${countText(written, 'object')} written`);
  };

  say(line: string): void {
    if (!this.options.quiet) printLines(this.io.stderr, [line]);
  }

  /** Prints the summary. Returns the exit code. */
  conclude(signal: Signalled, error: CryptodlError | undefined): ExitCode {
    const { jobs, failed, written } = this.#ended;
    const code = exitCode({
      signal,
      ended: error?.code,
      failedRetryable: this.#retryable,
      failedPermanent: failed - this.#retryable,
    });
    this.say(
      `${countText(jobs, 'job')} done, ${numberText(failed)} failed, ${countText(written, 'object')} written`,
    );
    if (this.options.json)
      this.#print({ event: 'summary', ...this.#ended, peakMemoryBytes: peakMemoryBytes(), exitCode: code });
    return code;
  }

  #print(event: object): void {
    printLines(this.io.stdout, [event]);
  }
}
