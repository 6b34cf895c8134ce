/** The type of a built-in route, which answers requests outside GraphQL and REST. */
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { AccessEntry } from './access-log.ts';
import type { RequestInfo } from './request-info.ts';

/** A route that neither GraphQL nor REST answers. */
export type BuiltinRoute = {
  /**
   * How a request is authenticated. `open`: not at all, and pages of any origin may call the route. `bearer`: by the
   * request handler. `by-route`: by the route itself.
   */
  readonly authentication: 'open' | 'bearer' | 'by-route';
  readonly methods: readonly string[];
  /**
   * The value of the metrics label `handler` for requests of this route. Only the route of site events has `events`.
   */
  readonly label: 'builtin' | 'events';
  /** Answers a request. With `bearer`, `access.requester` is set before. With `by-route`, the route must set it. */
  handle(info: RequestInfo, access: AccessEntry): MaybePromise<void>;
};

export const READING = ['GET', 'HEAD'];

export const JSON_TYPE = 'application/json';
