/**
 * Defines the requests of agents in the cost mode: one kind for each built-in tool, for lists, and for other messages.
 */
import { request } from 'node:http';
import type { WebSocket } from 'ws';
import { openBareLink } from '../../lib/link.ts';
import type { Draw } from '../../lib/random.ts';
import { answerOf, type Answer } from '../judge.ts';
import { drawJson, growJson, jsonOf, showJson, type JsonGene } from '../json-text.ts';
import { NotPrepared, type CostInput, type CostKind } from './cost.ts';
import type { CostTarget } from './cost-target.ts';

/** A message whose text contains JSON of any size. */
type Form = { readonly name: string; readonly body: (json: string, size: number) => string };

/** The timeout for an answer of the relay, in milliseconds. */
const ANSWER_MS = 30_000;
const TEXT_MAX = 900_000;
const KEEPS = { command_id: 'planted', client: 'sink' };

function message(method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
}

function call(name: string, args: string): string {
  return message('tools/call', `{"name":"${name}","arguments":${args}}`);
}

function callWith(name: string, args: object): Form {
  return {
    name: `MCP ${name}`,
    body: (json) =>
      call(name, `{${JSON.stringify(args).slice(1, -1)}${Object.keys(args).length > 0 ? ',' : ''}"extra":${json}}`),
  };
}

const FORMS: readonly Form[] = [
  { name: 'MCP tools/list', body: (json) => message('tools/list', `{"_meta":{"x":${json}}}`) },
  {
    name: 'MCP initialize',
    body: (json) =>
      message(
        'initialize',
        `{"protocolVersion":"2025-06-18","capabilities":${json},"clientInfo":{"name":"x","version":"1"}}`,
      ),
  },
  {
    name: 'MCP batch',
    body: (_, size) =>
      `[${Array.from({ length: Math.max(1, size / 60) }, () => message('tools/list', '{}')).join(',')}]`,
  },
  {
    name: 'MCP find_actions',
    body: (_, size) =>
      call('find_actions', JSON.stringify({ query: `${'a'.repeat(15)}b `.repeat(1 + size / 16).slice(0, size) })),
  },
  { name: 'MCP call of a tool', body: (json) => call('tool1', `{"client":"absent","text":${json}}`) },
  {
    name: 'MCP call_action',
    body: (json) => call('call_action', `{"action":"echo","client":"absent","params":${json}}`),
  },
  { name: 'MCP preflight', body: (json) => call('preflight', `{"action":"tool1","client":"tools","params":${json}}`) },
  { name: 'MCP describe_action', body: () => call('describe_action', '{"action":"tool1"}') },
  { name: 'MCP list_clients', body: () => call('list_clients', '{}') },
  { name: 'MCP get_command', body: () => call('get_command', JSON.stringify(KEEPS)) },
  ...[callWith('find_actions', {}), callWith('await_command', KEEPS), callWith('cancel_command', KEEPS)],
];

export function agentKinds(target: CostTarget): readonly CostKind[] {
  const filled = FORMS.map((form): CostKind => ({
    ...{ family: 'requests', name: form.name, sender: 'user' },
    draw: (draw) => inputOf(target, form, drawJson(draw)),
  }));
  const changed: CostKind = {
    ...{ family: 'requests', name: 'MCP tools/list after a change', sender: 'user' },
    draw: (draw) => changeOf(target, { actions: draw.size(256), json: drawJson(draw) }),
  };
  return [...filled, changed];
}

function inputOf(target: CostTarget, form: Form, json: JsonGene): CostInput {
  return {
    async prepare() {
      const bytes = Math.min(json.bytes, TEXT_MAX);
      const body = form.body(jsonOf({ ...json, bytes }), bytes);
      return async () => answerOf(await send(target, body));
    },
    finish: async () => {},
    mutate: (draw) => inputOf(target, form, growJson(draw, json)),
    show: () => `${form.name} with JSON ${showJson(json)}`,
  };
}

type Change = { readonly actions: number; readonly json: JsonGene };

/** Requests a list after a client has advertised other actions, so that the relay must check their schemas. */
function changeOf(target: CostTarget, { actions, json }: Change): CostInput {
  let link: WebSocket | null = null;
  return {
    async prepare() {
      const mark = target.next();
      const bytes = Math.max(1, Math.min(json.bytes, 60_000, Math.floor(TEXT_MAX / actions) - 200));
      const schema = `{"type":"object","properties":{"a":{"type":"object","default":${jsonOf({ ...json, bytes })}}}}`;
      const all = Array.from({ length: actions }, (_, n) => `{"name":"c${mark}x${n}","schema":${schema}}`);
      const opened = {
        token: target.token('user'),
        clientId: `agent-${mark}`,
        payload: `{"actions":[${all.join(',')}]}`,
      };
      link = await openBareLink(target.linkUrl, opened).catch((error: unknown) => {
        throw new NotPrepared(String(error).slice(0, 80));
      });
      return async () => answerOf(await send(target, message('tools/list', '{}')));
    },
    async finish() {
      link?.terminate();
    },
    mutate: (draw: Draw) =>
      changeOf(target, { actions: Math.min(256, actions * draw.pick([1, 2, 4])), json: growJson(draw, json) }),
    show: () => `tools/list after ${actions} other actions, each with a schema of JSON ${showJson(json)}`,
  };
}

function send(target: CostTarget, body: string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers = {
    ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    ...{ 'content-length': Buffer.byteLength(body), authorization: `Bearer ${target.token('user')}` },
  };
  const options = { method: 'POST', agent: target.agent, headers, timeout: ANSWER_MS };
  const sent = request(`${target.url}/mcp`, options, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', reject);
    response.on('end', () =>
      resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
    );
  });
  sent.on('timeout', () => sent.destroy(new Error(`not answered within ${ANSWER_MS} ms`)));
  sent.on('error', reject);
  sent.end(body);
  return promise;
}
