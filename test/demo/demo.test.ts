/** Tests the demo as a user starts it: its clients, its board and its commands to try. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildClients } from '../../scripts/bundles.ts';
import { findBrowser } from '../../demo/demo.ts';
import { Started, commandOf, descendants, isAlive, startDemo, until, type Demo } from './kit/process.ts';
import { createOperator, readPrinted, type CaseFile, type Operator, type Printed } from './kit/printed.ts';

/** The flags of the demo: five times the default pace, so that occasional events happen soon. */
const FLAGS = ['--pace', '10'];
const browser = process.env['CALLBOARD_TEST_CHROMIUM'] ?? findBrowser(process.env['PATH']);
const LIBRARIES = fileURLToPath(new URL('../../dist/clients/', import.meta.url));
const LIBRARY_SOURCES = fileURLToPath(new URL('../../src/clients/', import.meta.url));
const PROCESSES = ['alice/ops-console', 'alice/phone', 'bob/kiosk', 'bob/printer'];

let demo: Demo;
let printed: Printed;
let operator: Operator;

beforeAll(async () => {
  if (isOutdated()) await buildClients(LIBRARIES);
  demo = startDemo(...FLAGS, '--browser', browser ?? 'none');
  const { run } = demo;
  const over = run.exit.then((code) => Promise.reject(new Error(`It ended with ${code}: ${run.err}`)));
  printed = await Promise.race([until('the greeting', () => readPrinted(run.out)), over]);
  over.catch(() => {});
  operator = createOperator(printed);
});

afterAll(() => demo?.[Symbol.asyncDispose]());

/** Returns whether the built library is older than its sources. The page loads the built one. */
function isOutdated(): boolean {
  const built = `${LIBRARIES}runtime.js`;
  if (!existsSync(built)) return true;
  const { mtimeMs } = statSync(built);
  const sources = readdirSync(LIBRARY_SOURCES, { recursive: true, encoding: 'utf8' });
  return sources.some((file) => statSync(LIBRARY_SOURCES + file).mtimeMs > mtimeMs);
}

