/** Viewers of sites in a simulation: programs that receive the events of a session by the client libraries. */
import { createLive, LiveError } from '../../src/clients/live/index.ts';
import type { Clock } from '../../src/clients/link/platform.ts';
import { CooperativeSiteBrowserClient, SiteError } from '../../src/clients/site/index.ts';
import type { Segment } from './event-ledger.ts';
import type { HttpNetwork } from './http-network.ts';
import { fetchOver } from './http-requests.ts';

const URL = 'http://relays';

const SITE_EVENTS = `subscription Events($sessionId: ID!, $names: [String!]) {
  siteEvents(sessionId: $sessionId, names: $names) { name messageId missed }
}`;
type Data = { readonly siteEvents: { readonly name: string; readonly messageId: string; readonly missed: number } };

export type ViewerOptions = {
  readonly name: string;
  readonly network: HttpNetwork;
  readonly sessionId: string;
  readonly token: () => string;
  /** Only these names; null: all that it may see. */
  readonly names: readonly string[] | null;
  /** By which library it receives: that of sites over REST, or that of live data over GraphQL. */
  readonly by: 'site' | 'live';
  /** Called with the code with which the subscription ended for good. */
  readonly onEnd: (code: string) => void;
  readonly trace: (line: string) => void;
};

/** The clock of programs outside of relays. */
export function outsideClock({ outside }: HttpNetwork): Clock {
  const { now, monotonic } = outside.clock;
  return { now, monotonic, after: (ms, run) => outside.clock.after(Math.max(1, Math.ceil(ms)), run) };
}

export class Viewer {
  readonly options: ViewerOptions;
  readonly segments: Segment[] = [];
  /** The code with which its subscription ended; null while it goes on. */
  ended: string | null = null;
  readonly #left = new AbortController();

  constructor(options: ViewerOptions) {
    this.options = options;
    const run = options.by === 'site' ? this.#runSite() : this.#runLive();
    run.then(
      () => this.#end('left'),
      (error: unknown) => {
        if (error instanceof SiteError || error instanceof LiveError) this.#end(error.code);
        else this.#end(`a mistake: ${error instanceof Error ? error.stack : String(error)}`);
      },
    );
  }

  /** Whether events that are published from now on are received. */
  get isLive(): boolean {
    return this.segments.at(-1)?.endedAt === Infinity;
  }

  leave(): void {
    this.#left.abort();
  }

  #end(code: string): void {
    this.#broke();
    this.ended = code;
    this.options.onEnd(code);
  }

  #opened(): void {
    this.#broke();
    this.options.trace(`${this.options.name} is live`);
    this.segments.push({ openedAt: this.options.network.simulation.now, endedAt: Infinity, got: [] });
  }

  #broke(): void {
    const last = this.segments.at(-1);
    if (last?.endedAt === Infinity) this.options.trace(`${this.options.name} is not live`);
    if (last && last.endedAt === Infinity) last.endedAt = this.options.network.simulation.now;
  }

  #got(id: string, missed: number): void {
    const { network, by } = this.options;
    const segment = this.segments.at(-1);
    // The head of a stream of GraphQL arrives before the subscription has begun.
    if (segment?.got.length === 0 && by === 'live') segment.openedAt = network.simulation.now;
    segment?.got.push({ id, missed, at: network.simulation.now });
    this.options.trace(`${this.options.name} gets ${id}, missed ${missed}`);
  }

  async #runSite(): Promise<void> {
    const { network, sessionId, token, names } = this.options;
    const { random } = network.simulation;
    const client = new CooperativeSiteBrowserClient({
      ...{ url: URL, sessionId, token, random, fetch: fetchOver(network), clock: outsideClock(network) },
    });
    const events = client.subscribe({
      ...(names && { names }),
      signal: this.#left.signal,
      onStatus: (status) => (status === 'live' ? this.#opened() : this.#broke()),
    });
    for await (const event of events) if (event.type === 'event') this.#got(event.messageId, event.missed);
  }

  async #runLive(): Promise<void> {
    const { network, sessionId, token, names } = this.options;
    const { random } = network.simulation;
    const live = createLive({
      ...{ url: URL, token, random, fetch: fetchOver(network), clock: outsideClock(network) },
    });
    await live.subscribe<Data>(
      SITE_EVENTS,
      { sessionId, names },
      {
        signal: this.#left.signal,
        onStatus: (status) => (status === 'live' ? this.#opened() : this.#broke()),
        onData: ({ siteEvents: { messageId, missed } }) => this.#got(messageId, missed),
      },
    );
  }
}
