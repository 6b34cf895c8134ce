/** Tests that frames are written byte for byte as JSON.stringify would write them. */
import { expect, test } from 'vitest';
import { writeHeader } from '../../src/protocol/write-header.ts';
import { joinFrame } from '../../src/protocol/frame-codec.ts';
import type { DownHeader } from '../../src/protocol/frames.ts';
const ended = { stage: 'terminal', execution: 'may_have_run' };
const ids = { ref: 'r:1~@', command_id: 'c-1' };
const words = 'a "quoted" \\ line\n\u2028 \ud800';

test.each<DownHeader>([
  { type: 'command', command_id: 'c1', action: 'lamp.set', remaining_ms: 30_000 },
  { type: 'command', command_id: 'c1', action: 'a', remaining_ms: 0, trace_id: words, parent_span_id: words },
  { type: 'command', command_id: 'c1', action: 'a', remaining_ms: 1, trace_id: undefined, parent_span_id: '' },
  { type: 'result_ack', command_id: 'c1', recorded: 'duplicate' },
  { type: 'outcome', ...ids, ...ended },
  { type: 'outcome', ...ids, rpc_id: 'w1', outcome: 'failed', ...ended, error_code: words, error_message: words },
  { type: 'outcome', ...ids, rpc_id: undefined, outcome: undefined, ...ended },
  { type: 'ping' },
])('a frame is written as JSON.stringify writes it: %j', (header) => {
  expect(writeHeader(header)).toBe(joinFrame(header));
});
