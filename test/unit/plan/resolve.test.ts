import { VERBS } from '../../../src/main.js';
import type { VerbSpec } from '../../../src/plan/options/verb-spec.js';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { configLayer, readConfigFile } from '../../../src/plan/options/config-file.js';
import { environmentName, FLAG_NAMES, isSwitch, optionName } from '../../../src/plan/options/flags.js';
import type { ReadList } from '../../../src/plan/options/parsers.js';
import { flagsOf } from '../../../src/plan/options/verb-spec.js';
import { jobsFile } from '../../../src/plan/options/jobs-file.js';
import { environmentLayer, resolveOptions } from '../../../src/plan/options/resolve.js';
import type { RawLayer, RawValues, Resolved } from '../../../src/plan/options/resolve.js';
import { flagValue } from '../../helpers/flag-values.js';
import { scratchFolder } from '../../helpers/folders.js';

const folder = scratchFolder();

function flags(values: RawValues): RawLayer {
  return { origin: 'flag', values, nameOf: (name) => `--${name}` };
}

function environment(values: Readonly<Record<string, string>>, verb: VerbSpec = VERBS.vision): RawLayer {
  return environmentLayer(values, verb);
}

function config(content: unknown): RawLayer {
  return configLayer('my.yaml', content, 'vision');
}

function refusal(act: () => unknown): string[] {
  try {
    act();
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'usage') return [error.message, error.hint ?? ''];
    throw error;
  }
  throw new Error('was accepted');
}

describe('precedence', () => {
  const layers = [
    flags({ market: ['spot'] }),
    environment({ CRYPTODL_MARKET: 'cm', CRYPTODL_FORMAT: 'csv' }),
    config({ market: 'option', format: 'zip', out: 'lake', retries: 7, strict: true }),
  ];

  it('holds for numbers and switches of a config file', () => {
    const { options } = resolveOptions(VERBS.vision, layers);
    expect([options.retries, options.strict]).toEqual([7, true]);
  });

  it('lets a flag switch off an option of the environment', () => {
    const on = environment({ CRYPTODL_STRICT: '1' });
    expect(resolveOptions(VERBS.vision, [on]).options.strict).toBe(true);
    expect(resolveOptions(VERBS.vision, [flags({ strict: ['false'] }), on]).options.strict).toBe(false);
  });

  it('takes the last of repeated flags', () => {
    expect(resolveOptions(VERBS.vision, [flags({ out: ['a', 'b'] })]).options.out).toBe('b');
  });

  it('remembers the texts that were given, and no defaults', () => {
    const { texts } = resolveOptions(VERBS.vision, layers);
    expect(texts).toEqual({
      market: ['spot'],
      format: ['csv'],
      out: ['lake'],
      retries: ['7'],
      strict: ['true'],
    });
  });
});

it.each([
  'jobs',
  'last',
  'pool-limit',
  'pool-limit-per-host',
  'breaker-failures',
  'breaker-successes',
  'max-waiting',
  'connect-timeout',
  'headers-timeout',
  'idle-timeout',
  'total-timeout',
  'lease',
] as const)('--%s refuses 0', (name) => {
  const verb = Object.values(VERBS).find((each) => flagsOf(each).includes(name)) ?? VERBS.vision;
  expect(refusal(() => resolveOptions(verb, [flags({ [name]: ['0'] })]))[0]).toContain(`--${name}: "0"`);
});

describe('the environment', () => {
  it.each(FLAG_NAMES)('has a twin of --%s that works', (name) => {
    const verb = Object.values(VERBS).find((each) => flagsOf(each).includes(name)) ?? VERBS.vision;
    const [text, value] = flagValue(name);
    const { options, origins } = resolveOptions(verb, [environment({ [environmentName(name)]: text }, verb)]);
    expect(options[optionName(name)]).toEqual(value);
    expect(origins[name]).toBe('environment');
  });

  it('names are plain', () => {
    expect(environmentName('max-bytes')).toBe('CRYPTODL_MAX_BYTES');
    for (const name of FLAG_NAMES) expect(environmentName(name)).toMatch(/^CRYPTODL_[A-Z0-9_]+$/);
  });

  it('of another verb does no harm', () => {
    expect(
      resolveOptions(VERBS.serve, [environment({ CRYPTODL_DAYS: 'x' }, VERBS.serve)]).options.days,
    ).toBeUndefined();
  });
});

