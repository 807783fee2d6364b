import { arch, platform } from 'node:os';
import { TOOL_VERSION } from '../version.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';

/** As package.json has it under `engines`. */
const LEAST_NODE = [20, 18, 1] as const;

export async function checkVersions(duckdbVersion: () => Promise<string>): Promise<Finding> {
  const system = `${platform()} ${arch()}`;
  const base = `cryptodl ${TOOL_VERSION}, node ${process.versions.node}, ${system}`;
  const figures = { cryptodl: TOOL_VERSION, node: process.versions.node, system };
  const [least, mine] = [LEAST_NODE, process.versions.node.split('.').map(Number)];
  const at = least.findIndex((part, index) => part !== mine[index]);
  if (at >= 0 && (mine[at] ?? 0) < (least[at] ?? 0))
    return finding('versions', 'fail', base, { figures, next: `install node ${least.join('.')} or newer` });
  try {
    const duckdb = await duckdbVersion();
    return finding('versions', 'ok', `${base}, DuckDB ${duckdb}`, { figures: { ...figures, duckdb } });
  } catch (error) {
    const said = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    return finding('versions', 'fail', `${base}; DuckDB cannot be loaded: ${said}`, {
      figures,
      next: 'install anew for this machine: npm install (DuckDB has a package of its own for each system)',
    });
  }
}
