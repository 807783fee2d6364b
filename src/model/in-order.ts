/** Concurrent work whose results or effects keep an order. */

/** Maps with up to `limit` calls at once. Results come in the order of the input, which is read only as results are taken. */
export async function* mapOrdered<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  map: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const running: Promise<R>[] = [];
  for await (const item of items) {
    const result = map(item);
    // It is awaited below. Until then, a rejection must not count as unhandled.
    result.catch(() => undefined);
    running.push(result);
    const first = running.length >= limit ? running.shift() : undefined;
    if (first !== undefined) yield await first;
  }
  for (let first = running.shift(); first !== undefined; first = running.shift()) yield await first;
}

/** Runs one piece of work at a time per name, in the order of the calls. The next one runs also after a failure. */
export type Serialize = <T>(name: string, work: () => Promise<T>) => Promise<T>;

export function createSerializer(): Serialize {
  const tails = new Map<string, Promise<unknown>>();
  return (name, work) => {
    const before = tails.get(name) ?? Promise.resolve();
    const result = before.then(work, work);
    tails.set(name, result);
    return result;
  };
}
