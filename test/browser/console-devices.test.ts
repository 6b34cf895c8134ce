/** Tests the pages of devices and of revocations by keyboard: confirm, deny, rename, remove and revoke. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { enrol, type DeviceRecord, type EnrolledDevice } from '../../src/clients/enrol/index.ts';
import { ADMIN } from '../http/kit/http-relay.ts';
import { FakeClock } from '../kit/clock.ts';
import { startTestRelay, type TestRelay } from '../relay/kit/test-relay.ts';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, expectClean, goTo, openConsole, type ConsolePage } from './kit/console-page.ts';
import { tabAndEnter, tabAndType, tabTo } from './kit/keyboard.ts';

/** How long a device waits between two questions, in milliseconds. */
const POLL_MS = 5_000;
/** After this time a code has expired, and wrong codes count no more. */
const EXPIRED_MS = 600_001;

let browser: Browser;
let relay: TestRelay;
let opened: ConsolePage;
let page: Page;
beforeAll(async () => {
  browser = await launchChromium();
});
beforeEach(async () => {
  relay = await startTestRelay({ nodeId: 'relay-a' }, { clock: new FakeClock(Date.now()) });
  opened = await openConsole(browser, `${relay.url}/console/devices`, { token: ADMIN });
  ({ page } = opened);
});
afterEach(async () => {
  expectClean(opened);
  await page.context().close();
  await relay[Symbol.asyncDispose]();
});
afterAll(() => browser?.close());

const main = () => page.locator('#main');
const dialog = () => page.getByRole('dialog');
const button = (name: string) => page.getByRole('button', { name, exact: true });
const rows = () => main().locator('tbody tr');

type Begun = { readonly code: string; readonly device: Promise<EnrolledDevice> };

/** A device asks to be enrolled, and shows a code. */
async function begin(name = 'Kiosk 7'): Promise<Begun> {
  let record: DeviceRecord | undefined;
  const shown = Promise.withResolvers<string>();
  const device = enrol({
    ...{ url: relay.url, name, actions: ['receipt.*', 'page.show'], clock: relay.clock, onCode: shown.resolve },
    store: { get: async () => record, set: async (given) => void (record = given) },
  });
  device.catch(shown.reject);
  return { code: await shown.promise, device };
}

/** Enrols a device without the console, and connects it. */
async function enrolled(name = 'Kiosk 7', userId = 'shop') {
  const { code, device } = await begin(name);
  const decided = await relay.post('/enrolments/decide', { code, decision: 'confirm', user_id: userId }, 'admin');
  expect(decided.status).toBe(200);
  await relay.clock.advance(POLL_MS);
  const { clientId, token } = await device;
  relay.know(clientId, await token());
  return { clientId, connect: () => connect(clientId) };
}

/** Connects a device whose token is known. */
const connect = (clientId: string) =>
  relay.client({ user: clientId, client_id: clientId, payload: { actions: [{ name: 'page.show' }] } });

/** Opens the dialog and enters a code. */
async function enter(code: string): Promise<void> {
  await tabAndEnter(button('Confirm a device…'));
  await tabAndType(page.getByLabel('Code on the device'), code);
  await page.keyboard.press('Enter');
}

it('says what to do, shows a device before the decision, confirms it for a user, and follows its connection', async () => {
  await main().getByText('No device is enrolled').waitFor();
  const { code, device } = await begin();
  await enter(` ${code.toLowerCase().replace('-', ' – ')} `);
  const claims = dialog().getByRole('group', { name: 'What the device says of itself' });
  for (const text of ['Kiosk 7', 'Browser', 'receipt.*, page.show', 'Nothing of it is proved']) {
    await claims.getByText(text).waitFor();
  }
  // A second Enter does nothing: the focus is on what the device says.
  await expect.poll(() => claims.evaluate((element) => element === document.activeElement)).toBe(true);
  await page.keyboard.press('Enter');
  expect(await dialog().getByRole('alert').count()).toBe(0);
  await tabAndEnter(button('Confirm'));
  await dialog().getByRole('alert').getByText('Write the user').waitFor();
  await tabAndType(page.getByLabel('For the user'), 'shop');
  await page.keyboard.press('Enter');
  await dialog().getByText('Kiosk 7 was confirmed').waitFor();
  await dialog().getByRole('link', { name: 'shop / kiosk-7' }).waitFor();
  // The next device is proposed for the same user.
  await tabAndEnter(button('Another device…'));
  await tabAndType(page.getByLabel('Code on the device'), (await begin('Kiosk 8')).code);
  await page.keyboard.press('Enter');
  await claims.getByText('Kiosk 8').waitFor();
  expect(await page.getByLabel('For the user').inputValue()).toBe('shop');
  await page.keyboard.press('Escape');
  await rows().getByText('Not connected').waitFor();
  await rows().getByText('administrator').waitFor();
  await relay.clock.advance(POLL_MS);
  const { userId, clientId, token } = await device;
  expect([userId, clientId]).toEqual(['shop', 'kiosk-7']);
  await page.locator('.live').getByText('Live').waitFor();
  relay.know(clientId, await token());
  await connect(clientId);
  await rows().getByText('Connected', { exact: true }).waitFor();
});

