/** Writes the text that explains the running demo to its user. */
import { HOST } from './board/host.ts';
import type { BoardPage } from './board/start.ts';
import { CAST, PAGE } from './cast.ts';
import type { Relay } from './relay.ts';

/** How carol's page runs: in a browser, opened by the user, or not at all because the library is not built. */
export type PagePlan =
  | { readonly kind: 'browser'; readonly program: string }
  | { readonly kind: 'by-hand'; readonly why: string; readonly url: string }
  | { readonly kind: 'unbuilt' };

const NESTED =
  '{ users(first: 50) { nodes { userId connections { nodes { clientId status actions { items { name summary } } } } workers { idle { contextId } assigned { contextId taskId } } browserWindows { nodes { windowId draining busyCount } } pendingRpcs { nodes { clientId action stage ageMs } } streams { nodes { suffix messageCount } } } } }';
const EVENTS = 'subscription { connectionEvents { change cause at connection { userId clientId instanceId } } }';

/** What the greeting tells the user. `code` signs in to the GraphQL editor once, and `consoleCode` to the console. */
export type Shown = {
  readonly page: PagePlan;
  readonly board: readonly BoardPage[];
  readonly code: string;
  readonly consoleCode: string;
};

/** Returns the text that the demo prints after its clients have been started. */
export function greeting({ url, adminToken }: Relay, { page, board, code, consoleCode }: Shown): string {
  return `callboard demo: a relay and its clients, kept busy until you stop it (Ctrl-C).

  open         ${url}/console/#code=${consoleCode}
                 the console (signed in, once, within 10 minutes): watch the calls
               ${url}/         overview
               ${url}/graphql#code=${code}
                 the GraphQL editor (signed in, once, within 10 minutes)
  admin token  ${adminToken}

Clients:
${[...CAST.map(({ about, ...member }) => row(member, about)), row(PAGE, aboutPage(page)), ...boardRows(board, page)].join('\n')}

Try, in another terminal:
${commands({ url, adminToken })
  .map(({ about, command }) => `\n  # ${about}\n  ${command}\n`)
  .join('')}
`;
}

type Command = { readonly about: string; readonly command: string };

/** Returns example commands, one shell line each. */
function commands({ url, adminToken }: Pick<Relay, 'url' | 'adminToken'>): readonly Command[] {
  const curl = `curl -sS -H 'authorization: Bearer ${adminToken}'`;
  const ask = (query: string): string => `-H 'content-type: application/json' -d '${JSON.stringify({ query })}'`;
  return [
    { about: "REST: alice's connections, streams and waiting calls", command: `${curl} ${url}/users/alice` },
    { about: 'GraphQL: all of it in one nested query', command: `${curl} ${ask(NESTED)} ${url}/graphql` },
    {
      about: 'SSE: clients that connect, disconnect, resume and are replaced, live',
      command: `${curl} -N -H 'accept: text/event-stream' ${ask(EVENTS)} ${url}/graphql`,
    },
    {
      about: "REST: bob's workers, idle or with their assigned task",
      command: `${curl} '${url}/workers?user_id=bob'`,
    },
    {
      about: 'REST: messages and duplicates ingested in the last hour',
      command: `${curl} '${url}/dedup/stats?window_seconds=3600'`,
    },
  ];
}

type Named = { readonly userId: string; readonly clientId: string; readonly clientType: string };

function row({ userId, clientId, clientType }: Named, about: string): string {
  return `  ${userId.padEnd(6)} ${clientId.padEnd(12)} ${clientType.padEnd(8)} ${about}`;
}

/** Returns rows for the board's pages. Each page is for one viewer, who needs no credential of the relay. */
function boardRows(board: readonly BoardPage[], page: PagePlan): readonly string[] {
  if (board.length === 0) return [];
  const viewers = page.kind === 'browser' ? 'both are in a real page; open one too' : 'open it';
  const pages = board.map(({ name, url }) => `${' '.repeat(30)} as ${name}: ${url}`);
  return [row(HOST, `lets two viewers watch and change a task board; ${viewers}`), ...pages];
}

function aboutPage(page: PagePlan): string {
  if (page.kind === 'browser') return `runs in a real page (${page.program})`;
  if (page.kind === 'by-hand') return `${page.why}: open ${page.url} to start it`;
  return 'is missing: the browser library is not built (npm run build)';
}
