/** Runs the examples of the documentation with a relay. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { openCallboard } from '../../../src/callboard.ts';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { parsePolicyFile } from '../../../src/settings/policy-file-format.ts';
import { launchChromium } from '../../browser/kit/chromium.ts';
import { freePort } from '../../kit/free-port.ts';
import { type Example, examplesOf, ROOT } from './examples.ts';
import { TOKEN_SECONDS, WAIT_MS } from '../../kit/patience.ts';

const SECRET = 'a secret of more than thirty-two bytes';
const ADMIN = 'an-administrator-of-the-documentation';
/** The path of a module that each Node process of an example loads first. */
const HOOKS = join(import.meta.dirname, 'from-source.mjs');
/**
 * The shell functions for examples. curl fails on HTTP errors, except when an example limits its time. npm, npx and
 * `callboard` run the programs of this checkout.
 */
const SHELL = `
npx() { "$@"; }
npm() { (cd '${ROOT}' && command npm "$@"); }
callboard() { node '${ROOT}/src/bin.ts' "$@"; }
curl() { case " $* " in *" -m "*) command curl -sS "$@" || [ $? = 28 ];; *) command curl -sS --fail-with-body "$@";; esac; }
`;

/** The address of the relay of a page, and the other ports that pages name: each is replaced by a free one. */
const RELAY_PORT = 4400;
const OTHER_PORTS = [4401, 6399] as const;

type Runner = AsyncDisposable & {
  /**
   * Runs one example. The examples of a page run one after the other. A block `text shows` holds what the examples
   * before it printed. Rejects if the example fails, with the output in the message. A command that does not complete is
   * a failure, unless the page shows what the example prints (`isShown`).
   */
  run(example: Example, options?: { readonly isShown?: boolean }): Promise<void>;
};

/**
 * Starts a real relay in direct mode, and creates a folder in which the examples of one page run with the variables
 * TOKEN (of the user `demo`) and ADMIN. The folder has the client of README.md. The ports of the examples are replaced
 * by free ones; `ownRelays`: the page starts its relays itself. Pages are opened in a browser, from an origin that the
 * relay allows. The client `alice/desk`, which examples of the command line call, is connected before the first of them.
 */
export async function startRunner({ ownRelays = false } = {}): Promise<Runner> {
  const pagePort = await freePort();
  const pages = createPages(pagePort);
  const allowedOrigins = [`http://127.0.0.1:${pagePort}`];
  const auth = { adminTokens: [ADMIN], secret: SECRET };
  const relay = await openCallboard({ config: { auth, allowedOrigins, mcp: 'on' } });
  const url = await relay.listen();
  const ports = new Map([[RELAY_PORT, ownRelays ? await freePort() : Number(new URL(url).port)]]);
  for (const port of OTHER_PORTS) ports.set(port, await freePort());
  await mkdir(join(ROOT, '.cache'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.cache/docs-'));
  const token = await tokenOf('demo');
  const env = {
    PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
    ...{ TOKEN: token, ADMIN, HOME: folder, XDG_STATE_HOME: folder, NODE_OPTIONS: `--import=${HOOKS}` },
  };
  const desk = createDesk(url);
  const groups: number[] = [];
  const output = createOutput();
  const shared = { folder, env, groups, output };
  const adapt = (text: string): string => text.replaceAll(/\b\d{4}\b/g, (word) => String(ports.get(+word) ?? word));
  const [client] = examplesOf('README.md').filter(({ info }) => info === 'file=client.mjs');
  await writeFile(join(folder, 'client.mjs'), adapt(client?.text ?? ''));
  return {
    async run(example, { isShown = false } = {}) {
      const text = adapt(example.text);
      const file = optionOf(example, 'file');
      if (example.language === 'json') return checkJson(text, example.info);
      if (example.language === 'graphql') return runQuery(url, text);
      const place = { ...shared, isShown };
      if (example.language === 'text') return output.shows(text);
      if (example.language === 'html') {
        const clicks = optionOf(example, 'clicks')?.split(',') ?? [];
        const opened = { name: file ?? 'index.html', html: text, fragment: `token=${token}`, clicks };
        const owner = optionOf(example, 'enrols');
        return pages.open({ ...opened, ...(owner && { confirm: (code) => confirmDevice(url, code, owner) }) });
      }
      if (/^(.*\| )?callboard /m.test(text)) await desk.connected();
      if (example.language === 'sh') return runProgram('bash', ['-ec', SHELL + text], place);
      if (example.language !== 'js') throw new Error(`No way to run a block of ${example.language}.`);
      const name = file ?? 'example.mjs';
      await writeFile(join(folder, name), text);
      // A named program that connects as a client is not run here, because the next shell block of the page starts it.
      if (file === undefined || !/runtime\.connect\(\)|new WebSocket\(/.test(text))
        await runProgram('node', [...(/\.test\.mjs$/.test(name) ? ['--test'] : []), name], place);
    },
    async [Symbol.asyncDispose]() {
      for (const group of groups) stopGroup(group);
      await desk.close();
      await pages[Symbol.asyncDispose]();
      await relay.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Confirms a device as an administrator does who reads its code. */
async function confirmDevice(url: string, code: string, user_id: string): Promise<void> {
  const { status } = await fetch(`${url}/enrolments/decide`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ code, decision: 'confirm', user_id }),
  });
  if (status !== 200) throw new Error(`the device was not enrolled: ${status}`);
}

/** Returns the value of `name=value` in what follows the language of a block. */
function optionOf({ info }: Example, name: string): string | undefined {
  return info
    .split(' ')
    .find((word) => word.startsWith(`${name}=`))
    ?.slice(name.length + 1);
}

/** Collects what the programs of a page print. */
function createOutput() {
  const grown = new EventTarget();
  let all = '';
  return {
    add(text: string): void {
      all += text;
      grown.dispatchEvent(new Event('output'));
    },
    /** Resolves once each of these lines was printed, alone or as a part of a line. Rejects if one is not. */
    async shows(lines: string): Promise<void> {
      const late = AbortSignal.timeout(WAIT_MS);
      const missing = (): string | undefined => lines.split('\n').find((line) => !all.includes(line));
      while (missing() !== undefined) {
        if (late.aborted) throw new Error(`Not printed: ${missing()}\nPrinted:\n${all}`);
        await Promise.race([once(grown, 'output'), once(late, 'abort')]);
      }
    },
  };
}

/** Creates the client that examples of the command line call. */
function createDesk(url: string) {
  let desk: Runtime | null = null;
  return {
    async connected(): Promise<void> {
      if (desk) return;
      const token = await tokenOf('alice');
      const link = `${url.replace(/^http/, 'ws')}/connect`;
      desk = createRuntime({ url: link, token, clientId: 'desk', clientType: 'console' });
      desk.handle('lamp.set', {}, (params) => params);
      desk.connect();
      await desk.ready();
    },
    close: async (): Promise<void> => desk?.close({ withinMs: 0 }),
  };
}

function tokenOf(user: string): Promise<string> {
  const scopes = ['connect', 'invoke', 'host'];
  return signToken({ secret: SECRET, user, scopes, ttlSeconds: TOKEN_SECONDS, now: Date.now() });
}

type Place = {
  readonly folder: string;
  readonly env: Record<string, string>;
  readonly groups: number[];
  readonly output: ReturnType<typeof createOutput>;
  readonly isShown: boolean;
};

async function runProgram(program: string, argv: readonly string[], place: Place): Promise<void> {
  const { folder, env, groups, isShown } = place;
  const child = spawn(program, argv, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  if (child.pid !== undefined) groups.push(child.pid);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      place.output.add(text);
    });
  }
  // The event `exit` is awaited and not `close`, because programs that the shell started in the background keep the
  // pipes open.
  const code = await new Promise((done) => child.once('exit', done));
  if (code !== 0) throw new Error(`It ended with ${String(code)}:\n${output}`);
  if (!isShown && /"outcome":"(?!completed")/i.test(output))
    throw new Error(`The command did not complete:\n${output}`);
}

