/** Measures a relay before anybody uses it: the time until it listens, and its memory. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Sample } from '../lib/numbers.ts';
import type { Table } from '../lib/report.ts';
import { Results, type Run } from '../lib/rounds.ts';

export const AT_REST = 'callboard serve, at rest';
const PROGRAM = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
/** The time for which the relay runs without requests before its memory is read, in milliseconds. */
const REST_MS = 5_000;
const LINE = z.object({ url: z.string() });

export async function idleRelay(run: Run): Promise<Table> {
  const results = new Results();
  const row = { name: AT_REST, kind: 'own' } as const;
  const wanted = run.wanted(AT_REST);
  if (wanted) run.say('memory: a relay at rest');
  for (let round = 0; wanted && round < run.pace.rounds; round++) {
    try {
      results.add(AT_REST, await started());
    } catch (error) {
      results.fail(AT_REST, error);
    }
  }
  const columns = [
    { key: 'start', label: 's to the listening line' },
    { key: 'rss', label: 'RSS MB' },
  ];
  return { title: 'An unused relay', columns, rows: wanted ? [results.row(row)] : [], by: 'rss' };
}

async function started(): Promise<Sample> {
  if (!existsSync(PROGRAM)) throw new Error('dist/bin.js is missing: run npm run build');
  const began = performance.now();
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--json', '--port', '0', '--log-level', 'silent'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const { url } = LINE.parse(JSON.parse(await firstLine(child)));
    const start = (performance.now() - began) / 1000;
    const { ok } = await fetch(`${url}/readyz`);
    if (!ok) throw new Error('It is not ready.');
    await sleep(REST_MS);
    return { start, rss: await residentMegabytes(child.pid ?? 0) };
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout) for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error('it ended without a word');
}

/** Returns the memory of a process in megabytes, from Linux. On another system this row cannot run. */
async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return (Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024) / 1e6;
}
