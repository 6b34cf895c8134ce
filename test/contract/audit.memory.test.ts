/** Runs the contract of the audit's store over memory and over a file. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { openAuditFile } from '../../src/backends/memory/audit.ts';
import { FakeClock } from '../kit/clock.ts';
import { auditContract } from './audit.ts';

auditContract('memory', async () => {
  const clock = new FakeClock();
  const { audit } = createMemoryBackend({
    markSecret: 'x',
    clock,
    log: silentLog,
    sha256: createCrypto('test').sha256,
  });
  return { stores: [audit, audit], now: () => clock.now(), advance: (ms) => clock.advance(ms), close: async () => {} };
});

auditContract('a file', async () => {
  const clock = new FakeClock();
  const audit = openAuditFile(join(mkdtempSync(join(tmpdir(), 'callboard-audit-')), 'rows.jsonl'), silentLog);
  const close = async (): Promise<void> => audit.close();
  return { stores: [audit, audit], now: () => clock.now(), advance: (ms) => clock.advance(ms), close };
});
