/** Opens the first connection to Redis, waits while Redis loads its data, and says why a connection cannot be used. */
import { CallboardError } from '../../core/errors.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { silentLog, type Clock, type Log } from '../../core/ports.ts';
import { connectTo, unavailable, type Client, type ConnectTarget } from './client.ts';
import { describeTarget, type RedisTarget } from './target.ts';

/**
 * How long the first connection may take, milliseconds. Without this limit, connecting through sentinels would be tried
 * for ever.
 */
const OPEN_MS = 10_000;
/** How long it may take to ask Redis whether it loads its data, milliseconds. */
const ASK_MS = 3_000;

/**
 * Returns the error with the address of the store and the last error of its connection. That error says more than the
 * error of the failed call.
 */
export async function refusalOf(
  target: ConnectTarget,
  error: CallboardError,
  lastFault: Error | null,
): Promise<CallboardError> {
  if (error.code !== 'store_unavailable') return error;
  const fault = (target.form === 'cluster' ? await faultOfFirstNode(target) : null) ?? lastFault;
  const message = `Redis at ${describeTarget(target)} cannot be used.`;
  return new CallboardError(error.code, message, { ...error.details, cause: reasonIn(fault) ?? error.cause });
}

/**
 * Notes the last error of the client's connections until one is ready. In a cluster, the error of a node says more than
 * that of the whole, which only says that the connections are closed.
 */
export function noteFaults(client: Client, noted: { fault: Error | null }): void {
  const note = (error: Error): void => {
    if (error.message !== CLOSED) noted.fault = error;
  };
  client.on('error', (error: Error) => note(reasonIn(error) ?? error));
  client.on('node error', note);
  client.on('ready', () => (noted.fault = null));
}

/**
 * Returns the error of a connection to one node of a cluster; null if it works. The client of a cluster hides the errors
 * of the connections by which it looks for the nodes, such as those of TLS.
 */
async function faultOfFirstNode(target: ConnectTarget & { readonly form: 'cluster' }): Promise<Error | null> {
  const [at] = target.nodes;
  if (!at) return null;
  const asked = connectTo({ ...target, form: 'single', at, db: 0 }, 'commands', silentLog);
  const noted: { fault: Error | null } = { fault: null };
  asked.on('error', (error: Error) => (noted.fault ??= error));
  try {
    await asked.connect();
    await asked.ping();
    return null;
  } catch (error) {
    return noted.fault ?? (error instanceof Error ? error : null);
  } finally {
    asked.disconnect();
  }
}

/** What ioredis says of a call over a connection that ended, whatever the reason. */
const CLOSED = 'Connection is closed.';

/** The errors with which Redis refuses a login, and those of TLS, which an operator must repair. */
const FOR_OPERATORS = /^(WRONGPASS|NOAUTH|NOPERM|MASTERDOWN|LOADING)|certificate|altnames|SSL|TLS/i;

/** Adds the reason of a broken connection for `/readyz`, if an operator must repair it. */
export function withReason(error: unknown, fault: Error | null): unknown {
  if (!(error instanceof CallboardError) || error.code !== 'store_unavailable' || error.details.reason !== undefined)
    return error;
  if (fault === null || !FOR_OPERATORS.test(fault.message)) return error;
  return new CallboardError(error.code, error.message, {
    ...error.details,
    reason: `Redis cannot be used: ${fault.message.slice(0, REASON_CHARS)}`,
  });
}

const REASON_CHARS = 200;

/**
 * Connects. While Redis loads its data, which takes long after a restart with much of it, waits for as long as that
 * takes. Otherwise throws `store_unavailable` after OPEN_MS.
 */
export async function connected(
  client: Client,
  { system, log }: { readonly system: Clock; readonly log: Log },
  target: ConnectTarget,
): Promise<void> {
  const connecting = client.connect();
  // A rejection is read below, possibly later.
  connecting.catch(() => {});
  for (let waits = false; ; waits = true) {
    try {
      return await within(system, OPEN_MS, [connecting]);
    } catch (error) {
      if (client.status === 'ready') return;
      if (client.status === 'end' || !(await isLoading(system, target))) throw error;
      if (!waits) log.warn({ redis: describeTarget(target) }, 'Redis loads its data: the relay waits for it');
    }
  }
}

/** Whether a Redis says that it loads its data. A cluster cannot be asked as one. */
async function isLoading(system: Clock, target: ConnectTarget): Promise<boolean> {
  if (target.form === 'cluster') return false;
  const asked = connectTo(target, 'commands', silentLog, { enableReadyCheck: false });
  try {
    await within(system, ASK_MS, [asked.connect()]);
    return /^loading:1/m.test(await asked.info('persistence'));
  } catch (error) {
    const { cause = error } = error instanceof Error ? error : {};
    return cause instanceof Error && cause.message.startsWith('LOADING');
  } finally {
    asked.disconnect();
  }
}

/** Throws `invalid_argument` if Redis does not have the database: ioredis would use database 0 and say nothing. */
export async function requireDatabase(client: Client, target: RedisTarget): Promise<void> {
  if (target.form === 'cluster' || target.db === 0 || 'nodes' in client) return;
  try {
    await client.select(target.db);
  } catch (error) {
    // The check of rights, which comes next, says which right is missing.
    if (error instanceof Error && error.message.startsWith('NOPERM')) return;
    if (!(error instanceof Error) || !/out of range|not allowed in cluster/i.test(error.message)) throw error;
    throw new CallboardError(
      'invalid_argument',
      `REDIS_URL: ${describeTarget(target)} names a database that this Redis does not have: it has fewer (setting databases), numbered from 0`,
    );
  }
}

/** Returns the reason of a connection error. In a cluster, only the last error of a node has the reason. */
function reasonIn(fault: Error | null): Error | null {
  const last = fault && 'lastNodeError' in fault ? fault.lastNodeError : null;
  return last instanceof Error ? last : fault;
}

/**
 * Waits for all of `work`. Throws `store_unavailable` if that takes longer than `ms`, or the first failure as
 * `unavailable` converts it.
 */
export async function within(system: Clock, ms: number, work: readonly MaybePromise<void>[]): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = system.after(ms, () => reject(unavailable(new Error(`no answer in ${ms} ms`))));
  try {
    await Promise.race([Promise.all(work), late]);
  } catch (error) {
    throw unavailable(error);
  } finally {
    cancel();
  }
}
