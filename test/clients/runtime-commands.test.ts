/** Tests how a runtime runs, refuses and cancels commands. */
import { describe, expect, test } from 'vitest';
import { ActionCancelled, ActionError, newContextId, type Call } from '../../src/clients/runtime/index.ts';
import { settle } from '../kit/clock.ts';
import type { FakeLink } from '../kit/fake-relay.ts';
import { gate, json, startRuntimeBench } from './kit/runtime-bench.ts';

async function refusal(link: FakeLink, commandId: string): Promise<string> {
  const { command_id, code } = await link.next('error');
  expect(command_id).toBe(commandId);
  expect(link.frames.filter((frame) => frame.type === 'ack' && frame.command_id === commandId)).toEqual([]);
  return code;
}

describe('a command that is run', () => {
  test('is acknowledged, run with its params, and answered with its result', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('add', {}, ({ a, b }) => ({ sum: Number(a) + Number(b) }));
    const link = await bench.up();
    link.command('c1', 'add', { a: 2, b: 3 });
    const result = await link.next('result');
    expect(json(result.payload)).toEqual({ sum: 5 });
    expect(link.frames.map(({ type }) => type)).toEqual(['ack', 'result']);
    expect(bench.relay.faults).toEqual([]);
  });

  test('gets {} for left-out params, and answers null when its handler returns nothing', async () => {
    await using bench = await startRuntimeBench();
    let seen: unknown;
    bench.runtime.handle('noop', {}, (params) => void (seen = params));
    const link = await bench.up();
    link.command('c1', 'noop');
    expect((await link.next('result')).payload).toBeNull();
    expect(seen).toEqual({});
  });

  test('knows its ids, its trace and its remaining time by the local clock', async () => {
    await using bench = await startRuntimeBench();
    const call = gate<Call>();
    bench.runtime.handle('look', {}, (_, given) => call.open(given));
    const link = await bench.up();
    const trace = { trace_id: 't', parent_span_id: 'p' };
    link.send({ type: 'command', command_id: 'c1', action: 'look', remaining_ms: 5_000, ...trace });
    const given = await call.opened;
    expect(given).toMatchObject({ commandId: 'c1', action: 'look', traceId: 't', parentSpanId: 'p', site: null });
    expect(given.deadline).toBe(bench.clock.now() + 5_000);
    await bench.clock.advance(2_000);
    expect(given.remainingMs()).toBe(3_000);
  });

  test('gets its site beside its params, never among them, and before validation', async () => {
    await using bench = await startRuntimeBench();
    const seen = gate<unknown>();
    const schema = { type: 'object', additionalProperties: false, properties: { x: {} } };
    bench.runtime.handle('site', { schema }, (params, { site }) => seen.open({ params, site }));
    const link = await bench.up();
    link.command('c1', 'site', { x: 1, __cooperative_site_session_id: 's1', __cooperative_site_id: 'board' });
    expect(await seen.opened).toEqual({ params: { x: 1 }, site: { sessionId: 's1', siteId: 'board' } });
  });

  test('may have a param called __proto__, which changes nothing else', async () => {
    await using bench = await startRuntimeBench();
    const seen = gate<object>();
    bench.runtime.handle('proto', {}, (params) => seen.open(params));
    const link = await bench.up();
    link.sendText(
      '{"type":"command","command_id":"c1","action":"proto","remaining_ms":1000}\n{"__proto__":{"evil":1}}',
    );
    const params = await seen.opened;
    expect(Object.hasOwn(params, '__proto__')).toBe(true);
    expect('evil' in params).toBe(false);
  });

  test('reports progress, until it ends', async () => {
    await using bench = await startRuntimeBench();
    const call = gate<Call>();
    const go = gate();
    bench.runtime.handle('slow', {}, async (_, given) => {
      call.open(given);
      await go.opened;
    });
    const link = await bench.up();
    link.command('c1', 'slow');
    const { progress } = await call.opened;
    expect(progress({ done: 1 })).toBe(true);
    expect(json((await link.next('progress')).payload)).toEqual({ done: 1 });
    expect(progress(1n)).toBe(false);
    go.open();
    await link.next('result');
    expect(progress({ done: 2 })).toBe(false);
    expect(await link.untaken('progress')).toBe(0);
  });
});

