/** The names of workers on the Redis server, and the workers that are refused: a lake in a folder has one worker. */
import { CryptodlError, usage } from '../model/errors.js';
import { isLakeAddress } from '../model/lake-address.js';
import { lakeOf, lakeProblem, parseJob } from './job-data.js';
import type { OpenQueue } from './open-queue.js';
import type { OwnLake } from './process-job.js';

/** Jobs that are read, in the order in which workers take them. */
const LOOKED_AT = 100;

/** The name of a worker on the Redis server. Workers of the same folder, also on different machines, have the same end of the name. */
export function workerName(process: string, { lake, isLakeGiven }: OwnLake): string {
  return `${process}${isLakeGiven && !isLakeAddress(lake) ? endOf(lake) : ''}`;
}

/** Host and process of a worker, from the name of its connection. */
export function shownName(connection: string): string {
  return /:w:([^:]+:\d+)/.exec(connection)?.[1] ?? 'unknown';
}

/** A name on the Redis server has no blanks. */
function endOf(folder: string): string {
  return `:${encodeURIComponent(folder)}`;
}

/** To be called before the worker begins. Rejects with `locked` or with a usage error. */
export async function refuseWorker(open: OpenQueue, own: OwnLake): Promise<void> {
  const { lake, isLakeGiven } = own;
  if (isLakeAddress(lake)) return;
  // A user of an ACL may not be allowed to see the clients.
  const workers = await open.queue.getWorkers().catch(() => []);
  const other = workers.find(({ rawname = '' }) => rawname.endsWith(endOf(lake)));
  if (other !== undefined)
    throw new CryptodlError(
      'locked',
      `another worker of the queue ${open.name} writes to the folder ${lake} (${other['addr'] ?? 'no address'})`,
      {
        hint: 'a folder has one worker; several workers need a lake in a bucket, for example --out s3://my-bucket/lake',
      },
    );
  const jobs = await open.queue.getJobs(['prioritized', 'waiting'], 0, LOOKED_AT - 1, true);
  const lakes = jobs.map(({ data }) => lakeIn(data, own));
  const [first] = lakes;
  const mayDoNone = lakes.every(
    (found) =>
      found !== undefined && !isLakeAddress(found) && lakeProblem(found, lake, isLakeGiven) !== undefined,
  );
  if (first !== undefined && mayDoNone)
    throw usage(
      `the jobs of the queue ${open.name} are for the folder ${first}, and this worker writes to ${lake}`,
      `cryptodl worker --out ${first}, on the machine of the folder`,
    );
}

/** The lake of a job; undefined for a job that fails. */
function lakeIn(data: unknown, { absolute }: OwnLake): string | undefined {
  try {
    return lakeOf(parseJob(data).options.out?.[0] ?? '', absolute);
  } catch {
    return undefined;
  }
}
