/** Serves the page of the GraphiQL editor. */
import { createHash } from 'node:crypto';
import { PackedText, sendPacked } from '../../web/packed-file.ts';
import { BRAND, PAGE_STYLE } from '../../web/page-look.ts';
import type { HttpRequest, HttpResponse } from '../../web/request.ts';
import { START_SCRIPT } from './graphiql-script.ts';
import { acceptedTypes } from './request.ts';

/**
 * Returns the content security policy of the page. The page contains everything that it needs, and may connect only to
 * its own origin. The only code that may run is the script with this hash and the workers that it creates from its own
 * texts; no code may be generated from strings. Inline styles are allowed because the editor uses them to position each
 * line of text.
 */
function policyOf(script: string): string {
  const hash = createHash('sha256').update(script).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    'worker-src blob:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const EDITOR = { defaultEditorToolsVisibility: 'variables', subscriptionsProtocol: 'GRAPHQL_SSE' };

/** The text that starts the editor in the page of `renderGraphiQL`. It is replaced by START_SCRIPT. */
const START = 'YogaGraphiQL.renderYogaGraphiQL(\n';
/** The text in that page after which the page's only script begins. */
const SCRIPT = '<div id="root"></div>';

/** Whether a browser navigates to the endpoint, rather than a client sending a request. */
export function wantsPage(req: HttpRequest): boolean {
  return req.method === 'GET' && acceptedTypes(req).includes('text/html');
}

/**
 * Serves the GraphiQL page, which never contains a token. The page is one document of 9 MB. It is therefore loaded at
 * the first request, sent compressed, and sent only if the browser has no current copy (by its ETag).
 */
export function createGraphiqlPage(paths: EditorPaths): (req: HttpRequest, res: HttpResponse) => Promise<void> {
  let page: ReturnType<typeof makePage> | null = null;
  return async (req, res) => sendPacked(req, res, await (page ??= makePage(paths)));
}

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  vary: 'accept',
};

/** The paths, including the base path, to which the page sends requests. */
type EditorPaths = { readonly endpoint: string; readonly signInPath: string };

type EditorPage = { readonly text: PackedText; readonly headers: Readonly<Record<string, string>> };

async function makePage({ endpoint, signInPath }: EditorPaths): Promise<EditorPage> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  // Before a browser hashes a script, it normalizes line ends to line feeds. The hash in the policy must match that.
  const html = renderGraphiQL({ title: 'Callboard GraphiQL' }).replaceAll(/\r\n?/g, '\n');
  const end = html.lastIndexOf(START);
  const begin = html.indexOf('<script>', html.indexOf(SCRIPT)) + '<script>'.length;
  if (end < begin || !html.includes(SCRIPT))
    throw new Error('The page of GraphiQL starts in another way than expected.');
  const head = html
    .slice(0, begin)
    .trim()
    .replace('</title>', `</title>\n<meta name="viewport" content="width=device-width, initial-scale=1">`)
    .replace('</head>', `<style>${PAGE_STYLE}\n${SIGN_IN_STYLE}</style></head>`)
    .replace(SCRIPT, `${SIGN_IN}${SCRIPT}`);
  const options = { endpoint, signInPath, tabs: EXAMPLE_OPERATIONS, title: 'Callboard GraphiQL', ...EDITOR };
  const start = `${START_SCRIPT}\nvoid startEditor(${JSON.stringify(options).replaceAll('<', '\\u003c')});`;
  const script = `${html.slice(begin, end)}\n${start}\n`;
  const text = new PackedText(`${head}${script}</script></body></html>`);
  return { text, headers: { ...HEADERS, 'content-security-policy': policyOf(script) } };
}

// The operations with which the editor opens, one in each tab. The example call has the client `kiosk-1` as its target,
// whose code `callboard serve` prints when it starts.

const EXAMPLE_OPERATIONS: readonly { readonly query: string; readonly variables?: string }[] = [
  {
    query: `# Press Ctrl-Enter to run this. The other tabs call a client and watch connections.
query WhoIsConnected {
  connections(first: 20) {
    nodes {
      userId
      clientId
      status
      connectedAt
      actions {
        items {
          name
          summary
        }
      }
      pendingRpcs(first: 5) {
        nodes {
          action
          ageMs
          stage
        }
      }
    }
    completeness {
      complete
    }
  }
}
`,
  },
  {
    query: `mutation Call($input: InvokeActionInput!) {
  invokeAction(input: $input) {
    ... on InvokeActionOutcome {
      commandId
      outcome
      result
      error {
        code
        message
      }
    }
    ... on Refusal {
      code
      message
    }
  }
}
`,
    variables: `{
  "input": {
    "userId": "demo",
    "clientId": "kiosk-1",
    "action": "notes.add",
    "params": { "text": "milk" },
    "connectWithinMs": 10000
  }
}
`,
  },
  {
    query: `subscription Connections {
  connectionEvents {
    change
    cause
    at
    connection {
      userId
      clientId
      status
    }
    missed
  }
}
`,
  },
];

// The style of the form that asks for a token, like that of the console's form.

const SIGN_IN_STYLE = `.relay-page.sign-in{max-width:calc(24rem + 2*var(--gutter));padding-top:16vh}
.sign-in form{display:grid;gap:1rem;margin-top:1rem}.sign-in label{display:block;margin-bottom:.25rem;font-weight:500}
.sign-in input{width:100%;height:var(--ctl-h);padding:0 .5rem;font:inherit;color:inherit;background:var(--bg);border:1px solid var(--ctl);border-radius:.25rem}
.sign-in input[aria-invalid=true]{border-color:var(--failed);box-shadow:inset 0 0 0 1px var(--failed)}
.sign-in [role=alert]{margin:.25rem 0 0;color:var(--failed);font-size:.75rem}.sign-in .hint{margin:.25rem 0 0;color:var(--ink-3);font-size:.75rem;line-height:1rem}
.sign-in button{justify-self:start;height:var(--ctl-h);padding:0 .75rem;font:inherit;font-weight:600;color:var(--on-accent);background:var(--accent);border:1px solid var(--accent);border-radius:.25rem;cursor:pointer}`;

const SIGN_IN = `<template id="sign-in"><main class="relay-page sign-in">${BRAND}<h1>Sign in</h1>
<form><div><label for="token">Token</label><input id="token" name="token" type="password" autocomplete="off" required aria-describedby="token-fault token-hint">
<p role="alert" id="token-fault"></p>
<p class="hint" id="token-hint">The relay printed a token at its start. It is kept until this tab is closed.</p></div>
<button type="submit">Open the editor</button></form></main></template>`;