async function runQuery(url: string, query: string): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' };
  const answer = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  const text = await answer.text();
  if (!answer.ok || text.includes('"errors"')) throw new Error(text);
}

function checkJson(text: string, info: string): void {
  JSON.parse(text);
  if (info !== 'policy') return;
  const { faults } = parsePolicyFile(text);
  if (faults.length > 0) throw new Error(JSON.stringify(faults));
}

function stopGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // The process group has already ended.
  }
}

// Opens pages of the documentation in a real browser, from an origin of their own.

export type Pages = AsyncDisposable & {
  /**
   * Serves the page at `http://127.0.0.1:<port>/<name>` and opens it with this fragment. Rejects if its script fails.
   * Then clicks the buttons of these names, one after the other, each as soon as it can be clicked. `confirm`: receives
   * the code that the page shows.
   */
  open(page: OpenedPage): Promise<void>;
};

type OpenedPage = {
  readonly name: string;
  readonly html: string;
  readonly fragment: string;
  readonly clicks: readonly string[];
  readonly confirm?: ((code: string) => Promise<void>) | undefined;
};

/** Creates the pages of one origin. The browser starts with the first page. */
function createPages(port: number): Pages {
  const opened = new AsyncDisposableStack();
  const files = new Map<string, string>();
  let browser: Browser | null = null;
  const start = async (): Promise<Browser> => {
    const server = createServer(({ url = '/' }, response) => {
      const html = files.get(url);
      response.writeHead(html === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(html);
    });
    await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
    opened.defer(() => void server.close());
    opened.defer(() => server.closeAllConnections());
    const started = await launchChromium();
    opened.defer(() => started.close());
    return started;
  };
  return {
    async open({ name, html, fragment, clicks, confirm }) {
      files.set(`/${name}`, html);
      browser ??= await start();
      const page = await browser.newPage();
      const failed = Promise.withResolvers<never>();
      page.on('pageerror', failed.reject);
      await Promise.race([page.goto(`http://127.0.0.1:${port}/${name}#${fragment}`), failed.promise]);
      if (confirm) {
        const shown = page.getByText(/^Code: /).textContent({ timeout: WAIT_MS });
        await confirm(String(await Promise.race([shown, failed.promise])).replace('Code: ', ''));
      }
      const click = async (): Promise<void> => {
        for (const button of clicks)
          await page.getByRole('button', { name: button, exact: true }).click({ timeout: 0 });
      };
      // The page may be closed before all buttons were clicked. What the page says it prints then is missing.
      click().catch(() => undefined);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
