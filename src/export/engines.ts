/** The engines that export has files or a script for. */
import { CSV } from './csv-files.js';
import type { Engine } from './export-file.js';
import { FREQTRADE } from './freqtrade.js';
import { LEAN } from './lean.js';
import { nautilusScript } from './nautilus-script.js';
import { qlibScript } from './qlib-script.js';
import type { Script } from './script.js';
import { TARDIS } from './tardis.js';

export const ENGINES: readonly Engine[] = [FREQTRADE, TARDIS, LEAN, CSV];

/** Python programs that load the lake with the engine's own writers. */
export const SCRIPTS: readonly Script[] = [nautilusScript, qlibScript];
