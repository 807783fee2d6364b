/** Damage to bodies, every piece of it told by a seed. */

export interface Random {
  /** A whole number from 0 up to `limit`, exclusive. */
  below(limit: number): number;
  pick<T>(list: readonly [T, ...T[]]): T;
}

/** Mulberry32: the same seed gives the same numbers on every machine. */
export function randomOf(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e3779b1);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return { below, pick: (list) => list[below(list.length)] ?? list[0] };
}

type Range = readonly [from: number, to: number];
type Damage = (random: Random, body: Buffer, others: readonly Buffer[]) => Buffer;

/** Bytes between which formats put their parts: a cut from mark to mark leaves more of a format standing. */
const MARKS = Array.from('<>,\n"P', (mark) => mark.charCodeAt(0));

function place(random: Random, body: Buffer, mark: number | undefined): number {
  const at = random.below(body.length + 1);
  const marked = mark === undefined ? -1 : body.indexOf(mark, at);
  return marked < 0 ? at : marked;
}

function range(random: Random, body: Buffer): Range {
  const mark = random.below(2) === 0 ? undefined : MARKS[random.below(MARKS.length)];
  const first = place(random, body, mark);
  const isShort = random.below(2) === 0;
  const second = isShort ? Math.min(body.length, first + 1 + random.below(16)) : place(random, body, mark);
  return first < second ? [first, second] : [second, first];
}

function changed(body: Buffer, at: number, byte: number): Buffer {
  const copy = Buffer.from(body);
  copy[at] = byte;
  return copy;
}

/** What numbers are not made of, or only in their place. */
const ODD_CHARACTERS = Buffer.from('.-+eE_ ",xn');

function aDigit(random: Random, body: Buffer): number {
  const at = random.below(body.length);
  for (let digit = at; digit < body.length; digit += 1) {
    const byte = body[digit] ?? 0;
    if (byte >= 0x30 && byte <= 0x39) return digit;
  }
  return at;
}

const DAMAGES: Readonly<Record<string, Damage>> = {
  'bit flip': (random, body) => {
    const at = random.below(body.length);
    return changed(body, at, (body[at] ?? 0) ^ (1 << random.below(8)));
  },
  'byte change': (random, body) => changed(body, random.below(body.length), random.below(256)),
  'byte of its own': (random, body) =>
    changed(body, random.below(body.length), body[random.below(body.length)] ?? 0),
  'digit change': (random, body) => changed(body, aDigit(random, body), 0x30 + random.below(10)),
  'digit lost': (random, body) =>
    changed(body, aDigit(random, body), ODD_CHARACTERS[random.below(ODD_CHARACTERS.length)] ?? 0),
  'number change': (random, body) => {
    const copy = Buffer.from(body);
    const value = random.pick([0, 1, 0xff, 0xffff, 0x7fffffff, 0xfffffffe, 0xffffffff]);
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value) << BigInt(random.below(2) * 32));
    bytes.copy(copy, random.below(body.length), 0, random.pick([2, 4, 8]));
    return copy;
  },
  cut: (random, body) => body.subarray(0, random.below(body.length)),
  'lost start': (random, body) => body.subarray(1 + random.below(body.length)),
  'appended bytes': (random, body) =>
    Buffer.concat([body, Buffer.from(Array.from({ length: 1 + random.below(40) }, () => random.below(256)))]),
  splice: (random, body, others) => {
    const other = others[random.below(others.length)] ?? body;
    const [, end] = range(random, body);
    const [start] = range(random, other);
    return Buffer.concat([body.subarray(0, end), other.subarray(start)]);
  },
  'repeated range': (random, body) => {
    const [from, to] = range(random, body);
    return Buffer.concat([body.subarray(0, to), body.subarray(from)]);
  },
  'removed range': (random, body) => {
    const [from, to] = range(random, body);
    return Buffer.concat([body.subarray(0, from), body.subarray(to)]);
  },
  'swapped ranges': (random, body) => {
    const places = [...range(random, body), ...range(random, body)].sort((a, b) => a - b);
    const [a = 0, b = 0, c = 0, d = 0] = places;
    const parts: readonly Range[] = [
      [0, a],
      [c, d],
      [b, c],
      [a, b],
      [d, body.length],
    ];
    return Buffer.concat(parts.map(([from, to]) => body.subarray(from, to)));
  },
  'zeroed range': (random, body) => {
    const copy = Buffer.from(body);
    return copy.fill(0, ...range(random, body));
  },
};
const NAMES = Object.keys(DAMAGES) as [string, ...string[]];

export interface Mutated {
  readonly bytes: Buffer;
  /** The damages, in their order. */
  readonly how: string;
}

/** One to three damages; never the original itself. */
export function mutate(random: Random, body: Buffer, others: readonly Buffer[] = []): Mutated {
  for (;;) {
    const names = Array.from({ length: random.pick([1, 1, 1, 1, 2, 3]) }, () => random.pick(NAMES));
    let bytes = body;
    for (const name of names) if (bytes.length > 0) bytes = DAMAGES[name]?.(random, bytes, others) ?? bytes;
    if (!bytes.equals(body)) return { bytes: Buffer.from(bytes), how: names.join(', ') };
  }
}