test('a handler that reports progress in a tight loop does not flood the link', async () => {
  await using bench = await startRuntimeBench();
  const call = gate<Call>();
  bench.runtime.handle('loop', {}, (_, given) => {
    call.open(given);
    return new Promise(() => {});
  });
  const link = await bench.up();
  link.command('c1', 'loop');
  const { progress } = await call.opened;
  const burst = (): number => Array.from({ length: 10_000 }, () => progress(1)).filter(Boolean).length;
  expect(burst()).toBe(50);
  await bench.clock.advance(500);
  expect(burst()).toBe(25);
  expect(await link.untaken('progress')).toBe(75);
});

describe('a refusal by the client', () => {
  test('answers unknown_action for an action that was never advertised or was removed', async () => {
    await using bench = await startRuntimeBench();
    const remove = bench.runtime.handle('gone', {}, () => 1);
    const link = await bench.up();
    remove();
    link.command('c1', 'gone');
    expect(await refusal(link, 'c1')).toBe('unknown_action');
  });

  test('answers arguments_invalid with a bounded message, for params that break the schema or are not an object', async () => {
    await using bench = await startRuntimeBench();
    let runs = 0;
    const schema = {
      type: 'object',
      required: ['to'],
      properties: {
        to: { type: 'string', format: 'email' },
        tail: { prefixItems: [{ type: 'integer' }], items: false },
      },
    };
    bench.runtime.handle('mail', { schema }, () => ++runs);
    const link = await bench.up();
    for (const [id, params] of Object.entries({
      a: {},
      b: { to: 'no mail' },
      c: [1],
      d: { to: 'a@b.cd', tail: [1, 2] },
    })) {
      link.command(id, 'mail', params);
      expect(await refusal(link, id)).toBe('arguments_invalid');
    }
    link.command('long', 'mail', { to: 5, ['x'.repeat(5_000)]: 1 });
    expect((await link.next('error')).message?.length).toBeLessThanOrEqual(256);
    expect(runs).toBe(0);
    link.command('ok', 'mail', { to: 'a@b.cd', tail: [1] });
    await link.next('result');
    expect(runs).toBe(1);
  });

  test('answers client_denied when the authorizer refuses, throws, or answers something else', async () => {
    const answers = [false, { allow: false, message: 'not at night' }, 'yes', 1];
    await using bench = await startRuntimeBench({
      authorize: ({ params }) => {
        if (params['n'] === 'throw') throw new Error('broken');
        // An untyped program may return anything.
        return JSON.parse(JSON.stringify(answers[Number(params['n'])]));
      },
    });
    bench.runtime.handle('do', {}, () => 1);
    const link = await bench.up();
    for (const n of [0, 1, 2, 3, 'throw']) {
      link.command(`c${n}`, 'do', { n });
      const { code, message } = await link.next('error');
      expect(code).toBe('client_denied');
      if (n === 1) expect(message).toBe('not at night');
      expect(message).not.toContain('broken');
    }
    expect(bench.errors).toHaveLength(1);
    expect(link.frames.some(({ type }) => type === 'ack')).toBe(false);
  });

  test('answers approval_denied without an approver, after a refusal, and without an answer by the deadline', async () => {
    await using none = await startRuntimeBench();
    none.runtime.handle('pay', { approval: true }, () => 1);
    const link = await none.up();
    link.command('c1', 'pay');
    expect(await refusal(link, 'c1')).toBe('approval_denied');

    await using checks = await startRuntimeBench({
      approve: ({ params }) => (params['wait'] ? new Promise(() => {}) : false),
    });
    checks.runtime.handle('pay', { approval: true }, () => 1);
    const other = await checks.up();
    other.command('c2', 'pay');
    expect(await refusal(other, 'c2')).toBe('approval_denied');
    other.command('c3', 'pay', { wait: true }, 4_000);
    await other.untaken('error');
    await checks.clock.advance(4_000);
    expect(await refusal(other, 'c3')).toBe('approval_denied');
  });

  test('checks arguments, then authorizer, then approval, then lease', async () => {
    const checks: string[] = [];
    await using bench = await startRuntimeBench({
      authorize: () => checks.push('authorize') > 0,
      approve: () => checks.push('approve') > 0,
    });
    const spec = { schema: { type: 'object', required: ['a'] }, approval: true, lease: true };
    const go = gate();
    bench.runtime.handle('all', spec, () => go.opened);
    const link = await bench.up();
    link.command('c1', 'all', {});
    expect(await refusal(link, 'c1')).toBe('arguments_invalid');
    expect(checks).toEqual([]);
    link.command('c2', 'all', { a: 1 });
    await link.next('ack');
    expect(checks).toEqual(['authorize', 'approve']);
    link.command('c3', 'all', { a: 1 });
    expect(await refusal(link, 'c3')).toBe('lease_busy');
    expect(checks).toHaveLength(4);
    go.open();
    await link.next('result');
    link.command('c4', 'all', { a: 1 });
    expect((await link.next('result')).command_id).toBe('c4');
  });
});