describe('the config file', () => {
  it('refuses a key that no flag has, with the nearest one', () => {
    expect(refusal(() => config({ markt: 'spot' }))).toEqual([
      'my.yaml: unknown key "markt"',
      'did you mean market?',
    ]);
    expect(refusal(() => config({ zzzzzzzz: 1 }))[1]).toContain('--help');
    expect(refusal(() => config({ config: 'other.yaml' }))[0]).toBe('my.yaml: unknown key "config"');
  });

  it.each([[['a', 'list']], ['text'], [null], [7]])('refuses %j as a whole', (content) => {
    expect(refusal(() => config(content))[0]).toContain('is not a map of option names to values');
  });

  it.each([[{ out: { deep: 1 } }], [{ out: null }], [{ dataset: ['klines', ['x']] }]])(
    'refuses %j',
    (content) => {
      expect(refusal(() => config(content))[0]).toContain('not a text, a number, true or false');
    },
  );

  it('refuses a list where one value is taken, in a file of options and in a file of jobs', () => {
    const says = ['takes one value, not a list', 'write out: VALUE'];
    expect(refusal(() => config({ out: ['X', 'Y'] }))).toEqual([`my.yaml: out ${says[0]}`, says[1]]);
    const vision = { verb: 'vision', out: ['X', 'Y'] };
    expect(refusal(() => jobsFile('jobs.yaml', { jobs: { bars: vision } }, VERBS))).toEqual([
      `jobs.yaml: jobs.bars: out ${says[0]}`,
      says[1],
    ]);
    expect(
      refusal(() =>
        jobsFile('jobs.yaml', { defaults: { strict: [] }, jobs: { bars: { verb: 'vision' } } }, VERBS),
      )[0],
    ).toBe('jobs.yaml: defaults: strict takes one value, not a list');
    expect(config({ market: ['um', 'cm'], symbols: ['A', 'B'], out: ['X'] }).values).toEqual({
      market: ['um', 'cm'],
      symbols: ['A', 'B'],
      out: ['X'],
    });
  });

  it.each(['__proto__', 'constructor', 'nosuch'])(
    'refuses limits of a bucket that is no bucket: %s',
    async (bucket) => {
      const yaml = join(folder, 'limits.yaml');
      writeFileSync(yaml, `limits: { ${bucket}: 3/s }\n`);
      const content = await readConfigFile(yaml);
      expect(refusal(() => resolveOptions(VERBS.vision, [config(content)]))[0]).toContain(
        `my.yaml: limits: "${bucket}" is not one of archive, listing,`,
      );
      writeFileSync(yaml, `${bucket}: 3\n`);
      const key = await readConfigFile(yaml);
      expect(refusal(() => config(key))[0]).toBe(`my.yaml: unknown key "${bucket}"`);
    },
  );

  it('that cannot be read or parsed is refused by name', async () => {
    const broken = join(folder, 'broken.yaml');
    writeFileSync(broken, 'a: [1');
    await expect(readConfigFile(broken)).rejects.toMatchObject({ code: 'usage' });
    await expect(readConfigFile(broken)).rejects.toThrow(broken);
    await expect(readConfigFile(join(folder, 'none'))).rejects.toThrow('no such file or folder');
  });
});

describe('lists', () => {
  it('are split at commas and repeated, each entry once', () => {
    const { options } = resolveOptions(VERBS.vision, [flags({ interval: ['1m, 5m', '1h', '1m'] })]);
    expect(options.interval).toEqual(['1m', '5m', '1h']);
  });

  it('leave out empty entries, but need one', () => {
    expect(resolveOptions(VERBS.vision, [flags({ dataset: ['klines,'] })]).options.dataset).toEqual([
      'klines',
    ]);
    expect(refusal(() => resolveOptions(VERBS.vision, [flags({ dataset: [','] })]))[0]).toBe(
      '--dataset is empty',
    );
  });

  const readList: ReadList = (list) => Promise.resolve(list === 'stdin' ? 'D' : list.file);

  it('of symbols are parsed together: names, globs, exclusions, and lists', async () => {
    const given = flags({ symbols: ['A, B,!C*', '@x,-,all', 'A'] });
    const { options } = resolveOptions(VERBS.vision, [given], undefined, readList);
    expect(await options.symbols?.patterns()).toEqual({
      names: ['A', 'B', 'x', 'D'],
      globs: ['*'],
      exclusions: ['C*'],
    });
  });

  it('of symbols may have only exclusions beside a list', async () => {
    const given = flags({ symbols: ['@x,!A'] });
    const { options } = resolveOptions(VERBS.vision, [given], undefined, readList);
    expect(await options.symbols?.patterns()).toEqual({ names: ['x'], globs: [], exclusions: ['A'] });
  });

  it('refuse symbols under the name with which they were given', () => {
    const named = environment({ CRYPTODL_SYMBOLS: '!A' });
    expect(refusal(() => resolveOptions(VERBS.vision, [named]))).toEqual([
      'CRYPTODL_SYMBOLS names no symbol',
      "for example BTCUSDT,ETHUSDT or '*USDT'",
    ]);
    expect(refusal(() => resolveOptions(VERBS.vision, [config({ symbols: '../B' })]))[0]).toBe(
      'my.yaml: symbols: "../B" is not a symbol',
    );
  });
});

