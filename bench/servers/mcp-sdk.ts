/** Runs a server of the MCP SDK with one tool, which echoes, for comparison with the relay's MCP endpoint. */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Server, createMcpHandler } from '@modelcontextprotocol/server';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';
import { ACTION } from '../lib/rpc.ts';

export async function start(): Promise<Started> {
  const handler = createMcpHandler(() => {
    const server = new Server({ name: 'bare', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', async () => ({
      tools: [{ name: ACTION, inputSchema: { type: 'object' } }],
    }));
    server.setRequestHandler('tools/call', async ({ params }) => {
      const result = { ok: params.arguments };
      return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: result };
    });
    return server;
  });
  const server = createServer(async (request, response) => {
    const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
    const body = await text(request);
    const answer = await handler.fetch(new Request('http://bench/mcp', { method: 'POST', headers, body }));
    const sent = await answer.text();
    response.writeHead(answer.status, {
      'content-type': answer.headers.get('content-type') ?? '',
      'content-length': Buffer.byteLength(sent),
    });
    response.end(sent);
  });
  return { port: await listen(server) };
}
