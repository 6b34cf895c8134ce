/** Starts relays with the MCP endpoint, and agents that use it: clients of both generations of the SDK. */
import { request as httpRequest, type Agent as HttpAgent } from 'node:http';
import * as sdk from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { Client } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as OldHttpTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import type { Command } from '../../../src/core/commands/command.ts';
import type { Core } from '../../../src/core/core.ts';
import { silentLog, type Log } from '../../../src/core/ports.ts';
import type { ToolResult } from '../../../src/mcp/results.ts';
import { createAgentServers } from '../../../src/mcp/server.ts';
import type { Tool } from '../../../src/mcp/tools.ts';
import type { RealRelay } from '../../clients/kit/real-relay.ts';
import { admin, user } from '../../kit/core.ts';

export const MODERN = '2026-07-28';

export type CallOptions = {
  readonly onProgress?: (progress: { progress: number; message?: string | undefined }) => void;
  readonly signal?: AbortSignal;
  readonly meta?: Record<string, unknown>;
};

/** An agent, whichever SDK and whichever way it uses. */
export type Agent = AsyncDisposable & {
  list(): Promise<readonly Tool[]>;
  /** Lists the tools, and returns the `_meta` of the answer. */
  listMeta(): Promise<Readonly<Record<string, unknown>>>;
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<ToolResult>;
};

export type Generation = 'SDK 2 at 2026-07-28' | 'SDK 2 with the old handshake' | 'SDK 1';
export const GENERATIONS: readonly Generation[] = ['SDK 2 at 2026-07-28', 'SDK 2 with the old handshake', 'SDK 1'];

type Transport = Parameters<Client['connect']>[0];
type OldTransport = Parameters<OldClient['connect']>[0];

/** Connects an agent of this generation. Each of the two functions makes the transport of one SDK. */
export async function connectAgent(
  generation: Generation,
  transports: { readonly modern: () => Transport; readonly old: () => OldTransport },
): Promise<Agent> {
  if (generation === 'SDK 1') {
    const client = new OldClient({ name: 'old-host', version: '1.0' });
    await client.connect(transports.old());
    return agentOf(client);
  }
  const mode = generation === 'SDK 2 at 2026-07-28' ? { pin: MODERN } : 'legacy';
  const client = new Client({ name: 'new-host', version: '2.0' }, { versionNegotiation: { mode } });
  await client.connect(transports.modern());
  return agentOf(client);
}

