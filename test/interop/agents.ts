/**
 * `npm run interop:agents`: installs the conformance package of MCP and the command line of its inspector in a temporary
 * folder, and runs them against a trial in a process of its own, whose client has the actions that scenarios call.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';

const ROOT = join(import.meta.dirname, '../..');
const NODE = ['-r', join(ROOT, 'scripts/require-node.cjs'), join(ROOT, 'src/bin.ts')];

const PACKAGES = {
  conformance: 'npm:@modelcontextprotocol/conformance@0.1.16',
  'inspector-cli': 'npm:@modelcontextprotocol/inspector-cli@1.0.3',
};

/** The scenarios that fail because the relay does not have what they try, with the reason. Any other must pass. */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  ...notOffered('tools are all that the relay offers, so there are no resources', [
    ...['resources-list', 'resources-read-text', 'resources-read-binary', 'resources-templates-read'],
    ...['resources-subscribe', 'resources-unsubscribe'],
  ]),
  ...notOffered('tools are all that the relay offers, so there are no prompts', [
    ...['prompts-list', 'prompts-get-simple', 'prompts-get-with-args', 'prompts-get-embedded-resource'],
    ...['prompts-get-with-image', 'completion-complete'],
  ]),
  ...notOffered('the result of an action is JSON, so a tool returns text', [
    ...['tools-call-image', 'tools-call-audio', 'tools-call-embedded-resource', 'tools-call-mixed-content'],
  ]),
  ...notOffered('the relay sends no log messages to agents', ['logging-set-level', 'tools-call-with-logging']),
  ...notOffered('the relay is stateless and asks agents nothing during a call', [
    ...['tools-call-sampling', 'tools-call-elicitation', 'elicitation-sep1034-defaults', 'elicitation-sep1330-enums'],
  ]),
  ...notOffered('a stream is not resumed: the identical call gets the answer', ['server-sse-polling']),
  ...notOffered('it is for servers without authentication: the relay needs a token, which the proxy below adds', [
    'dns-rebinding-protection',
  ]),
};

function notOffered(reason: string, scenarios: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(scenarios.map((scenario) => [scenario, reason]));
}

const folder = mkdtempSync(join(tmpdir(), 'callboard-agents-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

/** The end of a program: its exit code, or 1 if a signal ended it; and what it printed. */
type Program = { readonly exit: number; readonly out: string };

/** Runs a program to its end. What it prints is shown if `shown`. */
async function run(argv: readonly string[], { env = {}, shown = false } = {}): Promise<Program> {
  const [program = '', ...args] = argv;
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child = spawn(program, args, { cwd: folder, env: { ...process.env, ...env }, stdio: [...stdio] });
  if (shown) child.stdout?.pipe(process.stdout, { end: false });
  const [out, [exit]] = await Promise.all([text(child.stdout!), once(child, 'exit')]);
  return { exit: (exit as number | null) ?? 1, out };
}

async function install(): Promise<void> {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: PACKAGES }));
  const { exit } = await run(['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts']);
  if (exit !== 0) throw new Error('npm install failed');
  // The inspector reads its name and version two folders above its program, where its package has no file.
  writeFileSync(join(folder, 'node_modules/package.json'), JSON.stringify({ name: 'inspector', version: '1.0.3' }));
}

type Trial = { readonly url: string; readonly token: string };

async function startTrial(): Promise<Trial> {
  const env = { PATH: process.env['PATH'] ?? '', XDG_STATE_HOME: join(folder, 'state') };
  const argv = [...NODE, 'serve', '--json', '--port', '0'];
  const child = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  // Before the folder is removed, which holds the data of the relay.
  process.prependListener('exit', () => child.kill('SIGKILL'));
  for await (const line of createInterface({ input: child.stdout })) {
    const { url = '', user_token: token = '' } = JSON.parse(line) as Record<string, string>;
    return { url, token };
  }
  throw new Error('the relay ended without a word');
}

/** Connects a client with the actions whose tools the scenarios call. */
async function connectClient({ url, token }: Trial): Promise<Runtime> {
  const link = `${url.replace(/^http/, 'ws')}/connect`;
  const runtime = createRuntime({ url: link, token, clientId: 'conformance', clientType: 'console' });
  runtime.handle('test_simple_text', {}, () => 'This is a simple text response for testing.');
  runtime.handle('test_error_handling', {}, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  // The relay sends progress every five seconds, and the scenario expects three messages.
  runtime.handle('test_tool_with_progress', {}, () => delay(16_000, 'done'));
  const address = { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } };
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address },
    properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
    additionalProperties: false,
  };
  runtime.handle('json_schema_2020_12_tool', { schema }, (params) => params);
  runtime.connect();
  await runtime.ready();
  return runtime;
}

/** Passes requests on to the relay with the token, because the conformance package sends none. */
async function startProxy({ url, token }: Trial): Promise<Server> {
  const proxy = createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const passed = httpRequest(url + request.url, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return proxy;
}

/** Runs all scenarios. Returns whether exactly those of NOT_OFFERED failed. */
async function conformance(url: string): Promise<boolean> {
  const expected = join(folder, 'not-offered.yaml');
  // JSON is YAML.
  writeFileSync(expected, JSON.stringify({ server: Object.keys(NOT_OFFERED) }));
  const argv = ['node_modules/conformance/dist/index.js', 'server', '--url', url, '--suite', 'all'];
  const { exit } = await run([process.execPath, ...argv, '--expected-failures', expected], { shown: true });
  for (const [scenario, reason] of Object.entries(NOT_OFFERED)) console.log(`not offered: ${scenario}: ${reason}`);
  return exit === 0;
}

/** Lists and calls a tool by the inspector, over HTTP and through `callboard mcp`. Returns whether each call worked. */
async function inspect({ url, token }: Trial): Promise<boolean> {
  const targets = {
    'over HTTP': [`${url}/mcp`, '--header', `Authorization: Bearer ${token}`],
    'through callboard mcp': [process.execPath, ...NODE, 'mcp'],
  };
  const methods = {
    'tools/list': ['--method', 'tools/list'],
    'tools/call': ['--method', 'tools/call', '--tool-name', 'test_simple_text'],
  };
  let green = true;
  for (const [way, target] of Object.entries(targets))
    for (const [method, options] of Object.entries(methods)) {
      const argv = [process.execPath, 'node_modules/inspector-cli/build/index.js', ...target, ...options];
      const { exit, out } = await run(argv, { env: { CALLBOARD_URL: url, CALLBOARD_TOKEN: token } });
      const worked = exit === 0 && out.includes(method === 'tools/list' ? 'list_clients' : 'simple text response');
      console.log(`${worked ? 'green' : 'RED'}: the inspector, ${method} ${way}`);
      green &&= worked;
    }
  return green;
}

await install();
const trial = await startTrial();
const client = await connectClient(trial);
const proxy = await startProxy(trial);
const { port } = proxy.address() as AddressInfo;
const green = [await conformance(`http://127.0.0.1:${port}/mcp`), await inspect(trial)].every(Boolean);
proxy.close();
proxy.closeAllConnections();
await client.close();
process.exit(green ? 0 : 1);
