/** The type of a route outside GraphQL and REST. The routes are in builtin-routes.ts, sign-in.ts and site-events.ts. */
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { AccessEntry } from './access-log.ts';
import type { RequestInfo } from './request-info.ts';

/** A route that neither GraphQL nor REST answers. */
export type BuiltinRoute = {
  /**
   * How requests are authenticated. `open`: not at all, and pages of any origin may send them. `bearer`: by the request
   * handler. `by-route`: by the route itself.
   */
  readonly authentication: 'open' | 'bearer' | 'by-route';
  readonly methods: readonly string[];
  /** The value of the label `handler` under which its requests are counted: `builtin` for every fixed path. */
  readonly label: 'builtin' | 'events';
  /** Answers a request. `access.requester` is set for `bearer`; a route that authenticates sets it. */
  handle(info: RequestInfo, access: AccessEntry): MaybePromise<void>;
};
