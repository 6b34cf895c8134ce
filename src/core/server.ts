/** Describes a relay to its clients and users: its label, limits and optional features. */
import type { Backend } from './backend.ts';
import type { Clock } from './clock.ts';

/** The part of the relay's description that the program around core contributes. */
export type ServerSettings = {
  readonly version: string;
  /** A name of the deployment for people; null: it has none. */
  readonly label: string | null;
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
  readonly backend: Backend;
  readonly clock: Clock;
  readonly rawMessages: boolean;
};

/** Describes a relay that starts now. */
export function serverInfo({ server, backend, clock, rawMessages }: Described): ServerInfo {
  const { exactDedupCounters, cheapStreamSummaries } = backend.capabilities;
  const available: Readonly<Record<ServerFeature, boolean>> = {
    raw_messages: rawMessages,
    exact_dedup_counters: exactDedupCounters,
    cheap_stream_summaries: cheapStreamSummaries,
  };
  const names = Object.keys(available) as readonly ServerFeature[];
  return { ...server, startedAt: clock.now(), features: names.filter((name) => available[name]) };
}
