import { expect, it } from 'vitest';
import { createSerializer } from '../../../src/model/in-order.js';

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

it('work of one name runs one after the other, in the order of the calls', async () => {
  const serialize = createSerializer();
  const steps: string[] = [];
  const work = (name: string, length: number) => async (): Promise<void> => {
    steps.push(`${name} starts`);
    await turns(length);
    steps.push(`${name} ends`);
  };
  await Promise.all([
    serialize('x', work('a', 5)),
    serialize('x', work('b', 1)),
    serialize('x', work('c', 0)),
  ]);
  expect(steps).toEqual(['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends']);
});

it('work of different names runs at the same time', async () => {
  const serialize = createSerializer();
  let letGo: (() => void) | undefined;
  const waiting = serialize('x', () => new Promise<string>((resolve) => (letGo = () => resolve('let go'))));
  await turns(1);
  await serialize('y', () => Promise.resolve(letGo?.()));
  expect(await waiting).toBe('let go');
});

it('a failure goes to its caller, and the next still runs', async () => {
  const serialize = createSerializer();
  const failing = serialize('x', () => Promise.reject(new Error('mine')));
  const next = serialize('x', () => Promise.resolve('next'));
  await expect(failing).rejects.toThrow('mine');
  expect(await next).toBe('next');
  expect(await serialize('x', () => Promise.resolve('later'))).toBe('later');
});
