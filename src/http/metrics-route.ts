/** The route `/metrics`, and the check of who may read it. */
import { requireAdmin, type AdminPrincipal } from '../core/auth/principal.ts';
import { thenDo } from '../core/maybe-promise.ts';
import type { Meter } from '../platform/metrics.ts';
import type { MetricsFormat } from '../platform/prometheus.ts';
import { weightsOf } from '../web/packed-file.ts';
import { sendText } from '../web/reply.ts';
import { bearerOf, type AuthenticateRequest } from './authenticate-request.ts';
import { type BuiltinRoute, READING } from './builtin-route.ts';
import type { MetricsToken } from './metrics-token.ts';
import type { RequestInfo } from './request-info.ts';
import type { Sockets } from './sockets.ts';

export type MetricsRouteOptions = {
  readonly meter: Pick<Meter, 'expose'>;
  readonly authenticate: AuthenticateRequest;
  readonly sockets: Pick<Sockets, 'authenticated'>;
  readonly metricsToken: Pick<MetricsToken, 'accepts'>;
};

/** The requester that a socket counts for when it presents the metrics token. */
const SCRAPER: AdminPrincipal = { kind: 'admin', name: 'metrics', expiresAt: null };

/** Creates the route `GET /metrics`, for administrators and for the holder of the metrics token. */
export function createMetricsRoute(options: MetricsRouteOptions): BuiltinRoute {
  const { meter, authenticate, sockets, metricsToken } = options;
  return {
    authentication: 'by-route',
    methods: READING,
    label: 'builtin',
    handle(info, access) {
      if (metricsToken.accepts(bearerOf(info.request))) {
        sockets.authenticated(info.request.socket, SCRAPER);
        return sendMetrics(info, meter);
      }
      return thenDo(authenticate(info), (requester) => {
        access.requester = requester;
        requireAdmin(requester);
        return sendMetrics(info, meter);
      });
    },
  };
}

async function sendMetrics({ request, response }: RequestInfo, meter: Pick<Meter, 'expose'>): Promise<void> {
  const { contentType, text } = await meter.expose(formatFor(request.headers.accept));
  response.setHeader('vary', 'accept, origin');
  sendText(response, 200, contentType, text);
}

const OPENMETRICS = 'application/openmetrics-text';
const TEXT = ['text/plain', 'text/*', '*/*'];

/** Returns the format to answer with: OpenMetrics if `accept` prefers it, otherwise Prometheus' text format. */
export function formatFor(accept: string | undefined): MetricsFormat {
  const weights = weightsOf(accept ?? '');
  const wanted = weights.get(OPENMETRICS) ?? 0;
  return wanted > 0 && TEXT.every((type) => (weights.get(type) ?? 0) <= wanted) ? 'openmetrics' : 'text';
}