it.each([
  ['max-wait', 'maxWaitMs'],
  ['now', 'nowMs'],
  ['at', 'atMinutes'],
  ['from', 'from'],
  ['min', 'minPercent'],
  ['max-bytes', 'maxBytes'],
  ['bwlimit', 'bwlimitBytesPerSecond'],
  ['dry-run', 'dryRun'],
  ['every', 'every'],
  ['recheck-days', 'recheckDays'],
] as const)('the option of --%s is %s', (flag, option) => {
  expect(optionName(flag)).toBe(option);
});

it('every day is every 24 hours', () => {
  const { options } = resolveOptions(VERBS.schedule, [flags({ every: ['day'] })]);
  expect(options.every).toEqual({ kind: 'hours', text: 'day', hours: 24 });
});

it('a switch that was not given is false', () => {
  const { options } = resolveOptions(VERBS.vision, []);
  const switches = FLAG_NAMES.filter(isSwitch).map((name) => options[optionName(name)]);
  expect(new Set(switches)).toEqual(new Set([false]));
});

it('options are frozen and complete', () => {
  const { options, origins } = resolveOptions(VERBS.vision, []);
  expect(Object.isFrozen(options)).toBe(true);
  expect(Object.keys(options)).toEqual(FLAG_NAMES.map(optionName));
  expect(Object.values(origins)).toEqual(FLAG_NAMES.map(() => 'default'));
  expect(flagsOf(VERBS.serve)).toEqual(['host', 'port', 'config', 'print-options']);
});

const EXCHANGE = {
  markets: { swap: { path: 'swap', title: 'swaps', datasets: {} } },
  defaultMarket: 'swap',
  hosts: { archive: 'http://archive.test', origin: 'http://origin.test', listing: 'http://listing.test' },
};

describe('a default that depends on another option', () => {
  const resolved = (values: RawValues): Resolved => resolveOptions(VERBS.vision, [flags(values)], EXCHANGE);

  it('of retries is that of the preset', () => {
    const { options, origins } = resolved({ 'retry-preset': ['history'], 'retry-delay': ['3s'] });
    expect([options.retries, options.retryDelayMs, options.retryMaxDelayMs, options.retryStrategy]).toEqual([
      2,
      3000,
      60_000,
      'full',
    ]);
    expect([origins.retries, origins['retry-delay']]).toEqual(['default', 'flag']);
  });

  it('of listing and fallback are the hosts of the exchange, unless the archive is another one', () => {
    const [archive, listing] = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
    const urls = ({ options }: Resolved): unknown[] => [options.listingUrl, options.fallbackUrl];
    expect(urls(resolved({}))).toEqual([EXCHANGE.hosts.listing, EXCHANGE.hosts.origin]);
    expect(urls(resolved({ 'archive-url': [archive] }))).toEqual([archive, undefined]);
    expect(urls(resolved({ 'archive-url': [archive], 'listing-url': [listing] }))).toEqual([
      listing,
      undefined,
    ]);
  });
});

describe('the words of another exchange', () => {
  it('are its default market and the address of its archive', () => {
    const { options } = resolveOptions(VERBS.vision, [], EXCHANGE);
    expect([options.market, options.archiveUrl]).toEqual([['swap'], 'http://archive.test']);
  });

  it('are the only markets that --market takes', () => {
    const market = (name: string): unknown =>
      resolveOptions(VERBS.vision, [flags({ market: [name] })], EXCHANGE);
    expect(market('all')).toMatchObject({ options: { market: ['all'] } });
    expect(refusal(() => market('um'))[0]).toBe('--market: "um" is not one of swap, all');
  });
});
