/**
 * Exports `callboard/admin`, with which programs in browsers and Node read a relay's state and carry out an operator's
 * actions. Needs only `fetch`.
 */
export { createAdmin } from './admin.ts';
export { AdminError, type AdminErrorDetails } from './errors.ts';
export { pages, type Page } from './pages.ts';
export type { Admin, AdminActs, AdminOptions, DeliveryReader } from './types.ts';
export type { TokenSource } from '../link/token.ts';
