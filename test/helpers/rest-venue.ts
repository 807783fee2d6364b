/**
 * The public REST hosts of Binance as their traps make them: a plain method for a test with a clock of its own, and
 * something to serve over sockets. Its budgets, walls and anchors are those of the exchange, and so is its silence about
 * two of its three budgets.
 */
import {
  bannedAnswer,
  bannedOnSpot,
  html404,
  json,
  Refusal,
  restricted,
  tooMany,
  tooManyOnSpot,
  withHeaders,
} from './rest-venue-answers.js';
import type { Ask } from './rest-venue-ask.js';
import { Budgets } from './rest-venue-budgets.js';
import type { Bucket, Family } from './rest-venue-budgets.js';
import { exchangeInfo, fundingInfo } from './rest-venue-info.js';
import { aggTradesPage, fundingRatePage, klinesPage, statisticsPage } from './rest-venue-pages.js';
import { statisticOf } from './rest-venue-rows.js';
import { SymbolBook } from './rest-venue-types.js';
import type { Asked, Host, VenueAnswer, VenueSymbol } from './rest-venue-types.js';

export interface RestVenueOptions {
  /** Epoch milliseconds: the venue's clock. */
  readonly now: () => number;
  readonly symbols: readonly VenueSymbol[];
  /** All budgets times this; 1 unless told otherwise. */
  readonly budgetFactor?: number;
  /** Rows that a page of fundings really has at most, whatever its limit says; 1000 unless told otherwise. */
  readonly fundingPage?: 500 | 1000;
  /** These answer 451 to everything. */
  readonly restricted?: readonly Host[];
  /** Asked before everything else: an answer of the test's own for this request, or undefined. */
  readonly disturb?: (asked: Asked) => VenueAnswer | undefined;
}

interface Route {
  readonly bucket: Bucket;
  /** Says in a header how much of its budget is used. */
  readonly tells: boolean;
  readonly weight: (query: URLSearchParams) => number;
  readonly answer: (ask: Ask) => VenueAnswer;
}

const PREFIXES: Readonly<Record<Host, string>> = { fapi: '/fapi/v1/', dapi: '/dapi/v1/', spot: '/api/v3/' };
const STATISTICS = '/futures/data/';

export class RestVenue {
  /** Every request, the disturbed ones too. */
  readonly log: Asked[] = [];
  /** Answers with 429 so far. */
  refused = 0;
  /** Answers with 418 so far. */
  banned = 0;
  readonly #options: RestVenueOptions;
  readonly #book: SymbolBook;
  readonly #budgets: Budgets;
  readonly #routes = new Map<string, Route>();
  #second = Number.NaN;
  #date = '';

  constructor(options: RestVenueOptions) {
    this.#options = options;
    this.#book = new SymbolBook(options.symbols);
    this.#budgets = new Budgets(options.now, options.budgetFactor ?? 1);
  }