it('has the code in no address, no storage and no log', async () => {
  const { code } = await begin();
  const urls: string[] = [];
  page.on('request', (request) => void urls.push(request.url(), request.headers()['referer'] ?? ''));
  await enter(code);
  await tabAndType(page.getByLabel('For the user'), 'shop');
  await page.keyboard.press('Enter');
  await dialog().getByText('was confirmed').waitFor();
  await page.reload();
  await rows().getByText('Kiosk 7').waitFor();
  const kept = await page.evaluate(async () =>
    JSON.stringify([{ ...sessionStorage }, { ...localStorage }, history.state, document.cookie, await caches.keys()]),
  );
  const places = [kept, page.url(), ...urls, ...relay.lines].join('\n');
  expect(places).toContain('a device was enrolled');
  for (const text of [code, code.replace('-', ''), code.replace('-', '%20')])
    expect(places.toLowerCase()).not.toContain(text.toLowerCase());
});

it('denies a device, which is told so, and goes back to another code', async () => {
  const { code, device } = await begin('Not mine');
  await enter(code);
  await dialog().getByText('Not mine').waitFor();
  await tabAndEnter(button('Back'));
  await tabAndType(page.getByLabel('Code on the device'), code);
  await page.keyboard.press('Enter');
  await tabAndEnter(button('Deny'));
  await dialog().getByText('Not mine was denied').waitFor();
  await relay.clock.advance(POLL_MS);
  await expect(device).rejects.toMatchObject({ code: 'forbidden' });
  await tabAndEnter(button('Another device…'));
  await page.getByLabel('Code on the device').waitFor();
  await page.keyboard.press('Escape');
  await main().getByText('No device is enrolled').waitFor();
});

it('says what is wrong with a code: its form, no device, too many tries, a decision that came before', async () => {
  const { code } = await begin();
  await enter('K10SK');
  const alert = dialog().getByRole('alert');
  await alert.getByText('A code has eight letters').waitFor();
  const field = page.getByLabel('Code on the device');
  await tabAndType(field, code);
  await page.keyboard.press('Enter');
  await tabAndType(page.getByLabel('For the user'), 'shop');
  expect((await relay.post('/enrolments/decide', { code, decision: 'deny' }, 'alice')).status).toBe(200);
  await page.keyboard.press('Enter');
  await alert.getByText('somebody has decided already').waitFor();
  await tabAndEnter(button('Back'));
  for (let at = 0; at < 4; at++) {
    await tabAndType(field, 'bcdf ghjk');
    await page.keyboard.press('Enter');
    await button('Look it up').waitFor();
    await alert.getByText('No device waits with this code').waitFor();
  }
  await tabAndType(field, 'bcdf ghjk');
  await page.keyboard.press('Enter');
  await alert.getByText(/The next one is compared in 10 m/).waitFor();
  await relay.clock.advance(EXPIRED_MS);
  await page.keyboard.press('Enter');
  await alert.getByText('older than ten minutes').waitFor();
});

it('renames a device, and removes it with a receipt of what ended', async () => {
  const { connect } = await enrolled();
  const link = await connect();
  await tabAndEnter(button('Refresh'));
  await tabAndEnter(button('Rename Kiosk 7…'));
  await tabAndType(page.getByRole('textbox', { name: 'Name' }), 'Hall <1>');
  await page.keyboard.press('Enter');
  await dialog().getByRole('alert').getByText('It was not renamed.').waitFor();
  await tabAndType(page.getByRole('textbox', { name: 'Name' }), 'Entrance hall');
  await page.keyboard.press('Enter');
  await rows().getByRole('link', { name: 'Entrance hall' }).waitFor();
  await rows().getByRole('link', { name: 'shop / kiosk-7' }).waitFor();
  await tabAndEnter(button('Remove Entrance hall…'));
  await dialog().getByText('its link ends at once').waitFor();
  await tabAndType(page.getByLabel('Reason'), 'it was stolen');
  await page.keyboard.press('Enter');
  await dialog().getByText('Entrance hall was removed').waitFor();
  expect(await dialog().locator('dd').allTextContents()).toEqual(['1', '0', '0', 'relay-a']);
  expect(await link.closed).toMatchObject({ code: 4403 });
  await tabAndEnter(button('Close'));
  await main().getByText('No device is enrolled').waitFor();
  await goTo(page, 'revocations');
  await rows().getByText('Links of shop / kiosk-7').waitFor();
  await rows().getByText('it was stolen').waitFor();
  await goTo(page, 'audit?act=revoke');
  await rows().getByText('it was stolen').waitFor();
});

