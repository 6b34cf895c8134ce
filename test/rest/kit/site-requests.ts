/** Sends requests to every REST route of sites. */
import { expect } from 'vitest';
import type { TestClient } from '../../kit/core.ts';
import type { OpenedCore } from '../../kit/topology-core.ts';
import type { RestServer } from './rest-server.ts';

/**
 * Requests every route of sites, so that each route answers with each of its success statuses. `client` is alice's
 * `tab`, and advertises `open`.
 */
export async function askSites(relay: RestServer & OpenedCore, client: TestClient): Promise<void> {
  const ask = async (method: string, path: string, body?: unknown, requester = 'alice') => {
    const reply = await relay.ask({ method, path, requester, ...(body !== undefined && { body }) });
    expect([method, path, reply.status < 300 || reply.status === 504]).toEqual([method, path, true]);
    return reply.body;
  };
  const profile = { action_invocation: true, sharing: true };
  await ask('PUT', '/sites/bare', { client_id: 'tab' });
  await ask('PUT', '/sites/board', { client_id: 'tab', title: 'A', actions: ['open'], capability_profile: profile });
  for (const [path, requester] of [
    ['/sites', 'alice'],
    ['/sites?limit=1', 'admin'],
    ['/sites/board', 'alice'],
  ] as const)
    await ask('GET', path, undefined, requester);
  const { session_id, grant_id } = await ask('POST', '/sites/board/sessions', { events: ['changed'] });
  const path = `/site-sessions/${session_id}`;
  const viewer = `grant:${session_id}:${grant_id}`;
  const given = await ask('POST', `${path}/grants`, { ttl_seconds: 60 }, viewer);
  await ask('DELETE', `${path}/grants/${given.grant_id}`);
  for (const requester of ['alice', 'admin', viewer]) await ask('GET', path, undefined, requester);
  await ask('POST', `${path}/ticket`, {}, viewer);
  const before = client.sent.length;
  const done = ask('POST', `${path}/actions/open`, { params: { a: 1 } }, viewer);
  await expect.poll(() => client.sent.length).toBe(before + 1);
  await client.result(client.last, { b: 2 });
  await done;
  const brief = { command_id: 'site-lost', wait_for: 'admitted', respond_within_ms: 1000 };
  await ask('POST', `${path}/actions/open`, brief, viewer);
  await relay.clock.advance(1000);
  await ask('POST', `${path}/actions/open`, brief, viewer);
  await ask('DELETE', path);
  await ask('DELETE', '/sites/board');
}
