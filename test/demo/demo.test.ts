import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildClients } from '../../src/clients/build.ts';
import { findBrowser } from '../../src/demo/browser.ts';
import { Started, commandOf, descendants, isAlive, startDemo, until, type Demo } from './process.ts';
import { createOperator, readPrinted, type CaseFile, type Operator, type Printed } from './printed.ts';

/** Five times the calm pace, so that everything that happens now and then happens soon. */
const FLAGS = ['--pace', '10'];
// Seconds on an idle machine; on a busy one, starting processes and a browser takes its time.
vi.setConfig({ testTimeout: 60_000 });

const browser = process.env['CALLBOARD_TEST_CHROMIUM'] ?? findBrowser(process.env['PATH']);
const LIBRARIES = fileURLToPath(new URL('../../dist/clients/', import.meta.url));
const PROCESSES = ['alice/ops-console', 'alice/phone', 'bob/kiosk', 'bob/printer'];

let demo: Demo;
let printed: Printed;
let operator: Operator;

beforeAll(async () => {
  if (!existsSync(`${LIBRARIES}runtime.js`)) await buildClients(LIBRARIES);
  demo = startDemo(...FLAGS, '--browser', browser ?? 'none');
  const { run } = demo;
  const over = run.exit.then((code) => Promise.reject(new Error(`It ended with ${code}: ${run.err}`)));
  printed = await Promise.race([until('the greeting', () => readPrinted(run.out)), over]);
  over.catch(() => {});
  operator = createOperator(printed);
});

afterAll(() => demo?.[Symbol.asyncDispose]());

/** The first command of the client with such a message whose case file is as it is looked for. */
function commandThat(
  what: string,
  [kind, userId, clientId]: readonly [kind: string, userId: string, clientId: string],
  is: (file: CaseFile) => boolean,
) {
  return until(`${clientId} has a command that ${what}`, async () => {
    for (const id of await operator.commandsWith(kind, userId, clientId)) {
      const file = await operator.caseFile(userId, clientId, id);
      if (file && is(file)) return file;
    }
    return null;
  });
}

function clientProcesses(): readonly number[] {
  return descendants(demo.run.child.pid ?? 0).filter((pid) => /demo\/client\.ts/.test(commandOf(pid)));
}

describe('callboard demo', () => {
  it('brings every client of the cast to the relay, the page in its browser included', async () => {
    const cast = [...PROCESSES, ...(browser ? ['carol/page'] : [])];
    const seen = new Set<string>();
    await until(`${cast.join(', ')} were connected`, async () => {
      for (const { user_id, client_id, status } of await operator.connections()) {
        if (status === 'connected') seen.add(`${user_id}/${client_id}`);
      }
      return seen.size >= cast.length || null;
    });
    expect([...seen].sort()).toEqual(cast.sort());
  });

  it('makes calls that complete, that the handler fails, that clients refuse, and whose result comes late', async () => {
    await Promise.all([
      commandThat('completed', ['result', 'bob', 'kiosk'], ({ outcome }) => outcome === 'COMPLETED'),
      commandThat('failed', ['error', 'alice', 'ops-console'], ({ error }) => error?.code === 'handler_failed'),
      commandThat('was denied', ['error', 'alice', 'ops-console'], ({ error }) => error?.code === 'client_denied'),
      commandThat('has wrong arguments', ['error', 'bob', 'kiosk'], ({ error }) => error?.code === 'arguments_invalid'),
    ]);
    const late = await commandThat('has a late result', ['late_result', 'alice', 'ops-console'], ({ error }) => {
      return error?.code === 'response_timeout';
    });
    expect(late).toMatchObject({
      outcome: 'OUTCOME_UNKNOWN',
      delivery: { lateResults: 1, lastProvenStage: 'ACKNOWLEDGED', execution: 'MAY_HAVE_RUN' },
    });
  });

  it.runIf(browser)('has calls that the page answers', async () => {
    await commandThat('completed', ['result', 'carol', 'page'], ({ outcome }) => outcome === 'COMPLETED');
  });

  it('lets clients resume and be replaced, as the printed subscription shows', async () => {
    await using events = Started.shell(printed.commands[2] ?? '');
    const shown = (change: string, clientId: string) =>
      events.out.split('\n').some((line) => line.includes(`"${change}"`) && line.includes(`"clientId":"${clientId}"`));
    await until('the kiosk resumed', () => shown('RESUMED', 'kiosk') || null);
    await until('the console was replaced', () => shown('REPLACED', 'ops-console') || null);
    expect(events.out).toContain('event: next');
    const console = (await operator.connections()).find(({ client_id }) => client_id === 'ops-console');
    expect(console?.replaced_instance_id).toBeTypeOf('string');
  });

  it('prints a REST request that runs as it stands', async () => {
    await using request = Started.shell(printed.commands[0] ?? '');
    expect(await request.exit).toBe(0);
    const answer = JSON.parse(request.out);
    expect(answer).toMatchObject({ user_id: 'alice', pending_rpc_count: expect.any(Number) });
    expect(answer.connections.items.map((item: { client_id: string }) => item.client_id)).toContain('ops-console');
    expect(answer.streams.items.map((item: { suffix: string }) => item.suffix)).toContain('clients/ops-console');
  });

  it('prints a nested GraphQL query that runs as it stands', async () => {
    await using request = Started.shell(printed.commands[1] ?? '');
    expect(await request.exit).toBe(0);
    const { data, errors } = JSON.parse(request.out);
    expect(errors).toBeUndefined();
    const bob = data.users.nodes.find((user: { id: string }) => user.id === 'bob');
    const kiosk = bob.connections.nodes.find((node: { clientId: string }) => node.clientId === 'kiosk');
    expect(kiosk.actions.items).toContainEqual({ name: 'report.build', summary: expect.stringMatching(/report/) });
    expect(bob.pendingRpcs.nodes).toBeInstanceOf(Array);
    expect(bob.streams.nodes).toContainEqual({ suffix: 'clients/kiosk', messageCount: expect.any(Number) });
  });

  it.runIf(process.platform === 'linux')('starts its clients again when their processes were killed', async () => {
    const killed = new Set(clientProcesses());
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    await until('as many others took their place', () => {
      const others = clientProcesses().filter((pid) => !killed.has(pid));
      return others.length >= PROCESSES.length || null;
    });
  });

  it('tells now and then how it goes, and nothing else', async () => {
    const lines = await until('two lines of status', () => {
      const found = demo.run.out.split('\n').filter((line) => /^\d\d:\d\d:\d\d {2}/.test(line));
      return found.length >= 2 ? found : null;
    });
    for (const line of lines)
      expect(line).toMatch(/\d of \d connected, \d+ waiting \| [1-9]\d* completed, \d+ failed, /);
    expect(demo.run.err.slice(0, 2000)).toBe('');
  });

  it('ends in order when it is told to, and leaves no process and no file behind', async () => {
    const { run, temp } = demo;
    const left = process.platform === 'linux' ? descendants(run.child.pid ?? 0) : [];
    if (process.platform === 'linux') expect(left.length).toBeGreaterThanOrEqual(PROCESSES.length);
    run.child.kill('SIGTERM');
    expect(await run.exit).toBe(0);
    expect(run.err.slice(0, 2000)).toBe('');
    await until('every process is gone', () => !left.some(isAlive) || null, 3_000);
    expect(readdirSync(temp)).toEqual([]);
  });
});
