/** Maps with up to `limit` calls under way; results come in input order. Pulls from the input only as results are taken. */
export async function* mapOrdered<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  map: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const running: Promise<R>[] = [];
  for await (const item of items) {
    const result = map(item);
    // Awaited below in order; until then a rejection must not count as unhandled.
    result.catch(() => undefined);
    running.push(result);
    const first = running.length >= limit ? running.shift() : undefined;
    if (first !== undefined) yield await first;
  }
  for (let first = running.shift(); first !== undefined; first = running.shift()) yield await first;
}
