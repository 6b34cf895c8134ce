/** Tests `callboard/enrol` against a whole relay: how a device gets its token, renews it, and is told why it gets none. */
import { describe, expect, it } from 'vitest';
import { enrol, type DeviceRecord, type EnrolOptions } from '../../src/clients/enrol/index.ts';
import { HAS_DEVICES } from '../kit/store.ts';
import { startTestRelay, type TestRelay } from '../relay/kit/test-relay.ts';

/** A store in memory, as a browser's keeps the key between two loads of a page. */
function newStore(): Required<Pick<EnrolOptions, 'store'>>['store'] & { record: DeviceRecord | undefined } {
  const store = {
    record: undefined as DeviceRecord | undefined,
    get: async () => store.record,
    set: async (record: DeviceRecord | undefined) => void (store.record = record),
  };
  return store;
}

/** Begins to enrol, and resolves with the code that the device shows. */
async function begin(relay: TestRelay, options: Partial<EnrolOptions> = {}) {
  const shown = Promise.withResolvers<string>();
  const store = newStore();
  const codes: string[] = [];
  const onCode = (code: string): void => {
    codes.push(code);
    shown.resolve(code);
  };
  const device = enrol({ url: relay.url, name: 'Kiosk', onCode, store, clock: relay.clock, ...options });
  device.catch(() => {});
  return { device, store, codes, code: await Promise.race([shown.promise, device.then(() => '')]) };
}
const confirm = (relay: TestRelay, code: string) =>
  relay.post('/enrolments/decide', { code, decision: 'confirm' }, 'alice');

describe.runIf(HAS_DEVICES)('enrol', () => {
  it('shows a code, and resolves with a token that a person has confirmed', async () => {
    await using relay = await startTestRelay();
    const { device, code, store } = await begin(relay, { actions: ['page.*'] });
    await confirm(relay, code);
    await relay.clock.advance(5_000);
    const { userId, clientId, token } = await device;
    expect([userId, clientId]).toEqual(['alice', 'kiosk']);
    expect(store.record?.key.privateKey.extractable).toBe(false);
    relay.know('kiosk', await token());
    await relay.client({ user: 'kiosk', client_id: 'kiosk', payload: { actions: [{ name: 'page.show' }] } });
  });

  it('gets a new token before the old one ends, once for all who ask', async () => {
    await using relay = await startTestRelay();
    const { device, code } = await begin(relay);
    await confirm(relay, code);
    await relay.clock.advance(5_000);
    const { token } = await device;
    const first = await token();
    expect(await token()).toBe(first);
    await relay.clock.leap(3_400_000);
    const [second, third] = await Promise.all([token(), token()]);
    expect(second).toBe(third);
    expect(second).not.toBe(first);
  });

  it('shows no code again after a page was loaded again, and says when the device was revoked', async () => {
    await using relay = await startTestRelay();
    const { device, code, store } = await begin(relay);
    await confirm(relay, code);
    await relay.clock.advance(5_000);
    const { token } = await device;
    const again = await begin(relay, { store });
    expect(again.codes).toEqual([]);
    expect((await again.device).clientId).toBe('kiosk');
    await relay.post('/revocations', { user_id: 'alice', client_id: 'kiosk', reason: 'lost' }, 'alice');
    await relay.clock.leap(3_600_000);
    await expect(token()).rejects.toMatchObject({ name: 'EnrolError', code: 'forbidden' });
    const { device: third } = await begin(relay, { store }).catch((error: unknown) => ({
      device: Promise.reject(error),
    }));
    await expect(third).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('rejects when a person denies the device, and when it shall wait no longer', async () => {
    await using relay = await startTestRelay();
    const { device, code } = await begin(relay);
    await relay.post('/enrolments/decide', { code, decision: 'deny' }, 'alice');
    await relay.clock.advance(5_000);
    await expect(device).rejects.toMatchObject({ code: 'forbidden' });
    const controller = new AbortController();
    const other = await begin(relay, { signal: controller.signal });
    controller.abort(new Error('over'));
    await expect(other.device).rejects.toThrow('over');
  });
});
