/** Measures the console in a real browser against a relay under load. */
import type { Browser } from 'playwright-core';
import { launchChromium } from '../../test/browser/kit/chromium.ts';
import { signToken } from '../../src/http/tokens.ts';
import { ADMIN_TOKEN, SECRET, type Relay, startRelay } from '../lib/relay.ts';
import { GONE, GONE_CALL, openConsoleLoad } from './load.ts';
import { openTab, paintTime, type Tab, type TabOptions, type Task } from './tab.ts';

export type Figure = {
  readonly text: string;
  readonly measured: number;
  /** The maximum value with which the figure passes. */
  readonly bound: number;
  readonly unit: string;
  /** The number of decimals of the shown value. */
  readonly digits: number;
};

type MeasureOptions = {
  readonly connections: number;
  /** The number of calls per second. */
  readonly rate: number;
  /** How long the heap of a live page is watched, in minutes. */
  readonly minutes: number;
  /** How long calls are made before the first measurement, and how long each live page is watched, in seconds. */
  readonly seconds: number;
  /** The names of the measurements to make (see PARTS). */
  readonly only: readonly string[];
  readonly say: (line: string) => void;
};

const SLOWER = 4;
const PAINTS = 5;
/** How long the relay's CPU time is measured, in milliseconds: each time once without a tab and once with one. */
const IDLE_MS = 20_000;
const IDLE_ROUNDS = 3;
const HEAP_SAMPLES_A_MINUTE = 2;
const MIB = 1024 * 1024;
/** A growth of the heap in MiB that may be chance, because not every collection frees all garbage. */
const NOISE_MIB = 1;

type MeasuredPage = {
  readonly path: string;
  readonly heading: string;
  /** Whether the page changes by itself, so that it must be watched for a while. */
  readonly isLive?: true;
};

/** The pages of an administrator that show the most rows on a busy relay. */
const PAGES: readonly MeasuredPage[] = [
  { path: '', heading: 'Overview', isLive: true },
  { path: 'calls', heading: 'Calls', isLive: true },
  { path: 'calls?follow=on', heading: 'Calls', isLive: true },
  { path: 'calls?outcome=failed', heading: 'Calls', isLive: true },
  { path: 'waits', heading: 'Waits', isLive: true },
  { path: 'clients', heading: 'Clients', isLive: true },
  { path: 'clients?view=backlog', heading: 'Clients with a backlog', isLive: true },
  { path: 'clients?view=reconnects', heading: 'Clients that reconnect most' },
  { path: 'clients?view=silence', heading: 'Clients that were silent longest' },
  { path: 'clients/user-1/client-10', heading: 'client-10', isLive: true },
  { path: `clients/${GONE.userId}/${GONE.clientId}`, heading: GONE.clientId },
  { path: `calls/${GONE.userId}/${GONE.clientId}/${GONE_CALL}`, heading: 'door.open' },
  { path: 'actions', heading: 'Actions' },
  { path: 'actions/door.open', heading: 'door.open' },
  { path: 'users', heading: 'Users' },
  { path: 'users/user-1', heading: 'user-1', isLive: true },
  { path: 'sites', heading: 'Sites' },
  { path: 'places', heading: 'Workers and windows', isLive: true },
  { path: 'history', heading: 'History' },
  { path: 'history?user=user-1', heading: 'History' },
  { path: 'audit', heading: 'Audit' },
  { path: 'nodes', heading: 'Nodes', isLive: true },
  { path: 'limits', heading: 'Limits' },
  { path: 'agents', heading: 'Agents' },
];
/** The token of a user, and a user's pages. */
const OF_USER = { user: 'user-1', scopes: ['invoke'], ttlSeconds: 24 * 3600 } as const;
const PAGES_OF_USER: readonly MeasuredPage[] = [
  { path: '', heading: 'Overview', isLive: true },
  { path: 'calls', heading: 'Calls', isLive: true },
  { path: 'clients', heading: 'Clients' },
  { path: 'waits', heading: 'Waits' },
];

