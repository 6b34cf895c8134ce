/** Runs the cost mode of the fuzzer: searches the most expensive inputs of all kinds in each mode, and judges them. */
import type { Family } from './cost.ts';
import { agentKinds } from './agent-kinds.ts';
import { documentKinds } from './document-kinds.ts';
import { frameKinds } from './frame-kinds.ts';
import { requestKinds } from './request-kinds.ts';
import { searchDearest, type Finalist } from './search.ts';
import { AMOUNTS, openCostTarget, type Amounts, type CostTarget, type Mode } from './cost-target.ts';

type CostRunOptions = {
  readonly seed: number;
  readonly mode: Mode;
  readonly families: readonly Family[];
  /** Restricts the run to kinds whose name contains this text. */
  readonly match: string;
  /**
   * How long the search lasts, in seconds. Storing data and warming up before it, and the repetitions after it, are not
   * included.
   */
  readonly seconds: number;
  readonly amounts?: Amounts;
  readonly source?: string | undefined;
  readonly onProgress?: (line: string) => void;
  readonly onFinalist?: (finalist: Finalist) => void;
};

type CostRun = {
  /** The most expensive inputs of those kinds that came near a limit, most expensive first. */
  readonly finalists: readonly Finalist[];
  readonly measured: number;
  /** The lines that the relay logged as errors. */
  readonly errors: readonly string[];
};

export async function runCost(options: CostRunOptions): Promise<CostRun> {
  const { seed, mode, families, match, seconds, amounts = AMOUNTS, source, onProgress, onFinalist } = options;
  await using target = await openCostTarget({ mode, amounts, source, ...(onProgress && { onProgress }) });
  const kinds = kindsOf(target, families).filter(({ name }) => name.includes(match));
  onProgress?.(`${kinds.length} kinds`);
  let began: number | null = null;
  let measured = 0;
  const finalists = await searchDearest({
    ...{ seed, kinds },
    async measure(input) {
      measured++;
      return target.measure(input);
    },
    progress: () => (performance.now() - (began ??= performance.now())) / (seconds * 1000),
    ...(onFinalist && { onFinalist }),
  });
  return { finalists, measured, errors: await target.errors() };
}

function kindsOf(target: CostTarget, families: readonly Family[]) {
  const all = [...requestKinds(target), ...agentKinds(target), ...frameKinds(target), ...documentKinds(target)];
  return all.filter(({ family }) => families.includes(family));
}
