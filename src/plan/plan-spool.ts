/** The whole plan, in memory while it is small and in a file when it is not, read back lazily. */
import { createReadStream } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import type { PartitionPlan } from '../task.js';

const TASKS_IN_MEMORY = 50_000;
const WRITE_CHARACTERS = 1024 * 1024;

export class PlanSpool {
  readonly #path: string;
  readonly #limit: number;
  #plans: PartitionPlan[] = [];
  #tasks = 0;
  #file: FileHandle | undefined;
  #buffer = '';

  constructor(path: string, tasksInMemory = TASKS_IN_MEMORY) {
    this.#path = path;
    this.#limit = tasksInMemory;
  }

  async add(plan: PartitionPlan): Promise<void> {
    this.#tasks += plan.tasks.length;
    if (this.#file === undefined && this.#tasks <= this.#limit) {
      this.#plans.push(plan);
      return;
    }
    if (this.#file === undefined) {
      await mkdir(dirname(this.#path), { recursive: true });
      this.#file = await open(this.#path, 'w');
    }
    this.#buffer += `${JSON.stringify(plan)}\n`;
    if (this.#buffer.length >= WRITE_CHARACTERS) await this.#flush();
  }

  async *plans(): AsyncGenerator<PartitionPlan> {
    yield* this.#plans;
    if (this.#file === undefined) return;
    await this.#flush();
    for await (const line of createInterface({ input: createReadStream(this.#path) })) {
      yield JSON.parse(line) as PartitionPlan;
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
    if (this.#file !== undefined) await rm(this.#path, { force: true });
    this.#plans = [];
  }

  async #flush(): Promise<void> {
    await this.#file?.appendFile(this.#buffer);
    this.#buffer = '';
  }
}
