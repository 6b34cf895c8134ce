/** Starts and restarts the relay processes of a fault run. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { freePort } from '../../../test/kit/free-port.ts';
import { MEMORY_LOG, type MemoryLogOptions } from './memory-log.ts';
import { socketsOf, start, type Proc } from './processes.ts';
import { CLOCK_FILE } from './stepped-date.ts';
import { WRITE_LOG, type WriteLogOptions } from './write-log.ts';

export const SECRET = 'a secret of the fault runs, long enough for HS256';
export const ADMIN_TOKEN = 'the-administrator-of-the-fault-runs';
/** The first boot number for second processes of a node. It keeps them apart from the boots of the node itself. */
const TWINS = 1_000;
const MEMORY_LOG_MODULE = pathToFileURL(join(import.meta.dirname, 'memory-log.ts')).href;
const WRITE_LOG_MODULE = pathToFileURL(join(import.meta.dirname, 'write-log.ts')).href;
const STEPPED_DATE_MODULE = pathToFileURL(join(import.meta.dirname, 'stepped-date.ts')).href;
const SOURCE = join(import.meta.dirname, '..', '..', '..', 'src');
/** Redis must keep all records, because the judge reads them at the end of a run. */
const EVERY_RECORD = { CALLBOARD_RECORDS_SHARE: '10000000', CALLBOARD_RECORDS_MAX: '10000000' };
/** A relay of the run. It keeps its node id and port through all its boots. */
export type Relay = {
  readonly name: string;
  readonly port: number;
  readonly url: string;
  /** The current process, which may have ended. */
  readonly proc: Proc;
  /** The number of open sockets of the process when it was ready and before it had any connections. */
  readonly baseline: number;
  /** All processes of this node that became ready, in order, including second processes. */
  readonly boots: readonly Proc[];
  /** Starts a new process to replace the one that has ended. */
  restart(): Promise<void>;
  /** Starts a second process of the same node, on a port that no client knows. Rejects if the node id is refused. */
  twin(): Promise<Proc>;
  /** Sets the wall clock of the current process ahead by this much (negative: back). The run must log memory. */
  stepClock(aheadMs: number): void;
};

export type RelayOptions = {
  readonly name: string;
  readonly folder: string;
  /** The URL of Redis, or of a proxy before it. Null: direct mode. */
  readonly redisUrl: string | null;
  readonly namespace: string;
  /** The folder of the relay's sources, if they contain a mutant; default: this project's sources. */
  readonly source?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the relay collects garbage every few seconds and logs its memory to the folder. Default false. */
  readonly logsMemory?: boolean;
  /** The number of connections that the relay may open later and keep; default 0. */
  readonly laterSockets?: number;
  /**
   * Whether the relay logs each command that it writes to clients, and each answer that begins a pause. Default false.
   */
  readonly logsWrites?: boolean;
  /** The limit of open files with which the process starts; default: that of this process. */
  readonly descriptors?: number | undefined;
};

export async function startRelay(options: RelayOptions): Promise<Relay> {
  const { name } = options;
  const port = await freePort();
  const boots: Proc[] = [];
  const booted = async (at: number, count: number): Promise<Proc> => {
    const started = await boot(options, at, count);
    boots.push(started);
    return started;
  };
  let proc = await booted(port, 1);
  let baseline = socketsOf(proc.pid);
  let twins = 0;
  return {
    name,
    port,
    boots,
    url: `http://127.0.0.1:${port}`,
    get proc() {
      return proc;
    },
    get baseline() {
      return baseline + (options.laterSockets ?? 0);
    },
    async restart() {
      if (proc.alive) throw new Error(`${name} still runs`);
      proc = await booted(port, proc.boot + 1);
      baseline = socketsOf(proc.pid);
    },
    stepClock(aheadMs) {
      writeFileSync(clockFileOf(options), String(aheadMs));
      process.kill(proc.pid, 'SIGUSR2');
    },
    twin: async () => booted(await freePort(), TWINS + ++twins),
  };
}

/** How long further connections to sentinels, a cluster or TLS take to open after a relay is ready, in milliseconds. */
const CONNECTIONS_MS = 1_000;

function clockFileOf({ folder, name }: RelayOptions): string {
  return join(folder, `${name}.clock`);
}

async function boot(options: RelayOptions, port: number, count: number) {
  const { name, folder, redisUrl, namespace, source, env, descriptors, logsMemory, logsWrites } = options;
  const keepsRecords = redisUrl === null || env?.['CALLBOARD_STORE'] === 'owned';
  const writeLog: WriteLogOptions = { folder, name, boot: count };
  const memoryLog: MemoryLogOptions = { folder, name, boot: count, keepsRecords };
  const { proc } = await start({
    name,
    boot: count,
    folder,
    descriptors,
    args: [
      ...(logsMemory ? ['--expose-gc', '--import', MEMORY_LOG_MODULE, '--import', STEPPED_DATE_MODULE] : []),
      ...(logsWrites ? ['--import', WRITE_LOG_MODULE] : []),
      join(source ?? SOURCE, 'bin.ts'),
      'serve',
      '--json',
      '--port',
      String(port),
    ],
    env: {
      ...(logsMemory && { [MEMORY_LOG]: JSON.stringify(memoryLog), [CLOCK_FILE]: clockFileOf(options) }),
      ...(logsWrites && { [WRITE_LOG]: JSON.stringify(writeLog) }),
      CALLBOARD_NODE_ID: name,
      CALLBOARD_NAMESPACE: namespace,
      CALLBOARD_SECRET: SECRET,
      CALLBOARD_ADMIN_TOKEN: ADMIN_TOKEN,
      ...(redisUrl === null ? {} : { CALLBOARD_REDIS_URL: redisUrl, ...EVERY_RECORD }),
      ...env,
    },
  });
  if (redisUrl !== null && !redisUrl.startsWith('redis://'))
    await new Promise((done) => setTimeout(done, CONNECTIONS_MS));
  return proc;
}
