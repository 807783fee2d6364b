import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { CryptodlError, ErrorCode } from '../../../src/model/errors.js';
import { FURTHER_ROUNDS } from '../../../src/run/queue/rounds.js';
import type { PartitionPlan, Task } from '../../../src/model/task.js';
import { refusal } from '../../helpers/requests.js';
import { fails, plan, queueOf, task } from '../../helpers/run-queue.js';

describe('RunQueue', () => {
  it('writes a partition when all its objects are there, and names the absent ones', async () => {
    const { run, writes, failed, settled } = queueOf({
      download: (_, { object: { key } }) => {
        if (key === 'absent') return Promise.resolve(undefined);
        return key === 'bad' ? Promise.reject(fails('zip-broken')) : Promise.resolve(key);
      },
    });
    await run([plan('2024-01', [task('a'), task('absent'), task('bad'), task('held', 'skip'), task('b')])]);
    expect(writes).toEqual([
      { label: '2024-01', received: ['a', 'b'], absent: ['absent'], rebuild: undefined },
    ]);
    expect(failed).toEqual([['bad', 'zip-broken']]);
    expect(settled).toEqual([
      ['held', 'skip'],
      ['absent', 'absent'],
    ]);
  });

  it('asks the writer for the held objects of those that no source has, and writes nothing without tasks', async () => {
    const withdrawn: string[] = [];
    const settled: [string, string][] = [];
    const { run, failed } = queueOf({
      download: () => Promise.resolve(undefined),
      onSettled: (_, { object, action }) => {
        if (action.kind === 'skip' && action.isWithdrawn === true) withdrawn.push(object.key);
        settled.push([object.key, action.kind]);
        return Promise.resolve();
      },
      write: (_, received, missing) => {
        expect([received, [...missing]]).toEqual([
          [],
          ['lost', 'kept', 'gone'].map((key) => [key, 'absent']),
        ]);
        const why = new Map<string, CryptodlError | 'held'>([['kept', 'held']]);
        return Promise.resolve(why.set('lost', fails('object-withdrawn')));
      },
    });
    const asked = ['lost', 'kept', 'gone'].map((key) => task(key));
    await run([plan('2024-01', asked), plan('2024-02', [task('c', 'skip')])]);
    expect(Object.fromEntries(settled)).toEqual({ c: 'skip', gone: 'absent', kept: 'skip' });
    expect(settled).toHaveLength(3);
    expect(withdrawn).toEqual(['kept']);
    expect(failed).toEqual([['lost', 'object-withdrawn']]);
  });

  it('skips held objects that are no worse than the available ones', async () => {
    const { run, writes, failed, settled } = queueOf({
      download: (_, { object: { key } }) =>
        Promise.resolve(key === 'held' ? { instead: { kind: 'skip' } } : key),
    });
    await run([plan('2024-01', [task('held'), task('a')]), plan('2024-02', [task('held')])]);
    expect(writes.map(({ received }) => received)).toEqual([['a']]);
    expect(settled).toEqual([
      ['held', 'skip'],
      ['held', 'skip'],
    ]);
    expect(failed).toEqual([]);
  });

  it('receives all tasks that go together, at the same time and in one place', async () => {
    let alive = 0;
    const seen: [key: string, alive: number][] = [];
    const made = queueOf(
      {
        together: ({ object: { key } }) => (key.startsWith('alone') ? undefined : key[0]),
        download: async (_, { object: { key } }) => {
          alive += 1;
          await turn();
          seen.push([key, alive]);
          expect(made.places.state.inFlight).toBe(1);
          await turn();
          alive -= 1;
          return key === 'b2' ? undefined : key;
        },
      },
      1,
    );
    const keys = ['a1', 'b1', 'alone 1', 'a2', 'b2', 'a3', 'alone 2'];
    await made.run([
      plan(
        '2024-01',
        keys.map((key) => task(key)),
      ),
    ]);
    const together = { a1: 3, a2: 3, a3: 3, b1: 2, b2: 2, 'alone 1': 1, 'alone 2': 1 };
    expect(Object.fromEntries(seen)).toEqual(together);
    expect(made.writes.map(({ received, absent }) => [[...received].sort(), absent])).toEqual([
      [keys.filter((key) => key !== 'b2').sort(), ['b2']],
    ]);
    expect(made.places.state.inFlight).toBe(0);
  });

  it('runs the work that the writer prepared, which is only that with objects to fetch', async () => {
    const prepared: string[] = [];
    const { run, writes } = queueOf({
      prepare: (wanted) => {
        prepared.push(wanted.label);
        return Promise.resolve({ ...wanted, tasks: [...wanted.tasks, task('old')], rebuild: 'damaged' });
      },
    });
    await run([
      plan('2024-01', [task('held', 'skip')]),
      plan('2024-02', [task('new')]),
      plan('2024-03', [task('held', 'skip'), task('new')]),
    ]);
    expect(prepared).toEqual(['2024-02', '2024-03']);
    expect(writes).toEqual(
      ['2024-02', '2024-03'].map((label) => ({
        label,
        received: ['new', 'old'],
        absent: [],
        rebuild: 'damaged',
      })),
    );
  });

  it('tries a failure that may pass again in further rounds at the end, and only then calls it failed', async () => {
    const asked: string[] = [];
    const { run, failed, rounds, spools } = queueOf({
      download: (_, { object: { key } }) => {
        asked.push(key);
        return key === 'bad' ? Promise.reject(fails('http-server-error')) : Promise.resolve(key);
      },
    });
    await run([plan('2024-01', [task('bad'), task('a')]), plan('2024-02', [task('b')])]);
    expect(asked).toEqual(['bad', 'a', 'b', ...Array<string>(FURTHER_ROUNDS).fill('bad')]);
    expect(rounds).toEqual([1, 2, 3]);
    expect(failed).toEqual([['bad', 'http-server-error']]);
    expect(spools.every(({ isClosed }) => isClosed)).toBe(true);
  });

  it('fails a task with the error of its last round', async () => {
    let asked = 0;
    const { run, failed } = queueOf({
      download: () => Promise.reject(fails((asked += 1) === 1 ? 'connection-lost' : 'http-server-error')),
    });
    await run([plan('2024-01', [task('bad')])]);
    expect([asked, failed]).toEqual([1 + FURTHER_ROUNDS, [['bad', 'http-server-error']]]);
  });

  it('settles a task that the writer has turned into a skip', async () => {
    const { run, settled, writes } = queueOf({
      prepare: (wanted) => Promise.resolve({ ...wanted, tasks: [task('held', 'skip'), task('new')] }),
    });
    await run([plan('2024-01', [task('held'), task('new')])]);
    expect([settled, writes.map(({ received }) => received)]).toEqual([[['held', 'skip']], [['new']]]);
  });

  it('adds late objects in a further round, and does not rebuild the file from them alone', async () => {
    let calls = 0;
    const isWritten: unknown[] = [];
    const { run, writes, failed } = queueOf({
      prepare: (wanted) => {
        isWritten.push(wanted.isWritten);
        return Promise.resolve(wanted);
      },
      download: (_, { object: { key } }) => {
        calls += 1;
        return key === 'late' && calls < 3 ? Promise.reject(fails('connection-lost')) : Promise.resolve(key);
      },
    });
    await run([{ ...plan('2024-01', [task('late'), task('a')]), rebuild: 'forced' }]);
    expect(writes).toEqual([
      { label: '2024-01', received: ['a'], absent: [], rebuild: 'forced' },
      { label: '2024-01', received: ['late'], absent: [], rebuild: undefined },
    ]);
    expect([failed, isWritten]).toEqual([[], [undefined, true]]);
  });

  it.each<ErrorCode>(['checksum-mismatch', 'http-refused', 'wait-too-long'])(
    'has no further round for %s',
    async (code) => {
      const { run, failed, rounds } = queueOf({ download: () => Promise.reject(fails(code)) });
      await run([plan('2024-01', [task('bad')])]);
      expect(rounds).toEqual([]);
      expect(failed).toEqual([['bad', code]]);
    },
  );

  it.each([
    ['no other object may still come', 'zip-broken', [], 1],
    ['another object may still come', 'http-server-error', [1], 2],
  ] as const)(
    'repeats a write that was refused as incomplete only if %s',
    async (_, code, further, times) => {
      let writes = 0;
      const { run, failed, rounds } = queueOf({
        download: (_plan, { object: { key } }) =>
          key === 'late' && writes === 0 ? Promise.reject(fails(code)) : Promise.resolve(key),
        write: () => {
          writes += 1;
          const broken: [string, CryptodlError][] = [
            ['broken', fails('row-malformed')],
            ['lonely', fails('partition-incomplete')],
          ];
          return Promise.resolve(new Map(writes === 1 ? broken : []));
        },
      });
      await run([plan('2024-01', [task('broken'), task('lonely'), task('late')])]);
      const final = times === 1 ? { lonely: 'partition-incomplete', late: code } : {};
      expect(Object.fromEntries(failed)).toEqual({ broken: 'row-malformed', ...final });
      expect(failed).toHaveLength(times === 1 ? 3 : 1);
      expect(rounds).toEqual(further);
      expect(writes).toBe(times);
    },
  );

  it('ends the run with a fatal error and asks for nothing more', async () => {
    const asked: string[] = [];
    const { run, stop, failed } = queueOf({
      download: async (_, { object: { key } }) => {
        asked.push(key);
        await turn();
        if (key === '3') throw fails('disk-full');
        return key;
      },
    });
    const plans = Array.from({ length: 1000 }, (_, label) => plan(String(label), [task(String(label))]));
    expect((await refusal(run(plans))).code).toBe('disk-full');
    expect(stop.signal.aborted).toBe(true);
    expect(asked.length).toBeLessThan(20);
    expect(failed).toEqual([]);
  });

  it.each([
    ['a write', { write: () => Promise.reject(new TypeError('oops')) }],
    ['a preparation', { prepare: () => Promise.reject(new TypeError('oops')) }],
    ['a download', { download: () => Promise.reject(new TypeError('oops')) }],
    ['a plan', undefined],
  ])('ends the run with a bug when %s throws an unknown error', async (_, changes) => {
    const { queue } = queueOf(changes);
    async function* plans(): AsyncGenerator<PartitionPlan> {
      yield plan('2024-01', [task('a')]);
      await turn();
      if (changes === undefined) throw new TypeError('oops');
    }
    const error = await refusal(queue.run(plans()));
    expect(error.code).toBe('bug');
    expect(error.message).toContain('oops');
  });

  it('stops at an abort: nothing more is planned, prepared or asked for, or called failed', async () => {
    const late: string[] = [];
    let planned = 0;
    const note = (what: string): void => {
      if (made.stop.signal.aborted) late.push(what);
    };
    const made = queueOf({
      prepare: (wanted) => {
        note(`prepared ${wanted.label}`);
        return Promise.resolve(wanted);
      },
      download: async (_, { object: { key } }) => {
        note(`asked ${key}`);
        await turn();
        if (key === '5') made.stop.abort(fails('interrupted'));
        return key;
      },
    });
    async function* plans(): AsyncGenerator<PartitionPlan> {
      for (let label = 0; label < 1000; label += 1) {
        planned += 1;
        yield await Promise.resolve(plan(String(label), [task(String(label))]));
      }
    }
    expect((await refusal(made.queue.run(plans()))).code).toBe('interrupted');
    expect(late).toEqual([]);
    expect(planned).toBeLessThan(30);
    expect(made.failed).toEqual([]);
    expect(made.spools.every(({ isClosed }) => isClosed)).toBe(true);
  });

  it.each<[ErrorCode, Record<string, string[]>]>([
    ['http-server-error', { written: ['late'], absent: ['absent'], skip: ['held'], failed: [] }],
    ['zip-broken', { written: [], absent: ['absent'], skip: ['held'], failed: ['late', 'broken'] }],
  ])(
    'settles no object of a file to rebuild before the round that rebuilds it, after %s',
    async (code, { written, absent, skip, failed: lost }) => {
      let isLate = true;
      const { run, writes, settled, failed, rounds } = queueOf({
        download: (_, { object: { key } }) => {
          if (key === 'absent') return Promise.resolve(undefined);
          if (key === 'held') return Promise.resolve({ instead: { kind: 'skip' } });
          if (key === 'broken')
            return isLate ? Promise.reject(fails('zip-broken')) : Promise.resolve(undefined);
          if (!isLate) return Promise.resolve(key);
          return Promise.reject(fails(code));
        },
        prepare: (wanted) => {
          isLate = rounds.length === 0;
          return Promise.resolve(wanted);
        },
      });
      const keys = ['absent', 'held', 'late', 'broken'];
      await run([
        {
          ...plan(
            '2024-01',
            keys.map((key) => task(key)),
          ),
          rebuild: 'forced',
        },
      ]);
      const isAgain = code === 'http-server-error';
      expect(rounds).toEqual(isAgain ? [1] : []);
      expect(writes.at(-1)?.received).toEqual(written);
      const of = (kind: string): string[] =>
        settled.flatMap(([key, each]) => (each === kind ? [key] : [])).sort();
      expect([of('absent'), of('skip')]).toEqual([isAgain ? [...(absent ?? []), 'broken'] : absent, skip]);
      expect(failed.map(([key]) => key).sort()).toEqual([...(lost ?? [])].sort());
    },
  );

  it.each([{ rebuild: 'forced' }, { isUnlisted: true }] as const)(
    'does not replace a file by the objects that came before an abort: %j',
    async (kind) => {
      const days = Array.from({ length: 31 }, (_, day) => task(`day ${day}`));
      const made = queueOf({
        download: async (_, { object: { key } }) => {
          if (key === 'day 9') made.stop.abort(fails('interrupted'));
          await turn();
          return key;
        },
      });
      await refusal(made.run([{ ...plan('2024-01', days), ...kind }]));
      expect(made.writes).toEqual([]);
    },
  );

  it('does not replace a file by the objects that came before the end of the time', async () => {
    const made = queueOf({
      download: (_, { object: { key } }) =>
        key === 'b' ? Promise.reject(fails('time-over')) : Promise.resolve(key),
    });
    await made.run([{ ...plan('2024-01', [task('a'), task('b')]), isUnlisted: true }]);
    expect(made.writes).toEqual([]);
  });

  it.each<[string, readonly string[], Partial<PartitionPlan>]>([
    ['rebuilds a file if all objects came', ['a', 'b'], { rebuild: 'damaged' }],
    ['writes objects that arrived if they are added to a file', ['a', 'b', 'c'], {}],
  ])('%s before an abort', async (_, keys, kind) => {
    const made = queueOf({
      download: (_plan, { object: { key } }) => {
        if (key === 'b') made.stop.abort(fails('interrupted'));
        return Promise.resolve(key);
      },
    });
    const tasks = keys.map((key) => task(key));
    expect((await refusal(made.run([{ ...plan('2024-01', tasks), ...kind }]))).code).toBe('interrupted');
    expect(made.writes.map(({ received }) => received)).toEqual([['a', 'b']]);
  });

  it('begins no task of a plan that comes too late, and skips its held objects', async () => {
    const asked: string[] = [];
    const { run, failed, settled } = queueOf(
      {
        prepare: () => Promise.reject(new TypeError('prepared')),
        download: (_, { object: { key } }) => {
          asked.push(key);
          return Promise.resolve(key);
        },
      },
      4,
      2,
      () => fails('time-over'),
    );
    await run([plan('2024-01', [task('a'), task('held', 'skip'), task('b')])]);
    expect(asked).toEqual([]);
    expect(failed).toEqual(['a', 'b'].map((key) => [key, 'time-over']));
    expect(settled).toEqual([['held', 'skip']]);
  });

  const keys = ['a', 'b', 'c', 'd'];
  it.each([
    ['before a further round', 3, [], keys.map((key) => plan(key, [task(key)]))],
    ['between the partitions of a further round', 4, [1], keys.map((key) => plan(key, [task(key)]))],
    [
      'within a partition of a further round',
      4,
      [1],
      [
        plan(
          '2024-01',
          keys.map((key) => task(key)),
        ),
      ],
    ],
  ])(
    'tells of each task once, with why it failed, when the time is over %s',
    async (_, most, begun, plans) => {
      const asked: string[] = [];
      const { run, failed, spools, rounds } = queueOf(
        {
          download: (_plan, { object: { key } }) => {
            asked.push(key);
            return Promise.reject(fails('http-server-error'));
          },
        },
        1,
        1,
        () => (asked.length > most ? fails('time-over') : undefined),
      );
      await run(plans);
      expect([asked, rounds]).toEqual([[...keys, 'a'].slice(0, most + 1), begun]);
      expect(failed).toHaveLength(4);
      expect(Object.fromEntries(failed)).toEqual(
        Object.fromEntries(keys.map((key) => [key, 'http-server-error'])),
      );
      expect(spools.every(({ isClosed }) => isClosed)).toBe(true);
    },
  );

  it('fails the objects that it has not asked for when the time is over within a partition', async () => {
    const asked: string[] = [];
    const { run, failed, writes } = queueOf(
      { download: (_, { object: { key } }) => Promise.resolve(asked.push(key) > 0 ? key : undefined) },
      1,
      1,
      () => (asked.length > 0 ? fails('time-over') : undefined),
    );
    await run([plan('2024-01', [task('a'), task('b')])]);
    expect([asked, failed, writes.map(({ received }) => received)]).toEqual([
      ['a'],
      [['b', 'time-over']],
      [['a']],
    ]);
  });

  it('settles the absent objects of a file to rebuild of which another object never comes', async () => {
    const { run, failed, settled } = queueOf({
      prepare: (wanted) => Promise.resolve({ ...wanted, rebuild: 'forced' }),
      download: (_, { object: { key } }) =>
        key === 'absent' ? Promise.resolve(undefined) : Promise.reject(fails('http-server-error')),
    });
    await run([plan('2024-01', [task('absent'), task('never')])]);
    expect([failed, settled]).toEqual([[['never', 'http-server-error']], [['absent', 'absent']]]);
  });

  it('removes files kept for a further round as soon as that is over', async () => {
    const closed: number[] = [];
    const made = queueOf({
      download: () => {
        closed.push(made.spools.filter(({ isClosed }) => isClosed).length);
        return Promise.reject(fails('http-server-error'));
      },
    });
    await made.run([plan('2024-01', [task('bad')])]);
    expect(closed).toEqual([0, 0, 1, 2]);
  });

  it('fails tasks that wait for a round that an abort prevents, with the reason of the wait', async () => {
    const made = queueOf({
      download: (_, { object: { key } }) => {
        if (key === 'last') made.stop.abort(fails('interrupted'));
        return key === 'bad' ? Promise.reject(fails('http-server-error')) : Promise.resolve(key);
      },
    });
    const last = plan('2024-02', [task('last')]);
    expect((await refusal(made.run([plan('2024-01', [task('bad'), task('a')]), last]))).code).toBe(
      'interrupted',
    );
    expect(made.failed).toEqual([['bad', 'http-server-error']]);
    expect(made.spools.every(({ isClosed }) => isClosed)).toBe(true);
  });
});

