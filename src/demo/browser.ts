/** Finds and starts a headless Chromium for the demo's web page. */
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Writable } from 'node:stream';
import type { SupervisedRun } from './keeper.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome', 'microsoft-edge'];
const PLACES = [
  '/usr/bin',
  '/usr/local/bin',
  '/snap/bin',
  '/opt/google/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS',
  '/Applications/Chromium.app/Contents/MacOS',
];
const MAC_NAMES = ['Google Chrome', 'Chromium'];
const ARGS = [
  '--headless',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-breakpad',
  '--disable-dev-shm-usage',
  // The browser ends when this pipe closes, so it cannot outlive the demo, not even after a crash.
  '--remote-debugging-pipe',
];
/** How long the browser may take to end before it is killed, in milliseconds. */
const EXIT_MS = 3_000;

/** Returns the path of the first Chromium in `path` or in the usual folders; null when there is none. */
export function findBrowser(path: string | undefined): string | null {
  const folders = [...(path ?? '').split(delimiter).filter((folder) => folder !== ''), ...PLACES];
  const files = folders.flatMap((folder) => [...NAMES, ...MAC_NAMES].map((name) => join(folder, name)));
  return files.find(isProgram) ?? null;
}

/** Opens a page in a headless browser with a temporary profile, which is removed when the browser ends. */
export function startBrowser(program: string, url: string): SupervisedRun {
  const profile = mkdtempSync(join(tmpdir(), 'callboard-demo-'));
  const args = [...ARGS, `--user-data-dir=${profile}`, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), url];
  // The browser gets its own process group, so that Ctrl-C reaches only the demo, which then ends the browser.
  const detached = process.platform !== 'win32';
  const child = spawn(program, args, { detached, stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  for (const pipe of child.stdio) pipe?.on('error', () => {});
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('error', () => resolve());
  child.once('exit', () => resolve());
  const ended = promise.then(() => rm(profile, { recursive: true, force: true, maxRetries: 10 })).catch(() => {});
  return { ended, end: () => endBrowser(child, ended) };
}

async function endBrowser(child: ChildProcess, ended: Promise<void>): Promise<void> {
  const [, , , commands] = child.stdio;
  if (commands instanceof Writable) commands.write('{"id":1,"method":"Browser.close"}\0');
  const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_MS);
  await ended;
  clearTimeout(timer);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
