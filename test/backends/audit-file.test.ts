/** Tests the audit log of direct mode, which is a file: restarts, damaged rows, file permissions and limits. */
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openAuditFile, readAuditFile } from '../../src/backends/memory/audit.ts';
import { openRow } from '../../src/core/audit/audit-rows.ts';
import { createAuditTrail, type AuditTrail } from '../../src/core/audit/audit.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import { OPS, sign, verified } from '../contract/audit.ts';
import { FakeClock } from '../kit/clock.ts';
import { ownFolder } from '../kit/folder.ts';

const ACT = { action: 'drain', subject: { nodeId: 'n1' } } as const;

function start(path: string, log: Log = silentLog): { trail: AuditTrail; store: ReturnType<typeof openAuditFile> } {
  const store = openAuditFile(path, log);
  const bounds = { maxRows: 100, keepMs: 1e12, metrics: silentMetrics };
  return { store, trail: createAuditTrail({ store, clock: new FakeClock(), log, nodeId: 'n1', sign, ...bounds }) };
}

describe('the audit file', () => {
  it('goes on with its chain after restarts, and only its owner may read it', async () => {
    const path = join(ownFolder(), 'audit.jsonl');
    for (let run = 0; run < 3; run++) {
      const { trail, store } = start(path);
      await trail.record(OPS, ACT).then((act) => act.end('requested'));
      await store.close();
    }
    const { store } = start(path);
    expect(await verified(store)).toMatchObject({ rows: 6, fault: null });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(
      readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).seq),
    ).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('cuts off an unfinished last row, and says so in the log and in a row', async () => {
    const path = join(ownFolder(), 'audit.jsonl');
    const first = start(path);
    await first.trail.record(OPS, ACT);
    await first.store.close();
    appendFileSync(path, '{"seq":2,"prev":"ab');
    expect(readAuditFile(path).torn.toString()).toBe('{"seq":2,"prev":"ab');
    const warnings: unknown[] = [];
    const { trail, store } = start(path, { ...silentLog, warn: (fields) => void warnings.push(fields) });
    await trail.record(OPS, ACT);
    expect(warnings).toMatchObject([{ path, bytes: 19 }]);
    const kinds = (await store.lines(0, 10)).map((line) => openRow(line)?.row.kind);
    expect(kinds).toEqual(['act', 'torn', 'act']);
    expect(await verified(store)).toMatchObject({ rows: 3, fault: null });
    await store.close();
  });

  it('writes nothing if another process has written to it', async () => {
    const path = join(ownFolder(), 'audit.jsonl');
    const { trail, store } = start(path);
    await trail.record(OPS, ACT);
    const { trail: other, store: beside } = start(path);
    await other.record(OPS, ACT);
    await expect(trail.record(OPS, ACT)).rejects.toMatchObject({ code: 'audit_unavailable' });
    expect(readAuditFile(path).lines).toHaveLength(2);
    await beside.close();
    await store.close();
  });

  it('keeps a bounded number of rows, also after a restart', async () => {
    const path = join(ownFolder(), 'audit.jsonl');
    const { trail, store } = start(path);
    for (let i = 0; i < 130; i++) await trail.record(OPS, ACT);
    await store.close();
    const again = start(path);
    const report = await verified(again.store);
    expect(report.fault).toBeNull();
    expect(report.rows).toBeLessThanOrEqual(120);
    expect(report.firstSeq).toBeGreaterThan(1);
    await again.store.close();
  });

  it('prevents the start if it cannot be opened', () => {
    const path = join(ownFolder(), 'plain');
    writeFileSync(path, '');
    expect(() => openAuditFile(join(path, 'audit.jsonl'), silentLog)).toThrow(/AUDIT_FILE: the file cannot be used/);
  });
});
