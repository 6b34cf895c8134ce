/** Tests that no cancel and no `await` overtakes the invocation that was sent before it over the same link. */
import { expect, it } from 'vitest';
import type { Invocation } from '../../src/core/calls/call.ts';
import type { Core } from '../../src/core/core.ts';
import type { Principal } from '../../src/core/auth/principal.ts';
import { Callers, type CallerFrame } from '../../src/gateway/callers.ts';
import type { FrameWriter } from '../../src/gateway/socket.ts';

const ADMIN = { kind: 'admin', name: 'root', expiresAt: null } as const;
const ALICE = { kind: 'user', userId: 'alice', scopes: new Set(['invoke'] as const), expiresAt: null } as const;
const INVOKE = {
  ...{ type: 'invoke', ref: 'r1', client_id: 'tab', action: 'open', command_id: 'c1', payload: null },
} as CallerFrame;
const CANCEL = { type: 'cancel', ref: 'r2', client_id: 'tab', command_id: 'c1' } as CallerFrame;
const AWAIT = { ...CANCEL, type: 'await', ref: 'r4' } as CallerFrame;
const OTHER = { ...CANCEL, ref: 'r3', command_id: 'c2' } as CallerFrame;

/** A link's callers over a core that admits when the test says so. */
function open(shared: boolean) {
  const events: string[] = [];
  const invoked = Promise.withResolvers<Invocation>();
  let admit = (): void => {};
  const rpc: Pick<Core['rpc'], 'invoke' | 'cancel' | 'await'> = {
    invoke(_, { commandId, onAdmitted }) {
      admit = () => {
        events.push(`admitted ${commandId}`);
        onAdmitted?.({} as Parameters<NonNullable<typeof onAdmitted>>[0]);
      };
      return invoked.promise;
    },
    async await(_, { commandId }) {
      events.push(`awaits ${commandId}`);
      return null;
    },
    async cancel(_, { commandId }) {
      events.push(`cancels ${commandId}`);
      return null;
    },
  };
  const callers = new Callers({ capabilities: { shared }, rpc } as unknown as Core, {} as FrameWriter);
  const take = (frame: CallerFrame, by: Principal = ALICE): void =>
    callers.take(frame, by, () => events.push(`refused ${frame.ref}`));
  return { events, take, admit: () => admit(), refuse: () => invoked.reject(new Error('no')) };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('waits until the command is admitted, and holds up no other cancel', async () => {
  const { events, take, admit } = open(true);
  take(INVOKE);
  take(CANCEL);
  take(OTHER);
  await settled();
  expect(events).toEqual(['cancels c2', 'refused r3']);
  admit();
  await settled();
  expect(events.slice(2)).toEqual(['admitted c1', 'cancels c1', 'refused r2']);
});

it('waits as an await, too', async () => {
  const { events, take, admit } = open(true);
  take(INVOKE);
  take(AWAIT);
  await settled();
  expect(events).toEqual([]);
  admit();
  await settled();
  expect(events).toEqual(['admitted c1', 'awaits c1', 'refused r4']);
});

it('does not wait for an invocation that was refused before it began', () => {
  const { events, take } = open(true);
  // An administrator must name a user.
  take(INVOKE, ADMIN);
  take({ ...CANCEL, user_id: 'alice' } as CallerFrame, ADMIN);
  expect(events).toEqual(['refused r1', 'cancels c1']);
});

it('does not wait for an invocation that has failed', async () => {
  const { events, take, refuse } = open(true);
  take(INVOKE);
  take(CANCEL);
  refuse();
  await settled();
  expect(events).toEqual(['refused r1', 'cancels c1', 'refused r2']);
});

it('is carried out at once if the store admits in the turn of the request', () => {
  const { events, take } = open(false);
  take(INVOKE);
  take(CANCEL);
  expect(events).toEqual(['cancels c1']);
});
