/** Reads what the demo prints, and sends the requests that it suggests to an operator. */
import { z } from 'zod';

/** The content of the demo's greeting. */
export type Printed = {
  readonly url: string;
  readonly adminToken: string;
  /** The commands as they were printed. */
  readonly commands: readonly string[];
};

/** Reads what the demo has printed. Returns null until everything has been printed. */
export function readPrinted(out: string): Printed | null {
  const url = /open +(http:\S+)\/console\/#code=/.exec(out)?.[1];
  const adminToken = /admin token +(\S+)/.exec(out)?.[1];
  const commands = [...out.matchAll(/^ {2}(curl .+)$/gm)].map(([, command = '']) => command);
  return url === undefined || adminToken === undefined || commands.length < 5 ? null : { url, adminToken, commands };
}

const CONNECTIONS = z.object({
  items: z.array(
    z.object({
      user_id: z.string(),
      client_id: z.string(),
      status: z.string(),
      replaced_instance_id: z.string().nullable(),
    }),
  ),
});
const MESSAGES = z.object({ items: z.array(z.object({ command_id: z.string(), kind: z.string() })) });
const PAYLOADS = z.object({
  items: z.array(
    z.object({
      command_id: z.string().nullable(),
      payload: z.unknown(),
      payload_state: z.string(),
      payload_bytes: z.number().nullable(),
    }),
  ),
});
const CONTEXTS = z.object({
  items: z.array(
    z.object({
      context_id: z.string(),
      client_id: z.string(),
      status: z.string(),
      ownership: z.string(),
      window_id: z.string().nullable(),
      task_id: z.string().nullable(),
    }),
  ),
});
const WINDOWS = z.object({
  items: z.array(
    z.object({
      window_id: z.string(),
      client_id: z.string(),
      ownership: z.string(),
      draining: z.boolean(),
      status: z.string(),
      worker_count: z.number(),
      idle_count: z.number(),
      busy_count: z.number(),
      counts_from: z.string(),
    }),
  ),
});
const WORKERS = z.object({
  idle: CONTEXTS.shape.items,
  assigned: CONTEXTS.shape.items,
});
const DEDUP = z.object({ seen: z.number(), unique: z.number(), duplicates: z.number(), exact: z.boolean() });
const EVENTS = z.object({ items: z.array(z.object({ message_id: z.string(), kind: z.string() })) });
const CASE = z.object({
  data: z.object({
    command: z
      .object({
        outcome: z.string().nullable(),
        error: z.object({ code: z.string() }).nullable(),
        delivery: z.object({ lateResults: z.number(), lastProvenStage: z.string(), execution: z.string() }).nullable(),
      })
      .nullable(),
  }),
});

export type Operator = ReturnType<typeof createOperator>;
export type CaseFile = NonNullable<z.infer<typeof CASE>['data']['command']>;

/** Returns functions that send an operator's requests to the demo's relay, with the printed token. */
export function createOperator({ url, adminToken }: Printed) {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const get = async (path: string): Promise<unknown> => {
    const answer = await fetch(url + path, { headers });
    // A stream does not exist before a message is retained in it.
    return answer.status === 404 ? { items: [] } : answer.json();
  };
  return {
    connections: async () => CONNECTIONS.parse(await get('/connections')).items,
    /** Returns the ids of commands. For each of them, the client's stream retains a message of this kind. */
    async commandsWith(kind: string, userId: string, clientId: string): Promise<readonly string[]> {
      const stream = encodeURIComponent(`${userId}/clients/${clientId}`);
      const { items } = MESSAGES.parse(await get(`/history/messages?stream=${stream}&kinds=${kind}`));
      return items.map(({ command_id }) => command_id);
    },
    contexts: async (userId: string) => CONTEXTS.parse(await get(`/contexts?user_id=${userId}`)).items,
    windows: async (userId: string) => WINDOWS.parse(await get(`/browser-windows?user_id=${userId}`)).items,
    workers: async (userId: string) => WORKERS.parse(await get(`/workers?user_id=${userId}`)),
    dedup: async () => DEDUP.parse(await get('/dedup/stats?window_seconds=3600')),
    async events(stream: string): Promise<readonly z.infer<typeof EVENTS>['items'][number][]> {
      return EVENTS.parse(await get(`/history/messages?stream=${encodeURIComponent(stream)}&limit=1000`)).items;
    },
    /** Returns the results that a client's stream retains, with or without payloads. */
    async results(userId: string, clientId: string, include: boolean) {
      const stream = encodeURIComponent(`${userId}/clients/${clientId}`);
      const flags = `kinds=result&include_payload=${include}&limit=1000`;
      return PAYLOADS.parse(await get(`/history/messages?stream=${stream}&${flags}`)).items;
    },
    async caseFile(userId: string, clientId: string, commandId: string): Promise<CaseFile | null> {
      const query = `query ($u: ID!, $c: ID!, $id: ID!) { command(userId: $u, clientId: $c, commandId: $id) {
        outcome error { code } delivery { lateResults lastProvenStage execution } } }`;
      const body = JSON.stringify({ query, variables: { u: userId, c: clientId, id: commandId } });
      const answer = await fetch(`${url}/graphql`, { method: 'POST', headers, body });
      return CASE.parse(await answer.json()).data.command;
    },
  };
}
