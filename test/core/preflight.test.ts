/** Tests that a preflight predicts the answer to an invocation, and changes nothing. */
import { describe, expect, it } from 'vitest';
import { compilePolicy } from '../../src/core/auth/policy-file.ts';
import type { Core, Invocation, InvokeRequest } from '../../src/core/core.ts';
import { toJson, trustJson, type JsonText } from '../../src/core/json.ts';
import type { Preflight } from '../../src/core/calls/call.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { settle } from '../kit/clock.ts';
import { admin, connect, testCore, user, type TestClient, type TestOptions } from '../kit/core.ts';
import { unawaited } from '../kit/patience.ts';

const alice = user('alice');
const target = { userId: 'alice', clientId: 'tab', action: 'open', params: toJson({ n: 1 }) };
const large = trustJson(JSON.stringify({ text: 'x'.repeat(20_000) }));

/** Returns the message of each layer of checks that the relay skipped, by layer. */
function skippedOf({ layers }: Preflight): Readonly<Record<string, string>> {
  const skipped = layers.filter(({ verdict }) => verdict === 'skipped');
  return Object.fromEntries(skipped.map(({ layer, message }) => [layer, message]));
}

async function both(core: Core, over: Partial<InvokeRequest> = {}): Promise<readonly [Preflight, Invocation]> {
  const request = { ...target, waitFor: 'admitted', ...over } as const;
  return [await core.rpc.preflight(alice, request), await core.rpc.invoke(alice, request)];
}

type Case = {
  readonly code: string;
  readonly layer: string;
  readonly state: string;
  readonly options?: TestOptions;
  readonly prepare?: (core: Core) => Promise<unknown>;
  readonly call?: Partial<InvokeRequest>;
};

const online = (core: Core): Promise<TestClient> => connect(core, alice);
const waiting = async (core: Core, over: Partial<InvokeRequest>): Promise<void> => {
  unawaited(core.rpc.invoke(alice, { ...target, ...over }));
  await settle();
};

const NO_RATE = 'Not asked: no rate rule of the policy matches.';
/** A rate rule that allows one call. */
const SLOW = { name: 'slow', burst: 1, perSecond: 0.5 };

/** The codes with which an invocation can be refused, each with a state that causes the refusal. */
const CASES: readonly Case[] = [
  {
    code: 'policy_denied',
    layer: 'policy',
    state: 'a rule of the policy denies it',
    options: {
      policy: compilePolicy({
        rules: [{ name: 'no', effect: 'deny', actions: ['open'] }],
        scopes: [],
        userCapacity: null,
      }),
    },
    prepare: online,
  },
  { code: 'draining', layer: 'relay', state: 'the node drains', prepare: (core) => core.drain(0) },
  {
    code: 'action_not_advertised',
    layer: 'action',
    state: 'the client lacks the action',
    prepare: online,
    call: { action: 'close' },
  },
  {
    code: 'share_exceeded',
    layer: 'waits',
    state: 'the caller waits too often',
    options: { shares: createShares({ waits: { guarantee: 1, total: null } }) },
    prepare: async (core) => (await online(core), await waiting(core, {})),
  },
  {
    code: 'store_full',
    layer: 'storage',
    state: 'large params find no room',
    options: {
      spill: () => ({ ...FULL_SPILL }),
    },
    prepare: online,
    call: { params: large },
  },
  {
    code: 'command_conflict',
    layer: 'conflict',
    state: 'another request has the id',
    prepare: async (core) => (await online(core), await waiting(core, { commandId: 'c1', params: toJson({ n: 2 }) })),
    call: { commandId: 'c1' },
  },
  { code: 'not_connected', layer: 'target', state: 'the client is away', call: { connectWithinMs: 0 } },
  {
    code: 'instance_mismatch',
    layer: 'target',
    state: 'another instance is connected',
    prepare: online,
    call: { instanceId: 'i9' },
  },
  {
    code: 'context_gone',
    layer: 'place',
    state: 'the client does not report the context',
    prepare: (core) => connect(core, alice, { places: true }),
    call: { contextId: 'tab-1' },
  },
  {
    code: 'context_unsupported',
    layer: 'place',
    state: 'the client knows no places',
    prepare: online,
    call: { contextId: 'tab-1' },
  },
  {
    code: 'capacity_exceeded',
    layer: 'capacity',
    state: 'the scope is full',
    options: { policy: compilePolicy({ rules: [], scopes: [], userCapacity: 1 }) },
    prepare: async (core) => (await online(core), await waiting(core, {})),
  },
  {
    code: 'capacity_exceeded',
    layer: 'capacity',
    state: 'eight callers wait on the command',
    prepare: async (core) => {
      await online(core);
      for (let i = 0; i < 8; i++) await waiting(core, { commandId: 'c1', waitFor: 'completed' });
    },
    call: { commandId: 'c1', waitFor: 'completed' },
  },
  {
    code: 'queue_full',
    layer: 'capacity',
    state: 'a thousand commands wait for the client',
    options: { policy: compilePolicy({ rules: [], scopes: [], userCapacity: 5000 }) },
    prepare: async (core) => {
      const request = { ...target, connectWithinMs: 60_000, waitFor: 'admitted' } as const;
      for (let i = 0; i < 1000; i++) await core.rpc.invoke(alice, request);
    },
    call: { connectWithinMs: 60_000 },
  },
  {
    code: 'share_exceeded',
    layer: 'capacity',
    state: 'no room is left for the mark of a chosen id',
    options: { shares: createShares({ marks: { guarantee: 1, total: 1 } }) },
    prepare: async (core) => (await online(core), await waiting(core, { commandId: 'c1' })),
    call: { commandId: 'c2' },
  },
  {
    code: 'share_exceeded',
    layer: 'capacity',
    state: 'waiting params fill the share',
    options: { shares: createShares({ queued_bytes: { guarantee: 10, total: 20 } }) },
    call: { params: toJson({ text: 'x'.repeat(100) }), connectWithinMs: 1000 },
  },
  {
    code: 'rate_limited',
    layer: 'rate',
    state: 'the caller has used up the burst of a rate rule',
    options: { policy: compilePolicy({ rules: [], scopes: [], userCapacity: null, rates: [SLOW] }) },
    prepare: async (core) => (await online(core), await waiting(core, {})),
  },
];

