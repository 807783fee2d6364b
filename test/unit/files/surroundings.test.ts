/** Proxies: where they are named, and that nobody gets to see a password. */
import { VERBS } from '../../../src/main.js';
import { describe, expect, it } from 'vitest';
import { optionLines } from '../../../src/plan/options/print-options.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import type { RawLayer } from '../../../src/plan/options/resolve.js';
import { surroundingsOf } from '../../../src/files/environment.js';
import { NO_PROXIES, proxiesOf } from '../../../src/files/proxies.js';
import { commandLine, linesText, withoutPassword } from '../../../src/text/printable.js';

const LOWER = 'http://lower.test:3128';
const UPPER = 'http://upper.test:3128';
const SECRET = 'http://user:s3cr3t@proxy.test:3128';

const proxiesIn = (environment: Record<string, string>) => surroundingsOf(environment).proxies;

describe('proxies of the environment', () => {
  it.each<[Record<string, string>, Partial<typeof NO_PROXIES>]>([
    [{}, {}],
    [{ HTTP_PROXY: UPPER }, { http: UPPER }],
    [{ http_proxy: LOWER }, { http: LOWER }],
    [{ HTTPS_PROXY: UPPER }, { https: UPPER }],
    [{ https_proxy: LOWER }, { https: LOWER }],
    [{ HTTP_PROXY: UPPER, http_proxy: LOWER }, { http: LOWER }],
    [{ HTTPS_PROXY: UPPER, https_proxy: LOWER }, { https: LOWER }],
    [{ HTTPS_PROXY: UPPER, https_proxy: '' }, { https: UPPER }],
    [{ HTTP_PROXY: '', https_proxy: '' }, {}],
    [{ HTTPS_PROXY: SECRET }, { https: SECRET }],
    [{ HTTPS_PROXY: 'https://proxy.test' }, { https: 'https://proxy.test' }],
    [{ NO_PROXY: 'a.test,.b.test' }, { except: 'a.test,.b.test' }],
    [{ no_proxy: 'a.test', NO_PROXY: 'b.test' }, { except: 'a.test' }],
    [{ no_proxy: '', NO_PROXY: 'b.test' }, { except: 'b.test' }],
    [{ ALL_PROXY: UPPER }, { http: UPPER, https: UPPER }],
    [
      { all_proxy: LOWER, ALL_PROXY: UPPER, HTTPS_PROXY: SECRET },
      { http: LOWER, https: SECRET },
    ],
    [{ HTTP_PROXY: 'proxy.test:3128' }, { http: 'http://proxy.test:3128' }],
    [{ HTTP_PROXY: 'socks5h://user:s3cr3t@h' }, { http: 'socks5h://user:s3cr3t@h' }],
  ])('%o', (environment, expected) => {
    expect(proxiesIn(environment)).toEqual({ ...NO_PROXIES, ...expected });
  });

  it.each(['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'])(
    '%s that is no address is refused by its name and without its value',
    (name) => {
      for (const value of ['user:s3cr3t@proxy.test', 'socks4://user:s3cr3t@h:1', '%']) {
        let error: unknown;
        try {
          surroundingsOf({ [name]: value });
        } catch (refused) {
          error = refused;
        }
        expect(error).toBeInstanceOf(CryptodlError);
        const { code, message, hint } = error as CryptodlError;
        expect([code, message]).toEqual(['usage', `${name} is not the address of a proxy`]);
        expect(hint).toBe(`${name}=http://127.0.0.1:3128`);
      }
    },
  );
});

describe('folders of the environment', () => {
  it.each([
    [{ HOME: '/home/a', XDG_STATE_HOME: '/srv/state' }, '/home/a', '/srv/state'],
    [{ HOME: '', XDG_STATE_HOME: '' }, undefined, undefined],
    [{ HOME: 'home', XDG_STATE_HOME: './state' }, undefined, undefined],
    [{}, undefined, undefined],
  ])('that are empty or relative count as not set: %o', (environment, home, stateHome) => {
    expect(surroundingsOf(environment)).toMatchObject({ home, stateHome });
  });
});

describe('--proxy', () => {
  const around = surroundingsOf({ HTTP_PROXY: UPPER, https_proxy: LOWER, NO_PROXY: 'a.test' });

  it('stands for all addresses but those of NO_PROXY', () => {
    expect(proxiesOf([SECRET], around)).toEqual({
      http: SECRET,
      https: SECRET,
      except: 'a.test',
      several: [],
    });
  });

  it('no value means none, with any environment', () => {
    expect(proxiesOf(['none'], around)).toEqual(NO_PROXIES);
  });

  it('that is not given leaves it to the environment', () => {
    expect(proxiesOf(undefined, around)).toEqual({
      http: UPPER,
      https: LOWER,
      except: 'a.test',
      several: [],
    });
  });

  it.each(['socks4://user:s3cr3t@h:1', 'user:s3cr3t@h'])('refuses %j without repeating it', (value) => {
    const layer: RawLayer = { origin: 'flag', values: { proxy: [value] }, nameOf: (name) => `--${name}` };
    expect(() => resolveOptions(VERBS.vision, [layer])).toThrow(/^--proxy is not the address of a proxy$/);
  });

  it('several share the requests, each of them once', () => {
    expect(proxiesOf([SECRET, UPPER, SECRET], around)).toMatchObject({
      http: SECRET,
      several: [SECRET, UPPER],
    });
  });
});

describe('printed values', () => {
  it.each([
    ['http://user:s3cr3t@proxy.test:3128', 'http://user:***@proxy.test:3128'],
    ['https://:s3cr3t@proxy.test', 'https://:***@proxy.test'],
    ['http://user:a:b@c@proxy.test/', 'http://user:***@proxy.test/'],
    ['--proxy=http://u:p@h:1 and http://v:q@i', '--proxy=http://u:***@h:1 and http://v:***@i'],
    ['http://user@proxy.test:3128', 'http://user@proxy.test:3128'],
    ['http://user:s3/cr3t@proxy.test', 'http://user:***@proxy.test'],
    ['http://proxy.test/a@b', 'http://proxy.test/a@b'],
    ['http://127.0.0.1:3128', 'http://127.0.0.1:3128'],
    ['give http://user:password@host:port', 'give http://user:password@host:port'],
    ['~/data/2024-01-01T00:00:00Z', '~/data/2024-01-01T00:00:00Z'],
  ])('of %s is %s', (text, shown) => {
    expect(withoutPassword(text)).toBe(shown);
  });

  it.each(['flag', 'environment', 'config file'] as const)(
    'by --print-options has no password, where a %s gave it',
    (origin) => {
      const layer: RawLayer = { origin, values: { proxy: [SECRET] }, nameOf: (name) => name };
      const shown = linesText(optionLines(VERBS.vision, resolveOptions(VERBS.vision, [layer])));
      expect(shown).toContain(`http://user:***@proxy.test:3128  (${origin})`);
      expect(shown).not.toContain('s3cr3t');
    },
  );

  it('in a command has no password', () => {
    for (const typed of [['--proxy', SECRET], [`--proxy=${SECRET}`]]) {
      const line = commandLine(['vision', ...typed, '--days', '7']);
      expect(line).toContain('user:***@proxy.test');
      expect(line).not.toContain('s3cr3t');
    }
  });
});
