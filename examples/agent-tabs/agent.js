/** An agent without a model: it lists its tools, and uses them in two tabs. A model would choose the same calls. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

/** Connects to the relay as an MCP host does. */
export async function connectAgent(url) {
  const token = await (await fetch(`${url}/token/agent`)).text();
  const agent = new Client({ name: 'example-agent', version: '1.0.0' });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await agent.connect(new StreamableHTTPClientTransport(new URL(`${url}/relay/mcp`), { requestInit }));
  return agent;
}

if (import.meta.main) {
  const agent = await connectAgent(process.env.APP ?? 'http://127.0.0.1:4400');
  const { tools } = await agent.listTools();
  console.log('tools:', tools.map(({ name }) => name).join(' '));
  for (const [client, city] of Object.entries({ left: 'Bern', right: 'Oslo' })) {
    const { content } = await agent.callTool({ name: 'tab_fill', arguments: { client, city } });
    console.log(client, content[0].text);
  }
  await agent.close();
}
