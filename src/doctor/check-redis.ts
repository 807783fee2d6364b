/** The server of `--redis`: whether it answers, and how many programs of the egress group it knows. */
import { countText } from '../model/units.js';
import type { Clock } from '../model/clock.js';
import { toCryptodlError } from '../model/errors.js';
import type { EgressGroup } from '../http/throttle/group.js';
import { connectRedis } from '../redis/connection.js';
import { shownRedis } from '../redis/redis-errors.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';

/** The queue needs Redis. A run of a group does without a server that cannot be reached, so that is a warning. */
export async function checkRedis(
  address: string,
  group: EgressGroup | undefined,
  clock: Pick<Clock, 'monotonic'>,
): Promise<CheckResult> {
  const begun = clock.monotonic();
  try {
    const connection = await connectRedis(address, 'limit');
    const answerMs = Math.round(clock.monotonic() - begun);
    connection.close();
    const answers = `${shownRedis(address)} answers in ${answerMs} ms`;
    if (group === undefined) return checkResult('redis', 'ok', answers);
    await group.opened();
    const { name, members, isShared } = group.state;
    if (!isShared)
      return checkResult('redis', 'warn', `${answers}, but does not share the limits of the group ${name}`, {
        next: 'see the warning above',
      });
    const found = `${answers}; the group ${name} has ${countText(members, 'program')}, this one included`;
    return checkResult('redis', 'ok', found);
  } catch (error) {
    const { message, hint = 'check --redis', code } = toCryptodlError(error);
    const isWarning = group !== undefined && code === 'redis-unreachable';
    const found = isWarning
      ? `${message}; each run of the group ${group.state.name} takes its share of the limits until it answers`
      : message;
    return checkResult('redis', isWarning ? 'warn' : 'fail', found, { next: hint });
  }
}
