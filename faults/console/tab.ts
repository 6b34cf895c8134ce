/** Opens a tab of the console in Chromium, and measures its main thread, its document and its heap. */
import { readdir } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { z } from 'zod';

/**
 * The duration of one task, in milliseconds. `cpuMs`: the CPU time of the thread, which other programs hardly affect.
 * `wallMs`: the elapsed time, which includes time in which the relay and other programs had the CPU.
 */
export type Task = { readonly cpuMs: number; readonly wallMs: number };

export interface Tab extends AsyncDisposable {
  readonly page: Page;
  /** Opens a path of the console within the tab, and waits for the page's heading. */
  goTo(path: string, heading: string): Promise<void>;
  /** Slows the tab's CPU down by this factor. */
  throttle(factor: number): Promise<void>;
  /**
   * Calls `act`, and returns the longest task of the main thread during that. Only one tab can be watched at a time.
   */
  longestTask(act: () => Promise<unknown>): Promise<Task>;
  /** Returns the number of elements of the document. */
  elements(): Promise<number>;
  /** Returns the size of the heap after a collection, in bytes. */
  heap(): Promise<number>;
}

/**
 * The beginning of the line that the tab writes to its console when the first figure is painted. After it comes the
 * time in milliseconds.
 */
const PAINTED = 'painted at ';

export type TabOptions = { readonly url: string; readonly token: string };

/** Opens a signed-in tab. It has its own browser session, so that nothing is cached. */
export async function openTab(browser: Browser, { url, token }: TabOptions): Promise<Tab> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  await context.addInitScript((given) => sessionStorage.setItem('callboard:token', given), token);
  await context.addInitScript(watchPaint);
  const page = await context.newPage();
  // Loads a small page of the same origin first, because a later navigation within the origin stays in the same
  // process.
  await page.goto(`${url}/healthz`);
  await levelPriority(browser);
  const session = await context.newCDPSession(page);
  return {
    page,
    async goTo(path, heading) {
      if (!page.url().includes('/console/')) await page.goto(`${url}/console/${path}`);
      else await page.evaluate(follow, `${url}/console/${path}`);
      try {
        await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
      } catch (cause) {
        throw new Error(`No page "${heading}". The tab shows: ${await page.locator('body').innerText()}`, { cause });
      }
    },
    throttle: async (rate) => void (await session.send('Emulation.setCPUThrottlingRate', { rate })),
    async longestTask(act) {
      await browser.startTracing(page, { categories: ['-*', TASKS] });
      await act();
      return longestOf(await browser.stopTracing());
    },
    elements: () => page.evaluate(() => document.querySelectorAll('*').length),
    heap: () => heapOf(session),
    [Symbol.asyncDispose]: () => context.close(),
  };
}

/**
 * Returns the milliseconds from the navigation until the browser has painted the figures of the overview, on a CPU that
 * is slowed down by the factor `slower`.
 */
export async function paintTime(
  browser: Browser,
  { slower, ...options }: TabOptions & { slower: number },
): Promise<number> {
  await using tab = await openTab(browser, options);
  await tab.throttle(slower);
  // The tab reports the time as a line in the browser's console. Asking the page for it would delay the page.
  const painted = tab.page.waitForEvent('console', {
    predicate: (line) => line.text().startsWith(PAINTED),
    timeout: 60_000,
  });
  await tab.page.goto(`${options.url}/console/`, { waitUntil: 'commit' });
  return Number((await painted).text().slice(PAINTED.length));
}

/**
 * Gives all threads of Chromium the priority of this process. Chromium gives its processes different priorities, which
 * would distort a measurement that runs at a raised priority beside other programs. On Linux each thread has its own
 * priority.
 */
async function levelPriority(browser: Browser): Promise<void> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  for (const { id } of processInfo) {
    const threads = await readdir(`/proc/${id}/task`).catch(() => [String(id)]);
    for (const thread of threads) setPriority(Number(thread), getPriority());
  }
}

/** Runs in the tab before the console's code. It reports the time at which the first figure was painted. */
function watchPaint(): void {
  const seen = new MutationObserver(() => {
    if (!document.querySelector('.readouts dd')) return;
    seen.disconnect();
    // The next frame paints the figure, and the frame after that one begins when the figure has been painted.
    requestAnimationFrame(() => requestAnimationFrame(() => console.debug(`painted at ${performance.now()}`)));
  });
  seen.observe(document, { childList: true, subtree: true });
}

/** Runs in the tab. It follows a link without reloading the page. */
function follow(href: string): void {
  const link = document.createElement('a');
  link.href = href;
  document.body.append(link);
  link.click();
  link.remove();
}

async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return usedSize;
}

// Finds the longest task in a trace of Chromium.

/** The category of traces in which each task of a main thread, with its microtasks, is one event `RunTask`. */
const TASKS = 'disabled-by-default-devtools.timeline';
/** The used members of an event of a trace. Times are in microseconds; `tdur` is the CPU time of the thread. */
const EVENT = z.object({
  ...{ name: z.string(), pid: z.number(), tid: z.number(), dur: z.number().optional(), tdur: z.number().optional() },
  args: z.object({ name: z.string().optional() }).optional(),
});
const TRACE = z.object({ traceEvents: z.array(z.unknown()) });

function longestOf(trace: Buffer): Task {
  const events = TRACE.parse(JSON.parse(trace.toString())).traceEvents.flatMap((event) => {
    const { success, data } = EVENT.safeParse(event);
    return success ? [data] : [];
  });
  const threadOf = ({ pid, tid }: z.infer<typeof EVENT>): string => `${pid}/${tid}`;
  const isMain = ({ name, args }: z.infer<typeof EVENT>): boolean =>
    name === 'thread_name' && args?.name === 'CrRendererMain';
  const mains = new Set(events.filter(isMain).map(threadOf));
  let longest: Task = { cpuMs: 0, wallMs: 0 };
  for (const event of events) {
    const cpuMs = (event.tdur ?? 0) / 1000;
    if (event.name !== 'RunTask' || !mains.has(threadOf(event)) || cpuMs <= longest.cpuMs) continue;
    longest = { cpuMs, wallMs: (event.dur ?? 0) / 1000 };
  }
  if (longest.cpuMs === 0) throw new Error('The trace has no task of a page.');
  return longest;
}
