import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { stateFolder } from '../../../src/files/environment.js';
import { NO_PROXIES } from '../../../src/files/proxies.js';

it.each([
  ['--state-dir', { stateDir: '/srv/state' }, '/home/a', undefined, '/srv/state'],
  ['XDG_STATE_HOME', {}, '/home/a', '/srv/xdg', '/srv/xdg/cryptodl'],
  ['HOME', {}, '/home/a', undefined, '/home/a/.local/state/cryptodl'],
  ['the account of the user', {}, undefined, undefined, join(userInfo().homedir, '.local/state/cryptodl')],
])('the state folder comes from %s', (_, given, home, stateHome, folder) => {
  expect(stateFolder(given, { home, stateHome, proxies: NO_PROXIES })).toBe(folder);
});