const nameOf = ({ path }: MeasuredPage): string => path || 'overview';
const ownNameOf = (page: MeasuredPage): string => `own/${nameOf(page)}`;

/** The measurements that can be made alone. A page is named by its path; the pages of a user have the prefix `own/`. */
export const PARTS = ['idle', 'paint', 'heap', ...PAGES.map(nameOf), ...PAGES_OF_USER.map(ownNameOf)];

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Makes the measurements and returns their figures in order. The built console must be in dist/console. */
export async function measureConsole(options: MeasureOptions): Promise<readonly Figure[]> {
  const { connections, rate, minutes, seconds, only, say } = options;
  await using relay = await startRelay({ clock: 'real' });
  say(`connecting ${connections} clients`);
  await using load = await openConsoleLoad(relay, connections);
  const browser = await launchChromium();
  await using closing = new AsyncDisposableStack();
  closing.defer(() => browser.close());
  const at = { url: relay.url, token: ADMIN_TOKEN };
  const figures: Figure[] = [];
  const add = (figure: Figure): void => {
    figures.push(figure);
    say(`${figure.text}: ${figure.measured.toFixed(figure.digits)} ${figure.unit}`);
  };

  if (only.includes('idle')) add(await idleCost(relay, () => openTab(browser, at)));
  await load.rate(rate);
  await pause(seconds * 1000);
  if (only.includes('paint')) add(await firstPaint(browser, at));
  {
    await using tab = await openTab(browser, at);
    const costs = await watchPages(tab, PAGES, { ...options, nameOf });
    costs.push(...(await watchPagesOfUser(browser, relay, options)));
    for (const figure of pageFigures(costs)) add(figure);
    if (only.includes('heap')) add(await heapGrowth(tab, minutes, say));
  }
  const { made, connected, wrong } = await load.state();
  say(`${made} calls ended, ${connected} clients connected, ${wrong ?? 'nothing went wrong'}`);
  if (wrong !== null || connected !== connections) throw new Error(`The load was disturbed: ${wrong}, ${connected}`);
  return figures;
}

async function firstPaint(browser: Browser, at: TabOptions): Promise<Figure> {
  const paints: number[] = [];
  for (let time = 0; time < PAINTS; time++) paints.push(await paintTime(browser, { ...at, slower: SLOWER }));
  return {
    text: `first figures of the overview painted, nothing cached, CPU ${SLOWER} times slower, worst of ${PAINTS}`,
    ...{ measured: Math.max(...paints) / 1000, bound: 1.5, unit: 's', digits: 2 },
  };
}

/**
 * Measures the relay's CPU time for a tab that shows the overview while there are no calls, as a fraction of one core.
 */
async function idleCost(relay: Relay, open: () => Promise<Tab>): Promise<Figure> {
  let [without, withTab] = [0, 0];
  for (let round = 0; round < IDLE_ROUNDS; round++) {
    without += await cpuDuring(relay);
    await using tab = await open();
    await tab.goTo('', 'Overview');
    await tab.page.getByText('How calls ended').waitFor();
    withTab += await cpuDuring(relay);
  }
  const share = (withTab - without) / (IDLE_ROUNDS * IDLE_MS);
  return {
    text: 'CPU of the relay for a tab on the overview, in which nothing happens',
    ...{ measured: share * 100, bound: 1, unit: '% of a core', digits: 2 },
  };
}

/** Returns the CPU time that the relay uses within IDLE_MS, in milliseconds. */
async function cpuDuring(relay: Relay): Promise<number> {
  const before = await relay.cpuMs();
  await pause(IDLE_MS);
  return (await relay.cpuMs()) - before;
}

/**
 * The cost of one page. `opening`: the longest task while the page opened. `live`: the longest task after that; null if
 * the page does not change by itself.
 */
type PageCost = { readonly elements: number; readonly opening: Task; readonly live: Task | null };

