/** Tests the audit of payload reads, over every interface. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { SECRET, ADMIN } from '../http/kit/http-relay.ts';
import { ownFolder } from '../kit/folder.ts';
import { IS_DIRECT } from '../kit/store.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

const VALUE = 'the-payload-that-must-not-leak';
const KEY = 'userId: "alice", clientId: "tab", commandId: "c1"';
const REVEAL = `mutation ($subject: RevealSubject!, $reason: String!, $messageId: ID) {
  revealPayload(input: { subject: $subject, ${KEY}, messageId: $messageId, reason: $reason }) {
    __typename ... on RevealedPayload { value digest expiresAt } ... on Refusal { code by }
  }
}`;
const AWAIT = { type: 'await', ref: 'r1', user_id: 'alice', client_id: 'tab', command_id: 'c1', within_ms: 0 } as const;
const EVENTS = `{ auditEvents { nodes { id at who action reason node outcome requestId subject { userId commandId stream } } } }`;

/** Starts a relay with one command of alice, whose params and result hold VALUE. */
async function relayWithCommand(config: Parameters<typeof startTestRelay>[0] = {}): Promise<TestRelay> {
  const relay = await startTestRelay({ rawMessages: true, ...config });
  const client = await relay.client();
  const call = relay.post('/connections/alice/tab/actions/open', { params: { text: VALUE }, command_id: 'c1' });
  await client.next('command');
  client.send({ type: 'result', command_id: 'c1' }, { text: VALUE });
  await call;
  return relay;
}

/** Sends every request by which an administrator can read VALUE. Resolves with the answers. */
async function everyRead(relay: TestRelay): Promise<readonly { readonly status: number; readonly text: string }[]> {
  const rest = [
    'history/messages?stream=alice/clients/tab&include_payload=true',
    'history/command/alice/c1?include_payload=true',
  ];
  return [
    ...(await Promise.all(rest.map((path) => relay.rest(`/${path}`)))),
    await relay.rest('/history/raw-messages'),
    await relay.rest('/commands/alice/tab/c1'),
    await relay.graphql(`{ command(${KEY}) { result(reveal: true) } }`),
    await relay.graphql(
      '{ messages(stream: "alice/clients/tab") { nodes { payload(include: true) payloadState(include: true) } } }',
    ),
    await relay.graphql(REVEAL, { variables: { subject: 'COMMAND_RESULT', reason: 'asked by the user' } }),
    await relay.graphql(REVEAL, { variables: { subject: 'COMMAND_PARAMS', reason: 'asked by the user' } }),
  ];
}

