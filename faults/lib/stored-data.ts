/** Stores much data for one user in a relay: contexts and windows, streams of events, and ended commands. */
import type { WebSocket } from 'ws';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS } from '../../src/core/limits.ts';
import { openBareLink } from './link.ts';

/** A user whose data are stored, and the relays that store them in a common store. */
export type DataOwner = {
  readonly user: string;
  readonly urls: readonly string[];
  token(): Promise<string>;
  /** Counts what was stored, by name. */
  count(name: string, by: number): void;
};

/** The size of the metadata of one context, in bytes. Ten clients then use 10 of the 16 MiB of their user's share. */
const METADATA_BYTES = 900;
/** The number of contexts in one report, which must fit into a frame. */
const CONTEXTS_OF_REPORT = 250;
/** The number of messages in one request to /ingest. */
const MESSAGES = 100;
/** The number of calls in progress while calls are stored. */
const LANES = 16;
const PAUSE_MS = 20;

/** Returns the JSON text of a report's payload that sets some contexts, each with this much metadata. */
export function contextsReport(from: number, count: number, metadataBytes = METADATA_BYTES): string {
  const metadata = 'm'.repeat(metadataBytes);
  return JSON.stringify({
    contexts: {
      set: Array.from({ length: count }, (_, i) => ({
        ...{ context_id: `t${from + i}`, status: 'idle', ownership: 'worker', metadata },
        window_id: `w${(from + i) % CLIENT_WINDOWS}`,
      })),
    },
  });
}

/** Returns the JSON text of a report's payload that sets some windows. */
export function windowsReport(from: number, count: number): string {
  return JSON.stringify({
    windows: {
      set: Array.from({ length: count }, (_, i) => ({
        ...{ window_id: `w${from + i}`, ownership: 'worker', focused: false, type: 'normal', state: 'normal' },
        ...{ incognito: false, tab_count: 10, draining: false, status: 'open' },
      })),
    },
  });
}

/**
 * Connects clients `browser-0`, `browser-1`, ..., each of which reports the maximum number of windows and contexts.
 * Returns their links, which must stay open.
 */
export async function reportPlaces(owner: DataOwner, clients: number): Promise<readonly WebSocket[]> {
  const links: WebSocket[] = [];
  for (let n = 0; n < clients; n++) {
    const hello = { token: await owner.token(), clientId: `browser-${n}`, clientType: 'browser' } as const;
    const socket = await openBareLink(linkOf(owner, n), hello);
    links.push(socket);
    socket.send(`{"type":"report"}\n${windowsReport(0, CLIENT_WINDOWS)}`);
    for (let from = 0; from < CLIENT_CONTEXTS; from += CONTEXTS_OF_REPORT) {
      socket.send(`{"type":"report"}\n${contextsReport(from, CONTEXTS_OF_REPORT)}`);
      owner.count('contexts reported', CONTEXTS_OF_REPORT);
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
  }
  return links;
}

/** Stores `rows` events in each of the streams `scan0`, `scan1`, ... */
export async function storeStreams(
  owner: DataOwner,
  { streams, rows }: { readonly streams: number; readonly rows: number },
): Promise<void> {
  for (let n = 0; n < (streams * rows) / MESSAGES; n++) {
    const message = { client_id: 'pusher', instance_id: 'i', kind: 'event', stream_suffix: `scan${n % streams}` };
    const messages = Array.from({ length: MESSAGES }, () => ({ ...message, payload: n }));
    const response = await fetch(`${urlOf(owner, n)}/ingest`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await owner.token()}`, 'content-type': 'application/json' },
      body: JSON.stringify(messages),
    });
    await response.arrayBuffer();
    owner.count(response.status === 200 ? 'rows stored' : 'rows refused', MESSAGES);
  }
}

/** Makes this many calls of the action `give` to the client `giver`, which ends them at once. */
export async function storeCalls(owner: DataOwner, calls: number): Promise<void> {
  const { token } = owner;
  const runtime = createRuntime({ url: linkOf(owner, 0), token, clientId: 'giver', clientType: 'console' });
  runtime.handle('give', {}, () => null);
  runtime.connect();
  const caller = createLinkCaller({ url: linkOf(owner, 0), token });
  let left = calls;
  const lane = async (): Promise<void> => {
    while (left-- > 0) {
      await caller.invoke({ userId: owner.user, clientId: 'giver', action: 'give' }, {}, { connectWithinMs: 5_000 });
      owner.count('calls stored', 1);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await Promise.all([caller.close(), runtime.close()]);
}

function urlOf({ urls }: DataOwner, n: number): string {
  const url = urls[n % urls.length];
  if (url === undefined) throw new Error('an owner without a relay');
  return url;
}

function linkOf(owner: DataOwner, n: number): string {
  return `${urlOf(owner, n).replace(/^http/, 'ws')}/connect`;
}
