/** Builds catalogs of actions, without a relay. */
import type { ActionAdvertisement, ClientType } from '../../../src/core/connections/connection.ts';
import { createShares, type Shares } from '../../../src/core/shares/shares.ts';
import { BUILTIN_NAMES } from '../../../src/mcp/builtin-tools.ts';
import { Catalog, type ActionTool, type Advertiser, type Allowed, type CatalogView } from '../../../src/mcp/catalog.ts';

const NOTHING = {
  summary: null,
  description: null,
  version: null,
  checksArguments: null,
  schema: null,
  metadata: null,
};

/** One action of one client. */
export type Offer = {
  readonly clientId: string;
  readonly clientType: ClientType;
  readonly action: ActionAdvertisement;
};

export function offer(name: string, over: Partial<ActionAdvertisement> = {}, clientId = 'desk'): Offer {
  return { clientId, clientType: 'browser', action: { ...NOTHING, name, ...over } };
}

/** Returns an empty catalog of a user of these shares. */
export function catalogOf(shares: Shares = createShares()): Catalog {
  return new Catalog(shares.of('alice'), BUILTIN_NAMES);
}

/** Lets the clients of these offers be all that there are. Returns the number of steps that it took. */
export function takeOver(catalog: Catalog, offers: readonly Offer[]): number {
  const clients = Map.groupBy(offers, ({ clientId, clientType }) => `${clientId} ${clientType}`);
  const rows = [...clients.values()].map((all): Advertiser => ({
    clientId: all[0]?.clientId ?? '',
    clientType: all[0]?.clientType ?? 'browser',
    connectedAt: 0,
    live: true,
    actions: all.map(({ action }) => action),
  }));
  return 1 + [...catalog.update(rows)].length;
}

export function shownOf(catalog: Catalog, allowed: Allowed = () => true): CatalogView {
  return catalog.view({}, allowed);
}

export function toolsOf(offers: readonly Offer[], catalog: Catalog = catalogOf()): readonly ActionTool[] {
  takeOver(catalog, offers);
  return shownOf(catalog).tools;
}
