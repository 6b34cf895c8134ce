/**
 * Opens the first connection to Redis, waits while Redis loads its data, and explains why a connection cannot be used.
 */
import { CallboardError } from '../../core/errors.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { silentLog, type Clock, type Log } from '../../core/ports.ts';
import { connectTo, unavailable, type Client, type ConnectTarget } from './client.ts';
import { describeTarget, type RedisTarget } from './target.ts';

/**
 * How long the first connection may take, in milliseconds. Without this limit, a connection through sentinels would be
 * retried for ever.
 */
const OPEN_MS = 10_000;
/** How long the question whether Redis is loading its data may take, in milliseconds. */
const ASK_MS = 3_000;

/**
 * Returns the error, with the address of the store and the last error of its connection added. The error of the
 * connection explains more than the error of the failed call.
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
 * Stores the last error of the client's connections in `noted`, until a connection is ready. In a cluster, the error of
 * one node explains more than the error of the cluster, which only says that connections are closed.
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
 * Returns the error of a connection to one node of a cluster; null if the connection works. ioredis hides the errors of
 * the connections that discover the nodes, for example TLS errors.
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

/** The message of ioredis for a call over a connection that ended, whatever the reason was. */
const CLOSED = 'Connection is closed.';

/** Matches errors that an operator must repair: those with which Redis refuses a login, and TLS errors. */
const FOR_OPERATORS = /^(WRONGPASS|NOAUTH|NOPERM|MASTERDOWN|LOADING)|certificate|altnames|SSL|TLS/i;

/** If an operator must repair the connection, adds the reason to the error, for `/readyz`. */
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
 * Connects. While Redis loads its data, waits without a limit, because loading may take long after a restart. Otherwise
 * throws `store_unavailable` after OPEN_MS.
 */
export async function connected(
  client: Client,
  { system, log }: { readonly system: Clock; readonly log: Log },
  target: ConnectTarget,
): Promise<void> {
  const connecting = client.connect();
  // A rejection is handled below, but perhaps later.
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

/** Whether Redis answers that it is loading its data. Always false for a cluster, which cannot be asked as a whole. */
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

/**
 * Throws `invalid_argument` if Redis does not have the database. Without this check, ioredis would silently use
 * database 0.
 */
export async function requireDatabase(client: Client, target: RedisTarget): Promise<void> {
  if (target.form === 'cluster' || target.db === 0 || 'nodes' in client) return;
  try {
    await client.select(target.db);
  } catch (error) {
    // The check of rights, which runs next, reports the missing right.
    if (error instanceof Error && error.message.startsWith('NOPERM')) return;
    if (!(error instanceof Error) || !/out of range|not allowed in cluster/i.test(error.message)) throw error;
    throw new CallboardError(
      'invalid_argument',
      `REDIS_URL: ${describeTarget(target)} names a database that this Redis does not have: it has fewer (setting databases), numbered from 0`,
    );
  }
}

/** Returns the error that explains a failed connection. In a cluster, only the last error of a node explains it. */
function reasonIn(fault: Error | null): Error | null {
  const last = fault && 'lastNodeError' in fault ? fault.lastNodeError : null;
  return last instanceof Error ? last : fault;
}

/**
 * Waits for all of `work`. Throws `store_unavailable` after `ms` milliseconds, or the first failure, converted by
 * `unavailable`.
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
