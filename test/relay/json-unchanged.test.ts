/** Tests that JSON passes through every interface unchanged. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { JSON_DEPTH } from '../../src/core/limits.ts';
import { Peer } from '../gateway/kit/test-gateway.ts';
import { openRaw } from '../graphql/kit/stream.ts';
import { compact, DEEPEST, literalOf, nestedObject, TEXTS, startJsonRelay, type JsonRelay } from './kit/json-texts.ts';
import { until } from './kit/test-relay.ts';

const INVOKED = '{ ... on Invocation { commandId outcome result } ... on Refusal { code message } }';
const INVOKE = `mutation ($input: InvokeActionInput!) { invokeAction(input: $input) ${INVOKED} }`;
const PARAMS = `mutation ($params: JSON, $id: ID) {
  invokeAction(input: { userId: "alice", clientId: "tab", action: "open", commandId: $id, params: $params }) ${INVOKED}
}`;
const AWAIT = `mutation ($id: ID!) { awaitCommand(userId: "alice", clientId: "tab", commandId: $id, withinMs: 0) ${INVOKED} }`;
const RESULT = `query ($id: ID!) { command(userId: "alice", clientId: "tab", commandId: $id) { result(reveal: true) } }`;
const HISTORY = `query ($id: ID!) { commandHistory(userId: "alice", commandId: $id) { nodes { kind payload(include: true) } } }`;
const INGEST = `mutation ($messages: [IngestMessageInput!]!) { ingestMessages(messages: $messages) { ... on IngestResult { items { retained error { code } } } } }`;
const STREAM = `query ($stream: String!) { messages(stream: $stream) { nodes { id payload(include: true) } } }`;
const UPDATES = `subscription ($id: ID!) { commandUpdates(userId: "alice", clientId: "tab", commandId: $id) { stage progress } }`;

const NUMBERED = TEXTS.map((text, number) => ({ text, number }));
/** The texts where they are whole payloads. In an advertisement or an event they are parts of one. */
const WHOLE = [...TEXTS, DEEPEST].map((text, number) => ({ text, number }));
const ACTION = '/connections/alice/tab/actions/open';
const idText = (id: string): string => JSON.stringify({ id });

