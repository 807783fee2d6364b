import { expect, it } from 'vitest';
import { checkFiles, checkMemory } from '../../src/verbs/doctor/check-machine.js';

it('checkMemory accepts 1 GB and more, and names the limit of the machine or the container', () => {
  expect(checkMemory(2e9, 4e9)).toMatchObject({ status: 'ok', found: '2.0 GB available of 4.0 GB' });
  expect(checkMemory(1e9, 4e9).status).toBe('ok');
  // Node does not see the limits of all cgroups.
  expect(checkMemory(4e9, 700e6)).toMatchObject({
    status: 'warn',
    found: '700 MB available of 700 MB; a run may use 1.0 GB',
    next: expect.stringContaining('--concurrency auto:10') as string,
  });
});

it('checkFiles counts the sockets and spool files of all objects in flight', () => {
  const run = { most: 128, sockets: 264 };
  expect(checkFiles({ ...run, openFiles: 584 }).status).toBe('ok');
  expect(checkFiles({ ...run, openFiles: undefined })).toMatchObject({
    status: 'ok',
    found: 'a run opens up to 584',
  });
  expect(checkFiles({ ...run, openFiles: 256 })).toMatchObject({
    status: 'warn',
    found: '256 allowed, a run opens up to 584; with fewer it has 46 objects in flight',
    next: 'allow 584 (ulimit -n 584, LimitNOFILE=584 in a systemd unit)',
  });
  expect(checkFiles({ ...run, openFiles: 64 }).found).toContain('it has 1 object in flight');
  // Fewer sockets need fewer files.
  expect(checkFiles({ most: 128, sockets: 20, openFiles: 348 }).status).toBe('ok');
});
