/** Creates the data of two users. Tests of access look for the data of one of them in the answers to everybody else. */
import type { CallboardOptions } from '../../../src/callboard.ts';
import type { FakeClock } from '../../kit/clock.ts';
import { postJson } from '../../http/kit/http-relay.ts';
import { nodeIdOf } from '../../../src/graphql/schema/node-ids.ts';
import { admin } from '../../kit/core.ts';
import { newDeviceKey } from '../../kit/device-key.ts';
import { HAS_DEVICES, HAS_REVOCATIONS } from '../../kit/store.ts';
import { startTestRelay, until, type TestRelay, type Welcomed } from './test-relay.ts';

/** The word that every id, text and payload of the tested owner contains, so that any leak is found. */
export const MARK = 'planted';

/** The names that an example call may use. */
export type Ids = {
  readonly user: string;
  readonly client: string;
  readonly command: string;
  readonly stream: string;
  readonly action: string;
  readonly params: object;
  readonly context: string;
  readonly window: string;
  readonly task: string;
  readonly site: string;
  /**
   * The id of the session. The relay generates it, like that of the grant. Both are invented here until `named`
   * replaces them by the real ones.
   */
  readonly session: string;
  readonly grant: string;
  /** The id of a pause, which the relay generates, too. */
  readonly pause: string;
};

export function idsOf(user: string, word: string): Ids {
  const client = `${word}-tab`;
  return {
    user,
    client,
    command: `${word}-done`,
    stream: `${user}/clients/${client}`,
    action: `${word}.open`,
    params: { say: `${word}-params` },
    context: `${word}-context`,
    window: `${word}-window`,
    task: `${word}-task`,
    site: `${word}-site`,
    session: `${word}-session`,
    grant: `${word}-grant`,
    pause: `${word}-pause`,
  };
}

export const OWNER = `${MARK}-alice`;
/** The id of the other user. It sorts after the owner's, so the first row that an administrator sees is the owner's. */
export const OTHER = 'zoe';
export const PLANTED = idsOf(OWNER, MARK);
/** The ids of rows that do not exist. */
export const ABSENT = idsOf('carol', 'absent');
export const ofOther = idsOf(OTHER, 'plain');

/** Returns a text with the requester's own input removed. */
export function withoutGiven(text: string, { params, ...names }: Ids): string {
  const given = [JSON.stringify(params), ...Object.values(names).sort((a, b) => b.length - a.length)];
  return given.reduce((left, value) => left.replaceAll(value, '<given>'), text);
}

/** The name of the requester that holds the token of the owner's session. */
export const VIEWER = 'viewer';

export type World = TestRelay & {
  readonly tab: Welcomed;
  readonly otherTab: Welcomed;
  /** Returns the given ids, completed with those that the relay generated. */
  named(ids: Ids): Named;
};

/** The ids of rows, and the global ids with which the field `node` finds them. */
export type Named = Ids & { readonly nodeOfClient: string; readonly nodeOfSession: string };

function withNodes(ids: Ids): Named {
  return {
    ...ids,
    nodeOfClient: nodeIdOf('ConnectionSnapshot', { userId: ids.user, clientId: ids.client }),
    nodeOfSession: nodeIdOf('SiteSession', { sessionId: ids.session }),
  };
}

/**
 * Starts a relay with two users that have the same kinds of rows. The rows of the owner contain MARK, and the other
 * user must never see them.
 */
export async function world(options: Partial<CallboardOptions> & { readonly clock?: FakeClock } = {}): Promise<World> {
  const relay = await startTestRelay({ rawMessages: true }, options);
  const tab = await furnish(relay, PLANTED, MARK);
  const otherTab = await furnish(relay, ofOther, 'plain');
  // The audit log gets a row about each of the two users.
  for (const { stream } of [PLANTED, ofOther])
    await relay.rest(`/history/messages?stream=${stream}&include_payload=true`);
  const sessions = new Map<string, Pick<Ids, 'session' | 'grant' | 'pause'>>();
  // The newest rows are the owner's.
  for (const ids of [ofOther, PLANTED]) {
    const { session_id, grant_id, token } = await openSession(relay, ids);
    // It covers no client that other rows are about.
    const paused = { user_id: ids.user, client_id: `${ids.client}-paused`, reason: `${ids.client}-reason` };
    const { pause_id = ids.pause } = JSON.parse((await relay.post('/pauses', paused, ids.user)).text);
    sessions.set(ids.user, { session: session_id, grant: grant_id, pause: pause_id });
    if (HAS_REVOCATIONS) {
      const revoked = { user_id: ids.user, token_id: `${ids.client}-lost`, reason: `${ids.client}-revoked` };
      await relay.post('/revocations', revoked, 'admin');
    }
    if (HAS_DEVICES) await enrolDevice(relay, ids);
    if (ids === PLANTED) relay.know(VIEWER, token);
  }
  return { ...relay, tab, otherTab, named: (ids) => withNodes({ ...ids, ...sessions.get(ids.user) }) };
}

