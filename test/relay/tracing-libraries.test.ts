/** Tests the trees of spans of calls from library to library, including the spans that a handler adds. */
import { describe, expect, it } from 'vitest';
import { createLinkCaller, type Caller } from '../../src/clients/caller/index.ts';
import { createRuntime, type Handler } from '../../src/clients/runtime/index.ts';
import { INTERNAL } from '../../src/protocol/trace.ts';
import { activateContexts, type Spans } from '../kit/spans.ts';
import { tracedRelay } from './kit/traced-relay.ts';

const TAB = { userId: 'alice', clientId: 'tab' };

type Libraries = AsyncDisposable & { readonly caller: Caller; readonly spans: Spans };

/** Connects a caller and a client to one relay. The caller, the client and the relay record into the same spans. */
async function openLibraries(handlers: (spans: Spans) => Readonly<Record<string, Handler>>): Promise<Libraries> {
  const { spans, relay } = await tracedRelay();
  const url = (at: string): string => `${at.replace('http', 'ws')}/connect`;
  const token = (await relay.token('alice')) ?? '';
  const tracing = spans.api;
  const runtime = createRuntime({ url: url(relay.linkUrl), token, clientId: 'tab', clientType: 'web', tracing });
  for (const [name, run] of Object.entries(handlers(spans))) runtime.handle(name, {}, run);
  runtime.connect();
  await runtime.ready();
  const caller = createLinkCaller({ url: url(relay.url), token, tracing });
  return {
    caller,
    spans,
    async [Symbol.asyncDispose]() {
      await Promise.all([caller.close(), runtime.close({ withinMs: 0 })]);
      await relay[Symbol.asyncDispose]();
    },
  };
}

describe('a call from library to library', () => {
  it('is one tree over the caller, the relay and the client', async () => {
    await using opened = await openLibraries(() => ({
      open: () => ({ ok: true }),
      fail: () => {
        throw new Error('no');
      },
    }));
    const { caller, spans } = opened;
    const answer = await caller.invoke({ ...TAB, action: 'open' }, {}, { commandId: 'c1' });
    expect(answer).toMatchObject({ outcome: 'completed' });
    expect(await spans.drawn(4)).toEqual([
      'client open completed',
      '  server open completed',
      '    client callboard.dispatch completed [acknowledged]',
      '      server open completed',
    ]);
    await caller.invoke({ ...TAB, action: 'fail' }, {}, { commandId: 'c2' });
    expect((await spans.drawn(8)).slice(4)).toEqual([
      'client fail failed !handler_failed',
      '  server fail failed !handler_failed',
      '    client callboard.dispatch failed !handler_failed [acknowledged]',
      '      server fail failed !handler_failed',
    ]);
    await expect(caller.invoke({ ...TAB, action: 'none' })).rejects.toMatchObject({ code: 'action_not_advertised' });
    expect((await spans.drawn(10)).slice(8)).toEqual([
      'client none action_not_advertised !action_not_advertised',
      '  server _OTHER action_not_advertised !action_not_advertised',
    ]);
    await caller.await({ ...TAB, commandId: 'c1' });
    expect((await spans.drawn(12)).slice(10)).toEqual([
      'client callboard.await completed',
      '  server callboard.await completed ~open',
    ]);
  });
});

describe('a handler', () => {
  it('starts spans of its own below that of its command, also after it has waited', async () => {
    using _ = { [Symbol.dispose]: activateContexts() };
    await using opened = await openLibraries(({ api }) => {
      const tracer = api.getTracer('app');
      return {
        async open() {
          tracer.startSpan('read', { kind: INTERNAL }).end();
          await new Promise((done) => setImmediate(done));
          tracer.startSpan('write', { kind: INTERNAL }).end();
          return null;
        },
      };
    });
    await opened.caller.invoke({ ...TAB, action: 'open' });
    expect(await opened.spans.drawn(6)).toEqual([
      'client open completed',
      '  server open completed',
      '    client callboard.dispatch completed [acknowledged]',
      '      server open completed',
      '        internal read',
      '        internal write',
    ]);
  });

  it('of two commands at the same time gets its own span as the parent, and none is active after them', async () => {
    using _ = { [Symbol.dispose]: activateContexts() };
    const bothRun = Promise.withResolvers<void>();
    let running = 0;
    const handler =
      (name: string) =>
      ({ api }: Spans): Handler =>
      async () => {
        if (++running === 2) bothRun.resolve();
        await bothRun.promise;
        api.getTracer('app').startSpan(`by ${name}`, { kind: INTERNAL }).end();
        return null;
      };
    await using opened = await openLibraries((spans) => ({ one: handler('one')(spans), two: handler('two')(spans) }));
    const { caller, spans } = opened;
    await Promise.all(['one', 'two'].map((action) => caller.invoke({ ...TAB, action })));
    spans.api.getTracer('app').startSpan('later', { kind: INTERNAL }).end();
    const drawn = await spans.drawn(11);
    for (const name of ['one', 'two']) {
      const at = drawn.indexOf(`client ${name} completed`);
      expect(drawn.slice(at, at + 5)).toEqual([
        `client ${name} completed`,
        `  server ${name} completed`,
        '    client callboard.dispatch completed [acknowledged]',
        `      server ${name} completed`,
        `        internal by ${name}`,
      ]);
    }
    expect(drawn).toContain('internal later');
  });
});
