/** Starts the relay that receives the fuzzer's inputs, and creates users, clients and commands in it. */
import { Agent } from 'node:http';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { ADMIN_TOKEN, startRelay, type Relay } from '../lib/relay.ts';
import { KNOWN } from './hostile.ts';

const MIB = 1024 * 1024;
/** How long the relay under test retains rows and commands, in milliseconds. They must expire during a run. */
const RETENTION_MS = 3_600_000;
const RELAY_CONFIG = { historyMaxBytes: 64 * MIB, retentionMs: RETENTION_MS, rawMessages: true };
/**
 * How much faster than real time the clock runs while frames and requests are sent. Waits of seconds then take
 * milliseconds.
 */
export const FAST_CLOCK = 20;

/** The relay under test with its users, clients and commands. It is restarted after an input has ended it. */
export interface Target extends AsyncDisposable {
  readonly relay: Relay;
  /** Returns the token of `admin` or of a user; '' for `nobody`; an invalid token for any other name. */
  token(who: string): string;
  readonly agent: Agent;
  /** Starts another relay to replace the current one, which may have ended or hang. */
  restart(): Promise<void>;
  /** Closes the links of the prepared clients, so that only retained data remain. */
  leave(): Promise<void>;
}

type TargetOptions = { readonly source?: string | undefined };

export async function openTarget({ source }: TargetOptions): Promise<Target> {
  const options = { secondServer: true, config: RELAY_CONFIG, ...(source !== undefined && { source }) };
  let relay = await startRelay(options);
  let tokens = await tokensOf(relay);
  let agent = newAgent();
  let planted = await plant(relay, tokens);
  const leave = async (): Promise<void> => {
    await Promise.all(planted.map((runtime) => runtime.close()));
    planted = [];
    agent.destroy();
  };
  return {
    get relay() {
      return relay;
    },
    get agent() {
      return agent;
    },
    token: (who) => tokens.get(who) ?? (who === 'nobody' ? '' : 'wrong'),
    async restart() {
      await relay[Symbol.asyncDispose]();
      await leave();
      relay = await startRelay(options);
      tokens = await tokensOf(relay);
      agent = newAgent();
      planted = await plant(relay, tokens);
    },
    leave,
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]();
      await leave();
    },
  };
}

function newAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 16 });
}

async function tokensOf(relay: Relay): Promise<ReadonlyMap<string, string>> {
  const users = Array.from({ length: KNOWN.users }, (_, i) => `user-${i}`);
  const signed = await Promise.all(users.map(async (user) => [user, await relay.token(user)] as const));
  return new Map([...signed, ['admin', ADMIN_TOKEN]]);
}

/** Gives each user a client with actions, a context, a site and a recorded command. */
async function plant(relay: Relay, tokens: ReadonlyMap<string, string>): Promise<readonly Runtime[]> {
  await relay.run(1);
  const users = [...tokens.keys()].filter((name) => name !== 'admin');
  const runtimes = await Promise.all(users.map((user) => plantOne(relay, user, tokens.get(user) ?? '')));
  await relay.run(0);
  return runtimes;
}

async function plantOne(relay: Relay, user: string, token: string): Promise<Runtime> {
  const runtime = createRuntime({
    url: relay.linkUrl,
    token,
    clientId: KNOWN.client,
    clientType: 'browser',
    instanceId: `${user}-run`,
  });
  runtime.handle(KNOWN.action, { summary: 'Answers its params', metadata: { n: 1 } }, (params) => params);
  const site = runtime.site({
    siteId: KNOWN.site,
    actions: [KNOWN.action],
    capabilityProfile: { actionInvocation: true },
  });
  runtime.connect();
  await site.registered;
  const response = await fetch(`${relay.url}/connections/${user}/${KNOWN.client}/actions/${KNOWN.action}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: `{"params":{"user":"${user}"},"command_id":"${KNOWN.command}"}`,
  });
  if (response.status !== 200) throw new Error(`planting failed: ${response.status} ${await response.text()}`);
  return runtime;
}
