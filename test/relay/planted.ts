import type { CallboardOptions } from '../../src/callboard.ts';
import type { FakeClock } from '../kit/clock.ts';
import { stage, until, type Stage, type Welcomed } from './kit.ts';

/** Every id, text and payload of the user whose things are tried holds this word, so that a leak of any of it is seen. */
export const MARK = 'planted';

/** What an example call may name. */
export type Ids = {
  readonly user: string;
  readonly client: string;
  readonly command: string;
  readonly stream: string;
  readonly action: string;
  readonly params: object;
};

function idsOf(user: string, word: string): Ids {
  const client = `${word}-tab`;
  return {
    user,
    client,
    command: `${word}-done`,
    stream: `${user}/clients/${client}`,
    action: `${word}.open`,
    params: { say: `${word}-params` },
  };
}

export const OWNER = `${MARK}-alice`;
export const OTHER = 'bob';
export const PLANTED = idsOf(OWNER, MARK);
/** Things of nobody. */
export const ABSENT = idsOf('carol', 'absent');
export const ofOther = idsOf(OTHER, 'plain');

/** A text with whatever the asker had said itself taken out of it. */
export function withoutGiven(text: string, { params, ...names }: Ids): string {
  const given = [JSON.stringify(params), ...Object.values(names).sort((a, b) => b.length - a.length)];
  return given.reduce((left, value) => left.replaceAll(value, '<given>'), text);
}

export type World = Stage & { readonly tab: Welcomed; readonly otherTab: Welcomed };

/** Two users with the same kind of things: one's are marked, so that the other must never see them. */
export async function world(options: Partial<CallboardOptions> & { readonly clock?: FakeClock } = {}): Promise<World> {
  const house = await stage({}, options);
  const tab = await furnish(house, PLANTED, MARK);
  const otherTab = await furnish(house, ofOther, 'plain');
  return { ...house, tab, otherTab };
}

/** A client, and three commands of it: one completed, one failed, and one that is still waited for. */
async function furnish(house: Stage, ids: Ids, word: string): Promise<Welcomed> {
  const action = {
    name: ids.action,
    summary: `${word}-summary`,
    description: `${word}-description`,
    version: `${word}-version`,
    schema: { title: `${word}-schema` },
    metadata: { note: `${word}-action-metadata` },
  };
  const tab = await house.client({
    user: ids.user,
    client_id: ids.client,
    instance_id: `${word}-instance`,
    payload: { metadata: { note: `${word}-metadata` }, actions: [action] },
  });
  const path = `/connections/${ids.user}/${ids.client}/actions/${ids.action}`;
  const trace = { trace_id: `${word}-trace`, parent_span_id: `${word}-span`, params: ids.params };
  const done = house.post(path, { command_id: ids.command, ...trace }, ids.user);
  const { command_id } = await tab.next('command');
  tab.send({ type: 'ack', command_id });
  tab.send({ type: 'progress', command_id }, { at: `${word}-progress` });
  tab.send({ type: 'result', command_id }, { got: `${word}-result` });
  await done;
  tab.send({ type: 'result', command_id }, { got: `${word}-late-result` });
  const failed = house.post(path, { command_id: `${word}-failed`, ...trace }, ids.user);
  const second = await tab.next('command');
  tab.send({ type: 'error', command_id: second.command_id, code: 'handler_failed', message: `${word}-error` });
  await failed;
  void house.post(path, { command_id: `${word}-live`, respond_within_ms: 300_000, ...trace }, ids.user);
  await tab.next('command');
  tab.send({ type: 'ack', command_id: `${word}-live` });
  await until(async () => {
    const key = { userId: ids.user, clientId: ids.client, commandId: `${word}-live` };
    return (
      (await house.callboard.core.delivery.command({ kind: 'admin', name: 't', expiresAt: null }, key))?.stage ===
      'acknowledged'
    );
  });
  return tab;
}
