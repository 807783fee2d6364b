/** The publications of series, one at a time for each series. Changes that come during one are published together by the next. */
import { isConflict } from './publisher.js';

interface Series {
  running: Promise<boolean> | undefined;
  isRunning: boolean;
  next: Promise<boolean> | undefined;
  /** A publication has joined lines of another writer, and no caller knows. */
  hasJoined: boolean;
  /** The last publication has failed, and no caller knows. */
  hasFailed: boolean;
}

export class Publications {
  readonly #publish: (seriesFolder: string) => Promise<boolean>;
  readonly #series = new Map<string, Series>();

  /** `publish` resolves with true if it has joined lines of another writer. */
  constructor(publish: (seriesFolder: string) => Promise<boolean>) {
    this.#publish = publish;
  }

  begin(seriesFolder: string): void {
    const series = this.#series.get(seriesFolder) ?? {
      running: undefined,
      isRunning: false,
      next: undefined,
      hasJoined: false,
      hasFailed: false,
    };
    this.#series.set(seriesFolder, series);
    if (series.next !== undefined) return;
    const next = this.#after(series.isRunning ? series.running : undefined, series, seriesFolder);
    series.next = next;
    // The callers of `done` get the error.
    next.catch(() => undefined);
  }

  /** Resolves when the changes before this call are published. */
  async done(seriesFolder: string): Promise<boolean> {
    const series = this.#series.get(seriesFolder);
    if (series === undefined) return false;
    try {
      await (series.next ?? series.running);
    } finally {
      series.hasFailed = false;
    }
    const { hasJoined } = series;
    series.hasJoined = false;
    return hasJoined;
  }

  /** Resolves when the publications of a series so far have ended, with or without an error. */
  async settled(seriesFolder: string): Promise<void> {
    const series = this.#series.get(seriesFolder);
    await (series?.next ?? series?.running)?.catch(() => undefined);
  }

  /** Resolves when all are published. A publication that failed unnoticed is repeated, and its error is thrown. */
  async end(): Promise<void> {
    for (const series of this.#series.values()) await (series.next ?? series.running)?.catch(() => undefined);
    const failed = [...this.#series].filter(([, { hasFailed }]) => hasFailed).map(([folder]) => folder);
    for (const folder of failed) this.begin(folder);
    for (const folder of failed) await this.done(folder);
  }

  async #after(earlier: Promise<boolean> | undefined, series: Series, folder: string): Promise<boolean> {
    const conflict = await earlier?.then(
      () => undefined,
      (error: unknown) => (isConflict(error) && error instanceof Error ? error : undefined),
    );
    series.running = series.next;
    series.isRunning = true;
    series.next = undefined;
    try {
      // After a conflict, the mirror has forgotten the series, and with it the changes that came meanwhile.
      if (conflict !== undefined) throw conflict;
      const hasJoined = await this.#publish(folder);
      series.hasJoined ||= hasJoined;
      series.hasFailed = false;
      return hasJoined;
    } catch (error) {
      series.hasFailed = true;
      throw error;
    } finally {
      series.isRunning = false;
    }
  }
}
