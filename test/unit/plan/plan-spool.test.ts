import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PlanSpool } from '../../../src/plan/plan-spool.js';
import type { PartitionPlan } from '../../../src/model/task.js';
import { period, SETTINGS } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

const folder = scratchFolder();

function planOf(index: number): PartitionPlan {
  const series = { market: 'um', dataset: 'metrics', symbol: `币\u2028"${index}` } as const;
  const object = { key: `${index}.zip`, period: period('2024-01-15'), bytes: index };
  const failure = { code: 'connection-lost', message: 'the host hung up', attempts: 3 } as const;
  const substitute = index % 2 === 0 ? ('held' as const) : object;
  const task = { series, object, action: { kind: 'fetch' } as const };
  const tasks = index % 3 === 0 ? [task] : [{ ...task, failure, substitute, standsFor: object }];
  return { series, settings: SETTINGS, label: '2024-01', tasks, rebuild: 'forced' };
}

async function all(spool: PlanSpool): Promise<PartitionPlan[]> {
  const plans: PartitionPlan[] = [];
  for await (const plan of spool.plans()) plans.push(plan);
  return plans;
}

const MANY = Array.from({ length: 3000 }, (_, index) => planOf(index));

it('a small plan comes back in its order and needs no file', async () => {
  const path = join(folder, 'deep', 'small');
  const spool = new PlanSpool(path, 10);
  for (const plan of MANY.slice(0, 10)) await spool.add(plan);
  expect(await all(spool)).toEqual(MANY.slice(0, 10));
  expect(existsSync(path)).toBe(false);
  await spool.close();
});

it('a large plan goes to a file, and comes back whole and in its order', async () => {
  const path = join(folder, 'deep', 'large');
  const spool = new PlanSpool(path, 10);
  for (const plan of MANY) await spool.add(plan);
  expect(await all(spool)).toEqual(MANY);
  expect(statSync(path).size).toBeGreaterThan(100_000);
  await spool.close();
  expect(existsSync(path)).toBe(false);
});

it('a plan can be read twice, and stopped early', async () => {
  const spool = new PlanSpool(join(folder, 'twice'), 1);
  for (const plan of MANY.slice(0, 5)) await spool.add(plan);
  for await (const plan of spool.plans()) if (plan.tasks[0]?.object.bytes === 2) break;
  expect(await all(spool)).toHaveLength(5);
  await spool.close();
});

it('an empty plan is empty', async () => {
  const spool = new PlanSpool(join(folder, 'empty'));
  expect(await all(spool)).toEqual([]);
  await spool.close();
});
