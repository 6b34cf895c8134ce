/** Tests the trace context of a command, over every interface. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postJson, type Answer } from '../http/kit/http-relay.ts';
import { startBoardRelay, type BoardRelay } from './kit/board-relay.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const HEADERS = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'vendor=1, other=2' };
const FROM_HEADERS = { traceId: TRACE, parentSpanId: SPAN, traceFlags: '01', traceState: 'vendor=1,other=2' };
const NONE = { traceId: null, parentSpanId: null, traceFlags: null, traceState: null };

let relay: BoardRelay;
beforeAll(async () => void (relay = await startBoardRelay()));
afterAll(() => relay[Symbol.asyncDispose]());

type Given = { readonly traceId?: string; readonly parentSpanId?: string };
type Send = (commandId: string, headers: Record<string, string>, given?: Given) => Promise<Answer>;

async function ask(path: string, body: object, headers: Record<string, string>): Promise<Answer> {
  return relay.ask(path, postJson(body, { token: await relay.token('alice'), headers }));
}

const wire = ({ traceId, parentSpanId }: Given): object => ({ trace_id: traceId, parent_span_id: parentSpanId });
const GRAPHQL = `mutation ($input: InvokeActionInput!) { invokeAction(input: $input) { __typename } }`;
const SITE = `mutation ($input: InvokeSiteActionInput!) { invokeSiteAction(input: $input) { __typename } }`;

const graphql =
  (accept: string): Send =>
  (commandId, headers, given = {}) => {
    const input = { userId: 'alice', clientId: 'desk', action: 'add', commandId, waitFor: 'ADMITTED', ...given };
    return ask('/graphql', { query: GRAPHQL, variables: { input } }, { accept, ...headers });
  };

const CALLS: readonly (readonly [string, Send])[] = [
  [
    'REST',
    (commandId, headers, given = {}) =>
      ask(
        '/connections/alice/desk/actions/add',
        { command_id: commandId, wait_for: 'admitted', ...wire(given) },
        headers,
      ),
  ],
  [
    'REST for a site',
    (commandId, headers, given = {}) =>
      ask(
        `/site-sessions/${relay.session.session_id}/actions/add`,
        { command_id: commandId, wait_for: 'admitted', ...wire(given) },
        headers,
      ),
  ],
  ['GraphQL', graphql('application/json')],
  ['GraphQL with a media type that the fast path leaves to Yoga', graphql('application/json;q=0.9, text/html;q=0.1')],
  ['GraphQL as an event stream', graphql('text/event-stream')],
  [
    'GraphQL for a site',
    (commandId, headers, given = {}) => {
      const input = { sessionId: relay.session.session_id, action: 'add', commandId, waitFor: 'ADMITTED', ...given };
      return ask('/graphql', { query: SITE, variables: { input } }, headers);
    },
  ],
];

async function traceOf(commandId: string): Promise<object> {
  const [command] = await relay.backend.commands.get([{ userId: 'alice', clientId: 'desk', commandId }]);
  if (!command) throw new Error(`there is no command ${commandId}`);
  const { traceId, parentSpanId, traceFlags, traceState } = command;
  return { traceId, parentSpanId, traceFlags, traceState };
}

let commands = 0;

describe.each(CALLS)('a command admitted by %s', (_, send) => {
  const traceOfCall = async (headers: Record<string, string>, given?: Given): Promise<object> => {
    const commandId = `c${(commands += 1)}`;
    const answer = await send(commandId, headers, given);
    expect([200, 202]).toContain(answer.status);
    for (const name of ['traceparent', 'tracestate', 'traceresponse']) expect(answer.headers[name]).toBeUndefined();
    return traceOf(commandId);
  };

  it('belongs to the trace of its request', async () => {
    expect(await traceOfCall(HEADERS)).toEqual(FROM_HEADERS);
  });

  it('belongs to no trace without the headers, or with a malformed one', async () => {
    expect(await traceOfCall({})).toEqual(NONE);
    expect(await traceOfCall({ traceparent: `00-${TRACE}-${SPAN}`, tracestate: 'vendor=1' })).toEqual(NONE);
  });

  it('belongs to the trace that its body names, of which the headers add nothing', async () => {
    expect(await traceOfCall(HEADERS, { traceId: 'mine' })).toEqual({ ...NONE, traceId: 'mine' });
    expect(await traceOfCall(HEADERS, { parentSpanId: 'mine' })).toEqual({ ...NONE, parentSpanId: 'mine' });
  });
});
