/** Lists the attacks on the MCP endpoint for agents: searches, lists, and advertisements whose tools are listed. */
import type { WebSocket } from 'ws';
import { freshToken, HOSTILE } from '../site.ts';
import { inLanes, openLink, pause, post, type Attack, type AttackContext } from './attack.ts';

const KIB = 1024;
const AGENTS = { CALLBOARD_MCP: 'on' };
const LANES = 4;
const WORD = 'aaaaaaaaaaaaaaab';

function message(method: string, params: object = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
}

function call(name: string, args: object): string {
  return message('tools/call', { name, arguments: args });
}

/** Returns an advertisement of this many actions, each with a description of this many characters. */
function advertised(actions: number, chars: number, mark = ''): string {
  const description = 'a'.repeat(chars);
  const properties = Object.fromEntries(
    Array.from({ length: 10 }, (_, n) => [`p${n}`, { type: 'string', description }]),
  );
  const schema = chars > 100 ? { type: 'object' } : { type: 'object', properties };
  return JSON.stringify({
    actions: Array.from({ length: actions }, (_, n) => ({
      name: `act${mark}${n}`,
      description: mark + description,
      schema,
    })),
  });
}

/** Keeps the links of an attack open until its process ends. */
const links: WebSocket[] = [];

async function join({ site, count }: AttackContext, n: number, payload: string): Promise<void> {
  const token = await freshToken(HOSTILE);
  links.push(await openLink(site, n, { clientId: `agent-${n}`, payload, token }));
  count('links');
}

async function ask({ site, count }: AttackContext, n: number, body: string): Promise<void> {
  count(`answers ${await post(site, n, { path: '/mcp', body })}`);
}

/** The attacks of a user whose own agents make the largest possible requests. */
export const AGENT_ATTACKS: readonly Attack[] = [
  {
    name: 'agent-searches',
    says: 'agents that search 256 actions of 1000 characters, with queries of 100 bytes to 960 KB',
    env: AGENTS,
    prepare: (context) => join(context, 0, advertised(256, 1_000)),
    run: (context) =>
      inLanes(context, LANES, async (n) => {
        const words = [8, 7, 2_500, 60_000][n % 4] ?? 1;
        await ask(context, n, call('find_actions', { query: `${WORD} `.repeat(words).trim() }));
      }),
  },
  {
    name: 'agent-catalogs',
    says: '240 clients that advertise 60 KB anew each time, and agents that list their tools',
    env: AGENTS,
    run: (context) =>
      inLanes(context, LANES, async (n) => {
        const payload = advertised(4, 15 * KIB, `v${n}x`);
        const link = links[n % 240];
        if (link) {
          link.send(`{"type":"actions"}\n${payload}`);
          context.count('frames');
        } else await join(context, n, payload);
        if (n % 4 === 0) await ask(context, n, message('tools/list'));
        await pause(10);
      }),
  },
  {
    name: 'agent-lists',
    says: 'agents of a user with 250 clients of 250 actions, that read lists, 50 of them in a batch, with 90,000 members',
    env: AGENTS,
    async prepare(context) {
      const payload = advertised(250, 10);
      for (let n = 0; n < 250; n++) await join(context, n, payload).catch(() => context.count('links refused'));
    },
    async run(context) {
      const list = message('tools/list');
      const _meta = Object.fromEntries(Array.from({ length: 90_000 }, (_, n) => [`m${n}`, n]));
      const bodies = [
        ...[list, call('list_clients', {}), call('find_actions', {}), call('describe_action', { action: 'act1' })],
        ...[`[${Array.from({ length: 50 }, () => list).join(',')}]`, message('tools/list', { _meta })],
      ];
      await inLanes(context, 2 * LANES, (n) => ask(context, n, bodies[n % bodies.length] ?? list));
    },
  },
];
