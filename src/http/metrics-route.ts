/** The route `GET /metrics`. It decides who may read the metrics, and in which format. */
import { requireAdmin, type AdminPrincipal } from '../core/auth/principal.ts';
import { thenDo } from '../core/maybe-promise.ts';
import type { Meter } from '../platform/metrics.ts';
import type { MetricsFormat } from '../platform/prometheus.ts';
import { bearerOf, type AuthenticateRequest } from './authenticate-request.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import type { MetricsToken } from './metrics-token.ts';
import type { RequestInfo } from './request-info.ts';
import type { Sockets } from './sockets.ts';

export type MetricsRouteOptions = {
  readonly meter: Pick<Meter, 'expose'>;
  readonly authenticate: AuthenticateRequest;
  readonly sockets: Pick<Sockets, 'authenticated'>;
  readonly metricsToken: Pick<MetricsToken, 'accepts'>;
};

/** The holder of the metrics token, as far as shares are concerned. */
const SCRAPER: AdminPrincipal = { kind: 'admin', name: 'metrics', expiresAt: null };

/** Creates the route `GET /metrics`, for administrators and for the holder of the metrics token. */
export function createMetricsRoute(options: MetricsRouteOptions): BuiltinRoute {
  const { meter, authenticate, sockets, metricsToken } = options;
  return {
    authentication: 'by-route',
    methods: ['GET', 'HEAD'],
    label: 'builtin',
    handle(info, access) {
      if (metricsToken.accepts(bearerOf(info.request))) {
        sockets.authenticated(info.request.socket, SCRAPER);
        return send(info, meter);
      }
      return thenDo(authenticate(info), (requester) => {
        access.requester = requester;
        requireAdmin(requester);
        return send(info, meter);
      });
    },
  };
}

async function send({ request, response }: RequestInfo, meter: Pick<Meter, 'expose'>): Promise<void> {
  const { contentType, text } = await meter.expose(formatFor(request.headers.accept));
  response.setHeader('vary', 'accept, origin');
  response.writeHead(200, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

const OPENMETRICS = 'application/openmetrics-text';
const TEXT = ['text/plain', 'text/*', '*/*'];

/**
 * Returns the format of the answer: OpenMetrics if the `accept` header prefers it, otherwise Prometheus' text format.
 */
export function formatFor(accept: string | undefined): MetricsFormat {
  const weights = new Map<string, number>();
  for (const part of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    const weight = Number(parameters.find((text) => text.startsWith('q='))?.slice(2) ?? 1);
    weights.set(type, Math.max(weights.get(type) ?? 0, Number.isFinite(weight) ? weight : 0));
  }
  const wanted = weights.get(OPENMETRICS) ?? 0;
  return wanted > 0 && TEXT.every((type) => (weights.get(type) ?? 0) <= wanted) ? 'openmetrics' : 'text';
}
