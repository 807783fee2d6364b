import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Outcomes } from '../../../src/run/partitions/outcomes.js';
import type { RunSession } from '../../../src/run/session/session.js';
import { lakePaths } from '../../../src/lake/layout.js';
import { Counters } from '../../../src/model/counters.js';
import type { PartitionPlan } from '../../../src/model/task.js';
import type { ReceivedObject } from '../../../src/convert/csv-input.js';
import type { WriteResult } from '../../../src/lake/write/writer.js';
import type { FailureReport } from '../../../src/run/failures/failure-file.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { received } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();

/** Reports the objects as written. */
async function report(objects: readonly ReceivedObject[]): Promise<void> {
  const paths = lakePaths(join(scratch, 'lake'));
  const result: WriteResult = {
    written: new Map(objects.map(({ object }) => [object.key, { rows: 1 }])),
    failed: new Map(),
    files: 0,
    bytes: 0,
    duplicatesAcross: 0,
    overlaps: [],
  };
  const session = {
    paths,
    exchange: loadBinance(),
    tally: new Counters(),
    options: { verify: 'none' },
    tell: () => Promise.resolve(),
  };
  const outcomes = new Outcomes(session as unknown as RunSession, undefined as unknown as FailureReport);
  await outcomes.written({ series: {} } as PartitionPlan, objects, result);
}

describe('the bodies of written objects', () => {
  it('leave the memory, because the queue keeps finished jobs', async () => {
    const object = {
      ...received('2024-01-15', 'rows'),
      body: { kind: 'memory', bytes: Buffer.from('zip') } as const,
    };
    await report([object]);
    expect([object.body.bytes, object.csv]).toEqual([
      Buffer.alloc(0),
      { kind: 'memory', bytes: Buffer.alloc(0) },
    ]);
  });

  it('leave the disk', async () => {
    const path = join(scratch, 'rows.csv');
    const object = received('2024-01-15', 'rows', path);
    await report([object]);
    expect(existsSync(path)).toBe(false);
  });
});
