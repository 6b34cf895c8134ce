/**
 * Exports `callboard/testing`, for tests of programs that use a relay: a relay in the test's process, a clock that the
 * test moves, and clients that the test controls.
 */
import { openCallboard, type Callboard, type Settings } from '../callboard.ts';
import { createAdmin, type Admin } from '../clients/admin/index.ts';
import { createHttpCaller } from '../clients/caller/http-caller.ts';
import type { Caller } from '../clients/caller/caller.ts';
import { signToken } from '../http/tokens.ts';
import { openTestClient, type TestClient, type TestClientOptions } from './client.ts';
import { TestClock, turns } from './clock.ts';

export { TestClock } from './clock.ts';
export type { ReceivedCommand, TestClient, TestClientOptions } from './client.ts';

export type TestRelayOptions = {
  /** The settings of the relay except its credentials: for example a policy, limits or allowed origins. */
  readonly config?: Partial<Omit<Settings, 'auth' | 'redis' | 'dataDir'>>;
};

/** Everything that is retained about one command: the result of `command` of `callboard/admin`. */
export type CommandRecord = NonNullable<Awaited<ReturnType<Admin['command']>>>;

/** Selects commands. `commandId` needs `userId` and `clientId`, because an id is unique only for its client. */
export type RecordFilter = {
  readonly userId: string;
  readonly clientId: string;
  readonly action?: string;
  readonly commandId?: string;
};

/** The relay of a test. It listens on a free port of 127.0.0.1. */
export interface TestRelay extends AsyncDisposable {
  /** The base address for callers: `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** The address for clients: `ws://127.0.0.1:<port>/connect`. */
  readonly connectUrl: string;
  /** The clock of the relay and of the clients that it opened. Pass it to your own runtimes as `clock`. */
  readonly clock: TestClock;
  readonly callboard: Callboard;
  /** Reads the relay's state as an administrator. */
  readonly admin: Admin;
  readonly adminToken: string;
  /** Returns a token of the user that does not expire during the test. Default scopes: `connect` and `invoke`. */
  token(userId: string, scopes?: readonly string[]): Promise<string>;
  /** Opens a client. Resolves when the relay has accepted its link. Closing the relay closes the client. */
  client(options: TestClientOptions): Promise<TestClient>;
  /** Returns a caller with a token of this user. */
  caller(userId: string): Caller;
  /**
   * Resolves with the newest command that matches the filter, as soon as `until` returns true for it. Default of
   * `until`: the command has ended. After five seconds of real time, rejects with a message that says what was
   * recorded.
   */
  record(filter: RecordFilter, until?: (record: CommandRecord) => boolean): Promise<CommandRecord>;
  close(): Promise<void>;
}

const SECRET = 'the secret of a relay that only one test uses';
const ADMIN_TOKEN = 'the-admin-token-of-a-test';
/** The lifetime of tokens, in seconds: ten years, because tests move the clock far. */
const TOKEN_SECONDS = 10 * 365 * 24 * 3600;
/**
 * How many turns of the event loop run after each timer. A message between two programs of this process takes a few
 * turns.
 */
const TURNS = 24;
/** How long to wait for a record, in milliseconds of real time. */
const WAIT_MS = 5_000;
/** How often the record is read, in milliseconds of real time. */
const LOOK_MS = 5;

/** Opens a relay in memory. Its clock starts at the present time and moves only when the test moves it. */
export async function openTestRelay({ config = {} }: TestRelayOptions = {}): Promise<TestRelay> {
  const clock = new TestClock(Date.now());
  clock.alsoAwaits(() => turns(TURNS));
  const auth = { secret: SECRET, adminTokens: [ADMIN_TOKEN] };
  const callboard = await openCallboard({ config: { ...config, auth }, clock });
  const url = await callboard.listen({ host: '127.0.0.1', port: 0 });
  const connectUrl = `${url.replace('http', 'ws')}/connect`;
  const admin = createAdmin({ url, token: ADMIN_TOKEN });
  const opened = new AsyncDisposableStack();
  opened.defer(() => callboard.close());
  const token = (userId: string, scopes: readonly string[] = ['connect', 'invoke']): Promise<string> =>
    signToken({ secret: SECRET, user: userId, scopes, ttlSeconds: TOKEN_SECONDS, now: clock.now() });
  const record = async (filter: RecordFilter, until = hasEnded): Promise<CommandRecord> => {
    let last: CommandRecord | null = null;
    await eventually(
      async () => (last = await newest(admin, filter)) !== null && until(last),
      () => `No such record of ${JSON.stringify(filter)} within ${WAIT_MS} ms. ${shown(last)}`,
    );
    return last ?? never();
  };
  return {
    url,
    connectUrl,
    clock,
    callboard,
    admin,
    token,
    record,
    adminToken: ADMIN_TOKEN,
    async client(options) {
      const { userId, clientId } = options;
      const isDown = async (): Promise<boolean> => {
        const { nodes } = await admin.connections({ userId, status: 'CONNECTED', first: 1000 });
        return !nodes.some((one) => one.clientId === clientId);
      };
      const client = await openTestClient(options, {
        url: connectUrl,
        token: () => token(userId),
        clock,
        noticed: () => eventually(isDown, () => `${userId}/${clientId} is still connected.`),
      });
      opened.use(client);
      return client;
    },
    caller: (userId) => opened.use(createHttpCaller({ url, token: () => token(userId) })),
    close: () => opened.disposeAsync(),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const hasEnded = ({ outcome }: CommandRecord): boolean => outcome !== null;

async function newest(admin: Admin, filter: RecordFilter): Promise<CommandRecord | null> {
  const { userId, clientId, action, commandId } = filter;
  if (commandId !== undefined) return admin.command({ userId, clientId, commandId });
  const selected = { userId, clientId, ...(action !== undefined && { action }) };
  const { nodes } = await admin.delivery().commands({ filter: selected, first: 1000 });
  const [found] = nodes.toSorted((one, other) => other.admittedAt.localeCompare(one.admittedAt));
  return found ? admin.command({ userId, clientId, commandId: found.commandId }) : null;
}

function shown(record: CommandRecord | null): string {
  if (record === null) return 'There is none at all.';
  return `The newest is ${record.commandId} (${record.action}): stage ${record.delivery?.stage}, outcome ${record.outcome}.`;
}

/** Resolves when the condition holds. After WAIT_MS of real time, rejects with the message. */
async function eventually(holds: () => Promise<boolean>, message: () => string): Promise<void> {
  const began = performance.now();
  while (!(await holds())) {
    if (performance.now() - began > WAIT_MS) throw new Error(message());
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
}

function never(): never {
  throw new Error('no record');
}
