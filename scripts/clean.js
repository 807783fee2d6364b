// Empties dist, so that a file removed from src leaves no compiled ghost behind.
import { rmSync } from 'node:fs';

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
