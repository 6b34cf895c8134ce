/** Records spans in memory with the SDK of OpenTelemetry, and draws them as trees. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { context, ROOT_CONTEXT, trace, type Context, type ContextManager } from '@opentelemetry/api';
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
  TracerProvider,
  type ReadableSpan,
  type Sampler,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';
import type { TraceApi } from '../../src/protocol/trace.ts';
import { turns } from './clock.ts';

export type Spans = {
  /** The API of OpenTelemetry, in the form that a relay or a library takes. */
  readonly api: TraceApi;
  /** Returns the spans that have ended, in the order of their ends. */
  readonly ended: () => readonly ReadableSpan[];
  /** Waits until this many spans have ended, and draws them as `trees` does. */
  drawn(count: number): Promise<readonly string[]>;
};

/**
 * Starts to record spans. Spans that begin a trace are recorded unless a `sampler` decides otherwise; other spans
 * follow their parent.
 */
export function recordSpans(sampler: Sampler = new AlwaysOnSampler()): Spans {
  const exporter = new InMemorySpanExporter();
  const started = new Map<string, number>();
  const order: SpanProcessor = {
    onStart: (span) => void started.set(span.spanContext().spanId, started.size),
    onEnd() {},
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  const spanProcessors = [order, new SimpleSpanProcessor({ exporter })];
  const provider = new TracerProvider({ sampler: new ParentBasedSampler({ root: sampler }), spanProcessors });
  const ended = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  return {
    api: traceApiOf(provider),
    ended,
    async drawn(count) {
      while (ended().length < count) await turns();
      // If there were more spans than expected, another one would end in this time.
      await turns();
      const at = (span: ReadableSpan): number => started.get(span.spanContext().spanId) ?? 0;
      return trees([...ended()].sort((a, b) => at(a) - at(b)));
    },
  };
}

/** Returns the `trace` object of the API, over this provider and not over the global one. */
export function traceApiOf(provider: TracerProvider): TraceApi {
  return {
    getTracer: (name, version) => provider.getTracer(name, version) as ReturnType<TraceApi['getTracer']>,
    setSpanContext: (parent, spanContext) =>
      trace.setSpanContext(parent as Context, spanContext as Parameters<typeof trace.setSpanContext>[1]),
  };
}

const KINDS = ['internal', 'server', 'client', 'producer', 'consumer'];
const ERROR = 2;

/**
 * Draws one line for each span, with its children indented below it. Spans are drawn in the given order. A line has the
 * kind, the name, the status code, `!` and the error type of a failed span, events in brackets, and `~` with the name
 * of each linked span.
 */
export function trees(spans: readonly ReadableSpan[]): readonly string[] {
  const byId = new Map(spans.map((span) => [span.spanContext().spanId, span]));
  const below = (parent: string | undefined, indent: string): readonly string[] =>
    spans
      .filter((span) => parentIn(byId, span) === parent)
      .flatMap((span) => [indent + lineOf(span, byId), ...below(span.spanContext().spanId, `${indent}  `)]);
  return below(undefined, '');
}

function parentIn(byId: ReadonlyMap<string, ReadableSpan>, { parentSpanContext }: ReadableSpan): string | undefined {
  const id = parentSpanContext?.spanId;
  return id !== undefined && byId.has(id) ? id : undefined;
}

function lineOf(span: ReadableSpan, byId: ReadonlyMap<string, ReadableSpan>): string {
  const { kind, name, attributes, status, events, links } = span;
  const parts = [
    KINDS[kind],
    name,
    attributes['rpc.status_code'],
    status.code === ERROR ? `!${String(attributes['error.type'])}` : null,
    events.length > 0 ? `[${events.map((event) => event.name).join(' ')}]` : null,
    ...links.map((link) => `~${byId.get(link.context.spanId)?.name ?? 'unknown'}`),
  ];
  return parts.filter((part) => part !== null && part !== undefined).join(' ');
}

/** Makes spans active in asynchronous code of this process, until the returned function is called. */
export function activateContexts(): () => void {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, run, self, ...args) => storage.run(active, () => run.apply(self, args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  context.setGlobalContextManager(manager);
  return () => void context.disable();
}
