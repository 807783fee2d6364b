/** Faults of files of the lake whose rows are to be read. */
import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createDigestCheck, UnreadableFile } from '../../../src/lake/catalogue/file-digests.js';
import type { LakeFile } from '../../../src/lake/catalogue/lake-file.js';
import { SETTINGS } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();

/** A file of the lake with the digest of this text. */
function fileOf(name: string, text: string): LakeFile {
  return {
    path: join(scratch, name),
    settings: SETTINGS,
    bytes: text.length,
    sha256: createHash('sha256').update(text).digest('hex'),
    days: { from: 0, to: 1 },
    missing: [],
    rows: 1,
    open: [],
    hasRest: false,
    mayRepeat: false,
    firstInstant: undefined,
    lastInstant: undefined,
  };
}

describe('a file of the lake', () => {
  writeFileSync(join(scratch, 'sound'), 'rows');
  writeFileSync(join(scratch, 'other'), 'rowz');
  symlinkSync(join(scratch, 'sound'), join(scratch, 'link'));
  mkdirSync(join(scratch, 'folder'));
  const refuseDamaged = createDigestCheck(scratch, new AbortController().signal);
  const refused = (...names: readonly string[]): Promise<unknown> =>
    refuseDamaged(names.map((name) => fileOf(name, 'rows'))).catch((error: unknown) => error);

  it('with its committed content is read', async () => {
    expect(await refused('sound', 'sound')).toBeUndefined();
  });

  it.each(['other', 'missing'])('that is %s is damaged', async (name) => {
    const error = await refused('sound', name);
    expect(error).toBeInstanceOf(UnreadableFile);
    expect((error as Error).message).toBe(
      `${join(scratch, name)} does not have the content that was committed; cryptodl verify --fix --out ${scratch}, then cryptodl repair --out ${scratch}, fetches its objects again`,
    );
  });

  // Errors of one file do not end the work on others.
  it.each([
    ['link', 'is a symbolic link'],
    ['folder', 'is not a regular file'],
    ['sound/x', 'a part of the path is a file'],
  ])('at the place of %s cannot be read', async (name, reason) => {
    const error = await refused(name);
    expect(error).toBeInstanceOf(UnreadableFile);
    expect((error as Error).message).toContain(reason);
  });
});
