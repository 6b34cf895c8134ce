/** Decides which traces `callboard serve` records, by the sampler that OTEL_TRACES_SAMPLER names. */
import { CallboardError } from '../core/errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;
type Packages = typeof import('@opentelemetry/sdk-trace');
export type Sampler = NonNullable<NonNullable<ConstructorParameters<Packages['TracerProvider']>[0]>['sampler']>;

export type TraceSampling = {
  /** The value of OTEL_TRACES_SAMPLER, or its default. */
  readonly setting: string;
  /** The sampler's name, without the prefix for parent-based ones. */
  readonly name: keyof typeof SAMPLERS;
  /** Whether the decision of a caller is respected. If so, `name` decides about new traces only. */
  readonly parentBased: boolean;
  /** The fraction of the traces that `traceidratio` records: 0 to 1. */
  readonly ratio: number;
};

const SAMPLERS = {
  always_on: ({ AlwaysOnSampler }: Packages): Sampler => new AlwaysOnSampler(),
  always_off: ({ AlwaysOffSampler }: Packages): Sampler => new AlwaysOffSampler(),
  traceidratio: ({ TraceIdRatioBasedSampler }: Packages, ratio: number): Sampler => new TraceIdRatioBasedSampler(ratio),
};
const PARENT_BASED = 'parentbased_';
/** The default sampler. It records one trace in a hundred, unless a caller has decided. */
const DEFAULT_SAMPLER = `${PARENT_BASED}traceidratio`;
const DEFAULT_RATIO = 0.01;

/**
 * Reads the sampling from the environment. Throws `invalid_argument` for a sampler or a ratio that is not supported.
 */
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

/** Creates the SDK's sampler. A parent-based one leaves the decision about new traces to `rootRatioOf`. */
export function samplerOf(packages: Packages, { name, parentBased, ratio }: TraceSampling): Sampler {
  if (parentBased) return new packages.ParentBasedSampler({ root: new packages.AlwaysOnSampler() });
  return SAMPLERS[name](packages, ratio);
}

/**
 * Returns the fraction of new traces to record, for `decideRoots`; null if the SDK decides. With a parent-based
 * sampler, the later decisions about a trace follow the first one. So the first decision may be random and need not be
 * a function of the trace's id.
 */
export function rootRatioOf({ name, parentBased, ratio }: TraceSampling): number | null {
  if (!parentBased || name === 'always_on') return null;
  return name === 'traceidratio' ? ratio : 0;
}

function wrong(name: string, detail: string): CallboardError {
  return new CallboardError('invalid_argument', `${name}: ${detail}`);
}
