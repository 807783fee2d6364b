/** Recordings of this process for the tools of Chromium: a CPU profile and a heap snapshot. */
import type { FileHandle } from 'node:fs/promises';
import type { Session } from 'node:inspector';
import { getHeapSnapshot } from 'node:v8';

/** A CPU profile that is being recorded. */
export interface CpuProfile {
  /** Ends the recording. Resolves with the text of a `.cpuprofile` file. */
  stop(): Promise<string>;
}

/** Rejects if this Node was built without its inspector. */
export async function startCpuProfile(): Promise<CpuProfile> {
  const { Session } = await import('node:inspector');
  const session = new Session();
  session.connect();
  await posted(session, 'Profiler.enable');
  await posted(session, 'Profiler.start');
  return {
    stop: async () => {
      try {
        const { profile } = (await posted(session, 'Profiler.stop')) as { profile: object };
        return JSON.stringify(profile);
      } finally {
        session.disconnect();
      }
    },
  };
}

function posted(session: Session, method: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    session.post(method, (error, result) => {
      if (error === null) resolve(result);
      else reject(error);
    });
  });
}

/** Writes all objects of the heap. The process does nothing else while V8 collects them, and needs about as much memory again as the heap has. */
export async function writeHeapSnapshot(file: FileHandle): Promise<void> {
  for await (const chunk of getHeapSnapshot()) await file.appendFile(chunk as Buffer);
}
