/**
 * Tests that no command that names a tab runs in another tab: two callers, and one browser whose tabs are opened,
 * closed, reloaded and duplicated meanwhile. CALLBOARD_TEST_COMMANDS says how many commands are sent.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { CallerError, createHttpCaller, createLinkCaller, type Caller } from '../../src/clients/caller/index.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { launchChromium } from './kit/chromium.ts';
import { builtClients, startSite, type BuiltClients } from './kit/client-site.ts';
import { TEST_MS } from '../kit/patience.ts';

const COMMANDS = Number(process.env['CALLBOARD_TEST_COMMANDS'] ?? 300);
/** How many commands are sent, half by each caller, while one thing happens to a tab. */
const AT_ONCE = 10;
const MOST_TABS = 5;

let built: BuiltClients;
let browser: Browser;

beforeAll(async () => {
  built = await builtClients();
  browser = await launchChromium();
});

afterAll(async () => {
  await browser?.close();
  await built?.[Symbol.asyncDispose]();
});

type Life = { readonly contextId: string; readonly page: string };
/** `lives`: the document that had each context first; `runs`: what ran in which document; `open`: the tabs now. */
type Seen = {
  readonly lives: readonly Life[];
  readonly runs: readonly { readonly n: number; readonly page: string }[];
  readonly open: readonly string[];
};

/** How a command ended. `page`: the document that answered; null if none did. */
type Ended = { readonly n: number; readonly contextId: string; readonly code: string; readonly page: string | null };

/** A generator of numbers from 0 to 1, the same in each run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The tabs of a browser, and the worker that all of them share. */
class Tabs {
  readonly #context: BrowserContext;
  readonly #origin: string;
  readonly #random: () => number;
  /** The first tab stays open, so that the worker lives on. */
  #pages: readonly Page[] = [];

  constructor(context: BrowserContext, origin: string, random: () => number) {
    this.#context = context;
    this.#origin = origin;
    this.#random = random;
  }

  async open(): Promise<void> {
    const page = await this.#context.newPage();
    await page.goto(this.#origin);
    await this.#join(page);
  }

  /** Opens, closes, reloads or duplicates a tab. */
  async change(): Promise<void> {
    const act = this.#random();
    const others = this.#pages.slice(1);
    const page = others[Math.floor(this.#random() * others.length)];
    if (!page || (act < 0.25 && others.length < MOST_TABS)) return this.open();
    if (act < 0.5) {
      await page.reload();
      return this.#joined(page);
    }
    if (act < 0.75 && others.length < MOST_TABS) {
      const opened = page.waitForEvent('popup');
      // Copies the storage of the session, as a browser does when a tab is duplicated.
      await page.evaluate('void window.open(location.href)');
      return this.#join(await opened);
    }
    this.#pages = this.#pages.filter((other) => other !== page);
    await page.close();
  }

  ask<T>(question: string, ...args: readonly string[]): Promise<T> {
    const given = [question, ...args].map((arg) => JSON.stringify(arg)).join(', ');
    const [first] = this.#pages;
    if (!first) throw new Error('There is no tab.');
    return first.evaluate(`ask(${given})`);
  }

  async #join(page: Page): Promise<void> {
    await this.#joined(page);
    this.#pages = [...this.#pages, page];
  }

  async #joined(page: Page): Promise<void> {
    // Playwright's own wait would evaluate text in the page, which the page's policy forbids.
    await expect.poll(() => page.evaluate('window.joined')).toBe(true);
  }
}

/** Calls the action of a tab, and says how the call ended. */
async function mark(
  caller: Caller,
  { n, contextId, ms }: { n: number; contextId: string; ms: number },
): Promise<Ended> {
  const target = { userId: 'alice', clientId: 'browser', action: 'tab.mark' };
  try {
    const end = await caller.invoke<{ page: string }>(target, { n, ms }, { contextId });
    if (end.outcome === 'completed') return { n, contextId, code: 'completed', page: end.result.page };
    return { n, contextId, code: 'error' in end ? end.error.code : end.outcome, page: null };
  } catch (error) {
    if (!(error instanceof CallerError)) throw error;
    return { n, contextId, code: error.code, page: null };
  }
}

async function callersOf(relay: RealRelay): Promise<readonly [Caller, Caller]> {
  const token = await relay.token('alice', 'invoke');
  return [createHttpCaller({ url: relay.url, token }), createLinkCaller({ url: relay.link, token })];
}

test('each command runs in the tab that it names, or nowhere', { timeout: TEST_MS + COMMANDS * 200 }, async () => {
  await using site = await startSite(built, 'tab-page');
  await using relay = await startRealRelay({ allowedOrigins: [site.origin] });
  const context = await browser.newContext();
  const random = numbers(7);
  const tabs = new Tabs(context, site.origin, random);
  await tabs.open();
  await tabs.ask('start', relay.link, await relay.token('alice', 'connect'));
  const callers = await callersOf(relay);
  const ended: Ended[] = [];
  while (ended.length < COMMANDS) {
    // Of all tabs that ever were, those that were opened last the most often.
    const { lives } = await tabs.ask<Seen>('seen');
    const pick = (): string => lives.at(-1 - Math.floor(random() ** 2 * lives.length))?.contextId ?? '';
    const sent = Array.from({ length: AT_ONCE }, (_, i) => {
      const caller = callers[i % 2 === 0 ? 0 : 1];
      return mark(caller, { n: ended.length + i, contextId: pick(), ms: Math.floor(random() * 60) });
    });
    await tabs.change();
    ended.push(...(await Promise.all(sent)));
  }
  const { lives, runs } = await tabs.ask<Seen>('seen');
  const first = new Map(lives.map(({ contextId, page }) => [contextId, page]));
  const wrong = ended.filter(({ n, contextId, code, page }) => {
    const own = first.get(contextId);
    const ran = runs.filter((run) => run.n === n);
    if (code === 'context_gone') return ran.length > 0;
    // The tab may have gone while the command ran in it.
    const isRight = code === 'completed' ? page === own && ran.length === 1 : code === 'handler_failed';
    return !isRight || ran.some((run) => run.page !== own) || ran.length > 1;
  });
  expect(wrong).toEqual([]);
  const codes = new Set(ended.map(({ code }) => code));
  expect([...codes]).toEqual(expect.arrayContaining(['completed', 'context_gone']));
  for (const caller of callers) await caller.close();
  await context.close();
});
