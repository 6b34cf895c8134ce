/** Tests that a token which is limited to some actions sees nothing of others, in any way that the relay offers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RawStream } from '../graphql/kit/stream.ts';
import { SECRET, postJson } from '../http/kit/http-relay.ts';
import { admin } from '../kit/core.ts';
import { signToken } from '../../src/http/tokens.ts';
import { FIELDS } from './kit/access-fields.ts';
import { ROUTES } from './kit/access-routes.ts';
import { MARK, OWNER, PLANTED, furnish, idsOf, world, type Ids, type World } from './kit/planted.ts';
import { documentOf, rootFields } from './kit/selection.ts';
import { codeOf, until, type GraphqlAnswer, type Welcomed } from './kit/test-relay.ts';

/** The ids of the rows that the limited token may see. They belong to the owner of the planted rows. */
const SEEN = idsOf(OWNER, 'seen');
/** Names of the limited tokens of the owner, with the scopes. */
const LIMITED = 'limited';
const LIMITED_HOST = 'limited-host';
/** An action that the visible client advertises beside the one that the token may see, and a call of it. */
const BESIDE = { name: `${MARK}.beside`, summary: `${MARK}-beside`, schema: { title: `${MARK}-beside-schema` } };
const BESIDE_CALL = `${MARK}-beside-call`;

let at: World;
let tab: Welcomed;
beforeAll(async () => {
  at = await world();
  tab = await furnish(at, SEEN, 'seen');
  tab.send({ type: 'actions' }, { actions: [{ name: SEEN.action, summary: 'seen-summary' }, BESIDE] });
  const key = { userId: OWNER, clientId: SEEN.client };
  await until(async () => (await at.callboard.core.connections.get(admin, key))?.actions.length === 2);
  // A command of the hidden action on the visible client; its id is also the task of one of the client's workers.
  void at.post(
    `/connections/${OWNER}/${SEEN.client}/actions/${BESIDE.name}`,
    { command_id: BESIDE_CALL, respond_within_ms: 300_000 },
    `${OWNER}:invoke`,
  );
  await tab.next('command');
  const worker = { context_id: 'seen-busy', status: 'active', ownership: 'worker', task_id: BESIDE_CALL } as const;
  tab.send({ type: 'report' }, { contexts: { snapshot: false, set: [worker], removed: [] } });
  await until(async () => (await at.callboard.core.contexts.count(admin, key)).count === 3);
  for (const [name, scopes] of [
    [LIMITED, ['invoke', 'connect']],
    [LIMITED_HOST, ['invoke', 'host']],
  ] as const)
    at.know(
      name,
      await signToken({
        ...{ secret: SECRET, user: OWNER, scopes, ttlSeconds: 86_400, now: at.clock.now() },
        actions: ['seen.*'],
      }),
    );
});
afterAll(() => at[Symbol.asyncDispose]());

/**
 * Returns an answer without what the request itself names: the user, and the ids that its call uses. The id of a task is
 * no name of an action: the client that has it is visible.
 */
function rest(text: string, call: string, ids: Ids): string {
  const { user, params: _, ...names } = at.named(ids);
  const used = Object.entries(names).flatMap(([name, value]) => (call.includes(`$${name}`) ? [value] : []));
  return [user, BESIDE_CALL, ...used].reduce((left, value) => left.replaceAll(value, '<given>'), text);
}

const fields = rootFields().filter(({ operation }) => operation !== 'subscription');
const rows = fields.flatMap((field) => (FIELDS[field.name] ?? []).map((row) => ({ field, row, call: row.call })));
const harmless = rows.filter(({ row }) => !row.harmful);

function ask({ field, row, call }: (typeof rows)[number], ids: Ids): Promise<GraphqlAnswer> {
  const variables = Object.fromEntries(Object.entries(at.named(ids)).filter(([name]) => call.includes(`$${name}`)));
  return at.graphql(documentOf(field, call), { requester: row.scope === 'host' ? LIMITED_HOST : LIMITED, variables });
}

/** The fields that show a limited token what concerns its actions. Every other field is forbidden for it. */
const SHOWING: readonly string[] = [
  ...['Query.connections', 'Query.connection', 'Query.command', 'Query.commands', 'Query.findCommands'],
  'Query.commandHistory',
  ...['Query.context', 'Query.contexts', 'Query.browserWindows', 'Query.browserWindow', 'Query.workers'],
  ...['Query.actionPermissions', 'Query.preflightInvocation', 'Mutation.invokeAction', 'Mutation.awaitCommand'],
  ...['Mutation.cancelCommand', 'Query.pendingRpcs'],
];
/** The fields that answer a limited token with counts, or with nothing of a client. */
const PLAIN: Readonly<Record<string, string>> = {
  'Query.viewer': 'the requester alone',
  'Query.server': 'the relay alone',
  'Query.node': 'the row of an id',
  'Query.nodes': 'the rows of ids',
  'Query.pendingRpcCount': 'a count',
  'Query.pendingRpcCountByNode': 'a count',
  'Query.contextCount': 'a count',
  'Query.browserWindowCount': 'a count',
  'Mutation.ingestMessages': 'what the requester sent',
};

