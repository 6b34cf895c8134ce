/** Runs a workload on a simulated deployment: with faults, then without, and judges what came of it. */
import { between } from '../lib/random.ts';
import type { DeploymentOptions } from './deployment.ts';
import { ACT_MS } from './plan.ts';
import type { OpenRelay, Relay, Relays, SimulatedDeployment } from './relays.ts';

/** Within what time everything must be in order again after the last fault, in milliseconds. */
export const HEAL_MS = 60_000;

/** What is done with a deployment. */
export interface Workload {
  onOpened(relay: OpenRelay): Promise<void> | void;
  onGone(relay: Relay): void;
  /** Does one thing, at a time that the seed decides. */
  act(): void;
  /** Called once when all faults are over: after a while, nothing may be left to do. */
  finish(): void;
  isDone(): boolean;
  /** What was not as it must be. Called once everything is in order. */
  judge(): Promise<readonly string[]>;
  /** What was found to be wrong so far; the run ends with the first of it. */
  readonly broken: readonly string[];
  /** How many acts were acknowledged. */
  readonly acknowledged: number;
  /** How many requests have no answer yet, of programs and relays that live. */
  readonly open: number;
}

export type WorldOptions = Pick<DeploymentOptions, 'plan' | 'trace'> & {
  /** Makes the deployment. */
  readonly deploy: (options: DeploymentOptions) => SimulatedDeployment;
  /** Makes the workload of a deployment. */
  readonly make: (relays: Relays) => Workload;
};

/**
 * How many acts the workload had. `loaded`: so many began while earlier ones had no answer yet. `troubled`: so many began
 * during a fault of the plan, or soon after one.
 */
export type Steps = { readonly all: number; readonly loaded: number; readonly troubled: number };

/** How a run ended. `broken`: what was not as it must be. */
export type Verdict = {
  readonly broken: readonly string[];
  readonly digest: string;
  readonly events: number;
  readonly acknowledged: number;
  readonly steps: Steps;
  readonly seen: Readonly<Record<string, number>>;
};

/** Runs a plan. */
export async function simulate({ plan, trace, deploy, make }: WorldOptions): Promise<Verdict> {
  const deployment: SimulatedDeployment = deploy({
    ...{ plan, trace },
    onOpened: (relay) => workload.onOpened(relay),
    onGone: (relay) => workload.onGone(relay),
  });
  const workload = make(deployment);
  const { simulation } = deployment;
  const broken: string[] = [];
  if (!(await simulation.run(HEAL_MS, () => deployment.isInOrder())))
    broken.push(`the relays did not come into order: ${deployment.state()}`);
  let isOver = false;
  const steps = { all: 0, loaded: 0, troubled: 0 };
  const actLater = (): void => {
    simulation.after(between(simulation.random, 1, ACT_MS), 'act', () => {
      if (isOver) return;
      steps.all++;
      if (workload.open > 0) steps.loaded++;
      if (simulation.now < deployment.calmFrom) steps.troubled++;
      workload.act();
      actLater();
    });
  };
  actLater();
  deployment.beginFaults();
  await simulation.run(plan.steps * ACT_MS, () => workload.broken.length > 0);
  isOver = true;
  deployment.heal();
  workload.finish();
  if (!(await simulation.run(HEAL_MS, () => deployment.isInOrder() && workload.isDone())))
    broken.push(`not in order after ${HEAL_MS} ms: ${deployment.state()}, done: ${workload.isDone()}`);
  broken.push(...(await workload.judge()), ...(await deployment.judge()));
  deployment.stop();
  const { acknowledged } = workload;
  const { digest, handled: events } = simulation;
  return { broken: [...workload.broken, ...broken], digest, events, acknowledged, steps, seen: deployment.seen };
}
