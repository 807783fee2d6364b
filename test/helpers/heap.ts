/** The heap of this process after a full collection. */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

export interface LiveHeap {
  readonly heapBytes: number;
  /** Bytes of buffers. */
  readonly bufferBytes: number;
}

/** Two collections: the first one lets go of what finalizers and other threads still hold. */
export async function liveHeap(): Promise<LiveHeap> {
  collect();
  await sleep(50);
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return { heapBytes: heapUsed, bufferBytes: arrayBuffers };
}
