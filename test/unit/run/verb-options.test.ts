/** The compiler checks these rules: a verb cannot read the option of a flag that it does not list. */
import { expect, expectTypeOf, it } from 'vitest';
import type { ExitCode } from '../../../src/model/exit-code.js';
import type { Options } from '../../../src/plan/options/flags.js';
import { defineReader, defineVerb } from '../../../src/run/verb/verb.js';
import type { VerbCall } from '../../../src/run/verb/verb.js';
import { checkVerb } from '../../../src/verbs/check/command.js';

const VERB = {
  name: 'check',
  doc: '',
  exits: {},
  examples: [],
  aka: [],
  flags: ['out', 'max-wait'],
} as const;

const act = ({ resolved: { options } }: Pick<VerbCall<'now' | 'out'>, 'resolved'>): Promise<ExitCode> =>
  Promise.resolve(options.nowMs === 0 ? 1 : 0);

it('gives a verb the options of its flags', () => {
  expect(defineVerb({ ...VERB, moreFlags: ['now'], act }).act).toBe(act);
  defineVerb({
    ...VERB,
    act: ({ resolved: { options } }) => {
      expectTypeOf(options).toEqualTypeOf<Options<'out' | 'max-wait'>>();
      expectTypeOf(options).not.toHaveProperty('nowMs');
      return Promise.resolve(0);
    },
  });
});

it('refuses a verb that reads the option of a flag that it does not list', () => {
  // @ts-expect-error --now is missing.
  expect(defineVerb({ ...VERB, act }).act).toBe(act);
  expect(defineReader({ ...VERB, act }).act).toBe(act);
  const actOfAll = ({ resolved }: VerbCall): Promise<ExitCode> => act({ resolved });
  // @ts-expect-error A function that needs all options is no verb.
  expect(defineVerb({ ...checkVerb, act: actOfAll }).act).toBe(actOfAll);
});