describe('a handler that fails', () => {
  test('answers handler_failed with one bounded line and never a stack', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('boom', {}, () => {
      const error = new Error('x'.repeat(1_000));
      error.message += `\n${error.stack}`;
      throw error;
    });
    bench.runtime.handle('odd', {}, () => Promise.reject({ secret: 1 }));
    const link = await bench.up();
    link.command('c1', 'boom');
    const { code, message } = await link.next('error');
    expect(code).toBe('handler_failed');
    expect(message).toHaveLength(256);
    expect(message).not.toContain('at ');
    link.command('c2', 'odd');
    expect(await link.next('error')).toMatchObject({ code: 'handler_failed' });
  });

  test('chooses its own message and code, but cannot claim that it never ran', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('own', {}, ({ code }) => {
      // An untyped program may use any code.
      throw new ActionError('no paper', JSON.parse(JSON.stringify(code)));
    });
    const link = await bench.up();
    const own = ['result_unavailable', 'client_timeout'];
    for (const code of [...own, 'handler_failed', 'client_denied', 'node_lost', 'out_of_paper']) {
      link.command(`c-${code}`, 'own', { code });
      const shown = own.includes(code) ? code : 'handler_failed';
      expect(await link.next('error')).toMatchObject({ code: shown, message: 'no paper' });
    }
  });

  test('fails with a result that is not JSON or does not fit into a frame', async () => {
    await using bench = await startRuntimeBench({ admit: () => ({ max_frame_bytes: 2_000 }) });
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    const results: readonly (readonly [value: unknown, code: string, says: string])[] = [
      [circular, 'result_unavailable', 'JSON cannot hold the result: /self is an object that contains itself.'],
      [1n, 'result_unavailable', 'JSON cannot hold the result: it is a BigInt.'],
      [() => 1, 'result_unavailable', 'JSON cannot hold the result: it is a Function.'],
      [{ rows: [1, { size: 2n }] }, 'result_unavailable', 'JSON cannot hold the result: /rows/1/size is a BigInt.'],
      [{ at: new Map([[1, 2]]) }, 'result_unavailable', 'JSON cannot hold the result: /at is a Map.'],
      [[new Set([1])], 'result_unavailable', 'JSON cannot hold the result: /0 is a Set.'],
      [{ a: Promise.resolve(1) }, 'result_unavailable', 'JSON cannot hold the result: /a is a Promise.'],
      [{ toJSON: () => new Map() }, 'result_unavailable', 'JSON cannot hold the result: it is a Map.'],
      ['ü'.repeat(1_500), 'result_unavailable', 'The result is larger than 2000 bytes.'],
    ];
    bench.runtime.handle('give', {}, ({ n }) => results[Number(n)]?.[0]);
    const link = await bench.up();
    for (const [n, [, code, message]] of results.entries()) {
      link.command(`c${n}`, 'give', { n });
      expect(await link.next('error')).toMatchObject({ command_id: `c${n}`, code, message });
    }
    expect(await link.untaken('result')).toBe(0);
  });
});

