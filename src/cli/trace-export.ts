/**
 * Exports the trace spans of `callboard serve` over OTLP, and samples traces, as the standard variables of
 * OpenTelemetry configure it (docs/tracing.md). OpenTelemetry's packages are optional: they are loaded only if an
 * endpoint is set.
 */
import type { CallboardOptions } from '../callboard.ts';
import { CallboardError } from '../core/errors.ts';
import type { Clock, Log } from '../core/ports.ts';
import { decideRoots } from '../platform/tracing.ts';
import { VERSION } from '../version.ts';
import { isHttpUrl } from './io.ts';

type TraceApi = NonNullable<CallboardOptions['tracing']>;
type Environment = Readonly<Record<string, string | undefined>>;

type TraceExport = {
  readonly api: TraceApi;
  /**
   * Exports the remaining spans, for at most FLUSH_MS. Resolves with whether the exporter has stopped. If it has not,
   * its requests and timers keep the process running. Never rejects.
   */
  close(): Promise<boolean>;
};

/** The packages that an operator must install to export spans. */
const PACKAGES =
  '@opentelemetry/api @opentelemetry/sdk-trace @opentelemetry/resources @opentelemetry/exporter-trace-otlp-proto';
const PROTOCOL = 'http/protobuf';

const loadPackages = async () => ({
  ...(await import('@opentelemetry/api')),
  ...(await import('@opentelemetry/sdk-trace')),
  ...(await import('@opentelemetry/resources')),
  ...(await import('@opentelemetry/exporter-trace-otlp-proto')),
});
type ExportPackages = Awaited<ReturnType<typeof loadPackages>>;

/**
 * Starts the export of spans. Null if no endpoint is set, or if a package is missing, which is logged. Throws
 * `invalid_argument` if a variable has an unsupported value.
 */
export async function openTraceExport(env: Environment, { log, clock }: ExportOptions): Promise<TraceExport | null> {
  const url = endpointOf(env);
  if (url === null) return null;
  const settings = { url, sampling: samplingOf(env) };
  const packages = await loadPackages().catch((error: unknown) => {
    log.warn({ err: error }, `no spans are exported: a package is missing. Run: npm install ${PACKAGES}`);
    return null;
  });
  return packages && start(packages, settings, { log, clock });
}

/** How long a relay that stops waits for the export of its last spans, in milliseconds. */
export const FLUSH_MS = 1_000;

type ExportOptions = { readonly log: Log; readonly clock: Pick<Clock, 'after'> };
type ExportSettings = { readonly url: string; readonly sampling: TraceSampling };

async function start(
  packages: ExportPackages,
  { url, sampling }: ExportSettings,
  { log, clock }: ExportOptions,
): Promise<TraceExport> {
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
    async close() {
      const { promise: late, resolve } = Promise.withResolvers<boolean>();
      const cancel = clock.after(FLUSH_MS, () => resolve(false));
      const done = (): boolean => true;
      // The exporter has already logged its failure.
      const ended = await Promise.race([provider.shutdown().then(done, done), late]);
      cancel();
      if (!ended) log.warn({}, 'the collector does not answer: the last spans are lost');
      return ended;
    },
  };
}

type Exporter = InstanceType<ExportPackages['OTLPTraceExporter']>;

/**
 * Logs only the first of several failures of an exporter, and the next success, so that a missing collector does not
 * fill the log.
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

/** Returns the address to which spans are sent; null if nothing is exported. */
function endpointOf(env: Environment): string | null {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none') return null;
  const name = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']
    ? 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
    : 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const text = env[name];
  if (!text) return null;
  if (!isHttpUrl(text)) throw wrong(name, 'expected an http or https address');
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

// Decides which traces `callboard serve` records, according to OTEL_TRACES_SAMPLER.

type SamplingPackages = typeof import('@opentelemetry/sdk-trace');
type Sampler = NonNullable<NonNullable<ConstructorParameters<SamplingPackages['TracerProvider']>[0]>['sampler']>;

export type TraceSampling = {
  /** The value of OTEL_TRACES_SAMPLER, or its default. */
  readonly setting: string;
  /** The name of the sampler, without the prefix of parent-based samplers. */
  readonly name: keyof typeof SAMPLERS;
  /** Whether a caller's decision is respected. If so, `name` decides only about new traces. */
  readonly parentBased: boolean;
  /** The fraction of the traces that `traceidratio` records, from 0 to 1. */
  readonly ratio: number;
};

const SAMPLERS = {
  always_on: ({ AlwaysOnSampler }: SamplingPackages): Sampler => new AlwaysOnSampler(),
  always_off: ({ AlwaysOffSampler }: SamplingPackages): Sampler => new AlwaysOffSampler(),
  traceidratio: ({ TraceIdRatioBasedSampler }: SamplingPackages, ratio: number): Sampler =>
    new TraceIdRatioBasedSampler(ratio),
};
const PARENT_BASED = 'parentbased_';
/** The default sampler. It records one trace in a hundred, unless the caller has decided. */
const DEFAULT_SAMPLER = `${PARENT_BASED}traceidratio`;
const DEFAULT_RATIO = 0.01;

/** Reads the sampling from the environment. Throws `invalid_argument` if the sampler or the ratio is not supported. */
export function samplingOf(env: Environment): TraceSampling {
  const setting = env['OTEL_TRACES_SAMPLER'] || DEFAULT_SAMPLER;
  const name = setting.replace(PARENT_BASED, '');
  if (!isSampler(name))
    throw wrong(
      'OTEL_TRACES_SAMPLER',
      `expected one of ${Object.keys(SAMPLERS).join(', ')}, or ${PARENT_BASED} and one`,
    );
  const given = env['OTEL_TRACES_SAMPLER_ARG'];
  const ratio = given ? Number(given) : env['OTEL_TRACES_SAMPLER'] ? 1 : DEFAULT_RATIO;
  if (!(ratio >= 0 && ratio <= 1)) throw wrong('OTEL_TRACES_SAMPLER_ARG', 'expected a number from 0 to 1');
  return { setting, name, parentBased: setting.startsWith(PARENT_BASED), ratio };
}

function isSampler(name: string): name is keyof typeof SAMPLERS {
  return Object.hasOwn(SAMPLERS, name);
}

/** Creates the SDK's sampler. If it is parent-based, `rootRatioOf` decides about new traces instead. */
export function samplerOf(packages: SamplingPackages, { name, parentBased, ratio }: TraceSampling): Sampler {
  if (parentBased) return new packages.ParentBasedSampler({ root: new packages.AlwaysOnSampler() });
  return SAMPLERS[name](packages, ratio);
}

/**
 * Returns the fraction of new traces to record, for `decideRoots`; null if the SDK decides. With a parent-based sampler
 * all later decisions about a trace follow the first one, so the first decision may be random instead of being computed
 * from the trace id.
 */
export function rootRatioOf({ name, parentBased, ratio }: TraceSampling): number | null {
  if (!parentBased || name === 'always_on') return null;
  return name === 'traceidratio' ? ratio : 0;
}