/** Returns the client's first command that has a message of this kind and whose case file matches. */
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
  it('connects every client of the cast to the relay, including the page in its browser', async () => {
    const cast = [...PROCESSES, 'dora/board-host', ...(browser ? ['carol/page'] : [])];
    const seen = new Set<string>();
    await until(`${cast.join(', ')} were connected`, async () => {
      for (const { user_id, client_id, status } of await operator.connections()) {
        if (status === 'connected') seen.add(`${user_id}/${client_id}`);
      }
      return seen.size >= cast.length || null;
    });
    expect([...seen].sort()).toEqual(cast.sort());
  });

  it('makes calls that complete, that the handler fails, that clients refuse, and whose result is late', async () => {
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

  it.runIf(browser)('makes calls that the page answers', async () => {
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

  it('builds reports on workers, whose task is the reported command', async () => {
    // The answer is stale while the demo cuts the kiosk's network.
    const busy = await until('an active worker of the kiosk is assigned to a task', async () => {
      const { assigned } = await operator.workers('bob');
      return assigned.find(({ status }) => status === 'active') ?? null;
    });
    expect(busy).toMatchObject({ client_id: 'kiosk', ownership: 'worker' });
    const task = busy.task_id ?? '';
    const file = await operator.caseFile('bob', 'kiosk', task);
    expect(['MAY_HAVE_RUN', 'REPORTED_BY_CLIENT']).toContain(file?.delivery?.execution);
    await until('its worker is free of the task', async () => {
      const { idle, assigned } = await operator.workers('bob');
      return (
        (!assigned.some(({ task_id }) => task_id === task) && idle.every(({ task_id }) => task_id === null)) || null
      );
    });
  });

  it('shows the windows of the kiosk with counts of its contexts, and drains one after the other', async () => {
    // The answer is stale while the demo cuts the kiosk's network.
    const windows = await until('the kiosk has windows of workers', async () => {
      const found = (await operator.windows('bob')).filter(({ ownership }) => ownership === 'worker');
      return found.length === 2 && found.every(({ status }) => status === 'open') ? found : null;
    });
    for (const { client_id, counts_from, ...counts } of windows) {
      expect([client_id, counts_from]).toEqual(['kiosk', 'contexts']);
      expect(counts.idle_count + counts.busy_count).toBe(counts.worker_count);
    }
    const drained = await until('a window is drained', async () => {
      return (await operator.windows('bob')).find(({ draining }) => draining) ?? null;
    });
    expect(drained.idle_count).toBe(0);
    await until('another took its place', async () => {
      const ids = (await operator.windows('bob')).map(({ window_id }) => window_id);
      return (ids.length > 0 && !ids.includes(drained.window_id)) || null;
    });
  });

  it.runIf(browser)('shows the window that the page is in, and its tab', async () => {
    const window = await until('the window of the page', async () => (await operator.windows('carol'))[0] ?? null);
    expect(window).toMatchObject({ client_id: 'page', ownership: 'user-owned', worker_count: 0 });
    const [tab] = await operator.contexts('carol');
    expect(tab).toMatchObject({
      context_id: expect.stringMatching(/^ctx-/),
      window_id: window.window_id,
      task_id: null,
    });
  });

  it('makes results that history spills, and returns them only if payloads are requested', async () => {
    const large = await until('a report with its table', async () => {
      const results = await operator.results('bob', 'kiosk', true);
      return results.find(({ payload_bytes }) => (payload_bytes ?? 0) > 16 * 1024) ?? null;
    });
    expect(large).toMatchObject({ payload_state: 'spilled_included', payload: { chapters: expect.any(Array) } });
    expect(JSON.stringify(large.payload).length).toBe(large.payload_bytes);
    const redacted = await operator.results('bob', 'kiosk', false);
    const same = redacted.find(({ command_id }) => command_id === large.command_id);
    expect(same).toMatchObject({ payload_state: 'redacted', payload: null });
  });

  it('sends events, some of them twice, each of which is retained once', async () => {
    const { seen, unique, duplicates, exact } = await until('a duplicate', async () => {
      const stats = await operator.dedup();
      return stats.duplicates > 0 ? stats : null;
    });
    expect([seen, exact]).toEqual([unique + duplicates, true]);
    const events = await operator.events('bob/doors/entrance');
    expect(new Set(events.map(({ message_id }) => message_id)).size).toBe(events.length);
    expect(new Set(events.map(({ kind }) => kind))).toEqual(new Set(['event']));
  });

  it('shows a board at the printed addresses, which hold its key', async () => {
    const pages = [...demo.run.out.matchAll(/ as (\w+): (http:\S+)$/gm)];
    expect(pages.map(([, name]) => name)).toEqual(expect.arrayContaining(['editor', 'reader']));
    for (const [, , url = ''] of pages) {
      const answer = await fetch(url);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/html/)]);
    }
  });

  it.runIf(browser)('has a viewer in a browser that finishes tasks through the site only', async () => {
    await commandThat('finished a task', ['result', 'dora', 'board-host'], ({ outcome }) => outcome === 'COMPLETED');
  });

  it('prints a REST request that runs unchanged', async () => {
    await using request = Started.shell(printed.commands[0] ?? '');
    expect(await request.exit).toBe(0);
    const answer = JSON.parse(request.out);
    expect(answer).toMatchObject({ user_id: 'alice', pending_rpc_count: expect.any(Number) });
    expect(answer.connections.items.map((item: { client_id: string }) => item.client_id)).toContain('ops-console');
    expect(answer.streams.items.map((item: { suffix: string }) => item.suffix)).toContain('clients/ops-console');
  });

  it('prints a nested GraphQL query that runs unchanged', async () => {
    await using request = Started.shell(printed.commands[1] ?? '');
    expect(await request.exit).toBe(0);
    const { data, errors } = JSON.parse(request.out);
    expect(errors).toBeUndefined();
    const bob = data.users.nodes.find((user: { userId: string }) => user.userId === 'bob');
    const kiosk = bob.connections.nodes.find((node: { clientId: string }) => node.clientId === 'kiosk');
    expect(kiosk.actions.items).toContainEqual({ name: 'report.build', summary: expect.stringMatching(/report/) });
    const ids = [...bob.workers.idle, ...bob.workers.assigned].map(({ contextId }: { contextId: string }) => contextId);
    expect(ids).toContainEqual(expect.stringMatching(/^desk-\d+-worker-1$/));
    expect(bob.browserWindows.nodes).toContainEqual({ windowId: 'hall', draining: false, busyCount: 0 });
    expect(bob.pendingRpcs.nodes).toBeInstanceOf(Array);
    expect(bob.streams.nodes).toContainEqual({ suffix: 'clients/kiosk', messageCount: expect.any(Number) });
  });

  it.each([
    [3, { idle: expect.any(Array), assigned: expect.any(Array) }],
    [4, { seen: expect.any(Number), duplicates: expect.any(Number), window_seconds: 3600 }],
  ])('prints REST requests about workers and duplicates that run unchanged: %i', async (index, answer) => {
    await using request = Started.shell(printed.commands[index] ?? '');
    expect(await request.exit).toBe(0);
    expect(JSON.parse(request.out)).toMatchObject(answer);
  });

  it.runIf(process.platform === 'linux')('restarts its clients when their processes were killed', async () => {
    const killed = new Set(clientProcesses());
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    await until('as many others took their place', () => {
      const others = clientProcesses().filter((pid) => !killed.has(pid));
      return others.length >= PROCESSES.length || null;
    });
  });

  it('prints a status line regularly, and nothing else', async () => {
    const lines = await until('two lines of status', () => {
      const found = demo.run.out.split('\n').filter((line) => /^\d\d:\d\d:\d\d {2}/.test(line));
      return found.length >= 2 ? found : null;
    });
    const figures =
      /\d of \d connected, \d+ waiting \| \d+ completed, \d+ failed, .* \| \d of \d workers busy \| \d+ of \d+ messages were duplicates$/;
    for (const line of lines) expect(line).toMatch(figures);
    expect(lines.at(-1)).toMatch(/ \| [1-9]\d* completed, /);
    expect(demo.run.err.slice(0, 2000)).toBe('');
  });

  it('ends in order when stopped, and leaves no process and no file behind', async () => {
    const { run, temp } = demo;
    const left = process.platform === 'linux' ? descendants(run.child.pid ?? 0) : [];
    if (process.platform === 'linux') expect(left.length).toBeGreaterThanOrEqual(PROCESSES.length);
    run.child.kill('SIGTERM');
    expect(await run.exit).toBe(0);
    expect(run.err.slice(0, 2000)).toBe('');
    await until('every process is gone', () => !left.some(isAlive) || null);
    expect(readdirSync(temp)).toEqual([]);
  });
});
