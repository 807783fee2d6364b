/** The compiler checks these rules: a verb cannot read the option of a flag that it does not list. */
import { expectTypeOf, it } from 'vitest';
import type { Options } from '../../../src/plan/options/flags.js';
import { commandWith, verbCommand } from '../../../src/run/verb/verb.js';
import type { Command } from '../../../src/run/verb/verb.js';
import { checkVerb } from '../../../src/verbs/check/command.js';

const VERB = {
  name: 'check',
  doc: '',
  exits: {},
  examples: [],
  aka: [],
  flags: ['out', 'max-wait'],
} as const;

const act = (_: Command<'out' | 'quiet'>): Promise<0> => Promise.resolve(0);

type OptionsOf<Act extends (command: never) => unknown> =
  Parameters<Act>[0] extends Command<infer Names> ? Options<Names> : never;

it('gives a verb the options of its flags', () => {
  const verb = verbCommand({ ...VERB, moreFlags: ['quiet'], act });
  expectTypeOf<OptionsOf<typeof verb.act>>().toEqualTypeOf<Options<'out' | 'quiet'>>();
  verbCommand({
    ...VERB,
    act: ({ resolved: { options } }) => {
      expectTypeOf(options).toEqualTypeOf<Options<'out' | 'max-wait'>>();
      expectTypeOf(options).not.toHaveProperty('quiet');
      return Promise.resolve(0);
    },
  });
});

it('refuses a verb that reads the option of a flag that it does not list', () => {
  // @ts-expect-error --quiet is missing.
  verbCommand({ ...VERB, act });
  commandWith<'quiet'>()({ ...VERB, act });
  // @ts-expect-error A function that needs all options is no verb.
  verbCommand({ ...checkVerb, act: (_: Command) => Promise.resolve(0) });
});
