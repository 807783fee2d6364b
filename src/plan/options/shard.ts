/** A part of a selection for one of several machines: `--shard 3/12`. */
import type { Series } from '../../model/task.js';
import { invalid, type Parse } from './parsers.js';

/** The shard `index` of `count` shards, counted from 0. */
export interface Shard {
  readonly index: number;
  readonly count: number;
  /** `3/12` */
  readonly text: string;
}

const MOST_SHARDS = 10_000;

/** `3/12` → the fourth of 12 shards. The numbers of array jobs (Kubernetes, AWS Batch, Airflow) begin with 0, too. */
export const shard: Parse<Shard> = (value, where) => {
  const [, first = '', second = ''] = /^(\d{1,9})\/(\d{1,9})$/.exec(value) ?? [];
  const [index, count] = [Number(first), Number(second)];
  if (index < count && count <= MOST_SHARDS) return { index, count, text: `${index}/${count}` };
  throw invalid(value, where, `a shard i/n of 1 to ${MOST_SHARDS} shards, counted from 0`, '0/3', '2/3');
};

/**
 * Whether a series belongs to the shard: FNV-1a (32 bits) of `exchange/market/dataset/interval/symbol` in UTF-8, modulo the number of
 * shards. A dataset without intervals has no interval part. The rule must never change: shards of two versions must not overlap.
 */
export function isInShard(
  shardOf: Shard | undefined,
  exchange: { readonly name: string },
  series: Series,
): boolean {
  if (shardOf === undefined) return true;
  const { market, dataset, interval, symbol } = series;
  const name = [exchange.name, market, dataset, interval, symbol]
    .filter((part) => part !== undefined)
    .join('/');
  return fnv1a(name) % shardOf.count === shardOf.index;
}

/** For a selection whose series are all in other shards. */
export const emptyShardText = ({ text }: Shard): string => `no selected series is in shard ${text}`;

/** Parameters of http://www.isthe.com/chongo/tech/comp/fnv/ for 32 bits. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
