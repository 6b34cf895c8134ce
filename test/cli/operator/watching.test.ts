/** Tests the operator's commands that print events as they come, against a real relay, also when the stream breaks. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { startTcpProxy } from '../../kit/tcp-proxy.ts';
import { interruption, operatorOf, type RunOperator } from './kit/operator.ts';

let relay: RealRelay;
let desk: Runtime;
const run: RunOperator = (...given) => operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: relay.admin })(...given);
const asAlice = async () => ({ env: { CALLBOARD_TOKEN: await relay.token('alice', 'invoke') } });

beforeAll(async () => {
  relay = await startRealRelay();
  const token = await relay.token('alice', 'connect');
  desk = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  desk.handle('echo', {}, (params) => params);
  desk.connect();
  await desk.ready();
});
afterAll(async () => {
  await desk.close({ withinMs: 0 });
  await relay[Symbol.asyncDispose]();
});

/** Calls `echo` until the watching command has ended, since a subscription begins some time after its request. */
async function callUntil(ended: Promise<unknown>): Promise<void> {
  let over = false;
  void ended.finally(() => (over = true));
  const alice = await asAlice();
  while (!over) await run(['call', 'alice/desk', 'echo', 'a=1'], alice);
}

describe('calls tail', () => {
  it('prints the ends of calls and ends after --count lines', async () => {
    const tail = run(['calls', 'tail', '--outcome', 'completed', '--count', '2', '-o', 'jsonl']);
    await callUntil(tail);
    const { code, out } = await tail;
    const events = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(code).toBe(0);
    expect(events).toHaveLength(2);
    for (const event of events)
      expect(event).toMatchObject({
        event: 'ended',
        record: { outcome: 'completed', action: 'echo', client_type: 'console' },
      });
  });

  it('prints a table, and ends with 130 when it is interrupted', async () => {
    const { stop, interrupt } = interruption();
    const onPrint = (out: string) => void (out.includes('echo') && interrupt());
    const tail = run(['calls', 'tail', '--user-id', 'alice'], { stop, onPrint });
    await callUntil(tail);
    const { code, out } = await tail;
    expect([code, out]).toEqual([130, expect.stringMatching(/^AT +EVENT +USER_ID +CLIENT_ID +COMMAND_ID /)]);
  });

  it('connects again when the stream breaks, and says that events may be missing', async () => {
    await using proxy = await startTcpProxy(relay.url);
    const { stop, interrupt } = interruption();
    let lines = 0;
    let broken = false;
    const onPrint = (out: string) => {
      lines = out.split('\n').length - 1;
      if (lines > 0 && !broken) {
        broken = true;
        proxy.cut();
        proxy.mend();
      } else if (lines > 3) interrupt();
    };
    const env = { CALLBOARD_URL: proxy.url };
    const tail = run(['calls', 'tail', '-o', 'ids'], { env, stop, onPrint });
    await callUntil(tail);
    expect(await tail).toMatchObject({ code: 130, err: expect.stringContaining('events may be missing') });
  });

  it('ends with 11 when there never was a relay, and with 4 without a valid token', async () => {
    expect(await run(['calls', 'tail'], { env: { CALLBOARD_URL: 'http://127.0.0.1:1' } })).toMatchObject({ code: 11 });
    expect(await run(['calls', 'tail'], { env: { CALLBOARD_TOKEN: 'wrong' } })).toMatchObject({ code: 4, out: '' });
  });
});

describe('clients watch and waits watch', () => {
  it('prints clients that come and go', async () => {
    const watch = run(['clients', 'watch', '--user-id', 'alice', '--count', '1', '-o', 'ids']);
    let over = false;
    void watch.finally(() => (over = true));
    const token = await relay.token('alice', 'connect');
    while (!over) {
      const guest = createRuntime({ url: relay.link, token, clientId: 'guest', clientType: 'console' });
      guest.connect();
      await guest.ready();
      await guest.close({ withinMs: 0 });
    }
    expect(await watch).toEqual({ code: 0, out: 'alice/guest\n', err: '' });
  });

  it('prints the present state of waits first', async () => {
    const { code, out } = await run(['waits', 'watch', '--older', '10s', '--count', '1', '-o', 'json']);
    expect([code, JSON.parse(out)]).toMatchObject([0, { over: false, oldest: null }]);
  });
});

describe('messages tail', () => {
  it('prints the newest messages in order, then those that come, each once', async () => {
    const alice = await asAlice();
    const publish = (id: string) =>
      fetch(`${relay.url}/ingest`, {
        method: 'POST',
        headers: { authorization: `Bearer ${relay_host}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          message_id: id,
          kind: 'event',
          stream_suffix: 'app/log',
          client_id: 'desk',
          instance_id: desk.instanceId,
        }),
      });
    const relay_host = await relay.token('alice', 'host');
    for (const id of ['m1', 'm2', 'm3']) expect((await publish(id)).status).toBe(200);
    let sent = false;
    const onPrint = (out: string) => {
      if (!out.includes('m3') || sent) return;
      sent = true;
      void publish('m4');
    };
    const argv = ['messages', 'tail', 'alice/app/log', '--last', '2', '--count', '3', '-o', 'ids'];
    expect(await run(argv, { ...alice, onPrint })).toEqual({ code: 0, out: 'm2\nm3\nm4\n', err: '' });
  });
});