it('lists the devices of a user in pages', async () => {
  await enrolled('Phone', 'alice');
  for (let at = 0; at < 41; at++) await enrolled(`Till ${at + 1}`);
  await goTo(page, 'devices?user=shop');
  await page.getByRole('link', { name: 'Next 40' }).waitFor();
  expect(await rows().count()).toBe(40);
  await page.getByRole('link', { name: 'Next 40' }).click();
  await main().getByText('1 device on this page').waitFor();
  await tabAndType(page.getByRole('searchbox'), 'user:nobody');
  await page.keyboard.press('Enter');
  await main().getByText('No device matches').waitFor();
});

it('lets a user confirm and see devices of its own, and offers no list of revocations', async () => {
  await enrolled('Foreign');
  const { code } = await begin('My phone');
  await page.context().close();
  opened = await openConsole(browser, `${relay.url}/console/devices`, { token: (await relay.token('alice')) ?? '' });
  ({ page } = opened);
  await main().getByText('No device is enrolled').waitFor();
  await enter(code);
  await dialog().getByText('The device becomes a client of yours.').waitFor();
  expect(await page.getByLabel('For the user').count()).toBe(0);
  await tabAndType(page.getByLabel('Client id'), 'pocket');
  await page.keyboard.press('Enter');
  await tabAndEnter(button('Close'));
  await rows().getByRole('link', { name: 'alice / pocket' }).waitFor();
  await goTo(page, 'revocations');
  await main().getByText('You may revoke tokens of your own').waitFor();
  await tabAndEnter(button('Revoke tokens…'));
  expect(await page.getByRole('textbox', { name: 'User', exact: true }).count()).toBe(0);
  await tabTo(page.getByLabel('Which tokens'));
  await page.keyboard.press('ArrowDown');
  await tabAndType(page.getByLabel('Client id'), 'pocket');
  await tabAndType(page.getByLabel('Reason'), 'left in a train');
  await page.keyboard.press('Enter');
  await dialog().getByText('The tokens are revoked').waitFor();
  await tabAndEnter(button('Close'));
  await goTo(page, 'devices');
  await rows().getByText('Revoked').waitFor();
});

it('a user without the scope connect is told that it can confirm no device', async () => {
  await page.context().close();
  const token = (await relay.token('alice:invoke')) ?? '';
  opened = await openConsole(browser, `${relay.url}/console/devices`, { token });
  ({ page } = opened);
  await main().getByText('lacks the scope connect').waitFor();
  expect(await button('Confirm a device…').count()).toBe(0);
});

