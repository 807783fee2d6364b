/** The lock of a target: one export at a time writes to it. */
import { makeFolder } from '../files/disk.js';
import { acquireLock } from '../lake/lock.js';
import type { Lock } from '../lake/lock.js';
import { checkedFolder } from '../lake/path-checks.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import type { VerbRequest } from '../options/verb-request.js';
import { reasonOf } from '../text/path-faults.js';
import { shownPath } from '../text/printable.js';
import { EXPORT_FOLDER } from './provenance.js';

/** Makes the target if it is missing. Rejects with `locked`, with a usage error for a place that cannot be written, and with `disk` for a symbolic link. */
export async function lockTarget(
  target: string,
  { clock, stop }: { readonly clock: VerbRequest['clock']; readonly stop: AbortController },
): Promise<Lock> {
  try {
    await makeFolder(target);
    return await acquireLock(await checkedFolder(target, EXPORT_FOLDER), {
      command: 'cryptodl export',
      clock,
      onLost: (error) => {
        stop.abort(error);
      },
    });
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'locked')
      throw new CryptodlError('locked', `another export is writing to ${shownPath(target)}`, {
        cause: error,
        hint: 'wait until it has ended, or choose another --target',
      });
    if (error instanceof CryptodlError) throw error;
    throw usage(
      `--target ${shownPath(target)} cannot be written (${reasonOf(errnoOf(error))})`,
      'choose another --target',
    );
  }
}
