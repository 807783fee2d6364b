/** Calls a function for many items, some at a time. */

/** Calls `act` for each item, `atOnce` at a time. After an error no further call begins. Rejects with the first error, after all calls have ended. */
export async function inParallel<T>(
  items: Iterable<T>,
  atOnce: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = [...items].values();
  const errors: unknown[] = [];
  const work = async (): Promise<void> => {
    for (const item of waiting) {
      await act(item).catch((error: unknown) => errors.push(error));
      if (errors.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  if (errors.length > 0) throw errors[0];
}