describe('revocations', () => {
  it('of a user end its links; a missing field is named; the receipt counts', async () => {
    const client = await relay.client({ client_id: 'laptop' });
    await goTo(page, 'revocations');
    await main().getByText('No token is revoked').waitFor();
    await tabAndEnter(button('Revoke tokens…'));
    await tabAndEnter(button('Revoke them'));
    await dialog().getByRole('alert').getByText('Write the user.').waitFor();
    await tabAndType(page.getByRole('textbox', { name: 'User', exact: true }), 'alice');
    await tabAndType(page.getByLabel('Reason'), 'her laptop is lost');
    await page.keyboard.press('Enter');
    await dialog().getByText('The tokens are revoked').waitFor();
    expect(await dialog().locator('dd').allTextContents()).toEqual(['1', '0', '0', 'relay-a']);
    expect(await client.closed).toMatchObject({ code: 4403 });
    await tabAndEnter(button('Close'));
    await rows().getByText('Tokens of alice').waitFor();
    await rows().getByText('her laptop is lost').waitFor();
  });

  it('of one token send its id alone, and of a time name the time', async () => {
    const token = (await relay.token('bob')) ?? '';
    const claims = JSON.parse(atob(token.split('.')[1] ?? ''));
    const sent: string[] = [];
    page.on('request', (request) => void sent.push(request.postData() ?? ''));
    await goTo(page, 'revocations');
    await tabAndEnter(button('Revoke tokens…'));
    await tabTo(page.getByLabel('Which tokens'));
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await tabAndType(page.getByLabel('Token id'), token);
    await tabAndType(page.getByLabel('Reason'), 'it was in a log');
    await page.keyboard.press('Enter');
    await dialog().getByText('The tokens are revoked').waitFor();
    await tabAndEnter(button('Close'));
    await rows().getByText(`Token ${claims.jti}`).waitFor();
    expect(sent.join('\n')).not.toContain(token);
    expect((await relay.rest('/connections', { requester: 'bob' })).status).toBe(401);
    await tabAndEnter(button('Revoke tokens…'));
    await tabTo(page.getByLabel('Which tokens'));
    await page.keyboard.press('End');
    await tabAndType(page.getByLabel('Issued before, in UTC'), 'yesterday');
    await tabAndType(page.getByLabel('Reason'), 'the issuer was broken into');
    await page.keyboard.press('Enter');
    await dialog().getByRole('alert').getByText('Write a time such as').waitFor();
    await tabAndType(page.getByLabel('Issued before, in UTC'), '2026-01-01T00:00');
    await page.keyboard.press('Enter');
    await dialog().getByText('The tokens are revoked').waitFor();
    await tabAndEnter(button('Close'));
    await rows().getByText('All tokens').waitFor();
  });

  it('name the nodes that were silent', async () => {
    await page.route('**/graphql', async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      if (/mutation RevokeTokens\b/.test(route.request().postDataJSON().query)) body.data.revoke.silent = ['relay-b'];
      await route.fulfill({ response: answer, json: body });
    });
    await goTo(page, 'revocations');
    await tabAndEnter(button('Revoke tokens…'));
    await tabAndType(page.getByRole('textbox', { name: 'User', exact: true }), 'alice');
    await tabAndType(page.getByLabel('Reason'), 'lost');
    await page.keyboard.press('Enter');
    await dialog().getByText('The tokens are revoked, but not everywhere yet').waitFor();
    await dialog().getByRole('alert').getByText('relay-b did not answer.').waitFor();
    await page.unrouteAll();
  });
});

/** Shows one state after the other of the pages, for what looks at each. */
const STATES: readonly (readonly [name: string, show: () => Promise<unknown>])[] = [
  ['no-devices', () => main().getByText('No device is enrolled').waitFor()],
  ['code', () => tabAndEnter(button('Confirm a device…'))],
  [
    'no-such-code',
    async () => {
      await tabAndType(page.getByLabel('Code on the device'), 'bcdf-ghjk');
      await page.keyboard.press('Enter');
      await dialog().getByRole('alert').waitFor();
    },
  ],
  [
    'decision',
    async () => {
      const { code } = await begin('Kiosk 8 Großer Saal');
      await tabAndType(page.getByLabel('Code on the device'), code);
      await page.keyboard.press('Enter');
      await dialog().getByText('Is this the device?').waitFor();
    },
  ],
  [
    'confirmed',
    async () => {
      await tabAndType(page.getByLabel('For the user'), 'shop');
      await page.keyboard.press('Enter');
      await dialog().getByText('was confirmed').waitFor();
    },
  ],
  [
    'devices',
    async () => {
      await page.keyboard.press('Escape');
      await (await enrolled()).connect();
      await enrolled('a-device-with-a-name-that-is-as-long-as-names-may-be-at-the-most', 'a-user-with-a-long-name');
      await tabAndEnter(button('Refresh'));
      await rows().getByText('a-device-with').first().waitFor();
      await rows().getByText('Connected', { exact: true }).waitFor();
    },
  ],
  ['rename', () => tabAndEnter(button('Rename Kiosk 7…'))],
  [
    'remove',
    async () => {
      await page.keyboard.press('Escape');
      await tabAndEnter(button('Remove Kiosk 7…'));
    },
  ],
  [
    'removed',
    async () => {
      await page.keyboard.press('Enter');
      await dialog().getByText('was removed').waitFor();
    },
  ],
  [
    'revocations',
    async () => {
      await page.keyboard.press('Escape');
      await relay.post('/revocations', { token_id: 'x'.repeat(64), reason: 'it was in a log '.repeat(9) }, 'admin');
      await goTo(page, 'revocations');
      await rows().getByText('Links of shop').waitFor();
    },
  ],
  ['revoke', () => tabAndEnter(button('Revoke tokens…'))],
];

it.each([1280, 390])(
  'axe finds no fault at a width of %i, in either theme, and nothing is wider than the page',
  async (width) => {
    await page.setViewportSize({ width, height: 844 });
    for (const [name, show] of STATES) {
      await show();
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect([name, colorScheme, await axeViolations(page, colorScheme)]).toEqual([name, colorScheme, []]);
      }
      expect([name, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([name, width]);
    }
  },
);
