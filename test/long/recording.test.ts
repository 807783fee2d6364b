/** scripts/record.js makes the picture of the README from a run of the built program. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { readRecording, withoutMeasures } from '../helpers/recording.js';

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

describe('scripts/record.js', () => {
  const scratch = scratchFolder();

  it('records what docs/recording.svg shows (after a change of the output: npm run record)', () => {
    const file = join(scratch, 'recording.svg');
    const made = spawnSync(process.execPath, [root('scripts/record.js'), file], { encoding: 'utf8' });
    expect([made.status, made.stderr]).toEqual([0, '']);
    const recorded = readRecording(readFileSync(file, 'utf8'));
    const shown = readRecording(readFileSync(root('docs/recording.svg'), 'utf8'));
    expect(recorded.lines.map(withoutMeasures)).toEqual(shown.lines.map(withoutMeasures));
    expect(recorded.lines.length).toBeGreaterThan(15);
  }, 120_000);
});
