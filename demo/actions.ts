/** Defines the actions of the demo's client `ops-console`, which an operator would run on a server. */
import { readdir, stat } from 'node:fs/promises';
import { freemem, loadavg, totalmem, uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Action, ActionRequest, Params, Verdict } from '../../clients/runtime/index.ts';

const MIB = 1024 * 1024;
/** The most files that one answer lists. */
const FILES_MAX = 200;
const SERVICES = ['web', 'mail', 'database'];

/** The actions of alice's client `ops-console`. */
export const CONSOLE_ACTIONS: readonly Action[] = [
  {
    name: 'echo',
    summary: 'Returns the given text.',
    version: '1.2.0',
    schema: object({ text: { type: 'string', maxLength: 1000 } }, ['text']),
    run: ({ text }) => ({ text }),
  },
  {
    name: 'host.load',
    summary: 'The current load and memory of the machine.',
    version: '2.0.1',
    schema: object({}),
    run: hostLoad,
  },
  {
    name: 'files.list',
    summary: 'Lists the files of this demo.',
    description: 'Without a folder, lists the top folder of the demo. No other folder of the machine can be read.',
    version: '1.0.0',
    schema: object({ folder: { type: 'string', pattern: '^[a-z]{1,32}$' } }),
    run: listFiles,
  },
  {
    name: 'service.restart',
    summary: 'Restarts a service and returns when it is up again.',
    description: 'Nothing is really restarted: the action only takes the time of a restart. It cannot be cancelled.',
    version: '3.1.0',
    schema: object({ service: { enum: SERVICES }, seconds: { type: 'number', minimum: 0, maximum: 10 } }, ['service']),
    metadata: { careful: true },
    run: restart,
  },
];

/** Decides by the client's own policy, which applies in addition to the relay's. */
export function authorizeConsole({ action, params }: ActionRequest): Verdict {
  if (action !== 'service.restart' || params['service'] !== 'database') return true;
  return { allow: false, message: 'This console may not restart the database.' };
}

function object(properties: Readonly<Record<string, unknown>>, required: readonly string[] = []) {
  return { type: 'object', properties, required, additionalProperties: false };
}

function hostLoad() {
  const [one = 0, five = 0, fifteen = 0] = loadavg();
  return {
    load: { one, five, fifteen },
    memory_mib: { free: Math.round(freemem() / MIB), total: Math.round(totalmem() / MIB) },
    up_hours: Math.round(uptime() / 360) / 10,
  };
}

async function listFiles({ folder }: Params) {
  const demo = new URL('../', import.meta.url);
  const at = typeof folder === 'string' ? new URL(`${folder}/`, demo) : demo;
  const entries = await readdir(at, { withFileTypes: true }).catch(() => {
    throw new Error(`The demo has no folder ${String(folder)}.`);
  });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  const rows = names.slice(0, FILES_MAX).map(async (name) => ({ name, bytes: (await stat(new URL(name, at))).size }));
  return { files: await Promise.all(rows), all: names.length <= FILES_MAX };
}

/**
 * Takes as long as the params say. It ignores its signal, as many real actions do, so its answer after the deadline is
 * a late result.
 */
async function restart({ service, seconds }: Params) {
  const began = Date.now();
  await sleep(typeof seconds === 'number' ? seconds * 1000 : 500);
  return { service, up: true, took_ms: Date.now() - began };
}
