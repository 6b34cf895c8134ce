/** Tests the demo on a machine without a browser, and with a port that is taken. */
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { findBrowser } from '../../demo/demo.ts';
import { descendants, isAlive, startDemo, until } from './kit/process.ts';
import { readPrinted } from './kit/printed.ts';

const browser = process.env['CALLBOARD_TEST_CHROMIUM'] ?? findBrowser(process.env['PATH']);
/** The number of client processes that the demo starts. */
const CLIENTS = 4;

it.runIf(process.platform === 'linux')('a demo that is killed leaves no process behind', async () => {
  await using demo = startDemo('--pace', '10', '--browser', browser ?? 'none');
  const { child } = demo.run;
  const printed = await until('the greeting', () => readPrinted(demo.run.out));
  await until('a first call', () => (/[1-9]\d* completed/.test(demo.run.out) ? true : null));
  const page = demo.run.out.includes('lives in a real page');
  const left = descendants(child.pid ?? 0);
  expect(left.length).toBeGreaterThanOrEqual(CLIENTS + (page ? 1 : 0));
  child.kill('SIGKILL');
  await until('every process is gone', () => !left.some(isAlive) || null);
  await expect(fetch(printed.url)).rejects.toThrow();
});

it('a demo without a browser prints where to open the page, and continues', async () => {
  await using demo = startDemo('--browser', 'none');
  const { run } = demo;
  await until('the greeting', () => readPrinted(run.out));
  const [line = ''] = run.out.split('\n').filter((text) => text.includes('carol'));
  expect(line).toMatch(/no browser was requested: open http:|is not built/);
  run.child.kill('SIGTERM');
  expect(await run.exit).toBe(0);
});

it.each([
  [['--pace', '0'], '--pace: expected 0.1 to 50'],
  [['--log-levle', 'warn'], '--log-levle: is not a known flag'],
])('a demo started with %j reports the error, and starts nothing', async (flags, complaint) => {
  await using demo = startDemo(...flags);
  expect(await demo.run.exit).toBe(2);
  expect(demo.run.err).toContain(complaint);
  expect(demo.run.out).toBe('');
});

it('a demo whose port is taken reports it, and leaves nothing running', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  try {
    const port = typeof address === 'object' ? address?.port : 0;
    await using demo = startDemo('--port', String(port));
    expect(await demo.run.exit).toBe(1);
    expect(demo.run.err).toContain('EADDRINUSE');
  } finally {
    server.close();
  }
});
