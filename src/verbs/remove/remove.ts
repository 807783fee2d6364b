/** `cryptodl remove`: drops series with their data, or orders. Without `--yes` it prints what it would remove. */
import { withSignals } from '../../run/look-up.js';
import type { Command } from '../../run/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { openLake } from '../../run/open-lake.js';
import { openSession } from '../../run/session.js';
import type { Session } from '../../run/session.js';
import { refuseLinkedFolders } from '../../lake/layout.js';
import { layerName, seriesName } from '../../model/task.js';
import type { ExitCode } from '../../model/exit-code.js';
import { bytesText, countText, listText } from '../../model/units.js';
import { givenWords } from '../../plan/options/option-layers.js';
import { commandLine, printLines, tabbed } from '../../text/printable.js';
import { planRemoval, SELECTION, selectRemoved } from './plan-removal.js';
import type { Removed, RemovalPlan } from './plan-removal.js';
import { removePlanned } from './remove-planned.js';

/** Rejects with usage errors, with `locked` while another run writes, and as `planRemoval` does; then nothing was removed. */
export async function remove(command: Command): Promise<ExitCode> {
  const { io, resolved } = command;
  return withSignals(command, async (request) => {
    const removed = await selectRemoved(request);
    const session = openSession(request);
    try {
      await refuseLinkedFolders(session.paths);
      const { yes } = resolved.options;
      const plan = yes
        ? await removeLocked(session, removed)
        : await planRemoval(session.paths, session.exchange, removed);
      await writeData(io, linesOf(plan));
      printLines(io.stderr, closing(plan, command));
      return 0;
    } finally {
      await session.close();
    }
  });
}

async function removeLocked(session: Session, removed: Removed): Promise<RemovalPlan> {
  const { paths, exchange, stop } = session;
  const { lock } = await openLake(session, 'cryptodl remove');
  try {
    const plan = await planRemoval(paths, exchange, removed);
    await removePlanned(paths, plan, { lock, signal: stop.signal });
    return plan;
  } finally {
    await lock.release();
  }
}

function linesOf({ orders, series }: RemovalPlan): string[] {
  return [
    ...orders.map(({ order, left, symbols }) =>
      tabbed([
        'order',
        `${order.id} ${layerName(order)}`,
        left === undefined ? 'the whole order' : listText(symbols),
      ]),
    ),
    ...series.map(({ series: one, data, manifest }) => {
      const bytes = data.reduce((sum, file) => sum + file.bytes, 0);
      const own = manifest === undefined ? 'no manifest' : 'its manifest';
      return tabbed([
        'series',
        seriesName(one),
        `${countText(data.length, 'file')}, ${bytesText(bytes)}, ${own}`,
      ]);
    }),
    ...series.flatMap(({ kept }) =>
      kept.map((path) => tabbed(['stays', path, 'not a file that a manifest line names'])),
    ),
  ];
}

function closing({ orders, series }: RemovalPlan, { resolved, verb }: Command): string[] {
  const { yes, order } = resolved.options;
  const files = series.flatMap(({ data, manifest }) => [
    ...data,
    ...(manifest === undefined ? [] : [manifest]),
  ]);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const counts = `${countText(orders.length, 'order')}, ${countText(series.length, 'series')}, ${countText(files.length, 'file')}, ${bytesText(bytes)}`;
  const selection = givenWords(resolved, verb, ['out', ...SELECTION, 'order']);
  return [
    `${counts} ${yes ? 'removed' : 'to remove; nothing has changed'}`,
    ...(order === undefined ? [] : ['the data of an order stay; remove with --symbols removes series']),
    ...(series.length === 0 ? [] : ['a run whose --symbols select them downloads them again']),
    ...(yes ? [] : [`next  ${commandLine(['remove', ...selection, '--yes'])}`]),
  ];
}
