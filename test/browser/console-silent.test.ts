/** Tests that console pages with data of a silent node name that node. The node has lost its connection to Redis. */
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { expect, inject, it, onTestFinished } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { launchChromium } from './kit/chromium.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';

/** The pages that show what nodes hold, each with the sentence that it shows about a silent node. */
const PAGES: readonly (readonly [path: string, sentence: RegExp])[] = [
  ['', /^dies has been silent for .* Its 1 link is shown as last recorded/],
  ['calls', /^dies has been silent for .* Calls on this node are shown as last recorded/],
  [
    'waits',
    /^dies has been silent for .* Its waiting callers are missing, and calls to its clients are shown as last recorded/,
  ],
  ['clients', /^dies has been silent for .* Clients of this node are shown as last recorded/],
  ['clients?view=silence', /^dies has been silent for .* Clients of this node are shown as last recorded/],
  ['clients?view=reconnects', /^dies has been silent for .* Clients of this node are shown as last recorded/],
  ['clients/alice/till', /^dies, which held the link, is silent/],
  ['actions', /^dies has been silent for .* Actions of its clients are shown as last recorded/],
  ['users', /^dies has been silent for .* Links of this node are counted as last recorded/],
  ['users/alice', /^dies has been silent for .* Clients of this node are shown as last recorded/],
  ['places', /^dies has been silent for .* What its clients reported is shown as last recorded/],
  ['sites', /^dies has been silent for .* Hosts that are connected to this node are shown as last recorded/],
  ['capacity', /^dies has been silent for .* What this node holds is shown as last recorded/],
  ['nodes', /^dies has been silent for .* It may have stopped/],
];

const auth = { secret: 'a secret of the tests, long enough for HS256', adminTokens: ['admin-token-of-the-tests'] };

/** Opens a node of the deployment that reaches Redis at this address. Returns the node's URL. */
async function openNode(nodeId: string, namespace: string, redisUrl: string): Promise<string> {
  const redis = { url: redisUrl, partitions: 1, durability: 'memory', namespace } as const;
  const rest = { strictMigration: false, legacy: { commandStream: null, pending: null } };
  const node = await openCallboard({ config: { nodeId, auth, redis: { ...redis, ...rest } } });
  onTestFinished(() => node.close());
  return node.listen();
}

/** Connects a client of alice to the node. */
async function connectTo(url: string): Promise<void> {
  const { secret } = auth;
  const runtime = createRuntime({
    url: `${url.replace('http', 'ws')}/connect`,
    token: () => signToken({ secret, user: 'alice', scopes: ['connect'], ttlSeconds: TOKEN_SECONDS, now: Date.now() }),
    clientId: 'till',
    clientType: 'console',
  });
  onTestFinished(() => runtime.close({ withinMs: 0 }));
  runtime.connect();
  await runtime.ready();
}

it('every open page names the node that fell silent', async () => {
  const namespace = randomUUID();
  const toRedis = await startTcpProxy(inject('redisUrl'));
  onTestFinished(() => toRedis[Symbol.asyncDispose]());
  const lives = await openNode('lives', namespace, inject('redisUrl'));
  const dies = await openNode('dies', namespace, toRedis.url.replace('http', 'redis'));
  // A node can only be closed while it reaches Redis.
  onTestFinished(() => toRedis.mend());
  await connectTo(dies);
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  await context.addInitScript((token) => sessionStorage.setItem('callboard:token', token), auth.adminTokens[0] ?? '');
  const open = async (path: string): Promise<Page> => {
    const page = await context.newPage();
    await page.goto(`${lives}/console/${path}`);
    await page.locator('#main h1').waitFor();
    return page;
  };
  const pages = await Promise.all(PAGES.map(([path]) => open(path)));
  const silences = (page: Page) => page.locator('#main p').getByText('silent');
  expect(await Promise.all(pages.map((page) => silences(page).count()))).toEqual(PAGES.map(() => 0));
  toRedis.cut();
  // A node that is gone is listed for half a minute, so all pages are looked at together.
  await Promise.all(
    PAGES.map(async ([, sentence], at) => pages[at]?.locator('#main p', { hasText: sentence }).first().waitFor()),
  );
  const [overview] = pages;
  if (!overview) throw new Error('The overview is not open.');
  await overview
    .getByText(/Without dies, which did not answer: what it did is not known\./)
    .first()
    .waitFor();
  // Each plot says so, because a sentence such as "Nothing was admitted" would otherwise be about all nodes.
  await overview.getByText(/ends? in this window, without those of dies/).waitFor();
  const sentences = await overview.locator('.plot-sum').allInnerTexts();
  expect(sentences.length).toBeGreaterThan(5);
  for (const sentence of sentences) expect(sentence).toContain('Without dies');
  for (const name of ['Clients connected', 'Callers waiting'])
    await overview
      .locator('.readouts > div', { hasText: name })
      .getByText(/^and \d+ as last recorded$/)
      .waitFor();
  for (const path of ['', 'waits']) {
    const page = pages[PAGES.findIndex(([of]) => of === path)];
    expect(await page?.locator('#main').innerText()).not.toContain('Every caller has its answer');
  }
});