const FULL_SPILL = await fullSpill();

async function fullSpill() {
  const { createMemorySpill } = await import('../../src/backends/spill/memory.ts');
  const { createCrypto } = await import('../../src/platform/system.ts');
  const { systemClock } = await import('../../src/platform/system.ts');
  return createMemorySpill(systemClock, createCrypto('x'), createShares({ spilled_bytes: { guarantee: 1, total: 1 } }));
}

describe('a preflight', () => {
  it.each(CASES)('refuses in the layer $layer with $code when $state', async ({ options, prepare, ...given }) => {
    await using relay = await testCore(options);
    await prepare?.(relay.core);
    const [preflight, invocation] = await both(relay.core, given.call);
    expect(preflight.firstRefusal).toMatchObject({ layer: given.layer, code: given.code, askedOf: 'relay' });
    expect(preflight.wouldAdmit).toBe('refuse');
    expect(invocation).toMatchObject({ kind: 'refused', code: given.code, message: preflight.firstRefusal?.message });
  });

  it('passes every layer of the relay for a call that is admitted, and reports the client’s layers as unknown', async () => {
    await using relay = await testCore();
    await online(relay.core);
    const [preflight, invocation] = await both(relay.core);
    expect(invocation.kind).toBe('pending');
    expect(preflight).toMatchObject({ wouldAdmit: 'pass', firstRefusal: null, command: null, asOf: relay.clock.now() });
    const seen = preflight.layers.map(({ layer, verdict, askedOf }) => `${layer} ${verdict} ${askedOf}`);
    expect(seen).toEqual([
      ...['identity', 'scope', 'address', 'input', 'policy', 'relay', 'action', 'waits'].map((l) => `${l} pass relay`),
      ...['storage pass relay', 'conflict pass relay', 'target pass relay'],
      ...['place skipped relay', 'capacity pass relay', 'rate skipped relay'],
      ...['arguments', 'authorizer', 'approval', 'lease'].map((layer) => `client_${layer} unknown client`),
    ]);
    const capacity = preflight.layers.find(({ layer }) => layer === 'capacity');
    expect(JSON.parse(capacity?.evidence ?? '')).toEqual({
      scopeId: 'alice',
      reserved: 0,
      limit: 10_000,
      queued: 0,
      of: 1000,
    });
  });

  it('shows a member of a scope whether it has room, and only an administrator how many commands it has', async () => {
    const scopes = [{ id: 'team', members: ['alice', 'bob'], capacity: 4 }];
    await using relay = await testCore({ policy: compilePolicy({ rules: [], scopes, userCapacity: null }) });
    await online(relay.core);
    const evidence = async (requester: Parameters<Core['rpc']['preflight']>[0]): Promise<unknown> => {
      const { layers } = await relay.core.rpc.preflight(requester, target);
      return JSON.parse(layers.find(({ layer }) => layer === 'capacity')?.evidence ?? 'null');
    };
    const away = {
      userId: 'bob',
      clientId: 'away',
      action: 'open',
      params: null,
      connectWithinMs: 60_000,
      waitFor: 'admitted',
    } as const;
    for (let i = 0; i < 3; i++) await relay.core.rpc.invoke(user('bob'), away);
    const shown = { scopeId: 'team', limit: 4, queued: 0, of: 1000 };
    expect(await evidence(alice)).toEqual({ ...shown, scope: 'room' });
    expect(await evidence(admin)).toEqual({ ...shown, reserved: 3 });
    const refused = await relay.core.rpc.invoke(user('bob'), away);
    expect(refused).toMatchObject({ kind: 'refused', code: 'share_exceeded', share: 'scope', by: 'capacity' });
    await relay.core.rpc.invoke(alice, { ...target, waitFor: 'admitted' });
    expect(await evidence(alice)).toEqual({ ...shown, scope: 'full' });
  });

  it('names the command that a known id would attach to or replay, even while the node drains', async () => {
    await using relay = await testCore();
    const client = await online(relay.core);
    const call = relay.core.rpc.invoke(alice, { ...target, commandId: 'c1' });
    await settle();
    const live = await relay.core.rpc.preflight(alice, { ...target, commandId: 'c1' });
    expect(live).toMatchObject({ wouldAdmit: 'pass', command: { commandId: 'c1', outcome: null } });
    await client.result(client.last);
    await call;
    await relay.core.drain(0);
    const ended = await relay.core.rpc.preflight(alice, { ...target, commandId: 'c1' });
    expect(ended).toMatchObject({ wouldAdmit: 'pass', command: { commandId: 'c1', outcome: 'completed' } });
    expect(skippedOf(ended)).toEqual({
      relay: 'Not asked: the command id is known.',
      action: 'Not asked: the client is not connected.',
      target: 'Not asked: the command id is known.',
      place: 'Not asked: the command id is known.',
      rate: NO_RATE,
    });
  });

  it('skips a layer that does not apply, and says why', async () => {
    await using relay = await testCore();
    const away = await relay.core.rpc.preflight(alice, { ...target, connectWithinMs: 1000 });
    expect(skippedOf(away)).toEqual({
      action: 'Not asked: the client is not connected.',
      place: 'Not asked: the call names no context.',
      rate: NO_RATE,
    });
    await online(relay.core);
    const other = await relay.core.rpc.preflight(alice, { ...target, instanceId: 'i9' });
    expect(skippedOf(other)).toEqual({
      action: 'Not asked: another instance of the client is connected than the named one.',
      place: 'Not asked: an earlier layer decides.',
      capacity: 'Not asked: an earlier layer decides.',
      rate: 'Not asked: an earlier layer decides.',
    });
  });

  it('refuses wrong input with every fault, and asks no further layer', async () => {
    await using relay = await testCore();
    const wrong = { ...target, clientId: 'a/b', respondWithinMs: -1 };
    const preflight = await relay.core.rpc.preflight(alice, wrong);
    expect(preflight.firstRefusal).toMatchObject({ layer: 'input', code: 'invalid_argument' });
    const { errors } = JSON.parse(preflight.firstRefusal?.evidence ?? '');
    expect(errors.map(({ parameter }: { parameter: string }) => parameter)).toEqual(['client_id', 'respond_within_ms']);
    const later = preflight.layers.slice(4).filter(({ askedOf }) => askedOf === 'relay');
    expect(new Set(later.map(({ verdict }) => verdict))).toEqual(new Set(['skipped']));
    const reserved = trustJson('{"__cooperative_site_id":1}') as JsonText;
    const refused = await relay.core.rpc.preflight(alice, { ...target, params: reserved });
    expect(refused.firstRefusal).toMatchObject({ layer: 'input', code: 'reserved_parameter' });
  });

  it('is refused as the invocation is: without a token, without the scope, and alike for a foreign and an absent user', async () => {
    await using relay = await testCore();
    await connect(relay.core, user('bob'));
    const ask = (who: Parameters<Core['rpc']['preflight']>[0], userId: string) =>
      relay.core.rpc.preflight(who, { ...target, userId });
    await expect(ask(null, 'alice')).rejects.toMatchObject({ code: 'unauthenticated' });
    await expect(ask(user('alice', 'connect'), 'alice')).rejects.toMatchObject({ code: 'forbidden' });
    const messages = [];
    for (const other of ['bob', 'nobody']) {
      const error = await ask(alice, other).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'not_found' });
      messages.push(String(error));
    }
    expect(messages[0]).toBe(messages[1]);
    expect((await ask(admin, 'bob')).wouldAdmit).toBe('pass');
  });
});
