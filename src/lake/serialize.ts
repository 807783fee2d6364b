/** Runs one piece of work at a time per name, in call order; a failure does not stop the next. */
export type Serialize = <T>(name: string, work: () => Promise<T>) => Promise<T>;

export function createSerializer(): Serialize {
  const tails = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    const before = tails.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    tails.set(name, mine);
    try {
      return await mine;
    } finally {
      if (tails.get(name) === mine) tails.delete(name);
    }
  };
}
