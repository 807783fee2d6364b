/** Gives a command the mirrors of the lakes in buckets that its options name. */
import { safeName } from '../../lake/safe-names.js';
import { ALL } from '../../exchange/names.js';
import { surroundingsOf } from '../../files/environment.js';
import type { Io } from '../../model/io.js';
import { isLakeAddress, parseLakeAddress } from '../../model/lake-address.js';
import type { Options } from '../../plan/options/flags.js';
import type { Resolved } from '../../plan/options/resolve.js';
import type { VerbSpec } from '../../plan/options/verb-spec.js';
import { printLines } from '../../text/printable.js';
import type { Caller, MirrorFlag, OpenMirror } from './make-mirror.js';

export function callerOf({ clock, environment, stderr, onSignal }: Io): Caller {
  const warn = (message: string): void => printLines(stderr, [`warning: ${message}`]);
  return { clock, environment, surroundings: surroundingsOf(environment), warn, onSignal };
}

/** The mirrors of a command. Each lake has one mirror. */
export class Mirrors {
  readonly #opened = new Map<string, Promise<OpenMirror>>();

  constructor(
    private readonly verb: VerbSpec,
    private readonly caller: () => Caller,
  ) {}

  /** The same options with the folder of a mirror in place of the address of a lake in a bucket. */
  async resolve<R extends Resolved<MirrorFlag>>(resolved: R): Promise<R> {
    const { options } = resolved;
    if (!isLakeAddress(options.out)) return resolved;
    const { mirror } = await this.open(options, partsOf(this.verb, resolved));
    // The mirror lies in --temp-dir, and the temporary files of a run lie in the mirror.
    const tempDir = this.verb.isReader === true ? options.tempDir : undefined;
    return { ...resolved, options: Object.freeze({ ...options, out: mirror.root, tempDir }) };
  }

  /** The local path of a file that is named by its address in a bucket, and that is brought in. Other paths stay as they are. */
  async fileAt(path: string, options: Options<MirrorFlag>): Promise<string> {
    if (!isLakeAddress(path)) return path;
    const { text } = parseLakeAddress(path, path);
    const at = text.search(/\/_failures\/[^/]+$/);
    const lake = at < 0 ? text.slice(0, text.lastIndexOf('/')) : text.slice(0, at);
    const { mirror } = await this.open({ ...options, out: lake });
    const local = mirror.root + text.slice(lake.length);
    await mirror.openFile(local);
    await mirror.bringIn([local]);
    return local;
  }

  /** Publishes the files outside of the series, and removes the mirrors. Rejects with the first error, after all mirrors were removed. */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (const opened of this.#opened.values())
      await opened.then(({ close }) => close()).catch((error: unknown) => errors.push(error));
    this.#opened.clear();
    if (errors.length > 0) throw errors[0];
  }

  /** The mirror of a lake and its bucket. `parts`: the folders of the selected series; none: all. */
  open(options: Options<MirrorFlag>, parts: readonly string[] = []): Promise<OpenMirror> {
    const { text: address } = parseLakeAddress(options.out, '--out');
    // Loaded late: most commands have no bucket.
    const opened =
      this.#opened.get(address) ??
      import('./make-mirror.js').then(({ makeMirror }) =>
        makeMirror(this.verb, this.caller(), { address, options, parts }),
      );
    this.#opened.set(address, opened);
    return opened;
  }
}

/** The folders of the selected series, relative to the folder of the exchange; none: all. */
function partsOf({ lakePart }: VerbSpec, { options, origins }: Resolved<'dataset' | 'market'>): string[] {
  const givenValues = (name: 'market' | 'dataset'): readonly string[] =>
    origins[name] === 'default' || options[name].includes(ALL) ? [] : options[name];
  if (lakePart === 'klines of the markets') return options.market.map((market) => `${market}/klines`);
  if (lakePart === undefined) return [];
  const datasets = givenValues('dataset').map((dataset) => `/${safeName(dataset)}`);
  return givenValues('market').flatMap((market) =>
    (datasets.length === 0 ? [''] : datasets).map((dataset) => market + dataset),
  );
}