describe('an administrator who reads payloads', () => {
  it('is recorded whichever way they read, and the user sees who did', async () => {
    await using relay = await relayWithCommand();
    for (const { text } of await everyRead(relay)) expect(text).toContain(VALUE);
    const { auditEvents } = await relay.data(EVENTS);
    expect(auditEvents.nodes.map(({ action }: { action: string }) => action)).toEqual([
      ...['REVEAL', 'REVEAL'],
      ...Array.from({ length: 6 }, () => 'PAYLOAD'),
    ]);
    expect(auditEvents.nodes[0]).toMatchObject({ reason: 'asked by the user', outcome: 'revealed' });
    expect(auditEvents.nodes[0].requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(JSON.stringify(auditEvents)).not.toContain(VALUE);
    const own = await relay.data(EVENTS, { requester: 'alice' });
    expect(own.auditEvents.nodes.length).toBe(7);
    expect((await relay.data(EVENTS, { requester: 'bob' })).auditEvents.nodes).toEqual([]);
  });

  // In direct mode the audit is a file. When it is lost, the rest of the relay still works.
  it.runIf(IS_DIRECT)('gets no value, over any interface, while the audit cannot be written', async () => {
    const file = join(ownFolder(), 'audit.jsonl');
    await using relay = await relayWithCommand({ audit: { file, key: 'k'.repeat(32) } });
    // The relay writes no row to a file that another process has written to.
    writeFileSync(file, 'another process');
    for (const { text, status } of await everyRead(relay)) {
      expect(text).not.toContain(VALUE);
      expect(text.toLowerCase()).toContain('audit_unavailable');
      expect([200, 503]).toContain(status);
    }
    const caller = await relay.caller('admin');
    caller.send(AWAIT);
    const refused = await caller.next('refused');
    expect(refused).toMatchObject({ ref: 'r1', code: 'audit_unavailable' });
    expect(JSON.stringify(refused)).not.toContain(VALUE);
    const failures = /^callboard_audit_failures_total (\d+)$/m.exec((await relay.ask('/metrics')).text);
    expect(Number(failures?.[1])).toBeGreaterThan(0);
    const own = await relay.graphql(`{ command(${KEY}) { result(reveal: true) } }`, { requester: 'alice' });
    expect(own.text).toContain(VALUE);
  });

  it('reads through revealPayload only with REVEAL=mutation, and not at all with REVEAL=off', async () => {
    await using relay = await relayWithCommand({ reveal: 'mutation' });
    const answers = await everyRead(relay);
    for (const { text } of answers.slice(0, 6)) expect(text).not.toContain(VALUE);
    expect(answers[5]?.text).toContain('REDACTED');
    expect(answers[2]?.status).toBe(403);
    for (const { text } of answers.slice(6)) expect(text).toContain(VALUE);
    await using off = await relayWithCommand({ reveal: 'off' });
    for (const { text } of await everyRead(off)) expect(text).not.toContain(VALUE);
  });

  it('is recorded when it awaits the call of another over a link, and not for its own call', async () => {
    await using relay = await relayWithCommand();
    const caller = await relay.caller('admin');
    caller.send(AWAIT);
    expect((await caller.next('outcome')).payload).toContain(VALUE);
    const { within_ms: _, ...named } = { ...AWAIT, ref: 'r2', command_id: 'c2' };
    caller.send({ ...named, type: 'invoke', action: 'open' }, {});
    const [client] = relay.peers;
    await client?.next('command');
    client?.send({ type: 'result', command_id: 'c2' }, { text: VALUE });
    await caller.next('outcome');
    caller.send({ ...named, within_ms: 0 });
    expect((await caller.next('outcome')).payload).toContain(VALUE);
    const { auditEvents } = await relay.data(EVENTS);
    expect(auditEvents.nodes).toMatchObject([{ action: 'PAYLOAD', subject: { userId: 'alice', commandId: 'c1' } }]);
  });

  it('reveals a message by its id, and is refused without a reason', async () => {
    await using relay = await relayWithCommand();
    const { messages } = await relay.data('{ messages(stream: "alice/clients/tab") { nodes { id messageId kind } } }');
    for (const messageId of [messages.nodes[0].id, messages.nodes[0].messageId]) {
      const commandId = messageId === messages.nodes[0].id ? '' : ', commandId: "c1"';
      const document = `mutation { revealPayload(input: { subject: MESSAGE, userId: "alice"${commandId}, messageId: "${messageId}", reason: "asked by the user" }) { ... on RevealedPayload { value } } }`;
      expect((await relay.data(document)).revealPayload.value).toEqual({ text: VALUE });
    }
    const short = await relay.data(REVEAL, { variables: { subject: 'COMMAND_RESULT', reason: 'why' } });
    expect(short.revealPayload).toMatchObject({ code: 'invalid_argument', by: 'ARGUMENTS' });
    const nameless = await relay.data(REVEAL, { variables: { subject: 'MESSAGE', reason: 'asked by the user' } });
    expect(nameless.revealPayload).toMatchObject({ code: 'invalid_argument', by: 'ARGUMENTS' });
    const limited = { variables: { subject: 'COMMAND_RESULT', reason: 'asked by the user' } };
    for (let i = 0; i < 58; i++) await relay.data(REVEAL, limited);
    expect((await relay.data(REVEAL, limited)).revealPayload).toMatchObject({ code: 'rate_limited', by: 'CAPACITY' });
  });
});

async function run(argv: readonly string[], env: Record<string, string>): Promise<readonly [number, string]> {
  let text = '';
  const print = (part: string): void => void (text += part);
  const code = await main(argv, { env, print, complain: print, onStop: () => {} });
  return [code, text];
}

// The audit is a file in direct mode only.
describe.runIf(IS_DIRECT)('callboard audit verify', () => {
  it('verifies a file and the chain of a relay, and names the first row that is wrong', async () => {
    const file = join(ownFolder(), 'audit.jsonl');
    const key = 'k'.repeat(32);
    await using relay = await relayWithCommand({ audit: { file, key } });
    await everyRead(relay);
    const env = { CALLBOARD_AUDIT_KEY: key, CALLBOARD_SECRET: SECRET };
    expect(await run(['audit', 'verify', '--file', file], env)).toEqual([
      0,
      expect.stringMatching(/^10 rows verified, 1 to 10/),
    ]);
    const overApi = await run(['audit', 'verify', '--url', relay.url], { ...env, CALLBOARD_TOKEN: ADMIN });
    expect(overApi).toEqual([0, expect.stringMatching(/^10 rows verified, 1 to 10/)]);
    const lines = readFileSync(file, 'utf8').split('\n');
    writeFileSync(file, lines.map((line, i) => (i === 3 ? line.replace('admin:', 'admin;') : line)).join('\n'));
    expect(await run(['audit', 'verify', '--file', file], env)).toEqual([
      1,
      expect.stringContaining('Row 4 was changed'),
    ]);
    expect((await run(['audit', 'verify', '--file', `${file}.absent`], env))[0]).toBe(1);
    expect((await run(['audit', 'verify'], env))[0]).toBe(2);
    expect((await run(['audit', 'verify', '--file', file], {}))[0]).toBe(2);
  });

  it('names the key that is missing after SECRET was replaced, and takes it on another line of AUDIT_KEY', async () => {
    const file = join(ownFolder(), 'audit.jsonl');
    const [old, present] = ['an old secret, 32 bytes at the least', 'the present secret of 32 or more bytes'];
    for (const secret of [old, present]) {
      await using relay = await startTestRelay({
        rawMessages: true,
        auth: { adminTokens: [ADMIN], secret },
        audit: { file },
      });
      for (let i = 0; i < 2; i++) await relay.rest('/history/raw-messages');
    }
    const verify = (env: Record<string, string>) => run(['audit', 'verify', '--file', file], env);
    const [code, text] = await verify({ CALLBOARD_SECRET: present });
    expect([code, text]).toEqual([8, expect.stringMatching(/rows 1 to 2 are signed with a key that is not given/i)]);
    expect(text).toMatch(/\(key id [A-Za-z0-9_-]{12}; set AUDIT_KEY to the key of that time\)/);
    expect(text).not.toMatch(/broken/);
    const whole = [0, expect.stringMatching(/^4 rows verified, 1 to 4/)];
    expect(await verify({ CALLBOARD_SECRET: `${present}\n${old}` })).toEqual(whole);
    expect(await verify({ CALLBOARD_SECRET: present, CALLBOARD_AUDIT_KEY: old })).toEqual(whole);
    expect(await verify({ CALLBOARD_AUDIT_KEY: `${present}\n${old}` })).toEqual(whole);
    const lines = readFileSync(file, 'utf8').split('\n');
    const change = (row: number): void =>
      writeFileSync(file, lines.map((line, i) => (i === row - 1 ? line.replace('admin:', 'admin;') : line)).join('\n'));
    change(3);
    expect(await verify({ CALLBOARD_SECRET: present })).toEqual([
      1,
      expect.stringMatching(/^The audit is broken. Row 3 was changed.\n[^]*rows 1 to 2 .* not given/i),
    ]);
    change(1);
    expect((await verify({ CALLBOARD_SECRET: present }))[0]).toBe(8);
    expect(await verify({ CALLBOARD_SECRET: `${present}\n${old}` })).toEqual([
      1,
      expect.stringContaining('Row 1 was changed.'),
    ]);
  });
});
