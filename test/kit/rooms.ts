/** Opens the rooms of core that only read, over a memory backend that a test fills directly. */
import { CommandEvents } from '../../src/core/commands/events.ts';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { TableLimits } from '../../src/backends/memory/history.ts';
import { READ_TURNS } from '../../src/core/limits.ts';
import { ReadTurns } from '../../src/core/shares/turns.ts';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import type { Backend } from '../../src/core/backend.ts';
import { createActions } from '../../src/core/connections/action-sample.ts';
import { createConnections } from '../../src/core/connections/connections.ts';
import type { Actions, Connections, Histories, Users } from '../../src/core/core.ts';
import { Cursors } from '../../src/core/cursors.ts';
import type { Deps } from '../../src/core/deps.ts';
import { createHistories } from '../../src/core/history/history.ts';
import { silentLog } from '../../src/core/ports.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { Admissions, RevocationIndex } from '../../src/core/revocations/revocation.ts';
import { createUsers } from '../../src/core/users/users.ts';
import { createCrypto, systemLoop, systemProcess } from '../../src/platform/system.ts';
import { FakeClock } from './clock.ts';

export type Rooms = {
  readonly clock: FakeClock;
  readonly backend: Backend;
  readonly deps: Deps;
  readonly connections: Connections;
  readonly actions: Actions;
  readonly users: Users;
  readonly history: Histories;
};

/** Opens the rooms that only read, over a memory backend that the test fills directly. */
export function testRooms(limits: Partial<TableLimits> = {}): Rooms {
  const clock = new FakeClock();
  const crypto = createCrypto('test');
  const shares = createShares();
  const backend = createMemoryBackend({
    markSecret: 'x',
    clock,
    log: silentLog,
    sha256: crypto.sha256,
    shares,
    history: limits,
  });
  const deps: Deps = {
    nodeId: 'n1',
    backend,
    clock,
    crypto,
    cursors: new Cursors(crypto),
    policy: defaultPolicy,
    log: silentLog,
    metrics: silentMetrics,
    tracing: null,
    spill: createMemorySpill(clock, crypto),
    shares,
    readTurns: new ReadTurns(READ_TURNS),
    revoked: new RevocationIndex(),
    admissions: new Admissions(),
    closed: new AbortController().signal,
    loop: systemLoop,
    processMeter: systemProcess,
    rawMessages: true,
    events: new CommandEvents({ nodeId: 'n1', backend, clock, crypto }),
    audit: { record: async () => ({ end: async () => {} }) },
    reveal: 'argument',
    server: { version: '1.2.3', label: null, traceUrl: null, maxBodyBytes: 1_000_000 },
  };
  return {
    clock,
    backend,
    deps,
    connections: createConnections(deps),
    actions: createActions(deps),
    users: createUsers(deps),
    history: createHistories(deps),
  };
}
