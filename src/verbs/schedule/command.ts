/** The command object of `schedule`: flags, help and what it does. */
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb } from '../../run/verb/verb.js';

export const scheduleVerb = defineVerb({
  name: 'schedule',
  behind: 'COMMAND [flags]',
  doc: 'print a crontab line and a systemd timer for a command; they run it every day or every few hours',
  exits: { 0: 'done', 2: BASE_EXITS[2] },
  examples: [
    'cryptodl schedule -- vision -s BTCUSDT,ETHUSDT -d 7',
    'cryptodl schedule --at 09:30 --kind cron -- run jobs.yaml',
    'cryptodl schedule --every 6h -- metrics -s @universe.txt -d 7 -o /srv/lake',
  ],
  aka: ['cron', 'crontab', 'timer'],
  flags: ['at', 'kind', 'every'],
  meanings: { every: { unset: 'day' } },
  act: async (command) => (await import('./schedule.js')).schedule(command),
});
