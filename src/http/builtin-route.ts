import type { MaybePromise } from '../core/maybe-promise.ts';
import type { AccessEntry } from './access-log.ts';
import type { RequestInfo } from './request-info.ts';

/** A route that neither GraphQL nor REST answers. */
export type BuiltinRoute = {
  /**
   * `open`: it needs no token, and pages of any origin may request it. `bearer`: the request handler authenticates its
   * requests. `own`: the route does so itself.
   */
  readonly authentication: 'open' | 'bearer' | 'own';
  readonly methods: readonly string[];
  /** The label under which its requests are counted. */
  readonly label: 'house' | 'events';
  /** `access.requester` is set for `bearer`; a route that authenticates sets it. */
  handle(visit: RequestInfo, access: AccessEntry): MaybePromise<void>;
};
