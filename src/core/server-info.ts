/** Makes the relay's description of itself for clients and users. */
import type { Backend } from './backend.ts';
import type { Clock } from './ports.ts';

/** The members of the description that come from the program around core. */
export type ServerSettings = {
  readonly version: string;
  /** The name of the deployment, for people; null if it has none. */
  readonly label: string | null;
  /** The address at which a trace is shown, with `{traceId}` in place of its id; null if there is none. */
  readonly traceUrl: string | null;
  readonly maxBodyBytes: number;
};

/** An optional feature of this relay. */
export type ServerFeature = 'raw_messages' | 'exact_dedup_counters' | 'cheap_stream_summaries';

/**
 * What a relay reports about itself. `startedAt`: when this process created its core, in epoch milliseconds.
 * `features`: the optional features that are available.
 */
export type ServerInfo = ServerSettings & { readonly startedAt: number; readonly features: readonly ServerFeature[] };

type Described = {
  readonly server: ServerSettings;
  readonly backend: Pick<Backend, 'capabilities'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly rawMessages: boolean;
};

/** Describes a relay that starts now. */
export function serverInfo({ server, backend, clock, rawMessages }: Described): ServerInfo {
  const features: ServerFeature[] = [];
  if (rawMessages) features.push('raw_messages');
  if (backend.capabilities.exactDedupCounters) features.push('exact_dedup_counters');
  if (backend.capabilities.cheapStreamSummaries) features.push('cheap_stream_summaries');
  return { ...server, startedAt: clock.now(), features };
}
