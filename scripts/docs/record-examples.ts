/**
 * Records the examples of the OpenAPI document from a running relay: `node scripts/docs/record-examples.ts`. The
 * examples contain ids and times of the run, so record them again only if an answer changes its structure. A test
 * checks that the examples fit the document.
 */
import { writeFileSync } from 'node:fs';
import { SignJWT, exportJWK, generateKeyPair } from 'jose';
import { createCallboard } from '../../src/callboard.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { signToken } from '../../src/http/tokens.ts';

const ADMIN = 'an-administrator-token-for-the-examples';
const SECRET = 'a secret for the examples, long enough for HS256';
const FILE = new URL('../../generated/openapi-examples.json', import.meta.url);

type Example = { requestBody?: unknown; responses: Record<string, unknown> };
type Call = readonly [operation: string, method: string, path: string, body?: unknown];

const callboard = createCallboard({
  config: { auth: { adminTokens: [ADMIN], secret: SECRET }, rawMessages: true, nodeId: 'relay-1' },
});
const url = await callboard.listen();
const token = await signToken({
  secret: SECRET,
  user: 'alice',
  scopes: ['connect', 'invoke', 'host'],
  ttlSeconds: 600,
  now: Date.now(),
});

const runtime = createRuntime({
  url: `${url.replace(/^http/, 'ws')}/connect`,
  token: async () => token,
  clientId: 'kiosk-1',
  clientType: 'browser',
  instanceId: 'run-1',
  metadata: { place: 'entrance' },
});
const schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const never = Promise.withResolvers<never>();
runtime.handle('notes.add', { summary: 'Adds a note', schema }, ({ text }) => ({ added: text }));
runtime.handle('notes.wait', { summary: 'Does not answer' }, () => never.promise);
runtime.connect();
await runtime.ready();
runtime.reportWindows([
  {
    windowId: 'w1',
    ownership: 'user-owned',
    status: 'open',
    type: 'normal',
    state: 'normal',
    focused: true,
    incognito: false,
    draining: false,
    tabCount: 2,
    capacity: 4,
  },
]);
runtime.reportContexts([
  { contextId: 'tab-7', status: 'active', ownership: 'user-owned', windowId: 'w1', title: 'Board' },
  { contextId: 'tab-8', status: 'idle', ownership: 'worker', windowId: 'w1' },
  { contextId: 'tab-9', status: 'active', ownership: 'worker', windowId: 'w1', taskId: 'task-1' },
]);

const operations: Record<string, Example> = {};