describe('cancelling', () => {
  function waits(call: Call): Promise<never> {
    return new Promise((_, reject) => call.signal.addEventListener('abort', () => reject(call.signal.reason)));
  }

  test('aborts the signal; a handler that then stops has been cancelled', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('wait', {}, (_, call) => waits(call));
    const link = await bench.up();
    link.command('c1', 'wait');
    await link.next('ack');
    link.send({ type: 'cancel', command_id: 'unknown' });
    link.send({ type: 'cancel', command_id: 'c1', reason: 'enough' });
    expect(await link.next('cancelled')).toMatchObject({ command_id: 'c1', payload: null });
  });

  test('returns a partial result', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('wait', {}, (_, call) =>
      waits(call).catch(() => {
        throw new ActionCancelled({ done: 3 });
      }),
    );
    const link = await bench.up();
    link.command('c1', 'wait');
    await link.next('ack');
    link.send({ type: 'cancel', command_id: 'c1' });
    expect(json((await link.next('cancelled')).payload)).toEqual({ done: 3 });
  });

  test('does not hide what the handler did: one that returns has completed, one that throws has failed', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('done', {}, (_, call) => waits(call).catch(() => 'done all the same'));
    bench.runtime.handle('broken', {}, (_, call) =>
      waits(call).catch(() => {
        throw new Error('disk full');
      }),
    );
    bench.runtime.handle('liar', {}, () => {
      throw new ActionCancelled();
    });
    const link = await bench.up();
    link.command('c1', 'done');
    link.command('c2', 'broken');
    await link.next('ack');
    await link.next('ack');
    link.send({ type: 'cancel', command_id: 'c1' });
    expect(json((await link.next('result')).payload)).toBe('done all the same');
    link.send({ type: 'cancel', command_id: 'c2' });
    expect(await link.next('error')).toMatchObject({ code: 'handler_failed', message: 'disk full' });
    link.command('c3', 'liar');
    expect(await link.next('error')).toMatchObject({ command_id: 'c3', code: 'handler_failed' });
  });

  test('before the handler ran means cancelled, and the handler never runs', async () => {
    await using bench = await startRuntimeBench({ approve: () => new Promise(() => {}) });
    let runs = 0;
    bench.runtime.handle('pay', { approval: true }, () => ++runs);
    const link = await bench.up();
    link.command('c1', 'pay');
    link.send({ type: 'cancel', command_id: 'c1' });
    expect(await link.next('cancelled')).toMatchObject({ command_id: 'c1' });
    expect(runs).toBe(0);
  });

  test('by the deadline is a failure', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('wait', {}, (_, call) => waits(call));
    const link = await bench.up();
    link.command('c1', 'wait', {}, 3_000);
    await link.next('ack');
    await bench.clock.advance(2_999);
    expect(bench.runtime.running).toBe(1);
    await bench.clock.advance(1);
    expect(await link.next('error')).toMatchObject({ code: 'client_timeout', message: 'The deadline has passed.' });
  });

  test("by the action's time limit counts from the start of its handler", async () => {
    await using bench = await startRuntimeBench({ authorize: () => bench.clock.advance(700).then(() => true) });
    const deadlines: number[] = [];
    bench.runtime.handle('slow', { timeoutMs: 1_000 }, (_, { signal, deadline, remainingMs }) => {
      deadlines.push(deadline - bench.clock.now(), remainingMs());
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    bench.runtime.handle('stubborn', { timeoutMs: 1_000 }, (_, { signal }) => {
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve('done')));
    });
    const link = await bench.up();
    link.command('c1', 'slow', {}, 30_000);
    await link.next('ack');
    await bench.clock.advance(999);
    expect([bench.runtime.running, deadlines]).toEqual([1, [1_000, 1_000]]);
    await bench.clock.advance(1);
    const message = 'The time of the action is over.';
    expect(await link.next('error')).toMatchObject({ code: 'client_timeout', message });
    link.command('c2', 'stubborn', {}, 30_000);
    await link.next('ack');
    await bench.clock.advance(1_000);
    expect(await link.next('result')).toMatchObject({ command_id: 'c2', payload: '"done"' });
    link.command('c3', 'slow', {}, 1_200);
    await link.next('ack');
    await bench.clock.advance(500);
    expect(await link.next('error')).toMatchObject({ code: 'client_timeout', message: 'The deadline has passed.' });
    for (const timeoutMs of [0, -1, Number.NaN, Infinity, 2 ** 31])
      expect(() => bench.runtime.handle(`t${timeoutMs}`, { timeoutMs }, () => 1)).toThrow(/timeoutMs/);
  });
});

