/** Real archive files, kept outside the repository. */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PLACE =
  process.env['CRYPTODL_SAMPLES'] ??
  fileURLToPath(new URL('../../../shared/vision-samples', import.meta.url));

/** Folder that holds `data/`: CRYPTODL_SAMPLES (it, or its `data`), else beside the checkout. */
export const SAMPLES = basename(PLACE) === 'data' ? dirname(PLACE) : PLACE;

export const SAMPLES_MISSING = existsSync(join(SAMPLES, 'data'))
  ? undefined
  : `skipped: no real archive files at ${SAMPLES} (set CRYPTODL_SAMPLES to their folder)`;