/** Checks, with and without the fast path, that answers contain the bytes of the original text. */
describe.each([true, false])('JSON passes through unchanged, fast path %s', (fastPath) => {
  let at: JsonRelay;
  beforeAll(async () => {
    at = await startJsonRelay(fastPath);
  });
  afterAll(() => at[Symbol.asyncDispose]());

  let ids = 0;
  const nextId = (): string => `c${fastPath}${++ids}`;
  /** Checks that the answer contains this member unchanged. */
  const shows = (answer: string, member: string, text: string): void =>
    expect(compact(answer)).toContain(`"${member}":${compact(text)}`);

  async function invoked(text: string, send: (id: string) => Promise<string>): Promise<void> {
    const id = nextId();
    const served = at.serve(text);
    const sent = send(id);
    // A refused request reaches no client, so nobody serves it.
    const refused = await Promise.race([sent, served.then(() => null)]);
    const answer = refused ?? (await sent);
    shows(answer, 'result', text);
    expect(compact(await served)).toBe(compact(text));
  }

  it.each(WHOLE)('as params and result of a call over a link: text $number', async ({ text }) => {
    const id = nextId();
    const served = at.serve(text);
    const header = { type: 'invoke', ref: id, client_id: 'tab', action: 'open', command_id: id };
    at.requester.raw(`${JSON.stringify(header)}\n${text}`);
    // The link receives the original text, byte for byte.
    expect(await served).toBe(text);
    expect((await at.requester.next('outcome')).payload).toBe(text);
  });

  it.each(WHOLE)('as params and result of a call over REST: text $number', async ({ text }) => {
    let id = '';
    await invoked(text, async (given) => {
      id = given;
      return (await at.send(ACTION, `{"command_id":"${id}", "params" :${text}\n}`)).text;
    });
    shows((await at.rest(`/commands/alice/tab/${id}`, { requester: 'alice' })).text, 'result', text);
    shows((await at.rest(`/commands/alice/tab/${id}?within_ms=1000`, { requester: 'alice' })).text, 'result', text);
  });

  it.each(WHOLE)('as params and result of a call over GraphQL: text $number', async ({ text }) => {
    const input = (id: string): string =>
      `{"input":{"params" : ${text},"userId":"alice","clientId":"tab","action":"open","commandId":"${id}"}}`;
    for (let time = 0; time < 3; time++) {
      await invoked(text, async (id) => (await at.query(INVOKE, input(id), 'alice')).text);
      await invoked(text, async (id) => (await at.query(PARAMS, `{"id":"${id}","params":${text}}`, 'alice')).text);
    }
    let id = '';
    const own = text === DEEPEST ? null : literalOf(text);
    const literal = own ?? '{ a: [1.0, 9007199254740993, -0, 1E5, {b: 0.1000000000000000055}] }';
    const said = own === null ? '{"a":[1.0,9007199254740993,-0,1E5,{"b":0.1000000000000000055}]}' : text;
    await invoked(said, async (given) => {
      id = given;
      return (await at.query(PARAMS.replace('$params: JSON, ', '').replace('$params', literal), idText(id), 'alice'))
        .text;
    });
    for (let time = 0; time < 3; time++) {
      shows((await at.query(AWAIT, idText(id), 'alice')).text, 'result', said);
      shows((await at.query(RESULT, idText(id), 'alice')).text, 'result', said);
      shows((await at.get(RESULT, idText(id), 'alice')).text, 'result', said);
    }
    const part = '{"x":[-0,{"10":1.0,"9":1e400}]}';
    await invoked(`{"part":${part},"n":1.50}`, async (given) => {
      const query = `mutation ($part: JSON, $id: ID) { invokeAction(input: { userId: "alice", clientId: "tab", action: "open", commandId: $id, params: { part: $part, n: 1.50 } }) ${INVOKED} }`;
      return (await at.query(query, `{"id":"${given}","part":${part}}`, 'alice')).text;
    });
  });

  it.each(WHOLE)('in the history of a command: text $number', async ({ text }) => {
    const id = nextId();
    const served = at.serve(text);
    await at.send(ACTION, `{"command_id":"${id}","params":${text}}`);
    await served;
    for (let time = 0; time < 3; time++) {
      const { text: rest } = await at.rest(`/history/command/alice/${id}?include_payload=true`);
      const { text: graphql } = await at.query(HISTORY, idText(id));
      for (const answer of [rest, graphql]) {
        expect(compact(answer).split(`"payload":${compact(text)}`)).toHaveLength(3);
      }
    }
    const { text: raw } = await at.rest(`/history/raw-messages?stream=alice/clients/tab&limit=2`);
    expect(compact(raw).split(`"payload":${compact(text)}`).length).toBeGreaterThan(text.length > 16_000 ? 0 : 2);
    shows(
      (await at.rest('/history/raw-messages?stream=alice/clients/tab&values_only=true&limit=1')).text,
      'items',
      `[${text}]`,
    );
  });

  it('but not deeper than the bound, which each door names', async () => {
    const text = nestedObject(JSON_DEPTH + 1);
    const header = { type: 'invoke', ref: nextId(), client_id: 'tab', action: 'open' };
    at.requester.raw(`${JSON.stringify(header)}\n${text}`);
    const stream = `"kind":"event","stream_suffix":"notes/deep","client_id":"sender","instance_id":"i1"`;
    const variables = `{"input":{"params":${text},"userId":"alice","clientId":"tab","action":"open"}}`;
    const said = [
      (await at.requester.next('refused')).message,
      (await at.send(ACTION, `{"params":${text}}`)).text,
      (await at.send('/ingest', `{${stream},"payload":${text}}`)).text,
      (await at.query(INVOKE, variables, 'alice')).text,
      (await at.query(PARAMS, `{"id":"${nextId()}","params":${text}}`, 'alice')).text,
    ];
    for (const refusal of said) expect(refusal).toMatch(/nested .*200 levels/);
    expect(at.peer.seen('command').filter(({ payload }) => payload === text)).toEqual([]);
  });

  it.each(WHOLE)('as the payload of an ingested event: text $number', async ({ text }) => {
    const stream = `notes/${nextId()}`;
    const rest = `"kind":"event","stream_suffix":"${stream}","client_id":"sender","instance_id":"i1"`;
    await at.send('/ingest', `{${rest},"payload":${text}}`);
    await at.send('/ingest', `[{"payload": ${text} , ${rest}}]`);
    const graphql = `"kind":"event","streamSuffix":"${stream}","clientId":"sender","instanceId":"i1","payload":${text}`;
    for (let time = 0; time < 3; time++) {
      const { text: reported } = await at.query(INGEST, `{"messages":[{${graphql}}]}`, 'alice');
      expect(reported).toContain('"retained":true');
    }
    const answers = [
      await at.rest(`/history/messages?stream=alice/${stream}&include_payload=true`),
      await at.query(STREAM, JSON.stringify({ stream: `alice/${stream}` })),
      await at.query(STREAM, JSON.stringify({ stream: `alice/${stream}` })),
    ];
    for (const answer of answers) expect(compact(answer.text).split(`"payload":${compact(text)}`)).toHaveLength(6);
  });

  it.each(NUMBERED)("as a client's advertisement and report: text $number", async ({ text }) => {
    const client_id = nextId();
    const peer = await at.client({ client_id, payload: {} });
    // Metadata is bounded; the schema of an action may be longer.
    const metadata = text.length > 16_000 ? '{"10":1.0,"9":-0}' : text;
    peer.raw(`{"type":"actions"}\n{"actions":[{"name":"run", "schema" :${text},"metadata":${metadata}}]}`);
    const row = `{"context_id":"x1","status":"active","ownership":"worker","metadata": ${metadata}}`;
    peer.raw(`{"type":"report"}\n{"contexts":{"snapshot":true,"set":[${row}]}}`);
    await peer.sync();
    const own = { user: JSON.stringify({ user: 'alice', client: client_id }) };
    const CONNECTION = `query ($user: ID!, $client: ID!) { connection(userId: $user, clientId: $client) { actions { items { schema metadata } } contexts { nodes { metadata } } } }`;
    for (let time = 0; time < 3; time++) {
      const actions = await at.rest(`/connections/alice/${client_id}/actions`);
      const contexts = await at.rest(`/contexts?client_id=${client_id}`);
      const graphql = await at.query(CONNECTION, own.user);
      for (const answer of [actions, graphql]) shows(answer.text, 'schema', text);
      for (const answer of [actions, contexts, graphql]) shows(answer.text, 'metadata', metadata);
    }
    shows((await at.rest('/actions')).text, 'schema', text);
    peer.ws.close();
    await peer.closed;
  });

  it.each(NUMBERED.filter(({ text }) => text.length < 16_000))(
    'as the metadata of a hello: text $number',
    async ({ text }) => {
      const client_id = nextId();
      const peer = await at.client({ client_id, payload: undefined });
      peer.ws.close();
      await peer.closed;
      const again = new Peer({ port: Number(new URL(at.linkUrl).port), peers: at.peers });
      await again.opened;
      const token = (await at.token('alice')) ?? '';
      const header = { type: 'hello', token, client_id, instance_id: 'i2', client_type: 'console' };
      again.raw(`${JSON.stringify(header)}\n{"metadata":${text}}`);
      await again.next('welcome');
      const CONNECTION = `query ($client: ID!) { connection(userId: "alice", clientId: $client) { metadata } }`;
      for (let time = 0; time < 3; time++) {
        shows((await at.query(CONNECTION, JSON.stringify({ client: client_id }))).text, 'metadata', text);
        shows((await at.rest('/connections?user_id=alice&limit=1000')).text, 'metadata', text);
      }
      again.ws.close();
      await again.closed;
    },
  );

  it.each(WHOLE)('as progress on a stream, in one line: text $number', async ({ text }) => {
    const id = nextId();
    const call = at.send(ACTION, `{"command_id":"${id}","params":{}}`);
    const { command_id } = await at.peer.next('command');
    const stream = await at.listen(UPDATES, idText(id));
    await stream.until('event: next');
    at.peer.raw(`${JSON.stringify({ type: 'ack', command_id })}`);
    at.peer.raw(`${JSON.stringify({ type: 'progress', command_id })}\n${text}`);
    await until(() => stream.text().includes('"progress":{'));
    at.peer.raw(`${JSON.stringify({ type: 'result', command_id })}\n${text}`);
    await call;
    await stream.ended;
    shows(stream.text(), 'progress', text);
    for (const line of stream.text().split('\n')) expect(line).toMatch(/^(event: |data:|:|$)/);
  });

  it.each(NUMBERED)('as an event of a site, in one line: text $number', async ({ text }) => {
    const site = nextId();
    await at.client({ client_id: `host-${site}`, instance_id: 'i1' });
    const definition = JSON.stringify({ client_id: `host-${site}`, event_names: ['changed'] });
    const headers = { 'content-type': 'application/json' };
    await at.rest(`/sites/${site}`, { method: 'PUT', headers, body: definition, requester: 'alice' });
    const opened = JSON.parse((await at.send(`/sites/${site}/sessions`, '{}')).text);
    const document = `subscription ($id: ID!) { siteEvents(sessionId: $id) { name data } }`;
    const authorization = `Bearer ${await at.token('alice')}`;
    const accept = { accept: 'text/event-stream', authorization };
    const plain = await openRaw(`${at.url}/site-sessions/${opened.session_id}/events`, { headers: accept });
    await plain.until('callboard.ready');
    const graphql = [
      await at.listen(document, idText(opened.session_id), 'alice'),
      await at.listen(document, idText(opened.session_id), 'alice'),
    ];
    const rest = `"kind":"event","stream_suffix":"sites/${site}/events","client_id":"host-${site}","instance_id":"i1"`;
    const streams = [plain, ...graphql];
    // Over Redis a subscription may begin slightly after its stream does, and earlier events are not delivered. So
    // events are published until one arrives.
    while (!streams.every((stream) => stream.text().includes('"data":{'))) {
      const reported = await at.send('/ingest', `{${rest},"payload":{"data" : ${text}\n, "name":"changed"}}`);
      expect(reported.text).toContain('"published":true');
    }
    for (const stream of streams) {
      await until(() => /"data":\{[^\n]*\n\n/.test(stream.text()));
      shows(stream.text(), 'data', text);
      for (const line of stream.text().split('\n')) expect(line).toMatch(/^(event: |id: |data:|:|$)/);
      stream.abort();
      await stream.ended;
    }
  });
});