  answer(host: Host, path: string, query: URLSearchParams): VenueAnswer {
    const at = this.#options.now();
    const asked = { host, path, query, at, number: this.log.length + 1 };
    this.log.push(asked);
    const answer = this.#options.disturb?.(asked) ?? this.usual(asked);
    if (answer.status === 429) this.refused += 1;
    if (answer.status === 418) this.banned += 1;
    return { ...answer, headers: { date: this.#dateAt(at), ...answer.headers } };
  }

  /** What the request is answered without the disturbance, and counted as: for a disturbance that changes only a part. */
  usual({ host, path, query, at }: Asked): VenueAnswer {
    if (this.#options.restricted?.includes(host) === true) return restricted();
    const family = host === 'spot' ? 'spot' : 'futures';
    if (this.#budgets.bannedUntil(family) !== undefined) return this.#bannedAnswer(family);
    const route = this.#routeOf(host, path);
    if (route === undefined) return html404();
    const taken = this.#budgets.take(route.bucket, route.weight(query));
    if (taken === 'banned') return this.#bannedAnswer(family);
    const answer = taken === 'refused' ? this.#refusal(route.bucket) : this.#page(route, host, query, at);
    return route.tells ? withHeaders(answer, this.#usage(route.bucket)) : answer;
  }

  /** Requests, or their weight, in the window that runs. */
  counted(bucket: Bucket): number {
    return this.#budgets.used(bucket);
  }

  /** The same in the fullest window so far. */
  mostCounted(bucket: Bucket): number {
    return this.#budgets.most(bucket);
  }

  limit(bucket: Bucket): number {
    return this.#budgets.limit(bucket);
  }

  /** From now on all budgets are the exchange's times this. */
  scaleBudgets(factor: number): void {
    this.#budgets.factor = factor;
  }

  /** From now on, every request to the family gets 418. */
  ban(ms: number, family: Family = 'futures'): void {
    this.#budgets.ban(family, ms);
  }

  #page(route: Route, host: Host, query: URLSearchParams, now: number): VenueAnswer {
    try {
      return route.answer({ host, query, now, book: this.#book });
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      throw error;
    }
  }

  #usage(bucket: Bucket): Record<string, string> {
    const used = `${this.#budgets.used(bucket)}`;
    return bucket === 'spot-weight'
      ? { 'x-mbx-used-weight': used, 'x-mbx-used-weight-1m': used }
      : { 'x-mbx-used-weight-1m': used };
  }

  #refusal(bucket: Bucket): VenueAnswer {
    const limit = this.#budgets.limit(bucket);
    const windowMs = this.#budgets.windowMs(bucket);
    if (bucket === 'spot-weight') {
      const leftMs = windowMs - (this.#options.now() % windowMs);
      return tooManyOnSpot(limit, Math.ceil(leftMs / 1000));
    }
    return tooMany(limit, windowMs === 60_000 ? 'minute' : `${windowMs / 60_000} minutes`);
  }

  #bannedAnswer(family: Family): VenueAnswer {
    const until = this.#budgets.bannedUntil(family) ?? 0;
    return family === 'spot'
      ? bannedOnSpot(until, Math.ceil((until - this.#options.now()) / 1000))
      : bannedAnswer(until);
  }

  #dateAt(at: number): string {
    const second = Math.floor(at / 1000);
    if (second !== this.#second) this.#date = new Date(second * 1000).toUTCString();
    this.#second = second;
    return this.#date;
  }

  #routeOf(host: Host, path: string): Route | undefined {
    const key = `${host}${path}`;
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    const made = path.startsWith(STATISTICS)
      ? statisticsRoute(host, path.slice(STATISTICS.length))
      : path.startsWith(PREFIXES[host])
        ? this.#routeNamed(host, path.slice(PREFIXES[host].length))
        : undefined;
    if (made !== undefined) this.#routes.set(key, made);
    return made;
  }

  #routeNamed(host: Host, name: string): Route | undefined {
    const isSpot = host === 'spot';
    const bucket: Bucket = isSpot ? 'spot-weight' : 'futures-weight';
    const weighted = (weight: number, answer: Route['answer']): Route => ({
      bucket,
      tells: true,
      weight: () => weight,
      answer,
    });
    const funding = (answer: Route['answer']): Route => ({
      bucket: 'funding',
      tells: false,
      weight: () => 1,
      answer,
    });
    const longest = this.#options.fundingPage ?? 1000;
    if (name === 'ping') return weighted(1, () => json('{}'));
    if (name === 'time') return weighted(1, ({ now }) => json(`{"serverTime":${now}}`));
    if (name === 'exchangeInfo') return weighted(isSpot ? 20 : 1, (ask) => this.#exchangeInfo(ask, bucket));
    if (name === 'aggTrades') return weighted(isSpot ? 4 : 20, aggTradesPage);
    if (name === 'klines') return { ...weighted(2, klinesPage), ...(isSpot ? {} : { weight: klinesWeight }) };
    if (isSpot) return undefined;
    if (name === 'fundingRate') return funding((ask) => fundingRatePage(ask, longest));
    if (name === 'fundingInfo') return host === 'fapi' ? funding(fundingInfo) : weighted(1, fundingInfo);
    return undefined;
  }

  #exchangeInfo(ask: Ask, bucket: Bucket): VenueAnswer {
    const raw = Math.floor(300_000 * this.#budgets.factor);
    return exchangeInfo(ask, this.#budgets.limit(bucket), raw);
  }
}

function statisticsRoute(host: Host, dataset: string): Route | undefined {
  if (statisticOf(dataset, host) === undefined) return undefined;
  return {
    bucket: 'statistics',
    tells: false,
    weight: () => 1,
    answer: (ask) => statisticsPage(dataset, ask),
  };
}

/** Inclusive at the top, as measured, not as documented; and no limit costs more than the limit that it stands for. */
export function klinesWeight(query: URLSearchParams): number {
  const text = query.get('limit');
  if (text === null) return 5;
  const limit = Number(text);
  if (limit <= 100) return 1;
  if (limit <= 500) return 2;
  return limit <= 1000 ? 5 : 10;
}
