import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import { CallboardError, fail, notFound } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { OriginRule } from '../gateway/origin.ts';
import { wantsPage } from '../graphql/graphiql.ts';
import type { Meter } from '../platform/metrics.ts';
import { logAccess } from './access.ts';
import type { Admission } from './admission.ts';
import { readBody } from './body.ts';
import type { GatewayFace, GraphqlFace, RestFace } from './doors.ts';
import { createHouse } from './house.ts';
import { crossOrigin, requireOwnPage } from './origin.ts';
import type { SiteEvents } from './site-events.ts';
import { pathOf, visitOf, type Visit } from './visit.ts';

export type FrontOptions = {
  readonly core: Core;
  readonly log: Log;
  readonly meter: Meter;
  readonly randomId: () => string;
  readonly admission: Admission;
  readonly graphql: GraphqlFace;
  readonly rest: RestFace;
  readonly gateway: GatewayFace;
  readonly siteEvents: SiteEvents;
  readonly basePath: string;
  readonly maxBodyBytes: number;
  readonly origins: OriginRule;
  readonly clientFiles: URL;
};

/** The one entrance. Neither method throws, whatever comes. */
export type Front = {
  request(request: IncomingMessage, response: ServerResponse): void;
  /** Whether an Upgrade header is meant for the gateway; anywhere else it is ignored, as RFC 9110 allows. */
  shouldUpgrade(request: IncomingMessage): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
};

type Door = 'graphql' | 'rest' | 'events' | 'house' | 'preflight' | 'none';

export function createFront(options: FrontOptions): Front {
  const { log, meter, basePath, origins } = options;
  const route = createRouter(options);
  return {
    request(request, response) {
      const visit = visitOf(request, response, { id: options.randomId(), basePath, trustProxy: origins.trustProxy });
      const access = logAccess(visit, log);
      securityHeaders(visit);
      route(visit, access).then(
        (door) => meter.count('requests', door),
        (error: unknown) => {
          meter.count('requests', isGraphql(visit.path) ? 'graphql' : 'rest');
          refuse(visit, explain(error, visit, options), options);
        },
      );
    },
    shouldUpgrade: (request) =>
      pathOf(request, basePath) === '/connect' && request.headers.upgrade?.toLowerCase() === 'websocket',
    upgrade(request, socket, head) {
      meter.count('requests', 'gateway');
      try {
        options.gateway.upgrade(request, socket, head);
      } catch (error) {
        log.error({ error }, 'upgrade failed');
        socket.destroy();
      }
    },
  };
}

type Router = (visit: Visit, access: { who: Principal | null }) => Promise<Door>;

function createRouter(options: FrontOptions): Router {
  const { admission, graphql, rest, siteEvents, origins, maxBodyBytes } = options;
  const house = createHouse({ ...options, openapi: options.rest.openapi });
  return async (visit, access) => {
    const { request, response, path, query, method } = visit;
    if (crossOrigin(visit, origins)) return 'preflight';
    if (path === null) notFound();
    const own = house.get(path);
    if (own) requireReading(visit);
    const page = own?.open || (path === '/graphql' && wantsPage(request));
    if (!page) requireOwnPage(visit, origins);
    if (await siteEvents(visit, access)) return 'events';
    const who = own?.open ? null : await admission(visit);
    access.who = who;
    if (own) {
      await own.handle(visit, who);
      return 'house';
    }
    const body = method === 'GET' || method === 'HEAD' ? undefined : await readBody(request, maxBodyBytes);
    if (isGraphql(path)) {
      await graphql.handle(request, response, { who, body });
      return 'graphql';
    }
    return (await rest.handle(request, response, { who, path, query, body })) ? 'rest' : notFound();
  };
}

function isGraphql(path: string | null): boolean {
  return path === '/graphql' || path === '/graphql/stream';
}

function requireReading({ method, response }: Visit): void {
  if (method === 'GET' || method === 'HEAD') return;
  response.setHeader('allow', 'GET, HEAD');
  fail('method_not_allowed', 'This path can only be read.');
}

/** Doors may set stricter or milder ones of their own. */
function securityHeaders({ response, id }: Visit): void {
  response.setHeader('x-request-id', id);
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('referrer-policy', 'no-referrer');
  response.setHeader('cache-control', 'no-store');
}

/** What was not meant to be thrown is logged under the request's id and shown as nothing but that id. */
function explain(error: unknown, { id, path }: Visit, { log, meter }: FrontOptions): CallboardError {
  if (error instanceof CallboardError) return error;
  meter.count('errors_masked');
  log.error({ id, path, error }, 'unexpected error');
  return new CallboardError('internal', `Something went wrong here; the log knows it as ${id}.`);
}

function refuse({ request, response, path }: Visit, error: CallboardError, { graphql, rest }: FrontOptions): void {
  if (response.headersSent) return void response.destroy();
  if (error.status === 401) response.setHeader('www-authenticate', 'Bearer');
  if (error.details.retryAfterMs !== undefined) {
    response.setHeader('retry-after', String(Math.max(1, Math.ceil(error.details.retryAfterMs / 1000))));
  }
  // What is left of the body is not worth reading: the next request would only begin after it.
  if (!request.complete) response.setHeader('connection', 'close');
  if (isGraphql(path)) graphql.refuse(response, error);
  else rest.refuse(response, error);
}
