/** Starts a relay that records its spans in memory. */
import { recordSpans, type Spans } from '../../kit/spans.ts';
import { startTestRelay, type TestRelay } from './test-relay.ts';

export const INVOKE = '/connections/alice/tab/actions/open';
/** The ids of the trace and of the span that a caller sends with its call. */
export const TRACE = '0af7651916cd43dd8448eb211c80319c';
export const SPAN = 'b7ad6b7169203331';

/** Starts a relay that records the spans of every trace. */
export async function tracedRelay(): Promise<{ readonly spans: Spans; readonly relay: TestRelay }> {
  const spans = recordSpans();
  return { spans, relay: await startTestRelay({}, { tracing: spans.api }) };
}
