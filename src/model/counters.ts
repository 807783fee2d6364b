/** Counts by name: layers and runs count into them, and all outputs of figures read them. */

/** The label of a count stands behind a dot: `rows`, `failedBy.connection-lost`. */
export type Counts<Name extends string = string> = Readonly<Partial<Record<Name, number>>>;

/** Begins with the sum of the given counts. */
export class Counters<Name extends string = string> {
  readonly #counts = new Map<Name, number>();

  constructor(...parts: readonly Counts<Name>[]) {
    for (const part of parts)
      for (const [name, count] of Object.entries(part) as [Name, number][]) this.add(name, count);
  }

  add(name: Name, count = 1): void {
    this.#counts.set(name, this.of(name) + count);
  }

  of(name: Name): number {
    return this.#counts.get(name) ?? 0;
  }

  /** The counts of a group by label, without zeros. */
  by<Group extends string, Label extends string = LabelOf<Name, Group>>(group: Group): Record<Label, number> {
    const begin = `${group}.`;
    const found: Record<string, number> = {};
    for (const [name, count] of this.#counts)
      if (count !== 0 && name.startsWith(begin)) found[name.slice(begin.length)] = count;
    return found;
  }

  /** A copy. */
  get all(): Counts<Name> {
    return Object.fromEntries(this.#counts) as Counts<Name>;
  }
}

type LabelOf<Name extends string, Group extends string> = Name extends `${Group}.${infer Label}`
  ? Label
  : never;
