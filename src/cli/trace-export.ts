/**
 * Exports the spans of `callboard serve` by OTLP, as the standard variables of OpenTelemetry say (docs/tracing.md). The
 * packages of OpenTelemetry are optional: this file loads them only where an endpoint is set.
 */
import type { CallboardOptions } from '../callboard.ts';
import { CallboardError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { decideRoots } from '../platform/trace-roots.ts';
import { VERSION } from '../version.ts';
import { rootRatioOf, samplerOf, samplingOf, type TraceSampling } from './trace-sampling.ts';

type TraceApi = NonNullable<CallboardOptions['tracing']>;
type Environment = Readonly<Record<string, string | undefined>>;

export type TraceExport = {
  readonly api: TraceApi;
  /** Exports the spans that are left, within a few seconds. Never rejects. */
  close(): Promise<void>;
};

/** The names of the packages that an operator installs to export spans. */
const PACKAGES =
  '@opentelemetry/api @opentelemetry/sdk-trace @opentelemetry/resources @opentelemetry/exporter-trace-otlp-proto';
const PROTOCOL = 'http/protobuf';

const loadPackages = async () => ({
  ...(await import('@opentelemetry/api')),
  ...(await import('@opentelemetry/sdk-trace')),
  ...(await import('@opentelemetry/resources')),
  ...(await import('@opentelemetry/exporter-trace-otlp-proto')),
});
type Packages = Awaited<ReturnType<typeof loadPackages>>;

/**
 * Opens the export of spans. Returns null if no endpoint is set. If a package is missing, logs that and returns null.
 * Throws `invalid_argument` for variables with values that are not supported.
 */
export async function openTraceExport(env: Environment, log: Log): Promise<TraceExport | null> {
  const url = endpointOf(env);
  if (url === null) return null;
  const settings = { url, sampling: samplingOf(env) };
  const packages = await loadPackages().catch((error: unknown) => {
    log.warn({ err: error }, `no spans are exported: a package is missing. Run: npm install ${PACKAGES}`);
    return null;
  });
  return packages && start(packages, settings, log);
}

type ExportSettings = { readonly url: string; readonly sampling: TraceSampling };

async function start(packages: Packages, { url, sampling }: ExportSettings, log: Log): Promise<TraceExport> {
  const { trace, TracerProvider, BatchSpanProcessor, OTLPTraceExporter, detectResources, envDetector } = packages;
  const exporter = noteFailures(new OTLPTraceExporter({ url }), log);
  const own = packages.resourceFromAttributes({ 'service.name': 'callboard', 'service.version': VERSION });
  const provider = new TracerProvider({
    sampler: samplerOf(packages, sampling),
    resource: own.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const { setting: sampler, ratio } = sampling;
  log.info({ endpoint: new URL(url).origin, sampler, ratio }, 'spans are exported');
  return {
    api: {
      getTracer: (name, version) =>
        decideRoots(provider.getTracer(name, version) as ReturnType<TraceApi['getTracer']>, rootRatioOf(sampling)),
      setSpanContext: trace.setSpanContext.bind(trace) as TraceApi['setSpanContext'],
    },
    // The exporter has logged its failure already.
    close: () => provider.shutdown().catch(() => {}),
  };
}

type Exporter = InstanceType<Packages['OTLPTraceExporter']>;

/**
 * Logs only the first failure of an exporter and the next success, so that an unreachable collector does not fill the
 * log.
 */
function noteFailures(exporter: Exporter, log: Log): Exporter {
  const send = exporter.export.bind(exporter);
  let failing = false;
  exporter.export = (spans, done) =>
    send(spans, (result) => {
      const failed = result.error !== undefined;
      if (failed && !failing) log.warn({ err: result.error }, 'spans could not be exported, and are lost');
      if (!failed && failing) log.info({}, 'spans are exported again');
      failing = failed;
      done(result);
    });
  return exporter;
}

/** Returns the address to which spans are sent. Null: nothing is exported. */
function endpointOf(env: Environment): string | null {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none') return null;
  const name = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']
    ? 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
    : 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const text = env[name];
  if (!text) return null;
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) throw wrong(name, 'expected an http or https address');
  checkProtocol(env);
  if (name === 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') return text;
  return `${text.replace(/\/+$/, '')}/v1/traces`;
}

function checkProtocol(env: Environment): void {
  for (const name of ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'])
    if (env[name] && env[name] !== PROTOCOL) throw wrong(name, `only ${PROTOCOL} is supported`);
  const exporter = env['OTEL_TRACES_EXPORTER'];
  if (exporter && exporter !== 'otlp') throw wrong('OTEL_TRACES_EXPORTER', 'only otlp and none are supported');
}

function wrong(name: string, detail: string): CallboardError {
  return new CallboardError('invalid_argument', `${name}: ${detail}`);
}
