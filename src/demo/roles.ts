/** Defines what each client of the demo can do. */
import type { RuntimeOptions } from '../clients/runtime/index.ts';
import { CONSOLE_ACTIONS, authorizeConsole } from './actions/console.ts';
import { kioskActions } from './actions/kiosk.ts';
import { PHONE_ACTIONS, createHolder } from './actions/phone.ts';
import { printerActions } from './actions/printer.ts';
import { kioskPlace, renewDesks } from './kiosk-place.ts';
import type { Pause } from './pause.ts';
import { stillPlace, type DemoPlace } from './place.ts';
import { createWorkerPool } from './worker-pool.ts';

/** A client's actions with its local checks, its reported contexts, and its background work. */
export type Role = {
  readonly can: Pick<RuntimeOptions, 'actions' | 'authorize' | 'approve' | 'metadata'>;
  /** The contexts and windows that the client reports. */
  readonly place?: DemoPlace;
  /** Does the client's background work until the signal is aborted, and then rejects with an AbortError. */
  readonly life?: (signal: AbortSignal) => Promise<never>;
};

const ROLES: Readonly<Record<string, (pause: Pause) => Role>> = {
  'ops-console': () => ({
    can: {
      actions: CONSOLE_ACTIONS,
      authorize: authorizeConsole,
      metadata: { room: 'operations', desk: 4 },
    },
    place: stillPlace([
      { contextId: 'shell', status: 'active', ownership: 'user-owned', title: 'operations: shell' },
      { contextId: 'log-watch', status: 'idle', ownership: 'user-owned', title: 'operations: log watch' },
    ]),
  }),
  phone: (pause) => ({
    can: {
      actions: PHONE_ACTIONS,
      approve: createHolder(pause),
      metadata: { model: 'pocket', os: '17.2' },
    },
    place: stillPlace([{ contextId: 'app', status: 'active', ownership: 'user-owned', title: 'Camera and map' }]),
  }),
  kiosk: playKiosk,
  printer: (pause) => ({ can: { actions: printerActions(pause), metadata: { place: 'entrance hall', paper: 'A4' } } }),
};

function playKiosk(pause: Pause): Role {
  const pool = createWorkerPool({ windows: 2, workersInEach: 2 });
  return {
    can: { actions: kioskActions(pause, pool), metadata: { place: 'entrance hall', screen: '1080x1920' } },
    place: kioskPlace(pool),
    life: (signal) => renewDesks(pool, pause, signal),
  };
}

/** Returns the role of a client. Throws RangeError for a client without one. */
export function roleOf(clientId: string, pause: Pause): Role {
  const role = Object.hasOwn(ROLES, clientId) ? ROLES[clientId] : undefined;
  if (!role) throw new RangeError(`There is no role for ${clientId}.`);
  return role(pause);
}