async function call([operation, method, path, body]: Call): Promise<any> {
  const ofAlice = path.startsWith('/site') || path === '/ingest';
  const headers = { authorization: `Bearer ${ofAlice ? token : ADMIN}`, 'content-type': 'application/json' };
  const answer = await fetch(url + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const json: unknown = await answer.json();
  if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(json)}`);
  const example = (operations[operation] ??= { responses: {} });
  if (body !== undefined) example.requestBody ??= body;
  example.responses[answer.status] ??= json;
  return json;
}

const client = '/connections/alice/kiosk-1';
const command = '/commands/alice/kiosk-1';
await call(['InvokeAction', 'POST', `${client}/actions/notes.add`, { params: { text: 'milk' }, command_id: 'c1' }]);
await call(['InvokeAction', 'POST', `${client}/actions/notes.wait`, { command_id: 'c2', wait_for: 'acknowledged' }]);
await call(['PreflightInvocation', 'POST', `${client}/actions/notes.add/preflight`, { params: { text: 'milk' } }]);
await call(['AwaitCommand', 'GET', `${command}/c1`]);
await call(['AwaitCommand', 'GET', `${command}/c2`]);
const waiting = fetch(`${url}${command}/c2?within_ms=60000`, { headers: { authorization: `Bearer ${ADMIN}` } });
await call([
  'IngestMessages',
  'POST',
  '/ingest',
  {
    message_id: 'm1',
    kind: 'event',
    stream_suffix: 'app/log',
    client_id: 'kiosk-1',
    instance_id: 'run-1',
    payload: { text: 'opened' },
  },
]);
await call([
  'PutSite',
  'PUT',
  '/sites/board',
  {
    client_id: 'kiosk-1',
    title: 'Notes',
    event_names: ['changed'],
    actions: ['notes.add'],
    capability_profile: { action_invocation: true, sharing: true },
  },
]);
const session = await call(['OpenSiteSession', 'POST', '/sites/board/sessions', { ttl_seconds: 3600 }]);
const opened = `/site-sessions/${session.session_id}`;
const shared = await call([
  'ShareSiteSession',
  'POST',
  `${opened}/grants`,
  { actions: ['notes.add'], ttl_seconds: 600 },
]);
await call(['InvokeSiteAction', 'POST', `${opened}/actions/notes.add`, { params: { text: 'bread' } }]);
await call(['CreateSiteTicket', 'POST', `${opened}/ticket`]);

const pause = {
  user_id: 'alice',
  action: 'notes.*',
  reason: 'The display is repaired',
  queued: 'keep',
  running: 'leave',
};
const paused = await call(['PauseCalls', 'POST', '/pauses', pause]);
await call(['ListPauses', 'GET', '/pauses']);
await call(['ResumeCalls', 'DELETE', `/pauses/${paused.pause_id}`]);
const { publicKey, privateKey } = await generateKeyPair('ES256');
const jwk = await exportJWK(publicKey);
/** Returns a proof that the device has its key. */
const prove = (purpose: string): Promise<string> =>
  new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', typ: 'callboard-proof+jwt', jwk })
    .setAudience(`callboard:${purpose}`)
    .setIssuedAt()
    .setJti(purpose)
    .sign(privateKey);
const device = { name: 'Entrance', client_type: 'browser', actions: ['receipt.*'] };
const { user_code: code } = await call(['Enrol', 'POST', '/enrolments', { ...device, proof: await prove('enrol') }]);
await call(['LookUpEnrolment', 'POST', '/enrolments/lookup', { code }]);
const decision = { code, decision: 'confirm', user_id: 'alice' };
await call(['DecideEnrolment', 'POST', '/enrolments/decide', decision]);
await call(['DeviceToken', 'POST', '/devices/token', { proof: await prove('token') }]);
await call(['RenameDevice', 'PUT', '/devices/alice/entrance', { name: 'Entrance hall' }]);

const READS: readonly Call[] = [
  ['ListDevices', 'GET', '/devices'],
  ['ListUsers', 'GET', '/users'],
  ['UserSummary', 'GET', '/users/alice'],
  ['ListConnections', 'GET', '/connections'],
  ['ConnectionActions', 'GET', `${client}/actions`],
  ['SampleActions', 'GET', '/actions'],
  ['ListPendingRpcs', 'GET', '/rpc/pending'],
  ['CountPendingRpcs', 'GET', '/rpc/pending/count'],
  ['CountPendingRpcsByNode', 'GET', '/rpc/pending/count-by-node'],
  ['ListStreams', 'GET', '/history/streams?user_id=alice'],
  ['ListMessages', 'GET', '/history/messages?stream=alice/app/log&include_payload=true'],
  ['ListCommandMessages', 'GET', '/history/command/alice/c1'],
  ['SampleRawMessages', 'GET', '/history/raw-messages?limit=1'],
  ['DedupStats', 'GET', '/dedup/stats'],
  ['DedupBackend', 'GET', '/dedup/backend'],
  ['DeliverySummary', 'GET', '/delivery/summary'],
  ['ListDispatcherNodes', 'GET', '/delivery/nodes'],
  ['ListCapacityScopes', 'GET', '/delivery/tenants'],
  ['DeliveryStatus', 'GET', '/delivery/status?user_id=alice&client_id=kiosk-1&command_id=c1'],
  ['ListDeliveryCommands', 'GET', '/delivery/commands?limit=1'],
  ['GroupFailures', 'GET', '/delivery/failures?outcomes=completed,failed,expired,outcome_unknown'],
  ['FindCommands', 'GET', '/commands?id_or_trace=c1'],
  ['ListContexts', 'GET', '/contexts?limit=1'],
  ['CountContexts', 'GET', '/contexts/count'],
  ['ListBrowserWindows', 'GET', '/browser-windows'],
  ['CountBrowserWindows', 'GET', '/browser-windows/count'],
  ['OneBrowserWindow', 'GET', '/browser-windows/w1?user_id=alice'],
  ['ListWorkers', 'GET', '/workers?user_id=alice'],
  ['ListAvailableWorkers', 'GET', '/workers/available?user_id=alice'],
  ['ListWorkersOfTask', 'GET', '/workers/tasks/task-1?user_id=alice'],
  ['ListSites', 'GET', '/sites'],
  ['GetSite', 'GET', '/sites/board'],
  ['GetSiteSession', 'GET', opened],
];
for (const read of READS) await call(read);

const ENDS: readonly Call[] = [
  ['RemoveDevice', 'DELETE', '/devices/alice/entrance?reason=Lost'],
  ['Revoke', 'POST', '/revocations', { token_id: 'Vd3mOoq0kX9cC2ar', reason: 'It was in a log' }],
  ['ListRevocations', 'GET', '/revocations?limit=1'],
  ['RevokeGrant', 'DELETE', `${opened}/grants/${shared.grant_id}`],
  ['CloseSiteSession', 'DELETE', opened],
  ['RemoveSite', 'DELETE', '/sites/board'],
  ['CancelCommand', 'POST', `${command}/c2/cancel`, { reason: 'No longer needed' }],
  ['DisconnectClient', 'POST', `${client}/disconnect`, { reason: 'Maintenance' }],
  ['DrainNode', 'POST', '/delivery/nodes/relay-1/drain', { within_ms: 0 }],
];
for (const end of ENDS) await call(end);

const cursor = (operations['ListContexts']?.responses['200'] as { next_cursor: string }).next_cursor;
const parameters = {
  ...{
    user_id: 'alice',
    owner: 'alice',
    client_id: 'kiosk-1',
    command_id: 'c1',
    id_or_trace: 'c1',
    action: 'notes.add',
    node_id: 'relay-1',
  },
  ...{ caller_node_id: 'relay-1', check_instance: 'run-1', window_id: 'w1', task_id: 'task-1', site_id: 'board' },
  ...{
    session_id: session.session_id,
    grant_id: shared.grant_id,
    pause_id: paused.pause_id,
    stream: 'alice/app/log',
    prefix: 'app/',
    cursor,
  },
  ...{ min_age_ms: 5000, limit: 100, admitted_after: '2026-01-31T12:00:00Z', after_time: '2026-01-31T12:00:00Z' },
};
const file = { parameters, operations };
// The tokens belong to sessions that have ended. They are replaced anyway, so that the document contains no tokens.
const text = JSON.stringify(
  file,
  (name, value: unknown) => (name === 'token' || name === 'ticket' || name === 'proof' ? 'shown-only-once' : value),
  2,
);
writeFileSync(FILE, `${text}\n`);

void (await waiting).body?.cancel();
await runtime.close({ withinMs: 0 });
await callboard.close();
