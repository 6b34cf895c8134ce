import type { RuntimeOptions } from '../clients/runtime/index.ts';
import { CONSOLE_ACTIONS, authorizeConsole } from './actions/console.ts';
import { kioskActions } from './actions/kiosk.ts';
import { PHONE_ACTIONS, createHolder } from './actions/phone.ts';
import { printerActions } from './actions/printer.ts';
import type { Pause } from './pause.ts';

/** What a client can do and what it asks itself before it does it. */
export type Role = Pick<RuntimeOptions, 'actions' | 'authorize' | 'approve' | 'metadata'>;

const ROLES: Readonly<Record<string, (pause: Pause) => Role>> = {
  'ops-console': () => ({
    actions: CONSOLE_ACTIONS,
    authorize: authorizeConsole,
    metadata: { room: 'operations', desk: 4 },
  }),
  phone: (pause) => ({
    actions: PHONE_ACTIONS,
    approve: createHolder(pause),
    metadata: { model: 'pocket', os: '17.2' },
  }),
  kiosk: (pause) => ({ actions: kioskActions(pause), metadata: { place: 'entrance hall', screen: '1080x1920' } }),
  printer: (pause) => ({ actions: printerActions(pause), metadata: { place: 'entrance hall', paper: 'A4' } }),
};

/** Throws RangeError for a client that the cast does not have. */
export function roleOf(clientId: string, pause: Pause): Role {
  const role = Object.hasOwn(ROLES, clientId) ? ROLES[clientId] : undefined;
  if (!role) throw new RangeError(`Nobody plays ${clientId}.`);
  return role(pause);
}
