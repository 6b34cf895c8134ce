/** The type of a route outside GraphQL and REST. The routes are in builtin-routes.ts, sign-in.ts and site-events.ts. */
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { AccessEntry } from './access-log.ts';
import type { RequestInfo } from './request-info.ts';

/** A route that neither GraphQL nor REST answers. */
export type BuiltinRoute = {
  /**
   * `open`: it needs no token, and pages of any origin may request it. `bearer`: the request handler authenticates its
   * requests. `by-route`: the route does so itself.
   */
  readonly authentication: 'open' | 'bearer' | 'by-route';
  readonly methods: readonly string[];
  /** The value of the label `handler` under which its requests are counted: `builtin` for every fixed path. */
  readonly label: 'builtin' | 'events';
  /** Answers a request. `access.requester` is set for `bearer`; a route that authenticates sets it. */
  handle(info: RequestInfo, access: AccessEntry): MaybePromise<void>;
};
