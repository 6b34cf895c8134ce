/** The host of a cooperative site in a simulation: a client that registers the site and runs the actions of its viewers. */
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import type { Call as HandlerCall } from '../../src/clients/runtime/types.ts';
import type { SimulatedProcess } from './process.ts';
import { CLIENT, Program, type ProgramParts } from './programs.ts';

export const SITE = 'board';
/** What the site lets its viewers see and do. The host has one more action, which is not for them. */
export const SITE_EVENTS = ['changed', 'moved', 'gone'] as const;
export const SITE_ACTIONS = ['finish', 'open'] as const;
export const OTHER_ACTION = 'erase';

/** An action that the host ran, for a viewer. */
export type SiteRun = { readonly commandId: string; readonly action: string; readonly sessionId: string | null };

export class SiteHost extends Program {
  readonly userId: string;
  readonly ran: SiteRun[] = [];
  #runtime: Runtime | null = null;

  constructor(userId: string, parts: Omit<ProgramParts, 'callOf'>) {
    super(`host-${userId}`, { ...parts, callOf: () => undefined });
    this.userId = userId;
  }

  /** The instance that runs now, or ran last. */
  get instanceId(): string {
    return `${this.name}-${this.runs}`;
  }

  get isIdle(): boolean {
    return (this.#runtime?.unacknowledged ?? 0) + (this.#runtime?.running ?? 0) === 0;
  }

  protected run(process: SimulatedProcess): void {
    globalThis.process.exitCode ??= 0;
    const actions = [...SITE_ACTIONS, OTHER_ACTION].map((name) => ({
      name,
      run: (_params: object, call: HandlerCall) => this.#handle(name, call),
    }));
    this.#runtime = createRuntime({
      ...this.linkOf(process, this.userId, ['connect', 'host']),
      ...{ clientId: CLIENT, clientType: 'console', instanceId: this.instanceId, actions },
    });
    const { registered } = this.#runtime.site({
      ...{ siteId: SITE, eventNames: [...SITE_EVENTS], actions: [...SITE_ACTIONS] },
      capabilityProfile: { actionInvocation: true, sharing: true },
    });
    registered.catch((error: unknown) => this.parts.count(`site not registered: ${String(error).slice(0, 40)}`));
    this.#runtime.connect();
  }

  #handle(action: string, { commandId, site }: HandlerCall): object {
    this.ran.push({ commandId, action, sessionId: site?.sessionId ?? null });
    return { did: commandId };
  }
}
