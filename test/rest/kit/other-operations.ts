/** Lists the operations of the OpenAPI document that no REST document (src/rest/operations) serves. */
import { BUILTIN_DESCRIPTIONS } from '../../../src/http/routes.ts';
import { SITE_EVENTS_DESCRIPTION } from '../../../src/http/app.ts';

/** The operations of the OpenAPI document that no REST document serves, such as `GET /healthz`. */
export const OTHER_OPERATIONS: readonly string[] = [SITE_EVENTS_DESCRIPTION, ...BUILTIN_DESCRIPTIONS].map(
  ({ method, path }) => `${method} ${path}`,
);