type Watching = Pick<MeasureOptions, 'seconds' | 'only' | 'say'> & { readonly nameOf: (page: MeasuredPage) => string };

async function watchPages(tab: Tab, pages: readonly MeasuredPage[], watching: Watching): Promise<PageCost[]> {
  const { seconds, only, say, nameOf } = watching;
  const costs: PageCost[] = [];
  for (const page of pages.filter((page) => only.includes(nameOf(page)))) {
    const opening = await tab.longestTask(async () => {
      await tab.goTo(page.path, page.heading);
      await tab.page
        .getByText(/^Reading /)
        .first()
        .waitFor({ state: 'detached' });
    });
    const live = page.isLive ? await tab.longestTask(() => pause(seconds * 1000)) : null;
    const cost = { elements: await tab.elements(), opening, live };
    const after = live ? `, ${taskText(live)} after that` : '';
    say(`  ${nameOf(page)}: ${cost.elements} elements, longest task ${taskText(opening)} while it opened${after}`);
    costs.push(cost);
  }
  return costs;
}

const taskText = ({ cpuMs, wallMs }: Task): string => `${cpuMs.toFixed(0)} ms (${wallMs.toFixed(0)} ms on the clock)`;

/** Measures the pages of a user in a separate tab, which is closed afterwards. */
async function watchPagesOfUser(
  browser: Browser,
  { url }: Relay,
  options: MeasureOptions,
): Promise<readonly PageCost[]> {
  const token = await signToken({ ...OF_USER, secret: SECRET, now: Date.now() });
  await using tab = await openTab(browser, { url, token });
  return await watchPages(tab, PAGES_OF_USER, { ...options, nameOf: ownNameOf });
}

function pageFigures(costs: readonly PageCost[]): readonly Figure[] {
  if (costs.length === 0) return [];
  const most = (of: (cost: PageCost) => number): number => Math.max(...costs.map(of));
  return [
    {
      text: 'elements of the longest page',
      measured: most(({ elements }) => elements),
      bound: 1500,
      unit: '',
      digits: 0,
    },
    {
      text: 'longest task while a page opens, of CPU time',
      measured: most(({ opening }) => opening.cpuMs),
      bound: 100,
      unit: 'ms',
      digits: 0,
    },
    {
      text: 'longest task of a live page, of CPU time',
      measured: most(({ live }) => live?.cpuMs ?? 0),
      bound: 100,
      unit: 'ms',
      digits: 0,
    },
  ];
}

/**
 * Measures how much the heap of the calls page grows while the page follows all calls. The first half minute is
 * ignored.
 */
async function heapGrowth(tab: Tab, minutes: number, say: MeasureOptions['say']): Promise<Figure> {
  await tab.goTo('calls?follow=on', 'Calls');
  const samples: number[] = [];
  for (let sample = 0; sample <= minutes * HEAP_SAMPLES_A_MINUTE; sample++) {
    await pause(60_000 / HEAP_SAMPLES_A_MINUTE);
    samples.push((await tab.heap()) / MIB);
    say(`  heap after ${((sample + 1) / HEAP_SAMPLES_A_MINUTE).toFixed(1)} min: ${samples.at(-1)?.toFixed(2)} MiB`);
  }
  return {
    text: `growth of the tab’s heap over ${minutes} minutes of following calls, of ${samples[0]?.toFixed(1)} MiB`,
    ...{ measured: growth(samples), bound: NOISE_MIB, unit: 'MiB', digits: 2 },
  };
}

// Measures how much a series of samples grows.

/** Returns by how much the best-fitting line (least squares) rises from the first sample to the last. */
export function growth(samples: readonly number[]): number {
  const middle = (samples.length - 1) / 2;
  const mean = samples.reduce((sum, value) => sum + value, 0) / samples.length;
  let [top, bottom] = [0, 0];
  samples.forEach((value, at) => {
    top += (at - middle) * (value - mean);
    bottom += (at - middle) ** 2;
  });
  return bottom === 0 ? 0 : (top / bottom) * (samples.length - 1);
}