describe('the registry', () => {
  test('advertises what guards an action and what it does', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('a', { approval: true, effects: { readOnly: false, openWorld: true } }, () => 1);
    bench.runtime.handle('b', { lease: true, effects: {} }, () => 1);
    const wrong = { effects: { idempotent: 'yes' as never } };
    expect(() => bench.runtime.handle('c', wrong, () => 1)).toThrow(
      'action c: effects.idempotent: yes given, a boolean expected',
    );
    const link = await bench.up();
    const said = { checks_arguments: false };
    expect(json(link.hello.payload)).toMatchObject({
      actions: [
        { ...said, name: 'a', guards: { approval: true }, effects: { read_only: false, open_world: true } },
        { ...said, name: 'b', guards: { lease: true }, effects: {} },
      ],
    });
  });

  test('advertises its actions at hello and after each change', async () => {
    await using bench = await startRuntimeBench({ metadata: { host: 'desk' } });
    const schema = { type: 'object' };
    bench.runtime.handle('a', { summary: 'A', description: 'AA', version: '1', schema, metadata: [1] }, () => 1);
    const link = await bench.up();
    const a = {
      name: 'a',
      summary: 'A',
      description: 'AA',
      version: '1',
      checks_arguments: true,
      schema,
      metadata: [1],
    };
    expect(json(link.hello.payload)).toEqual({ metadata: { host: 'desk' }, received: [], actions: [a] });
    const remove = bench.runtime.handle('b', {}, () => 1);
    bench.runtime.handle('c', {}, () => 1);
    const [b, c] = ['b', 'c'].map((name) => ({ name, checks_arguments: false }));
    expect(json((await link.next('actions')).payload)).toEqual({ actions: [a, b, c] });
    remove();
    remove();
    expect(json((await link.next('actions')).payload)).toEqual({ actions: [a, c] });
    expect(await link.untaken('actions')).toBe(0);
  });

  test('refuses at once an action that cannot be advertised', async () => {
    await using bench = await startRuntimeBench();
    const { runtime } = bench;
    runtime.handle('a', {}, () => 1);
    expect(() => runtime.handle('a', {}, () => 1)).toThrow(/a: already registered/);
    expect(() => runtime.handle('no name', {}, () => 1)).toThrow(TypeError);
    expect(() => runtime.handle('b', { schema: { type: 'nonsense' } }, () => 1)).toThrow(/b: schema/);
    expect(() => runtime.handle('c', { metadata: 'x'.repeat(70_000) }, () => 1)).toThrow(/65536/);
    for (let n = 1; n < 256; n++) runtime.handle(`n${n}`, {}, () => 1);
    expect(() => runtime.handle('more', {}, () => 1)).toThrow(/256/);
  });

  test('lets two actions use schemas of the same $id', async () => {
    await using bench = await startRuntimeBench();
    const $id = 'https://example.test/params';
    bench.runtime.handle('a', { schema: { $id, type: 'object', required: ['a'] } }, () => 'a');
    bench.runtime.handle('b', { schema: { $id, type: 'object', required: ['b'] } }, () => 'b');
    const link = await bench.up();
    link.command('c1', 'b', { a: 1 });
    expect(await refusal(link, 'c1')).toBe('arguments_invalid');
    link.command('c2', 'a', { a: 1 });
    expect(json((await link.next('result')).payload)).toBe('a');
    await settle();
  });
});

