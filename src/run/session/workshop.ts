/** The means of a run to receive and write objects: places, DuckDB, and the order of writes. The jobs of a worker share one. */
import { createEngine, type Engine } from '../../convert/duckdb.js';
import type { Clock, Timer } from '../../model/clock.js';
import { cores, withinOpenFiles } from '../../files/machine.js';
import type { Concurrency } from '../pacing/concurrency.js';
import { createSerializer } from '../../model/in-order.js';
import { Slots } from '../pacing/places.js';

export type Workshop = Readonly<ReturnType<typeof openWorkshop>>;

/** More writers than cores, because a writer also waits for the disk and for the event loop. */
const WRITERS_PER_CORE = 2;
/** All writers share one DuckDB engine with its memory, and one event loop. */
const MOST_WRITERS = 8;
/** A writer waits most of its time for the bucket. DuckDB converts for as many writers at a time as there are cores. */
const WRITERS_TO_BUCKET = 32;

/** `spillFolder`: for data of DuckDB beyond its memory. `boundsUnwritten`: no more partitions are unwritten than objects may be in flight. */
export function openWorkshop(
  spillFolder: string,
  { isToBucket, boundsUnwritten }: { readonly isToBucket: boolean; readonly boundsUnwritten: boolean },
  { clock, stop, concurrency }: { clock: Clock; stop: AbortController; concurrency: Concurrency },
) {
  const engine = createEngine({ tempFolder: spillFolder });
  const writers = isToBucket
    ? withinOpenFiles(WRITERS_TO_BUCKET)
    : withinOpenFiles(Math.min(WRITERS_PER_CORE * cores(), MOST_WRITERS));
  const places = new Slots({ downloads: concurrency.places, writers, boundsUnwritten });
  concurrency.onChange = (limit) => places.setDownloads(limit);
  const endDrain = drain(clock, stop, engine);
  return {
    engine,
    places,
    serialize: createSerializer(),
    /** To be called by each run at its end. */
    release: (): void => {
      endDrain();
      engine.close();
    },
  };
}

/** After a stop, writes in progress have this time before DuckDB is interrupted. */
const DRAIN_MS = 10_000;

function drain(clock: Clock, stop: AbortController, engine: Engine): () => void {
  let timer: Timer | undefined;
  const begin = (): void => {
    timer = clock.timer(DRAIN_MS, () => engine.interrupt());
  };
  stop.signal.addEventListener('abort', begin, { once: true });
  return () => {
    timer?.cancel();
    stop.signal.removeEventListener('abort', begin);
  };
}
