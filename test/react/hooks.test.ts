/** Tests the types of the hooks, and what they render before anything has happened, as on a server. */
import { createElement, type FunctionComponent } from 'react';
import { renderToString } from 'react-dom/server';
import { expect, expectTypeOf, test } from 'vitest';
import { createHttpCaller, defineActions, type CallerError, type Handle } from '../../src/clients/caller/index.ts';
import { createLive, type LiveConnection, type LiveError } from '../../src/clients/live/index.ts';
import {
  CallboardProvider,
  createUseAction,
  useAction,
  useCallboard,
  useCommand,
  useConnections,
  type CallState,
} from '../../src/clients/react/index.ts';

const actions = defineActions({
  'notes.add': {
    schema: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
    result: { type: 'object', required: ['count'], properties: { count: { type: 'integer' } } },
  },
  'notes.clear': {},
});
const target = { userId: 'alice', clientId: 'kiosk', action: 'notes.add' } as const;
const useNotes = createUseAction<typeof actions>();

/** The types of the hooks. Compiled, never run. */
export function Types(): null {
  const add = useNotes(target);
  expectTypeOf(add.invoke).parameter(0).toEqualTypeOf<{ readonly text: string }>();
  // @ts-expect-error: the params are missing
  void add.invoke();
  // @ts-expect-error: a number is not a text
  void add.invoke({ text: 1 });
  // @ts-expect-error: the hook waits for the end of the command
  void add.invoke({ text: 'a' }, { waitFor: 'dispatched' });
  // @ts-expect-error: there is no such action
  useNotes({ ...target, action: 'notes.none' });
  void useNotes({ ...target, action: 'notes.clear' }).invoke();
  if (add.status === 'ended' && add.invocation.outcome === 'completed')
    expectTypeOf(add.invocation.result).toEqualTypeOf<{ readonly count: number }>();
  if (add.status === 'running') expectTypeOf(add.invocation).toEqualTypeOf<null>();
  // @ts-expect-error: a call that ended is not pending
  if (add.status === 'ended' && add.invocation.outcome === 'pending') return null;
  if (add.status === 'error') expectTypeOf(add.error).toEqualTypeOf<CallerError>();
  expectTypeOf(useAction(target)).toExtend<CallState>();
  expectTypeOf(useCommand<number>(null)).toExtend<CallState<number>>();
  expectTypeOf(useCommand).parameter(0).toEqualTypeOf<Handle | null>();
  // @ts-expect-error: a command that is followed is not invoked
  void useCommand(null).invoke;
  expectTypeOf(useConnections().connections).toEqualTypeOf<readonly LiveConnection[]>();
  expectTypeOf(useConnections({ status: 'STALE' }).error).toEqualTypeOf<LiveError | null>();
  return null;
}

const server = { url: 'http://127.0.0.1:1', token: 't' };
const caller = createHttpCaller(server);

/** Renders a component that shows this text, below a provider. */
function render(show: () => unknown, clients: Parameters<typeof CallboardProvider>[0] | null): string {
  const Shown: FunctionComponent = () => createElement('p', null, JSON.stringify(show()));
  const shown = createElement(Shown);
  return renderToString(clients ? createElement(CallboardProvider, clients, shown) : shown).replaceAll('&quot;', '"');
}

const IDLE = { status: 'idle', handle: null, stage: null, invocation: null, error: null };

test('a first rendering shows no call and no connection, and sends nothing', () => {
  const live = createLive({
    ...server,
    fetch: () => {
      throw new Error('sent');
    },
  });
  expect(render(() => useAction(target), { caller })).toBe(`<p>${JSON.stringify(IDLE)}</p>`);
  expect(render(() => useCommand({ ...target, commandId: 'c-1' }), { caller })).toBe(`<p>${JSON.stringify(IDLE)}</p>`);
  const none = { connections: [], complete: false, status: 'connecting', error: null };
  expect(render(() => useConnections(), { caller, live })).toBe(`<p>${JSON.stringify(none)}</p>`);
});

test('hooks without what they need say what is missing', () => {
  expect(() => render(() => useCallboard(), null)).toThrow('There is no CallboardProvider above this component.');
  expect(() => render(() => useConnections(), { caller })).toThrow('the property `live` of CallboardProvider');
});
