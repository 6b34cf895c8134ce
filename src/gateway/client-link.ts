import type { ClientLink } from '../core/delivery/link.ts';
import { reasonOfCause } from './close.ts';
import type { Reports } from './reports.ts';
import type { Wire } from './wire.ts';

/** A client's socket as core sees it. */
export function createClientLink(wire: Wire, reports: Reports, onAskedBehind: () => void): ClientLink {
  return {
    sendCommand(command, params, remainingMs) {
      reports.expect(command);
      const { commandId, action, traceId, parentSpanId } = command;
      const header = {
        type: 'command',
        command_id: commandId,
        action,
        remaining_ms: Math.max(0, Math.floor(remainingMs)),
        trace_id: traceId ?? undefined,
        parent_span_id: parentSpanId ?? undefined,
      } as const;
      wire.send(header, params);
    },
    sendCancel(commandId, reason) {
      wire.send({ type: 'cancel', command_id: commandId, reason: reason ?? undefined });
    },
    backlog() {
      if (wire.behind) onAskedBehind();
      return wire.backlog;
    },
    close(cause, instanceId) {
      if (cause === 'replaced' && instanceId !== null) wire.send({ type: 'replaced', instance_id: instanceId });
      wire.close(reasonOfCause(cause));
    },
  };
}
