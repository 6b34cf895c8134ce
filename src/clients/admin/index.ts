/**
 * Exports `callboard/admin`, with which programs in browsers and Node read a relay's state and carry out an operator's
 * actions. Needs only `fetch`.
 */
export { createAdmin } from './admin.ts';
export { AdminError, type AdminErrorDetails } from './admin.ts';
export { pages, type Page } from './admin.ts';
export type { Admin, AdminActs, AdminOptions, DeliveryReader } from './admin.ts';
export type { TokenSource } from '../link/socket.ts';
