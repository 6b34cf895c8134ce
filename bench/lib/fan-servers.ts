/** Starts the servers of the fan-out suites, which send events to many open streams. */
import { startRelay } from './callboard.ts';
import { MARKER } from './fan-event.ts';
import { startChild, type Child } from './processes.ts';
import type { RowKind } from './report.ts';
import { eventSourceStream, graphqlStream, openSite, streamRequest, type Viewer } from './site.ts';

/** A running server, with what the load needs to open streams and to publish events. */
export type FanServer = {
  readonly child: Child;
  readonly requests: readonly string[];
  /** The bytes, in hex, that the reader sends on each stream after the stream's first data has arrived. */
  readonly answer: string;
  readonly endpoint: {
    readonly port: number;
    readonly path: string;
    readonly token: string;
    readonly form: 'ingest' | 'plain';
  };
};

export type FanContender = {
  readonly name: string;
  readonly kind: RowKind;
  prepare(streams: number, stack: AsyncDisposableStack): Promise<FanServer>;
};

export const FAN = {
  raw: 'prebuilt chunk per event',
  merged: 'prebuilt chunk per tick',
  graphql: 'callboard, GraphQL over SSE',
  eventSource: 'callboard, EventSource',
  betterSse: 'better-sse channel',
  socketIo: 'socket.io broadcast',
  graphqlSse: 'graphql-sse',
  yoga: 'graphql-yoga',
} as const;

const PLAIN = 'GET /sse HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n';
export const UPGRADE =
  'GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
/** The packet with which a client of Socket.IO joins the default namespace, as a masked WebSocket frame in hex. */
export const JOIN = '8182000000003430';

export const FAN_CONTENDERS: readonly FanContender[] = [
  peer('limit', FAN.raw, { module: 'fan-limit', request: PLAIN }),
  peer('limit', FAN.merged, { module: 'fan-limit', request: PLAIN, mode: 'merged' }),
  peer('peer', FAN.betterSse, { module: 'fan-better-sse', request: PLAIN }),
  peer('peer', FAN.socketIo, { module: 'fan-socket-io', request: UPGRADE, answer: JOIN }),
  peer('peer', FAN.graphqlSse, { module: 'fan-graphql-sse', request: streamRequest('s1', null, '/graphql/stream') }),
  peer('peer', FAN.yoga, { module: 'fan-yoga', request: streamRequest('s1', null) }),
  relay(FAN.graphql, graphqlStream),
  relay(FAN.eventSource, eventSourceStream),
];

type PeerOptions = {
  readonly module: string;
  readonly request: string;
  readonly mode?: string;
  readonly answer?: string;
};

function peer(kind: RowKind, name: string, { module, request, mode = '', answer = '' }: PeerOptions): FanContender {
  return {
    name,
    kind,
    async prepare(_, stack) {
      const child = stack.use(
        await startChild(`servers/${module}.ts`, { options: { mode }, execArgv: ['--expose-gc'] }),
      );
      const endpoint = { port: child.port, path: '/publish', token: 'none', form: 'plain' } as const;
      return { child, requests: [request], answer, endpoint };
    },
  };
}

/**
 * Returns a contender that is a relay. Each viewer has its own session and token. Events are published to `POST
 * /ingest`.
 */
function relay(name: string, requestOf: (viewer: Viewer) => string): FanContender {
  return {
    name,
    kind: 'own',
    async prepare(streams, stack) {
      const child = stack.use(await startRelay({}, { execArgv: ['--expose-gc'] }));
      const { ownerToken, viewers } = await openSite(child, streams, stack);
      const endpoint = { port: child.port, path: '/ingest', token: ownerToken, form: 'ingest' } as const;
      return { child, requests: viewers.map(requestOf), answer: '', endpoint };
    },
  };
}

export { MARKER };