function agentOf(client: Client | OldClient): Agent {
  return {
    async list() {
      const { tools } = await client.listTools();
      return tools as unknown as readonly Tool[];
    },
    async listMeta() {
      return (await client.listTools())._meta ?? {};
    },
    async call(name, args = {}, { onProgress, signal, meta } = {}) {
      const options = { ...(onProgress && { onprogress: onProgress }), ...(signal && { signal }) };
      const params = { name, arguments: args, ...(meta && { _meta: meta }) };
      const result =
        client instanceof OldClient
          ? await client.callTool(params, undefined, options)
          : await client.callTool(params, options);
      return result as unknown as ToolResult;
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

/** Connects an agent of alice to a server of this core in this process, without HTTP. */
export function inMemory(
  generation: Generation,
  { core, log = silentLog }: { readonly core: Core; readonly log?: Log },
): Promise<Agent> {
  const servers = createAgentServers({ core, log, version: '1' });
  const session = { requester: user('alice', 'invoke', 'mcp'), session: null, headers: {} };
  const [near, far] = sdk.InMemoryTransport.createLinkedPair();
  serveStdio(() => servers.create(sdk, session), { transport: far });
  return connectAgent(generation, { modern: () => near, old: () => near as never });
}

/** `query`: that of the address. `flags`: those of `callboard mcp`. */
export type Endpoint = {
  readonly url: string;
  readonly token: string;
  readonly query?: string;
  readonly flags?: readonly string[];
};

/** Connects an agent over HTTP. */
export function overHttp(generation: Generation, { url, token, query = '' }: Endpoint): Promise<Agent> {
  const at = new URL(`${url}/mcp?${query}`);
  const init = { requestInit: { headers: { authorization: `Bearer ${token}` } } };
  return connectAgent(generation, {
    modern: () => new StreamableHTTPClientTransport(at, init),
    old: () => new OldHttpTransport(at, init) as OldTransport,
  });
}

/** Connects an agent to the command `callboard mcp`, which it starts. */
export function overStdio(generation: Generation, { url, token, flags = [] }: Endpoint, bin: string): Promise<Agent> {
  const env = { PATH: process.env['PATH'] ?? '', CALLBOARD_URL: url, CALLBOARD_TOKEN: token };
  const program = { command: process.execPath, args: [bin, 'mcp', ...flags], env, stderr: 'ignore' as const };
  return connectAgent(generation, {
    modern: () => new StdioClientTransport(program),
    old: () => new OldStdioTransport(program),
  });
}

/** Connects a client of alice whose actions a test defines. */
export async function connectClient(
  relay: Pick<RealRelay, 'link' | 'token'>,
  define: (runtime: Runtime) => void,
  { user = 'alice', clientId = 'desk' }: { readonly user?: string; readonly clientId?: string } = {},
): Promise<Runtime> {
  const token = (): Promise<string> => relay.token(user, 'connect');
  const runtime = createRuntime({ url: relay.link, token, clientId, clientType: 'browser', places: true });
  define(runtime);
  runtime.connect();
  await runtime.ready();
  return runtime;
}

export type RawAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The result of the message; undefined if the answer has none. */
  readonly result: any;
};

let messages = 0;

/** Sends one message at 2026-07-28 over a connection of its own, or over that of `agent`. */
export function post(
  { url, token }: { readonly url: string; readonly token: string | null },
  { method, params = {}, meta = {}, agent = false, signal }: RawMessage,
): Promise<RawAnswer> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'raw-host', version: '3.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const message = { jsonrpc: '2.0', id: ++messages, method, params: { ...params, _meta: { ...envelope, ...meta } } };
  const { name } = params;
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MODERN,
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
    ...(token !== null && { authorization: `Bearer ${token}` }),
  };
  return send(url, { headers, body: JSON.stringify(message), agent, ...(signal && { signal }) });
}

/** Sends the text of a message, as old clients send it. */
export function postText(
  { url, token, query = '' }: Endpoint,
  body: string,
  more: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<RawAnswer> {
  const headers = {
    ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    authorization: `Bearer ${token}`,
    ...more,
  };
  return send(url, { headers, body, query, agent: false, ...(signal && { signal }) });
}

type Sent = {
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly query?: string;
  readonly agent: HttpAgent | false;
  readonly signal?: AbortSignal;
};

function send(url: string, { headers, body, query = '', agent, signal }: Sent): Promise<RawAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
  const sent = httpRequest(`${url}/mcp?${query}`, { method: 'POST', headers, agent, ...(signal && { signal }) });
  sent.on('error', reject);
  sent.on('response', (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => (text += chunk));
    response.on('error', reject);
    response.on('end', () => {
      const { statusCode: status = 0, headers: given } = response;
      resolve({ status, headers: given, text, result: resultIn(text) });
    });
  });
  sent.end(body);
  return promise;
}

export type RawMessage = {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly agent?: HttpAgent | false;
  readonly signal?: AbortSignal;
};

/** Returns the result in a JSON answer, or in the last event of a stream. */
function resultIn(text: string): unknown {
  const data = text.startsWith('{')
    ? text
    : (
        text
          .trim()
          .split('\n')
          .findLast((line) => line.startsWith('data: ')) ?? ''
      ).slice(6);
  try {
    return JSON.parse(data).result;
  } catch {
    return undefined;
  }
}

/** Calls a tool by `post`. */
export function callTool(
  at: { readonly url: string; readonly token: string | null },
  name: string,
  args: Readonly<Record<string, unknown>> = {},
  more: Omit<RawMessage, 'method' | 'params'> = {},
): Promise<RawAnswer> {
  return post(at, { ...more, method: 'tools/call', params: { name, arguments: args } });
}

/** Returns the record of alice's command that a result is about. */
export function recordOf(core: Core, { _meta: meta }: ToolResult): Promise<Command | null> {
  const { client, command_id: commandId } = meta?.['callboard/command'] as { client: string; command_id: string };
  return core.delivery.status(admin, { userId: 'alice', clientId: client, commandId });
}

/** Returns the texts of a result, joined. */
export function textOf(result: ToolResult | undefined): string {
  return result?.content.map(({ text }) => text).join('\n') ?? '';
}
