/** Values by a name: lists of items, and promises that are made once. */

/** The items of each name, in their order. */
export function grouped<Name, Item>(
  items: Iterable<Item>,
  nameOf: (item: Item) => Name,
): Map<Name, [Item, ...Item[]]> {
  const groups = new Map<Name, [Item, ...Item[]]>();
  for (const item of items) {
    const name = nameOf(item);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item]);
    else group.push(item);
  }
  return groups;
}

/** Returns a function that calls `make` at the first call with a name. Each further call gets the same promise. */
export function memoized<Value>(): (name: string, make: () => Promise<Value>) => Promise<Value> {
  const known = new Map<string, Promise<Value>>();
  return (name, make) => {
    const made = known.get(name) ?? make();
    known.set(name, made);
    return made;
  };
}
