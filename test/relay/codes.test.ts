/** Tests that each error code is answered with its status. */
import { browserWindow, report, snapshot } from '../contract/kit/contexts-model.ts';
import { describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { silentLog } from '../../src/core/ports.ts';
import type { SiteDefinition } from '../../src/core/sites/site-requests.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { CODES, type Code } from '../../src/protocol/codes.ts';
import { postJson, startHttpRelay, tokenOf, type Answer, type HttpRelay } from '../http/kit/http-relay.ts';
import { advertisement, connect, user, type TestClient } from '../kit/core.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { HAS_PAUSES, IS_DIRECT } from '../kit/store.ts';

type Stage = HttpRelay & { readonly clock: FakeClock; readonly alice: string };
type Row = { readonly provoke: (stage: Stage) => Promise<Answer>; readonly status?: number };

const INVOKE = '/connections/alice/tab/actions/open';

function call(stage: Stage, body: object = {}, path = INVOKE): Promise<Answer> {
  return stage.ask(path, postJson(body, { token: stage.alice }));
}

async function ingest(stage: Stage, over: object): Promise<Answer> {
  const message = { kind: 'event', stream_suffix: 'notes', client_id: 'tab', instance_id: 'i1', ...over };
  return stage.ask('/ingest', postJson(message, { token: await tokenOf('alice', 'host') }));
}

/** Calls an action of alice's board, whose host is disconnected. */
async function siteCall(stage: Stage, over: Partial<SiteDefinition> = {}, before = async () => {}): Promise<Answer> {
  const { sites } = stage.callboard.core;
  const capabilityProfile = { actionInvocation: true };
  await sites.register(user('alice'), {
    siteId: 'board',
    clientId: 'tab',
    actions: ['open'],
    capabilityProfile,
    ...over,
  });
  const opened = await sites.open(user('alice'), 'board', {});
  await before();
  const path = `/site-sessions/${opened?.view.session.sessionId}/actions/open`;
  return stage.ask(path, postJson({}, { token: opened?.token ?? null }));
}

function live(stage: Stage, over = {}): Promise<TestClient> {
  return connect(stage.callboard.core, user('alice'), { actions: [advertisement('open')], ...over });
}

/** Lets the client end the caller's command with this error code. Returns the caller's answer. */
async function answered(stage: Stage, code: string, refused = false): Promise<Answer> {
  const client = await live(stage);
  const pending = call(stage, { command_id: 'c1' });
  while (client.sent.length === 0) await settle();
  await client.session.end('c1', { kind: 'error', payload: null, error: { code, message: 'no' }, refused });
  return pending;
}

/** Advances the clock until the caller has its answer. */
async function outlived(stage: Stage, pending: Promise<Answer>, ms: number): Promise<Answer> {
  while ((await stage.callboard.core.rpc.count({ kind: 'admin', name: 't', expiresAt: null }, {})).count === 0)
    await settle();
  await stage.clock.advance(ms);
  return pending;
}

/** Sends a body to GraphQL. The `json` of the answer is replaced by the extensions of its first error. */
async function graphql(stage: Stage, body: object, accept = 'application/graphql-response+json'): Promise<Answer> {
  const answer = await stage.ask('/graphql', postJson(body, { headers: { accept } }));
  return { ...answer, json: extensionsOf(answer) };
}

/** The requests that cause each code. The status of the answer must be the one in the table of codes. */
const ROWS: Partial<Record<Code, Row>> = {
  invalid_argument: { provoke: (stage) => stage.ask('/connections?limit=0') },
  invalid_cursor: { provoke: (stage) => stage.ask('/connections?cursor=c1.x.y') },
  invalid_user: { provoke: (stage) => stage.ask('/users/a%2Fb') },
  reserved_parameter: { provoke: (stage) => call(stage, { params: { __COOPERATIVE_site_id: 1 } }) },
  too_complex: {
    provoke: (stage) =>
      graphql(stage, {
        query: '{ connections(first: 1000) { nodes { pendingRpcs(first: 1000) { nodes { rpcId } } } } }',
      }),
  },
  graphql_parse_failed: { provoke: (stage) => graphql(stage, { query: '{ viewer {' }) },
  graphql_validation_failed: { provoke: (stage) => graphql(stage, { query: '{ viewer { nothing } }' }) },
  persisted_query_not_supported: {
    provoke: (stage) => graphql(stage, { extensions: { persistedQuery: { version: 1, sha256Hash: 'ab' } } }),
  },
  not_acceptable: {
    provoke: (stage) => graphql(stage, { query: 'subscription { connectionEvents { change } }' }, 'application/json'),
  },
  unauthenticated: { provoke: (stage) => stage.ask('/users', { token: 'not one' }) },
  forbidden: { provoke: (stage) => stage.ask('/users', { token: stage.alice }) },
  not_found: { provoke: (stage) => stage.ask('/commands/alice/tab/none') },
  method_not_allowed: { provoke: (stage) => stage.ask('/users', postJson({})) },
  ambiguous: {
    async provoke(stage) {
      for (const clientId of ['one', 'two'])
        await (await live(stage, { clientId })).session.report(report(null, snapshot(browserWindow('w1'))));
      return stage.ask('/browser-windows/w1?user_id=alice');
    },
  },
  command_conflict: {
    async provoke(stage) {
      await live(stage);
      await call(stage, { command_id: 'c1', wait_for: 'admitted' });
      return call(stage, { command_id: 'c1', params: { other: true } });
    },
  },
  instance_mismatch: {
    async provoke(stage) {
      await live(stage);
      return call(stage, { instance_id: 'i9' });
    },
  },
  not_connected: { provoke: (stage) => call(stage) },
  context_gone: {
    async provoke(stage) {
      await live(stage, { places: true });
      return call(stage, { context_id: 'tab-1' });
    },
  },
  context_unsupported: {
    async provoke(stage) {
      await live(stage);
      return call(stage, { context_id: 'tab-1' });
    },
  },
  action_not_advertised: {
    async provoke(stage) {
      await live(stage, { actions: [] });
      return call(stage);
    },
  },
  payload_too_large: { provoke: (stage) => call(stage, { params: { a: 'x'.repeat(2 ** 20) } }) },
  unsupported_media_type: {
    provoke: (stage) => stage.ask(INVOKE, { method: 'POST', body: 'a=1', headers: { 'content-type': 'text/plain' } }),
  },
  queue_full: {
    async provoke(stage) {
      const client = await live(stage);
      client.backlog = 2 ** 20;
      const request = { userId: 'alice', clientId: 'tab', action: 'open', params: null, waitFor: 'admitted' } as const;
      for (let i = 0; i < 1000; i++) await stage.callboard.core.rpc.invoke(user('alice'), request);
      return call(stage);
    },
  },
  capacity_exceeded: {
    async provoke(stage) {
      await live(stage);
      for (let i = 0; i < 8; i++) void call(stage, { command_id: 'c1' });
      const admin = { kind: 'admin', name: 't', expiresAt: null } as const;
      while ((await stage.callboard.core.rpc.count(admin, {})).count < 8) await settle();
      return call(stage, { command_id: 'c1' });
    },
  },
  share_exceeded: {
    async provoke() {
      await using small = await startHttpRelay({ shares: { waits: { guarantee: 1 } } });
      const token = await tokenOf('alice', 'connect', 'invoke');
      const { core } = small.callboard;
      const client = await connect(core, user('alice'), { actions: [advertisement('open')] });
      const first = small.ask(INVOKE, postJson({}, { token }));
      while (client.sent.length === 0) await settle();
      const second = await small.ask(INVOKE, postJson({}, { token }));
      expect(second.json?.['share']).toBe('waits');
      await client.result(client.last);
      expect((await first).status).toBe(200);
      return second;
    },
  },
  store_full: {
    async provoke() {
      const bound = { guarantee: 1000, total: 1000 };
      await using small = await startHttpRelay({ shares: { queued_bytes: bound } });
      const body = { params: { text: 'x'.repeat(800) }, connect_within_ms: 60_000, wait_for: 'admitted' };
      const park = async (userId: string): Promise<Answer> => {
        const token = await tokenOf(userId, 'invoke');
        return small.ask(`/connections/${userId}/tab/actions/open`, postJson(body, { token }));
      };
      // Each relay that owns users has room for one of them.
      for (const userId of ['bob', 'carol', 'dave']) {
        const answer = await park(userId);
        if (answer.status === 202) continue;
        expect(answer.json?.['share']).toBe('queued_bytes');
        return answer;
      }
      throw new Error('there was room for all');
    },
  },
  rate_limited: {
    async provoke(stage) {
      let answer = await stage.ask('/users', { token: 'bad' });
      for (let i = 0; i < 100 && answer.status !== 429; i++) answer = await stage.ask('/users', { token: 'bad' });
      return answer;
    },
  },
  draining: {
    async provoke(stage) {
      await stage.callboard.drain(0);
      return call(stage);
    },
  },
  policy_denied: {
    async provoke() {
      const rules = [{ name: 'closed', effect: 'deny', actions: ['open'] }] as const;
      await using strict = await startHttpRelay({ policy: { rules, scopes: [], userCapacity: null } });
      return await strict.ask(INVOKE, postJson({}));
    },
  },
  connect_timeout: { provoke: (stage) => outlived(stage, call(stage, { connect_within_ms: 1000 }), 1000) },
  queue_timeout: {
    async provoke(stage) {
      const client = await live(stage);
      client.backlog = 2 ** 20;
      return outlived(stage, call(stage), 30_000);
    },
  },
  response_timeout: {
    async provoke(stage) {
      await live(stage);
      return outlived(stage, call(stage), 30_000);
    },
  },
  instance_replaced: {
    async provoke(stage) {
      const client = await live(stage);
      const pending = call(stage);
      while (client.sent.length === 0) await settle();
      await live(stage, { instanceId: 'i2' });
      await stage.clock.advance(5_000);
      return pending;
    },
  },
  node_lost: {
    async provoke(stage) {
      const client = await live(stage);
      const pending = call(stage);
      while (client.sent.length === 0) await settle();
      await stage.callboard.core.close();
      return pending;
    },
  },
  not_received: {
    async provoke(stage) {
      const client = await live(stage, { resumes: { attempt: 1, received: new Set() } });
      const pending = call(stage, { command_id: 'c1' });
      while (client.sent.length === 0) await settle();
      // Somebody has asked to cancel it, so it is not written to the next link.
      await call(stage, {}, '/commands/alice/tab/c1/cancel');
      await live(stage, { resumes: { attempt: 2, received: new Set() } });
      return pending;
    },
  },
  reserved_stream: { provoke: (stage) => ingest(stage, { stream_suffix: 'clients/tab' }) },
  stale_instance: {
    async provoke(stage) {
      await live(stage);
      return ingest(stage, { instance_id: 'i9' });
    },
  },
  raw_history_disabled: { provoke: (stage) => stage.ask('/history/raw-messages') },
  result_expired: {
    async provoke() {
      await using small = await startHttpRelay({ shares: { result_bytes: { guarantee: 1, total: 1 } } });
      const token = await tokenOf('alice', 'connect', 'invoke');
      const body = { command_id: 'c1' };
      const stage = { ...small, clock: new FakeClock(Date.now()), alice: token };
      const client = await live(stage);
      const pending = call(stage, body);
      while (client.sent.length === 0) await settle();
      await client.result(client.last);
      const first = await pending;
      expect([first.status, first.json?.['outcome'], first.json?.['error']]).toEqual([200, 'completed', null]);
      const answer = await small.ask(INVOKE, postJson(body, { token }));
      expect([answer.json?.['outcome'], answer.json?.['result']]).toEqual(['completed', null]);
      return answer;
    },
  },
  site_action_denied: { provoke: (stage) => siteCall(stage, { actions: ['close'] }) },
  site_capability_denied: { provoke: (stage) => siteCall(stage, { capabilityProfile: { actionInvocation: false } }) },
  site_mode_denied: {
    async provoke() {
      const clock = new FakeClock(Date.now());
      const backend = createMemoryBackend({
        markSecret: 'x',
        clock,
        log: silentLog,
        sha256: createCrypto('test').sha256,
      });
      await using started = await startHttpRelay({}, { clock, backend });
      const alice = await tokenOf('alice', 'connect', 'invoke');
      // A site of another mode cannot be registered; only the store can contain one.
      return await siteCall({ ...started, clock, alice }, {}, async () => {
        const [site] = await backend.sites.get([{ userId: 'alice', siteId: 'board' }]);
        if (site) await backend.sites.put({ ...site, mode: 'observed' });
      });
    },
  },
  paused: {
    async provoke(stage) {
      await live(stage);
      await stage.ask('/pauses', postJson({ all: true, reason: 'stop' }, { token: stage.alice }));
      return call(stage);
    },
  },
  session_inactive: { provoke: (stage) => siteCall(stage) },
  client_denied: { provoke: (stage) => answered(stage, 'client_denied', true) },
  approval_denied: { provoke: (stage) => answered(stage, 'approval_denied', true) },
  arguments_invalid: { provoke: (stage) => answered(stage, 'arguments_invalid', true) },
  lease_busy: { provoke: (stage) => answered(stage, 'lease_busy', true) },
  unknown_action: { provoke: (stage) => answered(stage, 'unknown_action', true) },
  too_late: { provoke: (stage) => answered(stage, 'too_late', true) },
  handler_failed: { provoke: (stage) => answered(stage, 'handler_failed') },
  result_unavailable: { provoke: (stage) => answered(stage, 'result_unavailable') },
  client_timeout: { provoke: (stage) => answered(stage, 'client_timeout') },
};

/** The codes that are provoked over GraphQL, whose answers are not problem documents. */
const OF_GRAPHQL = [
  'too_complex',
  'not_acceptable',
  'graphql_parse_failed',
  'graphql_validation_failed',
  'persisted_query_not_supported',
];

/** The codes that no row of ROWS provokes, each with the tests that cover it or with the reason. */
const ELSEWHERE: Partial<Record<Code, string>> = {
  internal: 'masking: test/graphql/mask.test.ts, test/http/endpoints.test.ts',
  cancelled: 'not an error: the reason of a cancel, in history',
  runtime_disconnected: 'of the control server: test/clients/control-server.test.ts',
  audit_unavailable: 'an audit that cannot be written: test/relay/audit.test.ts',
  not_supported: 'pauses over Redis: test/relay/pauses.test.ts',
  store_unavailable: 'shared mode',
  store_lost: 'shared mode',
};

/** The codes that a relay over Redis cannot answer, each with the reason. */
const DIRECT_ONLY: Partial<Record<Code, string>> = {
  node_lost: 'a relay that closes takes no command with it',
  ...(!HAS_PAUSES && { paused: 'the store has no pauses' }),
};

function rows() {
  return Object.entries(ROWS).filter(([code]) => IS_DIRECT || !(code in DIRECT_ONLY));
}

function extensionsOf(answer: Answer): Record<string, unknown> {
  const errors = answer.json?.['errors'] as { extensions: Record<string, unknown> }[] | undefined;
  return errors?.[0]?.extensions ?? {};
}

/** Returns the error code of an answer, wherever this kind of answer has it. */
function codeOf({ json }: Answer): unknown {
  const error = json?.['error'] as { code: string } | null | undefined;
  return json?.['code'] ?? error?.code;
}

describe('the code table', () => {
  it('has a row for every code', () => {
    expect(Object.keys(CODES).filter((code) => !(code in ROWS) && !(code in ELSEWHERE))).toEqual([]);
  });

  it.each(rows())('answers %s with its status and code', async (code, { provoke }) => {
    const clock = new FakeClock(Date.now());
    await using started = await startHttpRelay({}, { clock });
    const alice = await tokenOf('alice', 'connect', 'invoke');
    const answer = await provoke({ ...started, clock, alice });
    expect({ status: answer.status, code: codeOf(answer) }).toEqual({ status: CODES[code as Code], code });
    if (answer.status >= 400 && !OF_GRAPHQL.includes(code))
      expect(answer.headers['content-type']).toContain('application/problem+json');
    if (answer.status === 429) expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('answers a token whose user is not canonical with 401', async () => {
    await using started = await startHttpRelay();
    const answer = await started.ask('/users', { token: await tokenOf(' alice', 'invoke') });
    expect([answer.status, codeOf(answer)]).toEqual([401, 'invalid_user']);
  });
});
