/** Several lanes as one stack: their permits, connections and figures together. */
import type { Stack } from './stack-options.js';
import type { Throttle, ThrottleFigures } from './throttle/throttle.js';
import type { Pools, PoolUse } from './transport/pool.js';

interface Lane {
  /** Undefined for the lane without a proxy. */
  readonly label: string | undefined;
  readonly throttle: Throttle;
  readonly pools: Pools;
}

export function joinLimits(lanes: readonly Lane[]): Stack['throttle'] {
  return {
    setBudget: (bucket, budget) => {
      for (const { throttle } of lanes) throttle.setBudget(bucket, budget);
    },
    get states() {
      return lanes.flatMap(({ label, throttle }) =>
        throttle.states.map((state) =>
          label === undefined ? state : { ...state, name: `${state.name} via ${label}` },
        ),
      );
    },
    get figures() {
      return lanes.map(({ throttle }) => throttle.figures).reduce((a, b) => sumOf<ThrottleFigures>(a, b));
    },
  };
}

/** Only the first lane looks up the names of hosts. */
export function joinPools(lanes: readonly [Lane, ...Lane[]]): Stack['pools'] {
  return {
    dns: () => lanes[0].pools.dns(),
    use: () => lanes.map(({ pools }) => pools.use()).reduce((a, b) => sumOf<PoolUse>(a, b)),
    close: async () => {
      await Promise.all(lanes.map(({ pools }) => pools.close()));
    },
  };
}

/** The figures of two lanes together: numbers are added, also those within, and a flag holds if it holds for one of them. */
function sumOf<T extends object>(a: T, b: T): T {
  const sums = new Map<string, unknown>(Object.entries(a));
  for (const [name, value] of Object.entries(b) as [string, unknown][]) {
    const other = sums.get(name);
    if (typeof value === 'number') sums.set(name, Number(other ?? 0) + value);
    else if (typeof value === 'boolean') sums.set(name, other === true || value);
    else if (typeof value === 'object' && value !== null) sums.set(name, sumOf(other ?? {}, value));
  }
  return Object.fromEntries(sums) as T;
}