/** Enrols a device of the user. No other row is about its client. */
async function enrolDevice(relay: TestRelay, { user, client }: Ids): Promise<void> {
  const key = await newDeviceKey(() => relay.clock.now());
  const device = { name: `${client} device`, client_type: 'browser', proof: await key.prove('enrol') };
  const begun = JSON.parse((await relay.post('/enrolments', device, 'nobody')).text);
  const decision = { code: begun.user_code, decision: 'confirm', user_id: user, client_id: `${client}-device` };
  await relay.post('/enrolments/decide', decision, 'admin');
}

type Opened = { readonly session_id: string; readonly grant_id: string; readonly token: string };

/** Registers a site that allows everything, and opens a session of it. */
export async function openSession(relay: TestRelay, { user, client, site, action }: Ids): Promise<Opened> {
  const requester = `${user}:host`;
  const definition = {
    client_id: client,
    title: `${site}-title`,
    event_names: [`${site}.changed`],
    actions: [action],
    capability_profile: { action_invocation: true, sharing: true },
  };
  await relay.rest(`/sites/${site}`, { requester, ...postJson(definition), method: 'PUT' });
  const first = await relay.post(`/sites/${site}/sessions`, {}, requester);
  const { session_id } = JSON.parse(first.text);
  // The first grant may not be shared, so a second one is made that may.
  const shared = await relay.post(`/site-sessions/${session_id}/grants`, { share: true }, requester);
  return { ...JSON.parse(shared.text), session_id };
}

/** Connects a client with a context and a window, and three commands: one completed, one failed, and one pending. */
export async function furnish(relay: TestRelay, ids: Ids, word: string): Promise<Welcomed> {
  const tab = await open(relay, ids, word);
  const path = `/connections/${ids.user}/${ids.client}/actions/${ids.action}`;
  const trace = { trace_id: `${word}-trace`, parent_span_id: `${word}-span`, params: ids.params };
  const done = relay.post(path, { command_id: ids.command, ...trace }, ids.user);
  const { command_id } = await tab.next('command');
  tab.send({ type: 'ack', command_id });
  tab.send({ type: 'progress', command_id }, { at: `${word}-progress` });
  tab.send({ type: 'result', command_id }, { got: `${word}-result` });
  await done;
  tab.send({ type: 'result', command_id }, { got: `${word}-late-result` });
  const failed = relay.post(path, { command_id: `${word}-failed`, ...trace }, ids.user);
  const second = await tab.next('command');
  tab.send({ type: 'error', command_id: second.command_id, code: 'handler_failed', message: `${word}-error` });
  await failed;
  void relay.post(path, { command_id: `${word}-live`, respond_within_ms: 300_000, ...trace }, ids.user);
  await tab.next('command');
  tab.send({ type: 'ack', command_id: `${word}-live` });
  const key = { userId: ids.user, clientId: ids.client, commandId: `${word}-live` };
  await until(async () => (await relay.callboard.core.delivery.command(admin, key))?.stage === 'acknowledged');
  return tab;
}

async function open(relay: TestRelay, ids: Ids, word: string): Promise<Welcomed> {
  const action = {
    name: ids.action,
    summary: `${word}-summary`,
    description: `${word}-description`,
    version: `${word}-version`,
    schema: { title: `${word}-schema` },
    metadata: { note: `${word}-action-metadata` },
  };
  const tab = await relay.client({
    user: ids.user,
    client_id: ids.client,
    instance_id: `${word}-instance`,
    payload: { metadata: { note: `${word}-metadata` }, actions: [action] },
  });
  const owned = { ownership: 'worker', window_id: ids.window };
  const contexts = [
    { context_id: ids.context, status: 'active', ...owned, task_id: ids.task, title: `${word}-context-title` },
    { context_id: `${ids.context}-2`, status: 'idle', ...owned, metadata: { note: `${word}-context-metadata` } },
  ];
  const state = { type: `${word}-type`, state: `${word}-state`, focused: true, incognito: false, draining: false };
  const windows = [{ window_id: ids.window, ownership: 'worker', tab_count: 2, status: 'open', ...state }];
  tab.send(
    { type: 'report' },
    { contexts: { snapshot: true, set: contexts }, windows: { snapshot: true, set: windows } },
  );
  return tab;
}
