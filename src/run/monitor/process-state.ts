/** The memory and the open files of this process. */
import { Counters, type Counts } from '../../model/counters.js';
import { fstatSync, readdirSync } from 'node:fs';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';

export function memoryState(): object {
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  const heap = getHeapStatistics();
  return {
    residentBytes: rss,
    heapUsedBytes: heapUsed,
    heapTotalBytes: heapTotal,
    heapLimitBytes: heap.heap_size_limit,
    externalBytes: external,
    arrayBuffersBytes: arrayBuffers,
    // More than 0 is a sign of a leak.
    detachedContexts: heap.number_of_detached_contexts,
  };
}

/** The used bytes by space, for example `old_space`. */
export function heapSpaces(): Readonly<Record<string, number>> {
  return Object.fromEntries(
    getHeapSpaceStatistics().map(({ space_name: name, space_used_size: bytes }) => [name, bytes]),
  );
}

/** The number of open descriptors by kind. Systems without /proc count the resources of Node. */
export function openDescriptors(): Counts {
  try {
    return counted(readdirSync('/proc/self/fd').flatMap((name) => kindOfDescriptor(name) ?? []));
  } catch {
    return counted(process.getActiveResourcesInfo());
  }
}

function kindOfDescriptor(name: string): string | undefined {
  try {
    const facts = fstatSync(Number(name));
    if (facts.isSocket()) return 'sockets';
    if (facts.isFile()) return 'files';
    if (facts.isFIFO()) return 'pipes';
    if (facts.isDirectory()) return 'folders';
    if (facts.isCharacterDevice()) return 'devices';
    return 'others';
  } catch {
    // The descriptor of the listing itself is closed by now.
    return undefined;
  }
}

function counted(kinds: readonly string[]): Counts {
  return new Counters(...kinds.map((kind) => ({ [kind]: 1 }))).all;
}
