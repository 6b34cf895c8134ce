/** Tries, beside an attack, what only new resources of the relay can serve: a user's first client, and a new feed. */
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { ADMIN_TOKEN, freshToken, linkUrl, NEWCOMER, relayUrl, type Site } from './site.ts';

/** The size of the params and of the advertisement of the newcomer, in bytes: far below every guarantee. */
const PARAMS_BYTES = 100 * 1024;
const ADVERTISED_BYTES = 50 * 1024;
/** How long a trial may take, in milliseconds. */
const TRIAL_MS = 10_000;

/**
 * Calls a client of a user who holds nothing else, before the client is connected, then connects the client. The relay
 * must keep the params, accept the link and its advertisement, and answer the call. Returns the fault, or null.
 */
export async function newcomerCalls(site: Site, n: number, commandId: string): Promise<string | null> {
  const token = (): Promise<string> => freshToken(NEWCOMER);
  const target = { userId: NEWCOMER, clientId: `newcomer-${commandId}`, action: 'greet' };
  const caller = createHttpCaller({ url: relayUrl(site, n), token, retries: 0 });
  const { clientId } = target;
  const runtime = createRuntime({ url: linkUrl(site, n + 1), token, clientId, clientType: 'console' });
  runtime.handle('greet', { description: 'd'.repeat(ADVERTISED_BYTES) }, () => 'hello');
  const times = { connectWithinMs: TRIAL_MS, respondWithinMs: TRIAL_MS };
  try {
    const called = caller.invoke(target, { filler: 'p'.repeat(PARAMS_BYTES) }, { commandId, ...times });
    runtime.connect();
    const answer = await called;
    return answer.outcome === 'completed' ? null : `newcomer ${commandId}: ${JSON.stringify(answer).slice(0, 200)}`;
  } catch (error) {
    return `newcomer ${commandId}: ${String(error)} (its client: ${JSON.stringify(runtime.status)})`;
  } finally {
    await runtime.close();
  }
}

/** Subscribes as the operator to all events of commands, and waits for the first. Returns the fault, or null. */
export async function operatorWatches(site: Site, n: number): Promise<string | null> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), TRIAL_MS);
  try {
    const response = await fetch(`${relayUrl(site, n)}/graphql`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        accept: 'text/event-stream',
        'content-type': 'application/json',
      },
      // The feed has a filter of its own, so no feed that is open already serves it.
      body: JSON.stringify({ query: 'subscription{commandEvents(filter:{clientId:"desk"}){stage}}' }),
      signal: over.signal,
    });
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString('utf8');
      if (text.includes('"commandEvents":{')) return null;
      if (text.includes('"errors"')) break;
    }
    return `the operator's feed: ${response.status} ${text.replaceAll(/\s+/g, ' ').slice(0, 200)}`;
  } catch (error) {
    return `the operator's feed: ${String(error)}`;
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}