describe('a queue whose tasks have substitutes', () => {
  const withSubstitute = (key: string): Task => ({
    ...task(key),
    substitute: { ...task(`rest/${key}`).object },
  });
  const substituted = (of: PartitionPlan): PartitionPlan => ({
    ...of,
    tasks: of.tasks.map((each) =>
      typeof each.substitute === 'object'
        ? { ...each, object: each.substitute, standsFor: each.object }
        : each,
    ),
  });
  const down = (code: ErrorCode = 'http-server-error', rest?: ErrorCode) => {
    const asked: string[] = [];
    const download = (_: PartitionPlan, { object: { key } }: Task): Promise<string> => {
      asked.push(key);
      const failed = key.startsWith('rest/') ? rest : code;
      return failed === undefined ? Promise.resolve(key) : Promise.reject(fails(failed));
    };
    return { asked, download };
  };

  it.each([
    'http-server-error',
    'breaker-open',
    'connect-failed',
    'banned',
    'rate-limited',
    'wait-too-long',
  ] as const)('takes them after a round in which their host said %s', async (code) => {
    const { asked, download } = down(code);
    const { run, writes, failed, rounds } = queueOf({
      download,
      substituted: (of) => Promise.resolve(substituted(of)),
    });
    await run([plan('2024-01', [withSubstitute('a'), withSubstitute('b')])]);
    expect(asked).toEqual(['a', 'b', 'rest/a', 'rest/b']);
    expect(writes.map(({ received }) => received)).toEqual([['rest/a', 'rest/b']]);
    expect([failed, rounds]).toEqual([[], []]);
  });

  it.each(['zip-broken', 'http-forbidden', 'checksum-mismatch', 'time-over'] as const)(
    'does not take them after %s',
    async (code) => {
      const { asked, download } = down(code);
      const { run, failed } = queueOf({ download, substituted: (of) => Promise.resolve(substituted(of)) });
      await run([plan('2024-01', [withSubstitute('a')])]);
      expect([asked, failed]).toEqual([['a'], [['a', code]]]);
    },
  );

  it('asks the host again in the next round when it answers, and takes them after the last round', async () => {
    const { asked, download } = down();
    const told: boolean[] = [];
    const { run, writes, rounds } = queueOf({
      download,
      substituted: (of, hasRounds) => {
        told.push(hasRounds);
        return Promise.resolve(hasRounds ? undefined : substituted(of));
      },
    });
    await run([plan('2024-01', [withSubstitute('a')])]);
    expect(asked).toEqual(['a', 'a', 'a', 'a', 'rest/a']);
    expect([rounds, told]).toEqual([
      [1, 2, 3],
      [true, true, true, false],
    ]);
    expect(writes.map(({ received }) => received)).toEqual([['rest/a']]);
  });

  it.each(['symbol-unknown', 'http-server-error', undefined] as const)(
    'asks the host again for objects that the substitutes lack (%s), which fail with the error and name of the host',
    async (why) => {
      const { asked, download } = down('http-server-error', why ?? 'bug');
      const { run, failed } = queueOf({
        download: (of, each) =>
          each.standsFor !== undefined && why === undefined ? Promise.resolve(undefined) : download(of, each),
        substituted: (of) => Promise.resolve(substituted(of)),
      });
      await run([plan('2024-01', [withSubstitute('a')])]);
      expect(asked.filter((key) => key === 'a')).toHaveLength(1 + FURTHER_ROUNDS);
      expect(failed).toEqual([['a', 'http-server-error']]);
    },
  );

  it('fails substitutes that cannot be written with the error of the host', async () => {
    const { download } = down();
    const { run, failed } = queueOf({
      download,
      substituted: (of) => Promise.resolve(substituted(of)),
      write: () => Promise.resolve(new Map([['rest/a', fails('row-malformed')]])),
    });
    await run([plan('2024-01', [withSubstitute('a')])]);
    expect(failed).toEqual([['a', 'http-server-error']]);
  });

  it('does not rebuild a file from them', async () => {
    const { asked, download } = down();
    const { run, failed } = queueOf({
      prepare: (of) => Promise.resolve({ ...of, rebuild: 'damaged' }),
      download,
      substituted: (of) => Promise.resolve(substituted(of)),
    });
    await run([plan('2024-01', [withSubstitute('a')])]);
    expect(asked).not.toContain('rest/a');
    expect(failed).toEqual([['a', 'http-server-error']]);
  });

  it('begins none of them when nothing new may begin, and tells why their host failed', async () => {
    const { asked, download } = down();
    let isOver = false;
    const { run, failed } = queueOf(
      {
        download: (of, each) => {
          isOver = true;
          return download(of, each);
        },
        substituted: (of) => Promise.resolve(substituted(of)),
      },
      4,
      2,
      () => (isOver ? fails('time-over') : undefined),
    );
    await run([plan('2024-01', [withSubstitute('a')])]);
    expect([asked, failed]).toEqual([['a'], [['a', 'http-server-error']]]);
  });
});
