import { expect, it } from 'vitest';
import { checkFiles, checkMemory } from '../../src/doctor/check-machine.js';

const LIMITS = { availableBytes: 2e9, limitBytes: undefined, openFiles: 1024 };

it('checkMemory accepts 1 GB and more, and names the limit of a container', () => {
  expect(checkMemory(LIMITS)).toMatchObject({ status: 'ok', found: '2.0 GB available' });
  expect(checkMemory({ ...LIMITS, availableBytes: 1e9 }).status).toBe('ok');
  expect(checkMemory({ ...LIMITS, availableBytes: 999e6, limitBytes: 1.5e9 })).toMatchObject({
    status: 'warn',
    found: '999 MB available of the 1.5 GB that this process may use; a run may use 1.0 GB',
    next: expect.stringContaining('--concurrency auto:10') as string,
    figures: { availableBytes: 999e6, limitBytes: 1.5e9 },
  });
});

it('checkFiles counts the sockets and spool files of all objects in flight', () => {
  const run = { most: 128, sockets: 264 };
  expect(checkFiles({ ...run, openFiles: 584 }).status).toBe('ok');
  expect(checkFiles({ ...run, openFiles: undefined })).toMatchObject({
    status: 'ok',
    figures: { needed: 584 },
  });
  // The proposed concurrency needs no more files than allowed.
  const { status, next } = checkFiles({ ...run, openFiles: 256 });
  expect([status, next]).toEqual([
    'warn',
    'allow 584 (ulimit -n 584, LimitNOFILE=584 in a systemd unit), or --concurrency auto:46',
  ]);
  expect(checkFiles({ most: 46, sockets: 100, openFiles: 256 }).status).toBe('ok');
  expect(checkFiles({ most: 47, sockets: 102, openFiles: 256 }).status).toBe('warn');
  // Fewer sockets need fewer files.
  expect(checkFiles({ most: 128, sockets: 20, openFiles: 348 }).status).toBe('ok');
});
