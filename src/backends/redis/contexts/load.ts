/** Loads contexts and windows by the names that an index has. Changes nothing. */
import type { CountedWindow } from '../../../core/contexts/store.ts';
import { clientKeyText } from '../../../core/ids.ts';
import type { Looker } from '../connections/look.ts';
import type { Member } from '../connections/scan.ts';
import { StoredContext, countsOf, placeName, REPORTER_FIELDS, reporterOf, windowOf, type Reporter } from './rows.ts';
import type { KeyKind } from '../keys.ts';
import { fieldsOf, listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';

/** Reads contexts and windows that an index names, with the rows of their clients, all in one round trip. */
export interface ContextLoader {
  /** Returns one answer per member, in order; null if the context is gone. */
  contexts(members: readonly Member[]): Promise<readonly (StoredContext | null)[]>;
  windows(members: readonly Member[]): Promise<readonly (CountedWindow | null)[]>;
}

export function createContextLoader(store: Store, looker: Looker): ContextLoader {
  const clientsOf = (members: readonly Member[]): readonly Client[] => grouped(store, members);
  const reporter = async ({ members, ch, partition }: Client): Promise<Reporter | null> => {
    const [first] = members;
    if (!first) return null;
    const [userId = '', clientId = ''] = first.position;
    const values = await looker.read(['HMGET', store.key(partition, 'conn', ch), ...REPORTER_FIELDS]);
    return reporterOf({ userId, clientId }, listOf(values), first.leases);
  };
  const held = async ({ members, ch, partition }: Client, kind: KeyKind): Promise<readonly (string | null)[]> => {
    const ids = members.map(({ position }) => position[2] ?? '');
    const values = listOf(await looker.read(['HMGET', store.key(partition, kind, ch), ...ids]));
    return values.map((value) => (typeof value === 'string' ? value : null));
  };
  const counts = async ({ ch, partition }: Client): Promise<ReadonlyMap<string, string>> =>
    fieldsOf(await looker.read(['HGETALL', store.key(partition, 'ctxwin', ch)]));
  return {
    async contexts(members) {
      const ofClients = clientsOf(members).map(async (client) => {
        const [found, values] = await Promise.all([reporter(client), held(client, 'ctx')]);
        return values.map((value) => (value !== null && found !== null ? new StoredContext(found, value) : null));
      });
      return (await Promise.all(ofClients)).flat();
    },
    async windows(members) {
      const ofClients = clientsOf(members).map(async (client) => {
        const [found, values, live] = await Promise.all([reporter(client), held(client, 'win'), counts(client)]);
        return values.map((value) => (value !== null && found !== null ? counted(found, value, live) : null));
      });
      return (await Promise.all(ofClients)).flat();
    },
  };
}

type Client = { readonly ch: string; readonly partition: number; readonly members: readonly Member[] };

/** Groups members by client. An index has the members of a client one after another, so their order does not change. */
function grouped(store: Store, members: readonly Member[]): readonly Client[] {
  const clients = new Map<string, Member[]>();
  for (const member of members) {
    const [userId = '', clientId = ''] = member.position;
    const text = clientKeyText({ userId, clientId });
    const own = clients.get(text) ?? [];
    clients.set(text, own);
    own.push(member);
  }
  return [...clients.values()].map((own) => {
    const [userId = '', clientId = ''] = own[0]?.position ?? [];
    return { ch: store.hash(userId, clientId), partition: own[0]?.partition ?? 0, members: own };
  });
}

function counted(reporter: Reporter, value: string, live: ReadonlyMap<string, string>): CountedWindow {
  const window = windowOf(reporter, value);
  return { window, live: reporter.reportsContexts ? countsOf(live.get(placeName(window.windowId))) : null };
}
