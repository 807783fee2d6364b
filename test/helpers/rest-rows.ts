/** Routes of the shipped facts, and what the pages of REST come to. */
import type { Market } from '../../src/model/task.js';
import type { RouteSpec } from '../../src/exchange/facts.js';
import { readRestPage } from '../../src/exchange/binance/series-pages.js';
import type { GetPage, PageQuery } from '../../src/exchange/binance/series-pages.js';
import type { Page, RestRow } from '../../src/exchange/rest-rows.js';
import { specOf } from './conversion.js';

export function routeOf(market: Market, dataset: string): RouteSpec {
  const { rest } = specOf(market, dataset);
  if (rest === undefined || 'joins' in rest) throw new RangeError(`no route of ${market} ${dataset}`);
  return rest;
}

export interface ModelServer {
  readonly get: GetPage;
  /** What it was asked so far. */
  readonly asked: PageQuery[];
}

/** Its answers go over the wire as text, and are looked at like all others. A test that asks too often has found a loop. */
export function modelServer(
  route: RouteSpec,
  most: number,
  answer: (query: PageQuery) => readonly object[],
): ModelServer {
  const asked: PageQuery[] = [];
  const get = (query: PageQuery): Promise<readonly RestRow[]> => {
    asked.push(query);
    if (asked.length > most) return Promise.reject(new Error(`more than ${most} requests`));
    return new Promise((resolve) => {
      const content = JSON.parse(JSON.stringify(answer(query))) as unknown;
      resolve(readRestPage(content, route, query, { symbol: 'BTCUSDT' }));
    });
  };
  return { get, asked };
}

export async function allPages(pages: AsyncIterable<Page>): Promise<Page[]> {
  const all: Page[] = [];
  for await (const page of pages) all.push(page);
  return all;
}
