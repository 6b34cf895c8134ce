/** `callboard/admin`: reads what a relay knows, for operators' programs, in a browser or in Node. Needs `fetch` and nothing else. */
export { createAdmin } from './admin.ts';
export { AdminError, type AdminErrorDetails } from './errors.ts';
export { pages, type Page } from './pages.ts';
export type { Admin, AdminOptions, DeliveryReader } from './types.ts';
export type { TokenSource } from '../link/token.ts';
