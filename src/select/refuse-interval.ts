/** The error for an interval that a dataset does not have, with the intervals that the text can mean. */
import { usage } from '../model/errors.js';
import { intervalText, nearestIntervals, sameInterval } from '../model/units.js';
import type { Options } from '../options/flags.js';
import { nearest } from '../text/did-you-mean.js';

/** The dataset that lacks the interval. */
interface Lacking {
  readonly market: string;
  readonly name: string;
  readonly known: readonly string[];
  /** The dataset that the interval names: `tick` is the dataset trades. */
  readonly dataset: string | undefined;
}

export function refuseInterval(
  flags: Pick<Options, 'interval'>,
  interval: string,
  { market, name, known, dataset }: Lacking,
): never {
  const message = `--interval: ${market} ${name} has no "${interval}"; it has ${known.join(', ')}`;
  const meant = intervalsLike(interval, known);
  const [first] = meant;
  if (first !== undefined && meant.length === 1)
    throw usage(message, `did you mean ${first}?`, {
      flags: { interval: replaced(flags.interval, interval, first) },
    });
  if (first !== undefined)
    throw usage(message, `did you mean ${meant.map((one) => `${one} (${intervalText(one)})`).join(' or ')}?`);
  const near = nearestIntervals(interval, known);
  if (near.length > 0)
    throw usage(message, `the nearest ${near.length === 1 ? 'is' : 'are'} ${near.join(' and ')}`);
  throw usage(
    message,
    dataset === undefined ? undefined : `did you mean --dataset ${dataset}?`,
    dataset === undefined ? undefined : { flags: { dataset, interval: null } },
  );
}

/** The known intervals that a text can mean: `1M` a month or a minute, `60` an hour in minutes or a minute in seconds. */
function intervalsLike(text: string, known: readonly string[]): string[] {
  const found = /^\d+$/.test(text)
    ? [sameInterval(`${text}m`, known), sameInterval(`${text}s`, known)]
    : [
        sameInterval(text, known) ?? nearest(text, known),
        known.find((one) => one.toLowerCase() === text.toLowerCase()),
      ];
  return [...new Set(found.filter((one) => one !== undefined))];
}

/** The values of a flag with another value in place of one. */
export function replaced(values: readonly string[], value: string, instead: string): string {
  return [...new Set(values.map((item) => (item === value ? instead : item)))].join(',');
}
