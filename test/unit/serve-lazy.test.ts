/** Which folders the server of an archive reads for one page of a listing. */
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { folderWith, list, removeFolders, serve } from '../helpers/served-folder.js';

const { readdir } = promises;
const read: string[] = [];

function replaceReaddir(by: typeof readdir): void {
  promises.readdir = by;
  syncBuiltinESMExports();
}

replaceReaddir(((path: string, options: { withFileTypes: true }) => {
  read.push(path.replace(/\/$/, ''));
  return readdir(path, options);
}) as unknown as typeof readdir);
afterAll(() => {
  replaceReaddir(readdir);
  removeFolders();
});

it('reads only the folders of the requested page', async () => {
  const symbols = Array.from({ length: 20 }, (_, i) => `SYM${10 + i}USDT`);
  const keys = symbols.flatMap((symbol) =>
    [1, 2, 3].map((day) => `data/spot/daily/trades/${symbol}/${day}.zip`),
  );
  const folder = folderWith(Object.fromEntries(keys.map((key) => [key, ''])));
  const server = await serve(folder);
  const foldersRead = async (query: Record<string, string>): Promise<string[]> => {
    read.length = 0;
    await list(server.url, query);
    return [...read];
  };
  const trades = join(folder, 'data/spot/daily/trades');
  expect(await foldersRead({ prefix: 'data/spot/daily/trades/', delimiter: '/' })).toEqual([trades]);
  expect(await foldersRead({ prefix: 'data/spot/daily/trades/SYM15USDT/' })).toEqual([
    join(trades, 'SYM15USDT'),
  ]);
  const middle = {
    prefix: 'data/spot/daily/trades/',
    marker: 'data/spot/daily/trades/SYM20USDT/2.zip',
    'max-keys': '4',
  };
  expect(await foldersRead(middle)).toEqual([trades, join(trades, 'SYM20USDT'), join(trades, 'SYM21USDT')]);
  await server.close();
});