describe('a command that names a context', () => {
  const place = (contextId: string) => ({ contextId, status: 'active', ownership: 'user-owned' }) as const;
  const send = (link: FakeLink, commandId: string, contextId: string): void =>
    link.send({ type: 'command', command_id: commandId, action: 'look', remaining_ms: 9_000, context_id: contextId });

  test('is run with the name of the context that the client reports', async () => {
    await using bench = await startRuntimeBench({ places: true });
    bench.runtime.handle('look', {}, (_, { contextId }) => contextId);
    bench.runtime.reportContexts([place('t1'), place('t2')]);
    const link = await bench.up();
    expect(link.hello.places).toBe(true);
    send(link, 'c1', 't2');
    expect(json((await link.next('result')).payload)).toBe('t2');
    link.command('c2', 'look');
    expect((await link.next('result')).payload).toBe('null');
  });

  test('is refused where the context is unknown, closed, gone, or back in another life', async () => {
    await using bench = await startRuntimeBench({ places: true });
    let runs = 0;
    bench.runtime.handle('look', {}, () => ++runs);
    bench.runtime.reportContexts([place('t1'), { ...place('shut'), status: 'closed' }]);
    const link = await bench.up();
    const refused = async (commandId: string, contextId: string): Promise<void> => {
      send(link, commandId, contextId);
      expect(await refusal(link, commandId)).toBe('context_gone');
    };
    await refused('c1', 'never');
    await refused('c2', 'shut');
    bench.runtime.reportContexts({ removed: ['t1'] });
    await refused('c3', 't1');
    bench.runtime.reportContexts({ set: [place('t1')] });
    await refused('c4', 't1');
    bench.runtime.reportContexts([place('t1'), place('t3')]);
    bench.runtime.reportContexts([place('t4')]);
    await refused('c5', 't3');
    expect(runs).toBe(0);
  });

  test('is refused if the context goes while somebody decides about it', async () => {
    const asked = gate();
    const decide = gate();
    const approve = async (): Promise<boolean> => {
      asked.open();
      await decide.opened;
      return true;
    };
    await using bench = await startRuntimeBench({ places: true, approve });
    let runs = 0;
    bench.runtime.handle('look', { approval: true }, () => ++runs);
    bench.runtime.reportContexts([place('t1')]);
    const link = await bench.up();
    send(link, 'c1', 't1');
    await asked.opened;
    bench.runtime.reportContexts([]);
    decide.open();
    expect(await refusal(link, 'c1')).toBe('context_gone');
    expect(runs).toBe(0);
  });

  test('needs an id that was never used: each one that the library makes is new', () => {
    const made = Array.from({ length: 1_000 }, newContextId);
    expect(new Set(made).size).toBe(1_000);
    for (const id of made) expect(id).toMatch(/^ctx-[\w-]{10,}$/);
  });
});

describe('a result that the relay would refuse', () => {
  const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;

  test.each([
    ['nested deeper than the protocol allows', () => nested(201), {}, 'nested deeper than 200 levels'],
    ['nested deeper than this relay allows', () => nested(51), { max_depth: 50 }, 'nested deeper than 50 levels'],
    ['larger than a frame', () => 'x'.repeat(1_048_576), {}, 'larger than 1048576 bytes'],
    [
      'larger than a frame of this relay',
      () => '€'.repeat(30_000),
      { max_frame_bytes: 65_536 },
      'larger than 65536 bytes',
    ],
    ['cyclic', () => cyclic, {}, 'JSON cannot hold the result: /self is an object that contains itself.'],
  ])('%s ends its command: it ran, and its result is unavailable', async (_what, value, admission, message) => {
    await using bench = await startRuntimeBench({ admit: () => admission });
    bench.runtime.handle('a', {}, value);
    bench.runtime.handle('b', {}, (_params, { signal }) => {
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener('abort', () => reject(new ActionCancelled(value())));
      return promise;
    });
    const link = await bench.up();
    link.command('c1', 'a');
    expect(await link.next('error')).toMatchObject({
      ...{ command_id: 'c1', code: 'result_unavailable' },
      message: expect.stringContaining(message),
    });
    link.command('c2', 'b');
    await link.next('ack');
    await link.next('ack');
    link.send({ type: 'cancel', command_id: 'c2' });
    // A partial result that is no JSON was never one.
    if (value() === cyclic) expect(await link.next('cancelled')).toMatchObject({ command_id: 'c2', payload: null });
    else expect(await link.next('error')).toMatchObject({ command_id: 'c2', code: 'result_unavailable' });
    expect(bench.relay.faults).toEqual([]);
  });

  test('of the greatest depth is reported', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('a', {}, () => nested(200));
    const link = await bench.up();
    link.command('c1', 'a');
    expect(json((await link.next('result')).payload)).toEqual(nested(200));
  });

  test('as progress is not sent, and the handler is told', async () => {
    await using bench = await startRuntimeBench();
    const sent: boolean[] = [];
    bench.runtime.handle('a', {}, (_params, call) => {
      for (const value of [nested(201), 'x'.repeat(1_048_576), cyclic, nested(200)]) sent.push(call.progress(value));
      return 'done';
    });
    const link = await bench.up();
    link.command('c1', 'a');
    await link.next('result');
    expect(sent).toEqual([false, false, false, true]);
    expect(link.frames.filter(({ type }) => type === 'progress')).toHaveLength(1);
  });
});
