/** Serves carol's web page. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { PAGE, connectUrl } from './relay.ts';

export type PageServer = AsyncDisposable & {
  /** The origin that the relay must allow. */
  readonly origin: string;
  /** The page's address. It contains a secret key, because anyone who can open the page can get its token. */
  readonly url: string;
  /** Starts serving the page. `relayUrl` is the relay's base address. */
  show(relayUrl: string, token: () => Promise<string>): void;
};

type Show = { readonly html: string; readonly token: () => Promise<string> };

/** Serves carol's page on a free port of this machine, like an application's own server. */
export async function startPageServer(): Promise<PageServer> {
  const key = randomBytes(12).toString('base64url');
  let show: Show | null = null;
  const server = createServer((request, response) => {
    answer(request, response, { key, show }).catch(() => response.destroy());
  });
  const origin = `http://127.0.0.1:${await listen(server)}`;
  return {
    origin,
    url: `${origin}/${key}/`,
    show(relayUrl, token) {
      show = { html: pageHtml(relayUrl), token };
    },
    async [Symbol.asyncDispose]() {
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      server.closeAllConnections();
      await promise;
    },
  };
}

function listen(server: Server): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', reject);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    resolve(typeof address === 'object' && address !== null ? address.port : 0);
  });
  return promise;
}

type Shown = { readonly key: string; readonly show: Show | null };

async function answer({ url }: IncomingMessage, response: ServerResponse, { key, show }: Shown): Promise<void> {
  response.setHeader('cache-control', 'no-store');
  if (show && url === `/${key}/`) {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(show.html);
  } else if (show && url === `/${key}/token`) {
    response.setHeader('content-type', 'text/plain');
    response.end(await show.token());
  } else {
    response.writeHead(404).end();
  }
}

// Writes the web page that is carol's client in the demo.

/** Returns carol's page: an ordinary web page that imports the relay's browser library and becomes a client. */
function pageHtml(relayUrl: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Carol's reading list</title>
<link rel="icon" href="data:,">
<style>
body { font: 17px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; color-scheme: light dark }
.highlight { background: #fe6; color: #000; transition: background .3s }
#log { font: 13px/1.5 ui-monospace, monospace; opacity: .8; white-space: pre-wrap }
</style></head>
<body>
<h1>Carol's reading list</h1>
<p>This page is a client of callboard: it connects from a browser and runs the commands that it receives.</p>
<ul><li>How to wait without holding on</li><li>What a receipt proves, and what not</li><li>A short history of the callboard</li></ul>
<p>On a stage, the callboard is where everybody looks before they go on.</p>
<h2>Link: <span id="status">…</span></h2>
<div id="log"></div>
<script type="module">
${pageScript(relayUrl)}
</script>
</body></html>
`;
}

/** The page's actions, as JavaScript for the browser. */
const ACTIONS = `const selector = { type: 'string', minLength: 1, maxLength: 100 };
const schema = (properties, required = []) => ({ type: 'object', properties, required, additionalProperties: false });
const byId = (id) => document.getElementById(id);

function tell(text) {
  const log = byId('log');
  log.prepend(new Date().toLocaleTimeString() + '  ' + text + '\\n');
  while (log.childNodes.length > 50) log.lastChild.remove();
}

const actions = [
  {
    name: 'page.title',
    summary: 'The title of the page.',
    version: '1.0.0',
    schema: schema({}),
    run: () => ({ title: document.title, lang: document.documentElement.lang }),
  },
  {
    name: 'page.highlight',
    summary: 'Highlights the elements that match a CSS selector for 1.5 seconds.',
    version: '1.1.0',
    schema: schema({ selector }, ['selector']),
    run({ selector }) {
      const found = [...document.querySelectorAll(selector)];
      for (const element of found) element.classList.add('highlight');
      setTimeout(() => found.forEach((element) => element.classList.remove('highlight')), 1500);
      return { highlighted: found.length };
    },
  },
  {
    name: 'page.count-words',
    summary: 'Counts the words of the page, or of the first element that matches a CSS selector.',
    version: '1.0.0',
    schema: schema({ selector }),
    run({ selector = 'body' }) {
      const element = document.querySelector(selector);
      if (!element) throw new Error('Nothing matches ' + selector + '.');
      return { selector, words: element.innerText.split(/\\s+/).filter((word) => word !== '').length };
    },
  },
];`;

/** JavaScript for the browser. It reports the page's window, as far as a page can see it, and the page's own tab. */
const PLACE = `const windowId = 'window-' + crypto.randomUUID().slice(0, 8);

function report() {
  const visible = document.visibilityState === 'visible';
  const place = { ownership: 'user-owned', windowId };
  const looks = { focused: document.hasFocus(), type: 'normal', state: visible ? 'normal' : 'minimized', incognito: false };
  runtime.reportWindows([{ ...place, ...looks, tabCount: 1, draining: false, status: 'open' }]);
  const status = visible ? 'active' : 'idle';
  runtime.reportContexts([{ ...place, contextId: 'tab', status, title: document.title, metadata: { path: '/' } }]);
}

document.addEventListener('visibilitychange', report);
for (const change of ['focus', 'blur']) addEventListener(change, report);
report();`;

function pageScript(relayUrl: string): string {
  const { clientId, clientType } = PAGE;
  return `import { createRuntime } from ${literal(`${relayUrl}/clients/runtime.js`)};

${ACTIONS}

async function token() {
  const answer = await fetch('token');
  if (!answer.ok) throw new Error('No token is available.');
  return answer.text();
}

const runtime = createRuntime({
  url: ${literal(connectUrl(relayUrl))},
  token,
  clientId: ${literal(clientId)},
  clientType: ${literal(clientType)},
  metadata: { path: '/', language: navigator.language },
  actions: actions.map((action) => ({
    ...action,
    run: (params, call) => {
      tell(action.name + ' ' + JSON.stringify(params));
      return action.run(params, call);
    },
  })),
  onStatus(status) {
    byId('status').textContent = status.state;
    tell('link: ' + status.state + (status.reason ? ' (' + status.reason + ')' : ''));
  },
});

${PLACE}

runtime.connect();`;
}

/** Returns a JavaScript literal that is safe inside a script element, because it contains no `<`. */
function literal(text: string): string {
  return JSON.stringify(text).replaceAll('<', '\\u003c');
}
