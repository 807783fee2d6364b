/** Stores a plan: its first partitions in memory, the others in a file that is read lazily. */
import { open, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { completeLines } from '../lake/complete-lines.js';
import type { PartitionPlan, Task } from '../model/task.js';
import { makeTempFolder } from '../files/temp-files.js';

/** With more tasks in memory, the heap becomes several times larger than the plans (bench/NOTES.md). */
const TASKS_IN_MEMORY = 10_000;
const WRITE_CHARACTERS = 1024 * 1024;

export class PlanSpool {
  #plans: PartitionPlan[] = [];
  #tasks = 0;
  #file: FileHandle | undefined;
  #buffer = '';

  constructor(
    private readonly path: string,
    private readonly tasksInMemory = TASKS_IN_MEMORY,
  ) {}

  async add(plan: PartitionPlan): Promise<void> {
    this.#tasks += plan.tasks.length;
    if (this.#file === undefined && this.#tasks <= this.tasksInMemory) {
      this.#plans.push(plan);
      return;
    }
    if (this.#file === undefined) {
      await makeTempFolder(dirname(this.path));
      this.#file = await open(this.path, 'wx');
    }
    this.#buffer += lineOf(plan);
    if (this.#buffer.length >= WRITE_CHARACTERS) await this.#flush();
  }

  async *plans(): AsyncGenerator<PartitionPlan> {
    yield* this.#plans;
    if (this.#file === undefined) return;
    await this.#flush();
    for await (const lines of completeLines(this.path)) for (const line of lines) yield planOf(line);
  }

  async close(): Promise<void> {
    await this.#file?.close();
    if (this.#file !== undefined) await rm(this.path, { force: true });
    this.#plans = [];
  }

  async #flush(): Promise<void> {
    await this.#file?.appendFile(this.#buffer);
    this.#buffer = '';
  }
}

/** The tasks have no series, because the plan has it. */
type Line = Omit<PartitionPlan, 'tasks'> & { readonly tasks: readonly Omit<Task, 'series'>[] };

function lineOf(plan: PartitionPlan): string {
  const tasks = plan.tasks.map((task) => ({ ...task, series: undefined }));
  return `${JSON.stringify({ ...plan, tasks })}\n`;
}

function planOf(line: string): PartitionPlan {
  const plan = JSON.parse(line) as Line;
  const { series } = plan;
  return { ...plan, tasks: plan.tasks.map((task) => Object.assign(task, { series })) };
}
