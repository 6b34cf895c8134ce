/**
 * `callboard/admin`: read access to a relay's state for operators' programs, in browsers and Node. Needs only `fetch`.
 */
export { createAdmin } from './admin.ts';
export { AdminError, type AdminErrorDetails } from './errors.ts';
export { pages, type Page } from './pages.ts';
export type { Admin, AdminOptions, DeliveryReader } from './types.ts';
export type { TokenSource } from '../link/token.ts';