describe('a token that is limited to some actions', () => {
  it.each(harmless)('is shown nothing of other actions by $call', async (given) => {
    for (const ids of [PLANTED, SEEN]) {
      const answer = await ask(given, ids);
      expect(rest(answer.text, given.call, ids)).not.toContain(MARK);
    }
  });

  it.each(harmless)('is shown what concerns its own by $call, or nothing', async (given) => {
    const answer = await ask(given, SEEN);
    const { name } = given.field;
    if (SHOWING.includes(name)) {
      expect(answer.code).toBeUndefined();
      expect(answer.text).toContain('seen');
    } else if (name in PLAIN && !given.call.includes('Session')) expect(answer.code).toBeUndefined();
    else expect(answer.text).toContain('forbidden');
  });

  it.each(Object.entries(ROUTES).flatMap(([name, routes]) => routes.map((route) => ({ name, route }))))(
    'is shown nothing of other actions by $name',
    async ({ name, route }) => {
      const [method = ''] = name.split(' ');
      for (const ids of [PLANTED, SEEN]) {
        const named = at.named(ids);
        const sent = method === 'GET' || method === 'DELETE' ? {} : postJson(route.body?.(named) ?? {});
        const path = route.target(named);
        if (route.harmful) continue;
        const requester = route.access === 'host' || route.scope === 'host' ? LIMITED_HOST : LIMITED;
        const { text } = await at.rest(path, { requester, ...sent, method });
        const { params: _, user, ...rest } = named;
        const given = Object.values(rest).filter((id) => path.includes(id) || JSON.stringify(sent).includes(id));
        expect([user, BESIDE_CALL, ...given].reduce((left, id) => left.replaceAll(id, '<given>'), text)).not.toContain(
          MARK,
        );
      }
    },
  );

  it('cannot reach another action by a session of its own site, nor make a grant that can', async () => {
    const { session } = at.named(PLANTED);
    const invoked = await at.post(`/site-sessions/${session}/actions/${PLANTED.action}`, {}, LIMITED);
    expect([invoked.status, codeOf(invoked)]).toEqual([403, 'forbidden']);
    const shared = await at.post(`/site-sessions/${session}/grants`, {}, LIMITED_HOST);
    expect([shared.status, codeOf(shared)]).toEqual([403, 'forbidden']);
    const opened = await at.post(`/sites/${PLANTED.site}/sessions`, {}, LIMITED_HOST);
    expect([opened.status, codeOf(opened)]).toEqual([403, 'forbidden']);
  });

  it('is told of changes and calls of its own actions alone', async () => {
    const subscribe = (call: string): Promise<RawStream> => {
      const field = rootFields().find(({ name }) => name === `Subscription.${call.split('(')[0]}`);
      if (!field) throw new Error(`no subscription ${call}`);
      return at.subscribe(documentOf(field, call), { requester: LIMITED });
    };
    const [changes, calls, hidden, later, alerts] = await Promise.all([
      subscribe('connectionEvents'),
      subscribe('commandEvents'),
      subscribe(`commandUpdates(userId: "${OWNER}", clientId: "${SEEN.client}", commandId: "${BESIDE_CALL}")`),
      subscribe(
        `commandUpdates(userId: "${OWNER}", clientId: "${SEEN.client}", commandId: "later", admittedWithinMs: 60000)`,
      ),
      subscribe('pendingRpcAlerts(olderThanMs: 1000)'),
    ]);
    await hidden.until('event: complete');
    await Promise.all([changes, calls, later, alerts].map((stream) => stream.until(':')));
    const invoke = (client: string, action: string, command_id: string) =>
      at.post(
        `/connections/${OWNER}/${client}/actions/${action}`,
        { command_id, wait_for: 'admitted' },
        `${OWNER}:invoke`,
      );
    at.tab.send({ type: 'actions' }, { actions: [{ name: PLANTED.action, summary: `${MARK}-again` }] });
    await invoke(PLANTED.client, PLANTED.action, `${MARK}-told`);
    await invoke(SEEN.client, BESIDE.name, 'later');
    await later.until('event: complete');
    await invoke(SEEN.client, SEEN.action, 'seen-told');
    tab.send({ type: 'actions' }, { actions: [{ name: SEEN.action, summary: 'seen-again' }, BESIDE] });
    await Promise.all([changes.until('seen-again'), calls.until('seen-told')]);
    expect(hidden.text()).toContain('"code":"not_found"');
    expect(later.text()).toContain('"code":"not_found"');
    expect(alerts.text()).toContain('"over":false');
    for (const stream of [changes, calls, hidden, later, alerts]) {
      expect(stream.text().replaceAll(OWNER, '<user>').replaceAll(BESIDE_CALL, '<given>')).not.toContain(MARK);
      stream.abort();
    }
  });

  it('gets not_found over a link for the commands of other actions', async () => {
    const peer = await at.caller(LIMITED);
    const key = { user_id: OWNER, client_id: SEEN.client, command_id: BESIDE_CALL };
    const asked = [
      { type: 'await', ref: 'a', ...key, within_ms: 0 },
      { type: 'await', ref: 'b', ...key },
      { type: 'cancel', ref: 'c', ...key },
    ] as const;
    for (const header of asked) {
      peer.send(header);
      expect(await peer.next('refused')).toMatchObject({ ref: header.ref, code: 'not_found' });
    }
  });

  it('learns from a preflight nothing that follows the refusal of its token', async () => {
    const ask = async (action: string): Promise<unknown> => {
      const path = `/connections/${OWNER}/${SEEN.client}/actions/${action}/preflight`;
      const { text } = await at.post(path, {}, LIMITED);
      return JSON.parse(text.replaceAll(action, '<action>'));
    };
    const { as_of: _, ...known } = (await ask(BESIDE.name)) as { as_of: unknown };
    const { as_of: __, ...unknown } = (await ask('none.such')) as { as_of: unknown };
    expect(known).toEqual(unknown);
    expect(JSON.stringify(known)).toContain('The token does not allow this action.');
    expect(JSON.stringify(await ask(SEEN.action))).toContain('"advertised":1');
  });
});
