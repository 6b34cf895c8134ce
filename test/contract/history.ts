import { describe } from 'vitest';
import type { Bench } from './kit.ts';
export type HistoryBounds = { streamMessages?: number; retentionMs?: number; streamsPerUser?: number; bytes?: number };
export function historyContract(_n: string, _m: (b?: HistoryBounds) => Promise<Bench>): void {
  describe.todo('history');
}
