/** The form of a built-in route: one outside GraphQL and REST. */
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { AccessEntry } from './access-log.ts';
import type { RequestInfo } from './request-info.ts';

/** A route that neither GraphQL nor REST answers. */
export type BuiltinRoute = {
  /**
   * Who authenticates a request. `open`: nobody, and pages of any origin may call the route. `bearer`: the request
   * handler authenticates. `by-route`: the route itself does.
   */
  readonly authentication: 'open' | 'bearer' | 'by-route';
  readonly methods: readonly string[];
  /** The value of the label `handler` under which its requests are counted: `events` for site events only. */
  readonly label: 'builtin' | 'events';
  /** Answers a request. `access.requester` is set for `bearer`; a route that authenticates sets it. */
  handle(info: RequestInfo, access: AccessEntry): MaybePromise<void>;
};

export const READING = ['GET', 'HEAD'];

export const JSON_TYPE = 'application/json';
