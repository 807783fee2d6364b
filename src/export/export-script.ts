/** Prints a Python program that loads the committed files of the selected series. */
import type { LookUp } from '../cli/look-up.js';
import { writeText } from '../cli/write-data.js';
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { FileDigests, UnreadableFile } from '../catalogue/file-digests.js';
import { isMirror } from '../text/mirror-roots.js';
import { absolutePath, printLines } from '../text/printable.js';
import { refuseOtherFlags, refuseTarget } from './engine-settings.js';
import { rowSource } from './export-file.js';
import type { Days, HeldData, Refused } from './export-file.js';
import { firstOfKind, NOTHING_EXPORTED, rangeOf, tellLacking } from './lacking.js';
import { NAUTILUS, nautilusScript, refuseOthers } from './nautilus-script.js';
import { readSeries } from './read-series.js';
import { selectExport } from './select-export.js';
import type { ExportSelection } from './select-export.js';

/** Exit code 4 if a series cannot be read, or if there is no script because all series are left out. */
export async function exportScript(run: LookUp, request: VerbRequest): Promise<ExitCode> {
  const { io, resolved } = run;
  const root = localRoot(request);
  const range = rangeOf(request);
  refuseOtherFlags(NAUTILUS.name, request);
  const selection = await selectExport(request, { ...NAUTILUS, onlyNamed: [], anyInterval: [] });
  refuseOthers(selection.selected, request.source);
  refuseTarget(request);
  // The script is the only text of stdout.
  if (!(await tellLacking(run, request, { selection, range, isJson: false }))) return 4;
  const digests = new FileDigests(root, request.signal);
  const { held, refused } = await readHeld(root, selection, { source: request.source, range, digests });
  const first = firstOfKind();
  for (const { series, reason } of refused)
    printLines(
      io.stderr,
      first(reason, `left out: ${seriesName(series)}: ${reason}`, `left out: more series: ${reason}`),
    );
  if (resolved.options.requireComplete && refused.length > 0) {
    printLines(io.stderr, [NOTHING_EXPORTED]);
    return 4;
  }
  if (held.length === 0) return 4;
  await writeText(io, nautilusScript(held, request.source, range));
  return refused.some(({ isFault }) => isFault === true) ? 4 : 0;
}

/** The absolute folder of the lake. Throws a usage error for a lake in a bucket. */
function localRoot({ resolved, surroundings }: VerbRequest): string {
  const root = absolutePath(resolved.options.out, surroundings.home);
  if (isMirror(root))
    throw usage(
      'the script reads local files, and this lake is in a bucket',
      'copy the lake, and name the copy with --out',
    );
  return root;
}

/** Number of manifests that are read at the same time. */
const AT_ONCE = 32;

/** The selected series with their files for the range, in order, and those that are left out. */
async function readHeld(
  root: string,
  { selected }: ExportSelection,
  {
    source,
    range,
    digests,
  }: Pick<VerbRequest, 'source'> & { readonly range: Partial<Days>; readonly digests: FileDigests },
): Promise<{ held: HeldData[]; refused: Refused[] }> {
  const held: HeldData[] = [];
  const refused: Refused[] = [];
  for (let from = 0; from < selected.length; from += AT_ONCE) {
    const some = selected.slice(from, from + AT_ONCE);
    for (const read of await Promise.all(some.map((series) => readSeries(root, source, series)))) {
      const found = 'reason' in read ? read : rowSource(read, range);
      if (found === undefined)
        refused.push({ series: read.series, reason: 'the lake has none of these days' });
      else if ('reason' in found) refused.push(found);
      else {
        try {
          await digests.refuseDamaged(found.files);
          held.push(found);
        } catch (error) {
          if (!(error instanceof UnreadableFile)) throw error;
          refused.push({ series: found.series, reason: error.message, isFault: true });
        }
      }
    }
  }
  return { held, refused };
}
