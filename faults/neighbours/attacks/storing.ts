/** Lists the attacks that fill the store: history, commands, records of ended commands, sites and large payloads. */
import { createLinkCaller } from '../../../src/clients/caller/index.ts';
import { createRuntime } from '../../../src/clients/runtime/index.ts';
import { inLanes, pause, type Attack, type AttackContext } from './attack.ts';
import { post } from './requests.ts';
import { freshToken, HOSTILE, linkUrl } from '../site.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Makes calls of the hostile user to the hostile user's own client, with results of `bytes`. */
async function calls(context: AttackContext, lanes: number, bytes: number, restMs: number): Promise<void> {
  const { site, count } = context;
  const result = 'r'.repeat(bytes);
  const runtime = createRuntime({
    url: linkUrl(site, 1),
    token: () => freshToken(HOSTILE),
    clientId: 'giver',
    clientType: 'console',
  });
  runtime.handle('give', {}, () => result);
  runtime.connect();
  const caller = createLinkCaller({ url: linkUrl(site, 0), token: () => freshToken(HOSTILE) });
  await inLanes(context, lanes, async (n) => {
    const answer = await caller.invoke(
      { userId: HOSTILE, clientId: 'giver', action: 'give' },
      {},
      { connectWithinMs: 5_000, commandId: `hostile-${n}` },
    );
    count(answer.outcome === 'completed' ? 'commands completed' : 'commands otherwise');
    if (restMs > 0) await pause(restMs);
  });
}

/** The attacks whose data the relay keeps after the attack, so that other users' data might be evicted. */
export const STORING: readonly Attack[] = [
  {
    name: 'large-results',
    says: 'results of 1 MB, kept for the hour',
    run: (context) => calls(context, 4, MIB - 2_000, 0),
  },
  {
    name: 'many-commands',
    says: 'small commands with ids of its own, as fast as possible',
    run: (context) => calls(context, 8, 10, 0),
  },
  {
    name: 'full-store',
    says: 'events of 100 KB and of 10 KB, until history and spill store are full',
    run: (context) =>
      inLanes(context, 2, async (n) => {
        const payload = 'p'.repeat(n % 2 === 0 ? 100 * KIB : 10 * KIB);
        const message = { client_id: 'pusher', instance_id: 'i', kind: 'event', stream_suffix: `s${n % 50}`, payload };
        const messages = Array.from({ length: n % 2 === 0 ? 9 : 90 }, () => message);
        const status = await post(context.site, n, { path: '/ingest', body: JSON.stringify(messages) });
        context.count(status === 200 ? 'events' : 'events refused', messages.length);
        await pause(10);
      }),
  },
];
