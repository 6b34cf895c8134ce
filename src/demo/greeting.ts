import { HOST } from './board/host.ts';
import type { BoardPage } from './board/start.ts';
import { CAST, PAGE } from './cast.ts';
import type { Relay } from './relay.ts';

/** What became of carol's page. */
export type PagePlan =
  | { readonly kind: 'browser'; readonly program: string }
  | { readonly kind: 'by-hand'; readonly why: string; readonly url: string }
  | { readonly kind: 'unbuilt' };

const NESTED =
  '{ users { nodes { id connections { nodes { clientId status actions { items { name summary } } } } workers { idle { id } assigned { id taskId } } browserWindows { nodes { id draining busyCount } } pendingRpcs { nodes { clientId action stage ageMs } } streams { nodes { suffix messageCount } } } } }';
const EVENTS = 'subscription { connectionEvents { change cause at connection { userId clientId instanceId } } }';

/** What the demo prints when everybody is on stage. */
export function greeting({ url, adminToken }: Relay, page: PagePlan, board: readonly BoardPage[]): string {
  return `callboard demo: a relay and its clients, kept busy until you stop it (Ctrl-C).

  open         ${url}/         what is here
               ${url}/graphql  GraphQL, with an editor
  admin token  ${adminToken}
               (in the editor's headers: {"authorization": "Bearer ${adminToken}"})

On stage:
${[...CAST.map(({ about, ...member }) => row(member, about)), row(PAGE, aboutPage(page)), ...boardRows(board, page)].join('\n')}

Try, in another terminal:
${commands({ url, adminToken })
  .map(({ about, command }) => `\n  # ${about}\n  ${command}\n`)
  .join('')}
`;
}

type Command = { readonly about: string; readonly command: string };

/** Each for one line of a shell. */
function commands({ url, adminToken }: Pick<Relay, 'url' | 'adminToken'>): readonly Command[] {
  const curl = `curl -sS -H 'authorization: Bearer ${adminToken}'`;
  const ask = (query: string): string => `-H 'content-type: application/json' -d '${JSON.stringify({ query })}'`;
  return [
    { about: "REST: alice's connections, streams and waiting calls", command: `${curl} ${url}/users/alice` },
    { about: 'GraphQL: all of it in one nested query', command: `${curl} ${ask(NESTED)} ${url}/graphql` },
    {
      about: 'SSE: clients that come, go, resume and are replaced, as it happens',
      command: `${curl} -N -H 'accept: text/event-stream' ${ask(EVENTS)} ${url}/graphql`,
    },
    {
      about: "REST: bob's workers, idle and with the task that each is assigned to now",
      command: `${curl} '${url}/workers?user_id=bob'`,
    },
    {
      about: 'REST: what was ingested lately, and how much of it twice',
      command: `${curl} '${url}/dedup/stats?window_seconds=3600'`,
    },
  ];
}

type Named = { readonly userId: string; readonly clientId: string; readonly clientType: string };

function row({ userId, clientId, clientType }: Named, about: string): string {
  return `  ${userId.padEnd(6)} ${clientId.padEnd(12)} ${clientType.padEnd(8)} ${about}`;
}

/** Each page is for somebody who was let in, without any credential of the relay. */
function boardRows(board: readonly BoardPage[], page: PagePlan): readonly string[] {
  if (board.length === 0) return [];
  const viewers = page.kind === 'browser' ? 'both are in a real page; open one too' : 'open it';
  const pages = board.map(({ name, url }) => `${' '.repeat(30)} as ${name}: ${url}`);
  return [row(HOST, `lets two viewers watch and change a task board; ${viewers}`), ...pages];
}

function aboutPage(page: PagePlan): string {
  if (page.kind === 'browser') return `lives in a real page (${page.program})`;
  if (page.kind === 'by-hand') return `${page.why}: open ${page.url} to put it on stage`;
  return 'is not here: the browser library is not built (npm run build)';
}
