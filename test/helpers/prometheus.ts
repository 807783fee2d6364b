/** Pages of metrics as a test reads them. */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The samples of a page in the text format of Prometheus. */
export function samplesOf(page: string): Sample[] {
  return page.split('\n').flatMap((line) => {
    const [, name = '', list = '', value] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (value === undefined) return [];
    const pairs = [...list.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)];
    return [
      { name, labels: Object.fromEntries(pairs.map(([, key, text]) => [key, text])), value: Number(value) },
    ];
  });
}

/** The sum of the samples of this name whose labels include these; undefined without one. */
export function valueOf(page: string, name: string, labels: Sample['labels'] = {}): number | undefined {
  const found = samplesOf(page).filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([key, text]) => sample.labels[key] === text),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

/** A port of this machine at which no program listens. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}
