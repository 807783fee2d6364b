// Empties dist, so that no compiled file stays after its source file is removed.
import { rmSync } from 'node:fs';

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
